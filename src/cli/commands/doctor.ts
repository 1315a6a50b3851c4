import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { AppError } from '../../errors.ts';
import { StartError, errorCode, errorMessage } from '../../rules/failure.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';
import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';
import { withContext } from '../operator.ts';
import { table } from '../../../client/src/terminal/table.ts';

/** Free space below which somebody should look, bytes. */
const littleSpace = 1024 ** 3;
/** What to do stands at the end of a detail, which may name several paths, characters. */
const longestDetail = 10_000;

export const doctor: Command = {
  name: 'doctor',
  summary: 'Check settings, files and database, also while the service runs.',
  details: ['Reads all posts, and changes nothing. The exit code is 1 when anything is wrong.'],
  operands: [],
  options: jsonOption,
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { startupNotes } = await import('../../config/startup.ts');
    const { examine } = await import('../../services/upkeep/doctor.ts');
    const config = loadConfig(call.env);
    const notes = startupNotes(config).map((detail): Finding => ({
      what: 'settings',
      state: 'look',
      detail,
    }));
    const findings = [
      ...notes,
      ...(await examineFiles(config)),
      ...(await examined('database', () =>
        withContext(
          call,
          async (ctx) => [
            { what: 'database', state: 'ok', detail: ctx.engine.description } as const,
            secretFinding(ctx.secretFault),
            ...(await examined('database', () => examine(ctx))),
          ],
          'examined',
        ),
      )),
    ];
    if (call.has('json')) call.outJson(findings);
    else
      call.out(
        table(
          findings.map(({ state, what, detail }) => [state, what, detail]),
          longestDetail,
        ),
      );
    return findings.some(({ state }) => state === 'wrong') ? 1 : 0;
  },
};

/** The findings of one examination. One that cannot be made is a finding too. */
async function examined(
  what: string,
  examination: () => Promise<readonly Finding[]> | readonly Finding[] | void,
): Promise<readonly Finding[]> {
  try {
    return (await examination()) ?? [];
  } catch (error) {
    const reason = errorMessage(error);
    if (error instanceof StartError || error instanceof AppError)
      return [{ what, state: 'wrong', detail: reason }];
    const isRefused = errorCode(error) === 'EACCES';
    const mend = isRefused ? ': run this as the user of the service, or give that user the folder' : '';
    return [{ what, state: 'wrong', detail: `cannot be examined: ${reason}${mend}` }];
  }
}

function secretFinding(fault: string | null): Finding {
  return fault === null
    ? { what: 'secret', state: 'ok', detail: 'no other is recorded for this database' }
    : { what: 'secret', state: 'wrong', detail: fault };
}

async function examineFiles(config: Config): Promise<readonly Finding[]> {
  const { dataDir, database } = config;
  const file = 'file' in database ? database.file : null;
  if (!existsSync(dataDir)) return [];
  const unreadable = await examined('files', () => void readdirSync(dataDir));
  if (unreadable.length > 0) return unreadable;
  return [
    ...(await examined('permissions', () => [examinePermissions(dataDir, file)])),
    ...(await examined('disk', () => [examineDisk(dataDir)])),
    ...(file === null ? [] : await examined('file', () => examineFile(file))),
  ];
}

function examinePermissions(dataDir: string, file: string | null): Finding {
  const what = 'permissions';
  const ours = [dataDir, join(dataDir, 'secret'), ...(file === null ? [] : [file])];
  const open = ours.filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0);
  if (open.length === 0) return { what, state: 'ok', detail: `only its user reads ${dataDir}` };
  const paths = open.map((path) => `'${path}'`).join(' ');
  return { what, state: 'wrong', detail: `others may read what is the service's alone: chmod go= ${paths}` };
}

function examineDisk(dataDir: string): Finding {
  const { bavail, bsize } = statfsSync(dataDir);
  const free = bavail * bsize;
  const detail = `${Math.floor(free / 1024 ** 2)} MiB are free in ${dataDir}`;
  return { what: 'disk', state: free < littleSpace ? 'look' : 'ok', detail };
}

async function examineFile(file: string): Promise<Finding[]> {
  const { sqliteFault } = await import('../../db/sqlite/sqlite-copy.ts');
  statSync(file);
  const fault = sqliteFault(file);
  if (fault === null) return [{ what: 'file', state: 'ok', detail: `${file} is whole` }];
  return [
    { what: 'file', state: 'wrong', detail: `${file} is damaged (${fault}): restore it from a backup` },
  ];
}
