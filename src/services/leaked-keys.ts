import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { operation } from '../db/operation.ts';
import { parseEmail } from '../email.ts';
import { AppError } from '../errors.ts';
import { keyLeakedMail } from '../mail/messages.ts';
import { sha256 } from '../secrets.ts';
import { keysToBeSeen } from '../text.ts';
import { findAgent } from './agent-lock.ts';
import { enqueueMail, mailboxIsFull, mailedAgent, wasMailedWithinHour } from './outbox.ts';

/** Hashes that one query asks for. */
const hashesAtOnce = 500;

/** Texts of a call, by the field that they were sent in. */
type Texts = Readonly<Record<string, string | readonly string[] | null | undefined>>;

/**
 * Refuses a call in whose texts a reader can see a key that works here, and tells the key's owner: in any
 * case, with or without invisible characters in it. Throws leaked_key.
 */
export async function refuseLeakedKeys(ctx: Context, texts: Texts): Promise<void> {
  for (const [field, text] of Object.entries(texts))
    await refuseKeys(ctx, field, keysToBeSeen([text ?? []].flat()));
}

/** The same for strings of one field that look like keys, in lower case. */
export async function refuseKeys(ctx: Context, field: string, candidates: readonly string[]): Promise<void> {
  for (let from = 0; from < candidates.length; from += hashesAtOnce) {
    // A text can hold thousands: others take their turn in between.
    if (from > 0) await nextTurn();
    await refuseKnown(ctx, field, candidates.slice(from, from + hashesAtOnce));
  }
}

async function refuseKnown(ctx: Context, field: string, candidates: readonly string[]): Promise<void> {
  const owner = await ctx.db
    .selectFrom('agents')
    .select('id')
    .where('key_hash', 'in', candidates.map(sha256))
    .executeTakeFirst();
  if (!owner) return;
  await ctx.engine.write(reportLeakedKey, { agentId: owner.id });
  throw new AppError(
    'leaked_key',
    `'${field}' contains an API key that works here, so nothing was stored. Take the key out of the text.`,
    {
      errors: [{ field, message: 'contains an API key that works here' }],
      hint: 'If the text was shown anywhere else, replace the key now: POST /api/regenerate-key with it.',
    },
  );
}

/**
 * Tells the owner of a key that somebody sent it in a text: once an hour, so that a client which keeps trying
 * leaves room for the messages that mend it.
 */
export const reportLeakedKey = operation(
  'agents.leaked',
  async (tx, { agentId }: { agentId: string }): Promise<null> => {
    const agent = await findAgent(tx, agentId);
    if (!agent?.slug) return null;
    const email = parseEmail(agent.email);
    if (!email.ok || (await mailboxIsFull(tx, email))) return null;
    if (await wasMailedWithinHour(tx, email, 'key-leaked')) return null;
    const text = keyLeakedMail({
      baseUrl: tx.config.site.baseUrl,
      agent: mailedAgent(tx, agent, agent.slug),
    });
    await enqueueMail(tx, 'key-leaked', agent.id, email, text);
    return null;
  },
);
