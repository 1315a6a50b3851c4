import { sql } from 'kysely';
import type { Log } from '../../platform/log.ts';
import { postgresSearchIndex } from './postgres-full-text.ts';
import { connect } from './postgres-server.ts';
import { checkServer, postgresStartError, postgresTypes } from './postgres-start.ts';
import type { WholeDatabase } from '../whole.ts';

/** Opens the one of the addresses that takes writes. Throws StartError. */
export async function openWholePostgres(urls: readonly string[], log: Log): Promise<WholeDatabase> {
  const { session, close, url } = await findPrimary(urls, log);
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
    async freeze(tables) {
      await run('begin isolation level repeatable read');
      // Until the transaction ends, others can read, and wait to write.
      await run(`lock table ${tables.map((table) => `"${table}"`).join(', ')} in share mode`);
    },
    hasTables: () => session.hasTables(),
    async settle() {
      await sql`select setval(pg_get_serial_sequence('search_docs', 'doc'), max(doc)) from search_docs`.execute(
        session.db,
      );
      // By its statistics of empty tables the planner would scan all of them.
      await run('analyze');
    },
    close,
  };
}

/** Connects to the first of the addresses that takes writes. */
async function findPrimary(urls: readonly string[], log: Log) {
  let fault: unknown = null;
  for (const url of urls) {
    try {
      await using opened = new AsyncDisposableStack();
      const { session, close } = await connect(url);
      opened.defer(close);
      if (await session.isStandby()) continue;
      await checkServer(session, log);
      // It stays open for its caller.
      opened.move();
      return { session, close, url };
    } catch (error) {
      fault = error;
    }
  }
  throw postgresStartError(fault);
}
