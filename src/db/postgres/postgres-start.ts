import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import type { DatabaseConfig } from '../../config/config.ts';
import { StartError } from '../../rules/failure.ts';
import type { Log } from '../../platform/log.ts';
import { migrate, requireUpToDate, type PrepareOptions } from '../migrate.ts';
import { postgresTypes, sqlState, Unreachable } from './postgres.ts';
import type { Session } from './postgres-session.ts';
import { connect } from './postgres-server.ts';
import { openServers, type Servers } from './postgres-servers.ts';
import { refuseUnfinishedCopy } from '../whole.ts';

/** The least version of PostgreSQL: the tests run on it, and on the newest. */
export const leastPostgres = 15;

/** How long a start waits for a database that is starting or failing over, ms. */
const startPatience = 15_000;

/**
 * Finds the primary, checks its settings and runs pending migrations; of several processes that start together, the
 * others wait for the first. With `readOnly` a standby will do. Throws StartError with one line.
 */
export async function startPostgres(
  database: DatabaseConfig & { readonly engine: 'postgres' },
  options: PrepareOptions & { readonly readOnly: boolean },
): Promise<{ servers: Servers; description: string; migrated: readonly string[] }> {
  const { urls, replicaUrls, directUrl } = database;
  const { log } = options;
  const deadline = Date.now() + startPatience;
  for (let attempt = 1; ; attempt++) {
    const servers = await openServers(urls, replicaUrls, log);
    try {
      const server = options.readOnly ? servers.readable() : servers.primary();
      const isDirect =
        !options.readOnly &&
        directUrl !== null &&
        !(await onConnection(directUrl, (session) => session.isStandby(5_000)));
      const { version, migrated } = await prepare(isDirect ? directUrl : server.url, options);
      return { servers, description: `PostgreSQL ${version} at ${server.address}`, migrated };
    } catch (error) {
      await servers.close();
      const fault = error instanceof Unreachable ? (servers.faults[0] ?? error) : error;
      if (!isPassing(fault) || Date.now() > deadline) throw postgresStartError(fault);
      if (attempt === 1) log.warn({ reason: postgresStartError(fault).message }, 'waiting for the database');
    }
    await delay(500);
  }
}

/** Whether the failure may pass by itself: a server is starting, a failover is in progress, a name is not there yet. */
function isPassing(error: unknown): boolean {
  // Deadlock: migrations and the sweep of an older release lock the same tables.
  if (sqlState(error) === '40P01') return true;
  if (!(error instanceof Unreachable)) return false;
  const state = sqlState(error.cause);
  return state === null || state.startsWith('57P') || state === '53300';
}

async function onConnection<T>(url: string, body: (session: Session) => Promise<T>): Promise<T> {
  const { session, close } = await connect(url);
  try {
    return await body(session);
  } finally {
    await close();
  }
}

function prepare(
  url: string,
  { existing, migrate: mayMigrate, now, log }: PrepareOptions,
): Promise<{ version: string; migrated: string[] }> {
  return onConnection(url, async (session) => {
    const { db } = session;
    const version = await checkServer(session, log);
    await session.run('begin');
    try {
      // Waits for another process that is migrating; migrations of large tables are slow.
      await session.run(`select pg_advisory_xact_lock(hashtextextended('masthead:migrate', 0))`);
      if ((existing || !mayMigrate) && !(await session.hasTables())) {
        throw new StartError(
          'DATABASE_URL names a database without tables of ours: is it the right one? Start once without --existing to create them.',
        );
      }
      if (!mayMigrate) await requireUpToDate(db, 'The database');
      const migrated = mayMigrate ? await migrate(db, postgresTypes, now) : [];
      if (mayMigrate)
        await db
          .insertInto('meta')
          .values({ key: 'instance_id', value: randomUUID() })
          .onConflict((conflict) => conflict.column('key').doNothing())
          .execute();
      await refuseUnfinishedCopy(db);
      await session.commit();
      return { version, migrated };
    } catch (error) {
      await session.run('rollback').catch(() => undefined);
      throw error;
    }
  });
}

const settings = [
  'server_version',
  'server_version_num',
  'server_encoding',
  'client_min_messages',
  'synchronous_commit',
  'fsync',
] as const;

/** Checks the settings that durability and sorting rest on; returns the server's version. Throws StartError. */
export async function checkServer({ db }: Session, log: Log): Promise<string> {
  const { rows } = await sql<Record<(typeof settings)[number], string>>`select ${sql.join(
    settings.map((name) => sql`current_setting(${name}) as ${sql.ref(name)}`),
  )}`.execute(db);
  const found = rows[0];
  if (!found) throw new Error('PostgreSQL does not return its settings');
  const version = found.server_version.split(' ')[0] ?? '';
  if (Number(found.server_version_num) < leastPostgres * 10_000)
    throw new StartError(
      `PostgreSQL ${version} is too old: Masthead needs ${leastPostgres} or later. Upgrade the server.`,
    );
  if (found.server_encoding !== 'UTF8') {
    throw new StartError(
      `The database has the encoding ${found.server_encoding}: create one with ENCODING 'UTF8'.`,
    );
  }
  // A commit that did not reach its standby is reported by a warning only.
  if (['error', 'fatal', 'panic'].includes(found.client_min_messages))
    throw new StartError('client_min_messages hides warnings of the database: set it to warning or notice.');
  const unsafe: string[] = [];
  if (['off', 'local'].includes(found.synchronous_commit))
    unsafe.push(`synchronous_commit is ${found.synchronous_commit}`);
  if (found.fsync === 'off') unsafe.push('fsync is off');
  if (unsafe.length > 0)
    log.warn({ settings: unsafe }, 'the database may lose what it has acknowledged, by its own settings');
  return version;
}

/** One line for the operator; addresses are left out, since they hold passwords. */
export function postgresStartError(error: unknown): StartError {
  if (error instanceof StartError) return error;
  const cause = error instanceof Unreachable ? error.cause : error;
  const reason = cause instanceof Error ? cause.message || cause.name : 'no server takes writes';
  switch (sqlState(cause)) {
    case '28P01':
    case '28000':
      return new StartError(
        `PostgreSQL refuses the user of DATABASE_URL (${reason}): check name and password.`,
      );
    case '3D000':
      return new StartError(`${reason}: create it, or correct DATABASE_URL.`);
    case '42501':
      return new StartError(
        `The user of DATABASE_URL may not make tables (${reason}): give it a database or schema of its own.`,
      );
    case null:
      return new StartError(
        `PostgreSQL cannot be reached (${reason}): does it run, and is DATABASE_URL its address?`,
      );
    default:
      return new StartError(`PostgreSQL refuses to serve (${reason}).`);
  }
}
