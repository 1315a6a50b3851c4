import { sql } from 'kysely';
import type { Log } from '../../platform/log.ts';
import { createPool, postgresTypes, wholeTablePatience, type Session, type SessionPool } from './postgres.ts';
import { postgresSearchIndex } from './postgres-full-text.ts';
import { checkServer, postgresStartError } from './postgres-start.ts';
import type { WholeDatabase } from '../whole.ts';

/** Opens the one of the addresses that takes writes. Throws StartError. */
export async function openWholePostgres(
  urls: readonly string[],
  tables: readonly string[],
  log: Log,
): Promise<WholeDatabase> {
  const { pool, session, url } = await findPrimary(urls, log);
  const run = (text: string) => session.run(text);
  const { host, pathname } = new URL(url);
  return {
    description: `PostgreSQL ${host}${pathname}`,
    db: session.db,
    types: postgresTypes,
    searchIndex: postgresSearchIndex,
    begin: () => run('begin'),
    async commit() {
      if (!(await session.commit())) throw new Error('the database did not confirm a commit');
    },
    rollback: () => run('rollback'),
    async freeze() {
      await run('begin isolation level repeatable read');
      // Until the transaction ends others may read, and wait when they write.
      await run(`lock table ${tables.map((table) => `"${table}"`).join(', ')} in share mode`);
    },
    hasTables: async () =>
      (await session.ask(`select to_regclass('migrations') is not null as answer`)) === true,
    async settle() {
      await sql`select setval(pg_get_serial_sequence('search_docs', 'doc'), max(doc)) from search_docs`.execute(
        session.db,
      );
      // What the planner knows of tables that were empty a moment ago would make it read all of them.
      await run('analyze');
    },
    async close() {
      session.release();
      await pool.end();
    },
  };
}

type Found = { readonly pool: SessionPool; readonly session: Session; readonly url: string };

async function findPrimary(urls: readonly string[], log: Log): Promise<Found> {
  let fault: unknown = null;
  for (const url of urls) {
    const preparing = { on: false, onEnd: () => undefined };
    const pool = createPool(url, {
      max: 1,
      patience: 5_000,
      statementPatience: wholeTablePatience,
      preparing,
    });
    try {
      const session = await pool.take();
      if ((await session.ask('select pg_is_in_recovery() as answer')) === false) {
        await checkServer(session, log);
        return { pool, session, url };
      }
      session.release();
    } catch (error) {
      fault = error;
    }
    await pool.end();
  }
  throw postgresStartError(fault);
}
