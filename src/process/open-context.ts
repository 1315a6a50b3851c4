import { availableParallelism } from 'node:os';
import type { Config, DatabaseConfig } from '../config/config.ts';
import { timestamp, type Context } from '../context.ts';
import type { Engine } from '../db/database.ts';
import { createSqliteEngine } from '../db/sqlite/sqlite-engine.ts';
import { prepareSqliteFile } from '../db/sqlite/sqlite-file.ts';
import { StartError } from '../rules/failure.ts';
import { checkSecret, findSecret, type FoundSecret, type SecretPolicy } from './instance-secret.ts';
import type { Log } from '../platform/log.ts';
import { createRenderer } from '../markdown/pool/renderer.ts';
import { keyFromSecret } from '../rules/secrets.ts';
import { countCall } from '../services/limits/rate-limits.ts';

/** A context that somebody must close. */
export type OpenContext = Context & {
  /** Names of the schema steps that opening took. */
  readonly migrated: readonly string[];
  /** Why the secret is not this database's, where that was to be examined; else null. */
  readonly secretFault: string | null;
  /** Finishes the writes it was given, then closes the database and all threads. */
  close(): Promise<void>;
};

export type OpenOptions = {
  /** Refuse to create a database. */
  readonly existing: boolean;
  /** Bring the schema up to date where settings allow (the default); else refuse one that is not. */
  readonly migrate?: boolean;
  /** `required` by default. */
  readonly secret?: SecretPolicy;
  readonly log: Log;
  /** The clock, epoch ms; the system's by default. */
  readonly now?: () => number;
};

/**
 * Opens the database, made or brought up to date where need be, and what works with it. Throws StartError
 * with one line for whatever cannot be opened.
 */
export async function openContext(config: Config, options: OpenOptions): Promise<OpenContext> {
  const { log, secret = 'required', now = Date.now } = options;
  const migrate = (options.migrate ?? true) && !config.readOnly;
  const opened = await openEngine(config.database, config, { ...options, migrate, secret, now });
  const { engine, secretKey, migrated } = opened;
  const secretFault = await secretFaultOf(opened, config, { secret, mayRecord: migrate }).catch(
    async (error: unknown) => {
      await engine.close();
      throw error;
    },
  );
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
    secretFault,
    async close() {
      await renderer.close();
      await engine.close();
    },
  };
}

async function secretFaultOf(
  { engine, secretKey, secretFault }: Opened,
  config: Config,
  options: Parameters<typeof checkSecret>[3],
): Promise<string | null> {
  const fault = secretFault ?? (await checkSecret(engine, secretKey, config, options));
  if (fault !== null && options.secret === 'required') throw new StartError(fault);
  return fault;
}

type Opened = FoundSecret & {
  readonly engine: Engine;
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
  async sqlite({ file }, config, { existing, migrate, secret, log, now }) {
    const { dataDir } = config;
    const migrated = await prepareSqliteFile({
      dataDir,
      file,
      existing,
      migrate,
      now: timestamp(now()),
      log,
    });
    const found = await findSecret(config, file, { existing, secret });
    const engine = await createSqliteEngine(file, { config, secretKey: found.secretKey, log, now });
    return { engine, ...found, migrated };
  },
  async postgres(database, config, { existing, migrate, log, now }) {
    const { secret, readOnly } = config;
    if (secret === null)
      throw new StartError('SECRET is required with PostgreSQL: all servers must share it.');
    // Loaded here, since it would make every start with the embedded engine slower.
    const [{ startPostgres }, { createPostgresEngine }] = await Promise.all([
      import('../db/postgres/postgres-start.ts'),
      import('../db/postgres/postgres-engine.ts'),
    ]);
    const start = { existing, migrate, readOnly, now: timestamp(now()), log };
    const { servers, description, migrated } = await startPostgres(database, start);
    const secretKey = keyFromSecret(secret);
    const engine = createPostgresEngine({ servers, description, config, secretKey, log, now, countCall });
    return { engine, secretKey, secretFault: null, migrated };
  },
};

function openEngine<Name extends keyof Databases>(
  database: Databases[Name] & { readonly engine: Name },
  config: Config,
  options: Required<OpenOptions>,
): Promise<Opened> {
  return engines[database.engine](database, config, options);
}
