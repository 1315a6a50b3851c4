import type { Config, DatabaseConfig } from '../../config/config.ts';
import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/table.ts';

export const migrateTo: Command = {
  name: 'migrate-to',
  summary: 'Copy the whole instance into another, empty database: SQLite to PostgreSQL, or back.',
  details: [
    'The address is written like DATABASE_URL; a password can be left out of it and given as PGPASSWORD.',
    'Stop what serves the instance, or start it with READ_ONLY=on. A copy that was broken off goes on when the',
    'command is repeated. Then set DATABASE_URL, and with PostgreSQL the same SECRET (SECRET_FILE=DATA_DIR/secret).',
  ],
  operands: ['address'],
  options: jsonOption,
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { createLog } = await import('../../platform/log.ts');
    const { openWhole } = await import('../../process/open-whole.ts');
    const { transfer } = await import('../../services/upkeep/transfer.ts');
    const config = loadConfig(call.env);
    const to = databaseAt(call.operand('address'), config, loadConfig);
    const log = createLog('warn', (line) => call.err(line.trimEnd()));
    const source = await openWhole(config.database, { create: false, log });
    try {
      const target = await openWhole(to, { create: true, log });
      try {
        const copied = await transfer(source, target, { now: Date.now, progress: reporter(call) });
        if (call.has('json')) return call.outJson({ to: target.description, tables: copied });
        const rows = copied.map((one) => [one.table, String(one.rows), one.sha256.slice(0, 16)]);
        call.out(table([['TABLE', 'ROWS', 'SHA-256'], ...rows]));
        call.out(`All of it is in ${target.description} too, and was compared.`);
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  },
};

/** Reads an address as DATABASE_URL would be. Throws ConfigError. */
function databaseAt(
  address: string,
  { dataDir }: Config,
  load: (env: Readonly<Record<string, string>>) => Config,
): DatabaseConfig {
  // A secret is asked for with PostgreSQL, and of no concern to a copy.
  return load({ DATA_DIR: dataDir, DATABASE_URL: address, SECRET: 'x'.repeat(32) }).database;
}

/** One line that changes on a terminal; elsewhere a line for each table. */
function reporter({ status, err }: Pick<Parameters<Command['run']>[0], 'status' | 'err'>) {
  return ({ table: name, done, all, checked }: Step): void => {
    const text = checked ? `${name}: ${done} rows compared` : `${name}: ${done} of ${all} rows copied`;
    if (status) status(checked ? '' : text);
    else if (checked || done >= all) err(text);
  };
}

type Step = {
  readonly table: string;
  readonly done: number;
  readonly all: number;
  readonly checked: boolean;
};
