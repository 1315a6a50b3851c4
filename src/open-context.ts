import { randomBytes, randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import type { Config, DatabaseConfig } from './config.ts';
import { timestamp, type Context } from './context.ts';
import type { Engine } from './db/database.ts';
import { createSqliteEngine } from './db/sqlite-engine.ts';
import { prepareSqliteFile } from './db/sqlite-file.ts';
import { StartError } from './errors.ts';
import type { Log } from './log.ts';
import { createRenderer } from './markdown/renderer.ts';
import { keyFromSecret } from './secrets.ts';
import { countCall } from './services/rate-limits.ts';

/** A context that somebody must close. */
export type OpenContext = Context & {
  /** Names of the schema steps that opening took. */
  readonly migrated: readonly string[];
  /** Finishes the writes it was given, then closes the database and all threads. */
  close(): Promise<void>;
};

export type OpenOptions = {
  /** Refuse to create a database. */
  readonly existing: boolean;
  /** Bring the schema up to date where settings allow (the default); else refuse one that is not. */
  readonly migrate?: boolean;
  readonly log: Log;
  /** The clock, epoch ms; the system's by default. */
  readonly now?: () => number;
};

/**
 * Opens the database, made or brought up to date where need be, and what works with it. Throws StartError
 * with one line for whatever cannot be opened.
 */
export async function openContext(config: Config, options: OpenOptions): Promise<OpenContext> {
  const { log, migrate = true, now = Date.now } = options;
  const { engine, secretKey, migrated } = await openEngine(config.database, config, {
    ...options,
    migrate: migrate && !config.readOnly,
    now,
  });
  const renderer = createRenderer({
    threads: Math.max(1, Math.ceil(Math.min(4, availableParallelism() - 1) / config.workers)),
    onCrash: (error) => log.error({ err: error }, 'a rendering thread stopped'),
  });
  return {
    config,
    db: engine.reads,
    now,
    engine,
    renderer,
    log,
    secretKey,
    migrated,
    async close() {
      await renderer.close();
      await engine.close();
    },
  };
}

type Opened = {
  readonly engine: Engine;
  readonly secretKey: Buffer;
  readonly migrated: readonly string[];
};
type Databases = { [Database in DatabaseConfig as Database['engine']]: Database };
type Opener<Database> = (
  database: Database,
  config: Config,
  options: Required<OpenOptions>,
) => Promise<Opened>;

/** How each kind of database is opened. */
const engines: { readonly [Name in keyof Databases]: Opener<Databases[Name]> } = {
  async sqlite({ file }, config, { existing, migrate, log, now }) {
    const { dataDir } = config;
    const migrated = await prepareSqliteFile({
      dataDir,
      file,
      existing,
      migrate,
      now: timestamp(now()),
      log,
    });
    const secretKey = keyFromSecret(config.secret ?? ownSecret(dataDir));
    return { engine: await createSqliteEngine(file, { config, secretKey, log, now }), secretKey, migrated };
  },
  async postgres(database, config, { existing, migrate, log, now }) {
    const { secret, readOnly } = config;
    if (secret === null)
      throw new StartError('SECRET is required with PostgreSQL: all servers must share it.');
    // Loaded here, since it would make every start with the embedded engine slower.
    const [{ startPostgres }, { createPostgresEngine }] = await Promise.all([
      import('./db/postgres-start.ts'),
      import('./db/postgres-engine.ts'),
    ]);
    const start = { existing, migrate, readOnly, now: timestamp(now()), log };
    const { servers, description, migrated } = await startPostgres(database, start);
    const secretKey = keyFromSecret(secret);
    const engine = createPostgresEngine({ servers, description, config, secretKey, log, now, countCall });
    return { engine, secretKey, migrated };
  },
};

function openEngine<Name extends keyof Databases>(
  database: Databases[Name] & { readonly engine: Name },
  config: Config,
  options: Required<OpenOptions>,
): Promise<Opened> {
  return engines[database.engine](database, config, options);
}

/**
 * The secret in `dataDir`/secret, made at the first start. It appears under its name whole and on disk, and of
 * several processes that make one at once all take the same.
 */
function ownSecret(dataDir: string): string {
  const file = join(dataDir, 'secret');
  try {
    return readSecret(file) ?? makeSecret(file);
  } catch (error) {
    if (error instanceof StartError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(
      `The secret ${file} cannot be read or made (${reason}): check its owner, or set SECRET.`,
    );
  }
}

function makeSecret(file: string): string {
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(draft);
  }
  const directory = openSync(dirname(file), 'r');
  fsyncSync(directory);
  closeSync(directory);
  return readSecret(file) ?? makeSecret(file);
}

function readSecret(file: string): string | null {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    if (secret.length >= 32) return secret;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
  throw new StartError(
    `The secret in ${file} is shorter than 32 characters: restore it from a backup, or remove the file to have one made (mail that still waits is lost).`,
  );
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
