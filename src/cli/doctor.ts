import { statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { Finding } from '../services/examination.ts';
import { jsonOption, type Command } from './command.ts';
import { withContext } from './operator.ts';
import { table } from './table.ts';

/** Free space below which somebody should look, bytes. */
const littleSpace = 1024 ** 3;

export const doctor: Command = {
  name: 'doctor',
  summary: 'Check settings, files and database, also while the service runs.',
  details: ['Reads all posts, and changes nothing. The exit code is 1 when anything is wrong.'],
  operands: [],
  options: jsonOption,
  async run(call) {
    const { loadConfig } = await import('../config.ts');
    const { startupNotes } = await import('../config/startup.ts');
    const { examine } = await import('../services/examination.ts');
    const config = loadConfig(call.env);
    const notes = startupNotes(config).map((detail): Finding => ({
      what: 'settings',
      state: 'look',
      detail,
    }));
    const findings = [
      ...notes,
      ...(await examineFiles(config)),
      ...(await withContext(call, async (ctx) => [
        { what: 'database', state: 'ok', detail: ctx.engine.description } as const,
        ...(await examine(ctx)),
      ])),
    ];
    if (call.has('json')) call.outJson(findings);
    else call.out(table(findings.map(({ state, what, detail }) => [state, what, detail])));
    return findings.some(({ state }) => state === 'wrong') ? 1 : 0;
  },
};

async function examineFiles(config: Config): Promise<Finding[]> {
  const { dataDir, database } = config;
  const stats = statSync(dataDir, { throwIfNoEntry: false });
  if (!stats) return [];
  const { bavail, bsize } = statfsSync(dataDir);
  const free = bavail * bsize;
  const kept = [dataDir, join(dataDir, 'secret'), ...('file' in database ? [database.file] : [])];
  const open = kept.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0);
  return [
    open.length === 0
      ? { what: 'permissions', state: 'ok', detail: `only its user reads ${dataDir}` }
      : {
          what: 'permissions',
          state: 'wrong',
          detail: `others may read what is the service's alone: chmod go= ${open.map((path) => `'${path}'`).join(' ')}`,
        },
    {
      what: 'disk',
      state: free < littleSpace ? 'look' : 'ok',
      detail: `${Math.floor(free / 1024 ** 2)} MiB are free in ${dataDir}`,
    },
    ...('file' in database ? [await examineFile(database.file)] : []),
  ];
}

async function examineFile(file: string): Promise<Finding> {
  const { sqliteFault } = await import('../db/sqlite-copy.ts');
  const fault = sqliteFault(file);
  return fault === null
    ? { what: 'file', state: 'ok', detail: `${file} is whole` }
    : { what: 'file', state: 'wrong', detail: `${file} is damaged (${fault}): restore it from a backup` };
}
