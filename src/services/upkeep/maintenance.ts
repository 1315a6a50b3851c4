import { timestamp } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import { rememberedFor } from '../limits/idempotency.ts';
import { expireMail } from '../outbox.ts';
import { rateWindow } from '../limits/rate-limits.ts';

const day = 24 * 3_600_000;

/** How long a deleted post's address answers "gone", ms. */
const goneFor = 365 * day;
/** How long expired tokens and registrations that were never verified are remembered, ms. */
const rememberTokensFor = 30 * day;
/** How long changes are kept for processes that look for them every second, ms. */
const keepChangesFor = 10 * 60_000;
/** A process that has not been seen for so long is gone, ms. */
export const processGoneAfter = 15_000;

/** Shows other processes that this one runs, and proves that the database can be written. Returns how many run. */
export const heartbeat = defineWrite(
  'maintenance.heartbeat',
  async (tx, { id }: { id: string }): Promise<number> => {
    const row = { seen_at: tx.now() };
    await tx.db
      .insertInto('processes')
      .values({ id, ...row })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
      .execute();
    await tx.db
      .deleteFrom('processes')
      .where('seen_at', '<', tx.now() - processGoneAfter)
      .execute();
    const { count } = await tx.db
      .selectFrom('processes')
      .select((of) => of.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return count;
  },
);

/** The process is ending in an orderly way. */
export const farewell = defineWrite(
  'maintenance.farewell',
  async (tx, { id }: { id: string }): Promise<null> => {
    await tx.db.deleteFrom('processes').where('id', '=', id).execute();
    return null;
  },
);

/** Deletes what is no longer needed. Returns how many undelivered messages were given up. */
export const sweep = defineWrite('maintenance.sweep', async (tx): Promise<{ mailGivenUp: number }> => {
  const ago = (ms: number) => timestamp(tx.now() - ms);
  await tx.db
    .deleteFrom('rate_calls')
    .where('at', '<', tx.now() - rateWindow)
    .execute();
  await tx.db
    .deleteFrom('changes')
    .where('at', '<', tx.now() - keepChangesFor)
    .execute();
  await tx.db.deleteFrom('idempotency').where('created_at', '<', ago(rememberedFor)).execute();
  await tx.db.deleteFrom('former_slugs').where('deleted_at', '<', ago(goneFor)).execute();
  await tx.db.deleteFrom('tokens').where('expires_at', '<', ago(rememberTokensFor)).execute();
  await tx.db
    .deleteFrom('agents')
    .where('verified_at', 'is', null)
    .where('registered_at', '<', ago(rememberTokensFor))
    .where((row) =>
      row.not(
        row.exists(
          row.selectFrom('tokens').select('tokens.hash').whereRef('tokens.agent_id', '=', 'agents.id'),
        ),
      ),
    )
    .execute();
  return { mailGivenUp: await expireMail(tx) };
});
