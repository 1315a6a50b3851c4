import { sql } from 'kysely';
import type { Log } from '../../platform/log.ts';
import { readInSession, type Server } from './postgres-server.ts';

/** Writes of a process after which it looks for tables whose statistics are of few rows, or of none. */
const writesBefore = new Set([64, 256, 1024, 4096]);
const fewRows = 4_000;

/**
 * Has the server make statistics of tables that were small when it last did, since its own process for that comes once a
 * minute. Until then it plans for empty tables, where any index will do, and reads all posts of an agent to find one by
 * its slug.
 */
export function createEarlyStatistics(primary: () => Server, log: Log) {
  let writes = 0;
  let making = Promise.resolve();
  return {
    /** Counts a write of this process. */
    written(): void {
      if (!writesBefore.has(++writes)) return;
      making = makeAnew(primary).catch((error: unknown) => {
        log.debug({ err: error }, 'the database made no statistics of its new tables');
      });
    },
    /** Waits for what is under way. */
    end: () => making,
  };
}

async function makeAnew(primary: () => Server): Promise<void> {
  await readInSession(primary(), async (session) => {
    const { rows } = await sql<{ tables: string | null }>`
      select string_agg(format('%I', relname), ', ') as tables from pg_class
      where relnamespace = cast(current_schema() as regnamespace) and relkind = 'r'
        and reltuples < ${fewRows} and pg_relation_size(oid) > 0`.execute(session.db);
    const tables = rows[0]?.tables ?? null;
    if (tables !== null) await session.run(`analyze ${tables}`);
  });
}
