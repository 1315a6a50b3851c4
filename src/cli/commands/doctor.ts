import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import type { Config } from '../../config/config.ts';
import { AppError } from '../../errors.ts';
import type { OpenContext } from '../../process/open-context.ts';
import { StartError, errorCode, errorMessage } from '../../rules/failure.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';
import { withContext } from '../operator.ts';

export const showConfig: Command = {
  name: 'config',
  summary: 'Check the settings and show the values in use, without secrets.',
  async run({ env, result }) {
    const { describeConfig, loadConfig, misspeltSettings } = await import('../../config/config.ts');
    const { startupNotes } = await import('../../config/startup.ts');
    const config = loadConfig(env);
    const rows = describeConfig(config).map(({ name, value }) => [name, value] as const);
    const notes = [...misspeltSettings(env), ...startupNotes(config)];
    result({ settings: Object.fromEntries(rows), notes }, table(rows), notes);
  },
};

/** Free space below which somebody should look, bytes. */
const littleSpace = 1024 ** 3;
/** Characters: a detail ends with what to do, and may name several paths before that. */
const longestDetail = 10_000;

export const doctor: Command = {
  name: 'doctor',
  summary: 'Check settings, files and database, also while the service runs.',
  details: ['Reads all posts, and changes nothing. The exit code is 1 when anything is wrong.'],
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { startupNotes } = await import('../../config/startup.ts');
    const config = loadConfig(call.env);
    const findings = [
      ...startupNotes(config).map((detail): Finding => ({ what: 'settings', state: 'look', detail })),
      ...(await examineFiles(config)),
      ...(await attempt('database', () => withContext(call, examineDatabase, { secret: 'examined' }))),
    ];
    const rows = findings.map(({ state, what, detail }) => [state, what, detail]);
    call.result(findings, table(rows, { longest: longestDetail }));
    return findings.some(({ state }) => state === 'wrong') ? 1 : 0;
  },
};

async function examineFiles({ dataDir, database }: Config): Promise<readonly Finding[]> {
  const file = 'file' in database ? database.file : null;
  if (!existsSync(dataDir)) return [];
  const unreadable = await attempt('files', () => void readdirSync(dataDir));
  if (unreadable.length > 0) return unreadable;
  return [
    ...(await attempt('permissions', () => examinePermissions(dataDir, file))),
    ...(await attempt('disk', () => examineDisk(dataDir, file))),
    ...(file === null ? [] : await attempt('file', () => examineFile(file))),
  ];
}

async function examineDatabase(ctx: OpenContext): Promise<readonly Finding[]> {
  const { examine } = await import('../../services/upkeep/doctor.ts');
  const { secretFault } = ctx;
  return [
    { what: 'database', state: 'ok', detail: ctx.engine.description },
    secretFault === null
      ? { what: 'secret', state: 'ok', detail: 'no other is recorded for this database' }
      : { what: 'secret', state: 'wrong', detail: secretFault },
    ...(await attempt('database', () => examine(ctx))),
  ];
}

/** What a check finds. That it cannot be made is a finding too. */
async function attempt(
  what: string,
  check: () => Promise<Finding | readonly Finding[]> | Finding | void,
): Promise<readonly Finding[]> {
  try {
    return [(await check()) ?? []].flat();
  } catch (error) {
    const reason = errorMessage(error);
    const isExpected = error instanceof StartError || error instanceof AppError;
    const isRefused = errorCode(error) === 'EACCES';
    const mend = isRefused ? ': run this as the user of the service, or give that user the folder' : '';
    const detail = isExpected ? reason : `cannot be examined: ${reason}${mend}`;
    return [{ what, state: 'wrong', detail }];
  }
}

function examinePermissions(dataDir: string, file: string | null): Finding {
  const what = 'permissions';
  const ours = [dataDir, join(dataDir, 'secret'), ...(file === null ? [] : [file])];
  const open = ours.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0);
  if (open.length === 0) return { what, state: 'ok', detail: `only its user reads ${dataDir}` };
  const paths = open.map((path) => `'${path}'`).join(' ');
  return { what, state: 'wrong', detail: `others may read what is the service's alone: chmod go= ${paths}` };
}

async function examineDisk(dataDir: string, file: string | null): Promise<Finding> {
  const { bavail, bsize } = statfsSync(dataDir);
  const free = bavail * bsize;
  const detail = `${mebibytes(free)} MiB are free in ${dataDir}`;
  const room = file !== null && existsSync(file) ? await roomFor(file) : null;
  if (room?.onlyDeletions) {
    const needed = Math.ceil(room.needed / 1024 ** 2);
    const mend = `make room: until ${needed} MiB are free the service only reads and deletes`;
    return {
      what: 'disk',
      state: 'wrong',
      detail: `${mebibytes(room.free)} MiB are free for ${file}: ${mend}`,
    };
  }
  return { what: 'disk', state: free < littleSpace ? 'look' : 'ok', detail };
}

async function roomFor(file: string) {
  const { diskRoom } = await import('../../db/sqlite/disk-reserve.ts');
  return diskRoom(file);
}

const mebibytes = (bytes: number) => Math.floor(bytes / 1024 ** 2);

async function examineFile(file: string): Promise<Finding> {
  const { sqliteFault } = await import('../../db/sqlite/sqlite-copy.ts');
  statSync(file);
  const fault = sqliteFault(file);
  if (fault === null) return { what: 'file', state: 'ok', detail: `${file} is whole` };
  return { what: 'file', state: 'wrong', detail: `${file} is damaged (${fault}): restore it from a backup` };
}
