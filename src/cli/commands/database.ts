import type { Call, Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import type { TransferOptions } from '../../services/upkeep/transfer.ts';
import { commandLog, withContext } from '../operator.ts';

export const migrate: Command = {
  name: 'migrate',
  summary: 'Make the database, or bring its schema up to date, without serving.',
  details: ['serve does the same at its start.'],
  options: { existing: { meaning: 'Refuse to create a database.' } },
  async run(call) {
    // A deployment may run it while the database starts.
    const options = { existing: call.has('existing'), migrate: true, patience: 60_000 };
    const steps = await withContext(call, async ({ migrated }) => migrated, options);
    const lines = steps.map((step) => `Took the schema step ${step}.`);
    call.result({ steps }, lines.join('\n') || 'The schema is up to date.');
  },
};

export const migrateTo: Command = {
  name: 'migrate-to',
  summary: 'Copy the whole instance into another, empty database: SQLite to PostgreSQL, or back.',
  details: [
    'The address is written like DATABASE_URL; a password can be left out of it and given as PGPASSWORD.',
    'Stop all servers of the instance, or start them with READ_ONLY=on. An interrupted copy goes on when the command',
    'is repeated. Then set DATABASE_URL, and with PostgreSQL the same SECRET (SECRET_FILE=DATA_DIR/secret).',
  ],
  operands: ['address'],
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { openWhole } = await import('../../db/whole.ts');
    const { transfer } = await import('../../services/upkeep/transfer.ts');
    const { database, dataDir } = loadConfig(call.env);
    // A secret is required with PostgreSQL, and irrelevant to a copy.
    const env = { DATA_DIR: dataDir, DATABASE_URL: call.operand('address'), SECRET: 'x'.repeat(32) };
    const to = loadConfig(env).database;
    const log = commandLog(call);
    await using opened = new AsyncDisposableStack();
    const source = opened.adopt(await openWhole(database, { create: false, log }), (one) => one.close());
    const target = opened.adopt(await openWhole(to, { create: true, log }), (one) => one.close());
    const tables = await transfer(source, target, { now: Date.now, progress: progressOf(call) });
    const rows = tables.map((one) => [one.table, String(one.rows), one.sha256.slice(0, 16)]);
    call.result(
      { to: target.description, tables },
      `${table([['TABLE', 'ROWS', 'SHA-256'], ...rows])}\nAll of it is in ${target.description} too, and was compared.`,
    );
  },
};

/** One line that changes on a terminal; elsewhere a line for each table. */
function progressOf({ status, err }: Call): TransferOptions['progress'] {
  return ({ table: name, done, all, checked }) => {
    const text = checked ? `${name}: ${done} rows compared` : `${name}: ${done} of ${all} rows copied`;
    if (status) status(checked ? '' : text);
    else if (checked || done >= all) err(text);
  };
}

export const adoptSecret: Command = {
  name: 'adopt-secret',
  summary: 'Go on with another secret, after the one of the database was lost.',
  details: [
    'From now on SECRET or DATA_DIR/secret is the one of this database; if there is neither, DATA_DIR/secret is made.',
    'Stop the service first. Waiting mail is encrypted with the former secret: it is sent if that is put back and adopted',
    'within 7 days, and given up otherwise. Posts, keys and tokens do not depend on the secret; answers remembered for',
    'an Idempotency-Key and the call counts of client addresses are forgotten.',
  ],
  async run(call) {
    const { countUnreadableMail } = await import('../../services/outbox.ts');
    const unreadable = await withContext(call, countUnreadableMail, { secret: 'adopted' });
    const note = `${unreadable} messages wait for the former one: they go out if it comes back.`;
    call.result(
      { adopted: true, unreadable },
      'The secret is the one of this database from now on.',
      unreadable > 0 ? [note] : [],
    );
  },
};

/** Posts between two lines of progress. */
const progressEvery = 1_000;

export const rerender: Command = {
  name: 'rerender',
  summary: 'Render again the posts and comments that an older release rendered.',
  details: [
    'The service may run or not. It can be interrupted and run again: what is done stays done.',
    'One that can no longer be rendered stays as it is, and is named.',
  ],
  async run(call) {
    const { rerenderAll } = await import('../../services/upkeep/rerender.ts');
    let shown = 0;
    const progress = (done: number) => {
      if (done - shown < progressEvery) return;
      shown = done;
      call.err(`${done} posts and comments so far`);
    };
    const result = await withContext(call, (ctx) => rerenderAll(ctx, progress));
    const notes = result.unrendered.map(({ id, of, reason }) => `The ${of} ${id} stays as it is: ${reason}`);
    call.result(result, `Rendered ${result.rendered} posts and ${result.comments} comments.`, notes);
  },
};
