import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config, DatabaseConfig } from '../config/config.ts';
import type { Log } from '../platform/log.ts';
import type { OpenContext } from '../process/open-context.ts';
import { StartError, errorMessage } from '../rules/failure.ts';

type Options = { readonly log: Log; readonly now: number; readonly status: (text: string) => void };

/** What was found in a backup; `faults` are sentences, none where it is whole. */
export type Verified = {
  readonly backup: string;
  /** Of the file; null of a database. */
  readonly sha256: string | null;
  readonly stored: { readonly agents: number; readonly posts: number; readonly comments: number };
  /** Pictures, each of which was held against its file of MEDIA_DIR. */
  readonly pictures: number;
  /** Pages that were opened. */
  readonly pages: number;
  readonly faults: readonly string[];
};

/** Restores a file, or the newest backup of a folder, to a scratch folder and examines it. Throws StartError. */
export async function verifyFile(config: Config, path: string, options: Options): Promise<Verified> {
  const { restoreSqlite } = await import('../db/sqlite/sqlite-copy.ts');
  const { sha256Of } = await import('../platform/checksum.ts');
  const backup = await fileAt(config, path, options.now);
  const scratch = mkdtempSync(join(tmpdir(), 'masthead-verify-'));
  const release = removedWithUs(scratch);
  try {
    options.status(`Restoring ${backup} to ${scratch} …`);
    const file = join(scratch, 'masthead.db');
    await restoreSqlite(backup, { dataDir: scratch, file });
    const database: DatabaseConfig = { engine: 'sqlite', file };
    const examined = await examine({ ...config, dataDir: scratch, database, readOnly: false }, options);
    return { backup, sha256: await sha256Of(backup), ...examined };
  } finally {
    options.status('');
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
    release();
  }
}

/**
 * Has a folder removed when this process ends, also by a signal, which it could only answer between two statements of
 * SQLite: one of a large backup takes minutes. Returns what ends that.
 */
function removedWithUs(folder: string): () => void {
  const script = `trap '' INT TERM HUP; cat; rm -rf -- "$1"`;
  const keeper = spawn('/bin/sh', ['-c', script, 'sh', folder], {
    // Away from the terminal, whose Ctrl-C is for all of its programs.
    detached: true,
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  for (const part of [keeper, keeper.stdin]) part.on('error', () => undefined);
  keeper.unref();
  return () => keeper.stdin.end();
}

/** Examines the database at an address, which a dump was restored into. It is only read. Throws StartError. */
export async function verifyPostgres(config: Config, address: string, options: Options): Promise<Verified> {
  const { database } = config;
  if ('urls' in database && database.urls.includes(address))
    throw new StartError(
      'That is the database of the service: restore the dump into an empty one, and name that.',
    );
  const restored: DatabaseConfig = { engine: 'postgres', urls: [address], directUrl: null, replicaUrls: [] };
  const secret = config.secret ?? 'x'.repeat(32);
  const examined = await examine({ ...config, database: restored, secret, readOnly: true }, options);
  return { backup: examined.description, sha256: null, ...examined };
}

/** There is nothing to examine, which says nothing of any backup. */
export class NoBackup extends StartError {}

async function fileAt({ database }: Config, path: string, now: number): Promise<string> {
  const { instanceIn, listBackups } = await import('../db/sqlite/sqlite-backups.ts');
  try {
    if (!statSync(path).isDirectory()) return path;
    // Several instances may keep theirs in one folder. One that cannot be read may be this one's.
    const own = 'file' in database ? instanceIn(database.file) : null;
    const isOthers = (id: string | null) => own !== null && id !== null && id !== own;
    const newest = listBackups(path, now).find((backup) => !isOthers(instanceIn(backup)));
    if (newest !== undefined) return newest;
    const others = readdirSync(path).length;
    throw new NoBackup(
      `There is no backup${own === null ? '' : ' of this service'} in ${path}${others > 0 ? ', only other files' : ''}: make one with 'masthead backup --keep 7 ${path}'.`,
    );
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new NoBackup(
      `${path} cannot be read (${errorMessage(error)}): name a backup, or a folder of them.`,
    );
  }
}

async function examine(config: Config, { log, status }: Options) {
  const { openContext } = await import('../process/open-context.ts');
  const { pagesToTry, readContents } = await import('../services/upkeep/contents.ts');
  const { findWrongCounts } = await import('../services/upkeep/doctor.ts');
  const { comparePictures } = await import('../services/upkeep/picture-files.ts');
  const ctx = await openContext(config, { existing: true, secret: 'examined', log });
  try {
    status('Counting …');
    const stored = await readContents(ctx);
    const wrong = await findWrongCounts(ctx);
    const faults = wrong.map(({ what, rows, example }) => `${what}: ${rows} wrong, e.g. ${example}`);
    status('Reading pictures …');
    const pictures = await comparePictures(ctx, { bytes: true });
    faults.push(...pictures.faults);
    const urls = await pagesToTry(ctx);
    status(`Opening ${urls.length} pages …`);
    faults.push(...(await openPages(ctx, urls)));
    return {
      description: ctx.engine.description,
      stored,
      pictures: pictures.pictures,
      pages: urls.length,
      faults,
    };
  } finally {
    await ctx.close();
  }
}

/** Asks for pages in this process, without a port. What is wrong with those that do not open. */
async function openPages(ctx: OpenContext, urls: readonly string[]): Promise<string[]> {
  const { createApp } = await import('../app.ts');
  const { createRateLimiter } = await import('../services/limits/rate-limiter.ts');
  const limiter = createRateLimiter(ctx, () => 1);
  const app = await createApp(ctx, { limiter, health: { state: () => 'ready', writable: () => true } });
  try {
    const faults: string[] = [];
    for (const url of urls) {
      const { host, pathname } = new URL(url);
      const { statusCode } = await app.inject({ url: pathname, headers: { host } });
      if (statusCode !== 200) faults.push(`${url}: answered ${statusCode} instead of 200`);
    }
    return faults;
  } finally {
    await app.close();
    await limiter.close();
  }
}
