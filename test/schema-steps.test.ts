import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { Client } from 'pg';
import { loadConfig } from '../src/config/config.ts';
import { createLog } from '../src/platform/log.ts';
import { openContext } from '../src/process/open-context.ts';
import { scratchFolder } from './support/scratch-folder.ts';
import { masthead } from './support/command-line.ts';
import { sharedPostgres } from './support/shared-postgres.ts';
import { openSqlite } from './support/sqlite-file.ts';

type Database = {
  readonly env: Readonly<Record<string, string>>;
  /** Runs one statement on the database itself. */
  readonly run: (statement: string) => Promise<unknown[]>;
};

let dir = '';
before(async () => {
  dir = scratchFolder('schema');
});

const databases: Readonly<Record<string, () => Promise<Database>>> = {
  async sqlite() {
    const env = { DATA_DIR: join(dir, 'sqlite') };
    return {
      env,
      async run(statement) {
        const database = openSqlite(join(env.DATA_DIR, 'masthead.db'));
        try {
          return database.prepare(statement).all();
        } finally {
          database.close();
        }
      },
    };
  },
  async postgres() {
    const url = await (await sharedPostgres()).createDatabase();
    const env = { DATA_DIR: join(dir, 'postgres'), DATABASE_URL: url, SECRET: 's'.repeat(32) };
    return {
      env,
      async run(statement) {
        const client = new Client({ connectionString: url });
        await client.connect();
        try {
          return (await client.query(statement)).rows;
        } finally {
          await client.end();
        }
      },
    };
  },
};

for (const [engine, open] of Object.entries(databases)) {
  describe(`schema steps (${engine})`, () => {
    let database: Database;
    before(async () => {
      database = await open();
      assert.equal((await onDatabase(['migrate'])).code, 0);
    });

    async function onDatabase(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
      const { code, stdout, stderr } = await masthead(args, { ...database.env, ...env });
      return { code, text: code === 0 ? stdout : stderr };
    }

    const steps = () => database.run('select name from migrations order by name');

    test('an operator looking around takes none, nor a service with READ_ONLY: servers of an older release may be at work', async () => {
      const all = await steps();
      const [last] = await database.run('select max(name) as name from migrations');
      const name = Object.values(Object(last)).join();
      await database.run(`delete from migrations where name = '${name}'`);
      const served = openContext(loadConfig({ ...database.env, READ_ONLY: 'on' }), {
        existing: true,
        log: createLog('silent'),
      });
      await assert.rejects(served, new RegExp(`lacks the schema step '${name}'`));
      const { code, text } = await onDatabase(['admin', 'agents', 'list']);
      assert.equal(code, 1);
      assert.match(text, new RegExp(`lacks the schema step '${name}': run 'masthead migrate'`));
      assert.deepEqual(await steps(), all.slice(0, -1));
      await database.run(`insert into migrations (name, applied_at) values ('${name}', '')`);
    });

    test('of a later release make an operator use that release', async () => {
      await database.run(`insert into migrations (name, applied_at) values ('9999-later', '')`);
      const { code, text } = await onDatabase(['admin', 'agents', 'list']);
      assert.equal(code, 1);
      assert.match(text, /newer than this program \(it has the schema step '9999-later'\)/);
      await database.run(`delete from migrations where name = '9999-later'`);
    });

    test('are not missed when there are none, with READ_ONLY either', async () => {
      const listed = await onDatabase(['admin', 'agents', 'list'], { READ_ONLY: 'on' });
      assert.equal(listed.code, 0, listed.text);
      assert.equal((await onDatabase(['migrate'])).text, 'The schema is up to date.');
    });
  });
}
