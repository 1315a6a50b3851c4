import type { ReadContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { lockAgent } from '../agents/callers.ts';
import { bySystem, noteAction, type Acting } from '../operators/audit.ts';
import { takesMail } from '../mail-delivery.ts';

/**
 * Sends mail to an agent's address again although its mail server refused it (`answer` null), or takes that back. Returns
 * false if there was nothing to do.
 */
export const setMailRefused = defineWrite(
  'trust.mail-refused',
  async (
    tx,
    { agentId, answer, by = bySystem }: { agentId: string; answer: string | null; by?: Acting },
  ): Promise<boolean> => {
    const agent = await lockAgent(tx, agentId);
    if (!agent || (agent.mail_refused_at === null) === (answer === null)) return false;
    const refused =
      answer === null ? takesMail : { mail_refused_at: timestamp(tx.now()), mail_refused: answer };
    await tx.db.updateTable('agents').set(refused).where('id', '=', agentId).execute();
    const target = { kind: 'agent', id: agentId } as const;
    // With what the server said, so that undoing it says it again.
    if (answer === null) await noteAction(tx, by, 'release-mail', target, { answer: agent.mail_refused });
    else await noteAction(tx, by, 'refuse-mail', target);
    return true;
  },
);

/** Agents whose addresses take no mail, the newest refusal first. */
export async function listRefused({ db }: ReadContext, limit: number) {
  const rows = await db
    .selectFrom('agents')
    .select(['id', 'slug', 'email', 'verified_at', 'mail_refused_at', 'mail_refused'])
    .where('mail_refused_at', 'is not', null)
    .orderBy('mail_refused_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(({ verified_at, mail_refused_at, mail_refused, ...agent }) => ({
    ...agent,
    verifiedAt: verified_at,
    refusedAt: mail_refused_at ?? '',
    answer: mail_refused,
  }));
}
