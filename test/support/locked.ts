import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { Context } from '../../src/context.ts';

/**
 * Has a statement's locks kept on PostgreSQL until so many connections wait for one another or for them, with all that
 * `start` begins, so that what overlaps by chance overlaps each time. Resolves when all of it is done.
 */
export async function whileLocked<T>(
  { config: { database } }: Pick<Context, 'config'>,
  { statement, waiting }: { readonly statement: string; readonly waiting: number },
  start: () => readonly Promise<T>[],
): Promise<T[]> {
  if (database.engine !== 'postgres') throw new Error('SQLite has one writer, and no locks to wait for');
  const holder = new Client(database.urls[0]);
  const looker = new Client(database.urls[0]);
  await Promise.all([holder.connect(), looker.connect()]);
  try {
    await holder.query(`begin; ${statement}`);
    const begun = start();
    const count = `select count(*)::int as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    const isEnough = async () => Number((await looker.query(count)).rows[0]?.waiting) >= waiting;
    while (!(await isEnough())) await delay(5);
    await holder.query('commit');
    return await Promise.all(begun);
  } finally {
    await Promise.all([holder.end(), looker.end()]);
  }
}
