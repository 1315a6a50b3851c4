import { availableParallelism } from 'node:os';
import type { Config, DatabaseConfig } from '../config/config.ts';
import type { Context } from '../context.ts';
import { timestamp } from '../db/write.ts';
import type { Engine } from '../db/database.ts';
import { createSqliteEngine } from '../db/sqlite/sqlite-engine.ts';
import { prepareSqliteFile } from '../db/sqlite/sqlite-file.ts';
import { StartError } from '../rules/failure.ts';
import { checkSecret, findSecret, type FoundSecret, type SecretPolicy } from './instance-secret.ts';
import type { Log } from '../platform/log.ts';
import { renderCrashes } from '../platform/measured.ts';
import { createRenderer } from '../markdown/pool/renderer.ts';
import { keyFromSecret } from '../rules/secrets.ts';
import { countCall } from '../services/limits/rate-window.ts';
import { createSearches } from '../services/lists/searches.ts';

/** A context that its owner must close. */
export type OpenContext = Context & {
  /** Names of the migrations that ran. */
  readonly migrated: readonly string[];
  /** Why the secret is not this database's, under the policy `examined`; else null. */
  readonly secretFault: StartError | null;
  /** Finishes pending writes, then closes the database and all threads. */
  close(): Promise<void>;
};

export type OpenOptions = {
  /** Refuse to create a database. */
  readonly existing: boolean;
  /** Run pending migrations where settings allow (the default); else refuse a database that has any. */
  readonly migrate?: boolean;
  /** `required` by default. */
  readonly secret?: SecretPolicy;
  readonly log: Log;
  /** How long to wait for a PostgreSQL that does not answer, ms; long enough for its start by default. */
  readonly patience?: number;
  /** The clock, epoch ms; the system's by default. */
  readonly now?: () => number;
};

/**
 * Opens the database, creating or upgrading it where needed, and what works with it. Throws StartError with one
 * line for whatever cannot be opened.
 */
export async function openContext(config: Config, options: OpenOptions): Promise<OpenContext> {
  const { database } = config;
  const { log, secret = 'required', now = Date.now, patience = 60_000 } = options;
  const migrate = (options.migrate ?? true) && !config.readOnly;
  const all = { ...options, migrate, secret, now, patience };
  const opened = await ('file' in database
    ? openEmbedded(database.file, config, all)
    : openPostgres(database, config, all));
  const { engine, secretKey, migrated } = opened;
  const check = { secret, mayRecord: migrate };
  const secretFault = await checkSecret(engine, opened, config, check).catch(async (error: unknown) => {
    await engine.close();
    throw error;
  });
  const renderer = createRenderer({
    threads: Math.max(1, Math.ceil(Math.min(4, availableParallelism() - 1) / config.workers)),
    onCrash(error) {
      renderCrashes.value++;
      log.error({ err: error }, 'a rendering thread stopped');
    },
  });
  return {
    config,
    db: engine.reads,
    now,
    engine,
    renderer,
    searches: createSearches(engine),
    log,
    secretKey,
    migrated,
    secretFault,
    async close() {
      await renderer.close();
      await engine.close();
    },
  };
}

type Opened = FoundSecret & { readonly engine: Engine; readonly migrated: readonly string[] };

async function openEmbedded(file: string, config: Config, options: Required<OpenOptions>): Promise<Opened> {
  const { log, now } = options;
  const { dataDir } = config;
  const migrated = await prepareSqliteFile({ ...options, dataDir, file, now: timestamp(now()) });
  const found = await findSecret(config, file, options);
  const engine = await createSqliteEngine(file, { config, secretKey: found.secretKey, log, now });
  return { engine, ...found, migrated };
}

async function openPostgres(
  database: DatabaseConfig & { readonly engine: 'postgres' },
  config: Config,
  options: Required<OpenOptions>,
): Promise<Opened> {
  const { log, now } = options;
  const { secret, readOnly } = config;
  if (secret === null) throw new StartError('SECRET is required with PostgreSQL: all servers must share it.');
  // Loaded on demand: a start with the embedded engine must not wait for it.
  const [{ startPostgres }, { createPostgresEngine }] = await Promise.all([
    import('../db/postgres/postgres-start.ts'),
    import('../db/postgres/postgres-engine.ts'),
  ]);
  const started = await startPostgres(database, { ...options, readOnly, now: timestamp(now()) });
  const secretKey = keyFromSecret(secret);
  const engine = createPostgresEngine({ ...started, config, secretKey, log, now, countCall });
  return { engine, secretKey, secretFault: null, migrated: started.migrated };
}
