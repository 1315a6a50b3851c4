import { sql } from 'kysely';
import type { Context, WriteContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { longWork } from '../../platform/slices.ts';
import { call, prose } from '../../rules/calls.ts';
import { sha256 } from '../../rules/secrets.ts';
import { keysToBeSeen } from '../../rules/text.ts';
import type { AgentRow } from '../../db/tables.ts';
import { noteKey } from '../community/inbox-events.ts';
import { mailboxIsFull, mailboxOf, wasMailedWithinHour } from '../limits/mail-limits.ts';
import { enqueueMail } from '../outbox.ts';
import { lockAgent } from './callers.ts';
import { voidLeakedTokens } from './tokens.ts';

/** Hashes that one query asks for. */
const hashesAtOnce = 500;

/** Texts of a call, by the field that they were sent in. */
type Texts = Readonly<Record<string, string | readonly string[] | boolean | null | undefined>>;

/** A key, or the token with this hash, that works here and was found in a field. `ofLink`: a token that gives no key. */
type Leak = {
  readonly field: string;
  readonly agentId: string;
  readonly token: string | null;
  readonly ofLink: number;
};

/**
 * Refuses a call in whose texts a reader can see a key that works here, or a token that still gives one, and
 * tells its owner: in any case, with or without invisible characters in it. Such a token is void from then on.
 * Throws leaked_key.
 */
export async function refuseLeakedKeys(ctx: Context, texts: Texts): Promise<void> {
  const seen = Object.entries(texts).map(([field, value]) => {
    const text = typeof value === 'boolean' ? [] : (value ?? []);
    return [field, keysToBeSeen([text].flat())];
  });
  await refuseKeys(ctx, Object.fromEntries(seen));
}

/** The same for the strings in each field that look like keys, as {@link keysToBeSeen} gives them. */
export async function refuseKeys(
  ctx: Context,
  fields: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const nextTurn = longWork();
  const leaks: Leak[] = [];
  for (const [field, candidates] of Object.entries(fields)) {
    for (let from = 0; from < candidates.length; from += hashesAtOnce) {
      // A text can hold thousands: others take their turn in between.
      if (from > 0) await nextTurn();
      const found = await findWorking(ctx, candidates.slice(from, from + hashesAtOnce).map(sha256));
      leaks.push(...found.map((leak) => ({ field, ...leak })));
    }
  }
  const [first] = leaks;
  if (first) await refuse(ctx, leaks, first);
}

/**
 * Of these hashes the keys that work, the tokens that give a key (unused, or used and not called with yet), and those of
 * mailed links that undo a deletion or appeal.
 */
async function findWorking(ctx: Context, hashes: readonly string[]): Promise<Omit<Leak, 'field'>[]> {
  return ctx.db
    .selectFrom('agents')
    .select(['id as agentId', sql<string | null>`null`.as('token'), sql<number>`0`.as('ofLink')])
    .where('key_hash', 'in', hashes)
    .unionAll(
      ctx.db
        .selectFrom('tokens')
        .select(['agent_id as agentId', 'hash as token', sql<number>`0`.as('ofLink')])
        .where('hash', 'in', hashes)
        .where('agent_id', 'is not', null)
        .$narrowType<{ agentId: string }>()
        .where('voided_at', 'is', null)
        .where('expires_at', '>', timestamp(ctx.now()))
        .where((row) => row.or([row('used_at', 'is', null), row('sealed_key', 'is not', null)])),
    )
    .unionAll(
      ctx.db
        .selectFrom('agents')
        .select(['id as agentId', 'undo_hash as token', sql<number>`1`.as('ofLink')])
        .where('undo_hash', 'in', hashes),
    )
    .unionAll(
      ctx.db
        .selectFrom('appeals')
        .select(['agent_id as agentId', 'token_hash as token', sql<number>`1`.as('ofLink')])
        .where('token_hash', 'in', hashes),
    )
    .execute();
}

async function refuse(ctx: Context, leaks: readonly Leak[], first: Leak): Promise<never> {
  for (const agentId of new Set(leaks.map((leak) => leak.agentId))) {
    const own = leaks.filter((leak) => leak.agentId === agentId);
    const tokens = own.flatMap(({ token }) => token ?? []);
    await ctx.engine.write(reportLeak, { agentId, key: tokens.length < own.length, tokens });
  }
  const { name, after } = wordsFor(first);
  const places = new Map(leaks.map((leak) => [`${leak.field} ${wordsFor(leak).name}`, leak]));
  throw new AppError(
    'leaked_key',
    `'${first.field}' contains ${name} that works here, so nothing was stored${after}`,
    {
      errors: [...places.values()].map((leak) => ({
        field: leak.field,
        message: `contains ${wordsFor(leak).name} that works here`,
      })),
      hint: [...new Set(leaks.map((leak) => wordsFor(leak).hint))].flatMap((hint, at) =>
        at === 0 ? hint : [' ', ...hint],
      ),
    },
  );
}

const words = {
  key: {
    name: 'an API key',
    after: '. Take the key out of the text.',
    hint: prose`If the text was shown anywhere else, replace the key now: ${call('regenerateKey')} with it.`,
  },
  token: {
    name: 'a verification or recovery token',
    after: ', and the token is void from now on. Take it out of the text.',
    hint: prose`If the token is yours, ask for another: ${call('recover')}, or, before verification, ${call('register')} again.`,
  },
  link: {
    name: 'the token of a mailed link',
    after: ', and the link is void from now on. Take it out of the text.',
    hint: prose`If the link is yours, the API key does the same: ${call('restoreMe')} undoes a deletion, ${call('appeal')} appeals.`,
  },
};

function wordsFor({ token, ofLink }: Leak) {
  return words[token === null ? 'key' : ofLink ? 'link' : 'token'];
}

/** Voids tokens of an agent that somebody sent in a text, and tells the owner of them, or of the agent's key. */
export const reportLeak = defineWrite(
  'agents.leaked',
  async (tx, { agentId, key, tokens }: { agentId: string; key: boolean; tokens: readonly string[] }) => {
    const agent = await lockAgent(tx, agentId);
    if (tokens.length > 0) {
      await voidLeakedTokens(tx, tokens);
      await voidLinks(tx, tokens);
    }
    if (!agent?.slug) return;
    if (key) {
      await noteKey(tx, agentId);
      await mailLeak(tx, agent, 'key-leaked');
    }
    if (tokens.length > 0) await mailLeak(tx, agent, 'token-leaked');
  },
);

async function voidLinks({ db }: WriteContext, hashes: readonly string[]): Promise<void> {
  await db.updateTable('agents').set({ undo_hash: null }).where('undo_hash', 'in', hashes).execute();
  await db.updateTable('appeals').set({ token_hash: null }).where('token_hash', 'in', hashes).execute();
}

/** Once an hour, so that a client which keeps trying leaves room for the messages that mend it. */
async function mailLeak(
  tx: WriteContext,
  agent: AgentRow,
  kind: 'key-leaked' | 'token-leaked',
): Promise<void> {
  const to = mailboxOf(agent);
  if ((await mailboxIsFull(tx, to)) || (await wasMailedWithinHour(tx, to, kind))) return;
  await enqueueMail(tx, kind, agent, {});
}
