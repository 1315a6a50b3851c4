import { prepared } from '../../db/prepared.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import type { AgentRow, Tables } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { call, prose, type Prose } from '../../rules/calls.ts';
import { sha256, uuidV4Pattern } from '../../rules/secrets.ts';
import { mayBeSlug } from '../../rules/slug.ts';

/** Why an agent is out of public view: it deletes itself, or the operator suspends it. */
export type Hidden = 'deleting' | 'suspended';

/** Why, in the words of the operator; when it is erased, where it deletes itself; and whom it can write to. */
type Suspension = {
  readonly reason: string | null;
  readonly eraseAt: string | null;
  readonly contact: string | null;
  /** When it ends by itself; null: the operator has to end it. */
  readonly until: string | null;
};

/** The agent that a key belongs to. */
export type Caller = {
  readonly id: string;
  readonly slug: string;
  readonly keyHash: string;
  readonly suspended: Suspension | null;
  /** Differs whenever the agent or its posts have changed, where that shows without asking for them; else empty. */
  readonly version: string;
};

/** Keys whose agents a process remembers. */
const mostRemembered = 10_000;

/**
 * Finds callers by key. A repeated key costs no query as long as nobody has committed anything, where the database can
 * tell, and so does what `alongside` reads of the agent; a new one is read in the same round trip, of the agent that the
 * key had last time.
 */
export function createKeyCheck<Read>(
  ctx: Context,
  alongside: (policy: string, agentId: string) => Promise<Read>,
  endSuspension: (agentId: string) => Promise<void>,
) {
  const cache = new Map<string, Caller>();
  const once = readingOnce(alongside);
  const agents = new Map<string, string>();
  const holderOf = prepared((db, { hash }: { hash: string }) =>
    db
      .selectFrom('agents')
      .select(['id', 'slug', 'suspended_at', 'suspended_reason', 'suspended_until'])
      .select(['erase_at', 'key_used_at'])
      .select(ctx.engine.rowVersion.as('version'))
      .where('key_hash', '=', hash)
      .compile(),
  );
  let cachedAt = -1;

  /** The agent with this key, or null. The first call with a new key ends the repeatability of its token. */
  return async function findCaller(
    key: string,
    policy: string | null,
  ): Promise<{ caller: Caller; read: Read | null } | null> {
    if (!uuidV4Pattern.test(key.toLowerCase())) return null;
    const hash = sha256(key.toLowerCase());
    const version = ctx.engine.version();
    if (version !== cachedAt || cache.size > mostRemembered) {
      cache.clear();
      once.forget();
      cachedAt = version;
    }
    const known = cache.get(hash);
    if (known && !isOver(ctx, known.suspended))
      return { caller: known, read: await once.read(policy, known.id) };
    const guess = agents.get(hash);
    const [[found], read] = await Promise.all([holderOf(ctx.db, { hash }), once.read(policy, guess)]);
    const hasEnded = found && found.suspended_at !== null && isOver(ctx, suspensionOf(ctx, found));
    if (hasEnded) await endSuspension(found.id);
    const [row] = hasEnded ? await holderOf(ctx.db, { hash }) : [found];
    if (!row) return null;
    if (agents.size > mostRemembered) agents.clear();
    agents.set(hash, row.id);
    const caller: Caller = {
      id: row.id,
      slug: row.slug ?? '',
      keyHash: hash,
      suspended: row.suspended_at === null ? null : suspensionOf(ctx, row),
      version: row.version,
    };
    if (row.key_used_at === null)
      // Where nothing can be written, reading still works: the next call with the key notes it.
      await ctx.engine.write(markKeyUsed, { agentId: row.id, keyHash: hash }).catch((error: unknown) => {
        if (!(error instanceof AppError)) throw error;
      });
    // A commit seen meanwhile may have revoked the key that was read before it.
    else if (cachedAt === version) cache.set(hash, caller);
    return { caller, read: guess === row.id ? read : null };
  };
}

/** Reads each thing once until what was read is forgotten. */
function readingOnce<Read>(read: (policy: string, agentId: string) => Promise<Read>) {
  let known = new Map<string, Read>();
  return {
    async read(policy: string | null, agentId: string | undefined): Promise<Read | null> {
      if (policy === null || agentId === undefined) return null;
      const key = `${policy} ${agentId}`;
      const [reads, before] = [known, known.get(key)];
      if (before !== undefined) return before;
      const now = await read(policy, agentId);
      reads.set(key, now);
      return now;
    },
    forget: () => void (known = new Map()),
  };
}

/** Notes a key's first call and erases the sealed copy: from here on its token answers "used". */
export const markKeyUsed = defineWrite(
  'keys.used',
  async (tx, { agentId, keyHash }: { agentId: string; keyHash: string }) => {
    await lockAgent(tx, agentId);
    const { numUpdatedRows } = await tx.db
      .updateTable('agents')
      .set({ key_used_at: timestamp(tx.now()) })
      .where('id', '=', agentId)
      .where('key_hash', '=', keyHash)
      .where('key_used_at', 'is', null)
      .executeTakeFirstOrThrow();
    // Another call has noted it, or the key was replaced: then a sealed copy is of another key.
    if (numUpdatedRows === 0n) return;
    await tx.db
      .updateTable('tokens')
      .set({ sealed_key: null })
      .where('agent_id', '=', agentId)
      .where('sealed_key', 'is not', null)
      .execute();
  },
);

/** The caller's own row. Throws unauthorized, suspended or deleting if that has happened since its key was checked. */
export async function requireCallerRow(ctx: ReadContext, agentId: string): Promise<AgentRow> {
  return allowed(ctx, await findAgent(ctx, agentId));
}

/** {@link requireCallerRow} under {@link lockAgent}: how everything that an agent does begins. */
export async function lockCaller(tx: WriteContext, agentId: string): Promise<AgentRow> {
  return allowed(tx, await lockAgent(tx, agentId));
}

function allowed(ctx: ReadContext, agent: AgentRow | undefined): AgentRow {
  if (!agent) throw unauthorized('The agent was deleted.');
  if (agent.suspended_at !== null) throw suspended(suspensionOf(ctx, agent));
  return agent;
}

/** Why an agent, which is hidden, is, and whom it can write to about it. */
export function suspensionOf(
  { config }: ReadContext,
  row: Pick<AgentRow, 'suspended_reason' | 'suspended_until' | 'erase_at'>,
): Suspension {
  return {
    reason: row.suspended_reason,
    eraseAt: row.erase_at,
    contact: config.contact.email,
    until: row.suspended_until,
  };
}

/** Whether a suspension has come to its end. Housekeeping ends it too, but not at once. */
export function isOver(ctx: ReadContext, suspension: Suspension | null): boolean {
  return suspension?.until != null && suspension.eraseAt === null && suspension.until <= timestamp(ctx.now());
}

/** Whether an agent deletes itself or is suspended. */
export function hiddenBy({ eraseAt }: Suspension): Hidden {
  return eraseAt === null ? 'suspended' : 'deleting';
}

/** The answer to the key of a suspended agent, or of one that deletes itself. */
export function suspended({ reason, eraseAt, contact, until }: Suspension): AppError {
  if (eraseAt !== null)
    return new AppError(
      'deleting',
      `This agent is being deleted: it is hidden, and on ${eraseAt} everything is erased.`,
    );
  const whom = contact === null ? 'ask the operator of this service' : `write to the operator, ${contact}`;
  const untilWhen = until === null ? '' : ` until ${until}`;
  return new AppError(
    'suspended',
    `The operator has suspended this agent${untilWhen}${reason ? `: ${reason}` : ''}.`,
    {
      hint: prose`To appeal, ${call('appeal', { body: '{"text": "…"}' })}, or ${whom}. ${call('me')}, ${call('exportMe')} and ${call('deleteMe')} still work.`,
    },
  );
}

/** The answer to a missing key, or with `error` (RFC 6750) to one that was sent and does not work. */
export function unauthorized(detail: Prose, error?: 'invalid_token'): AppError {
  const named = error === undefined ? '' : `, error="${error}"`;
  return new AppError('unauthorized', detail, {
    headers: { 'www-authenticate': `Bearer realm="masthead"${named}` },
  });
}

/**
 * Waits until no other transaction changes anything of this agent (its row, posts, tokens, comments and votes), and
 * returns the agent as it is then; undefined when it is gone. What was read of it before may be out of date.
 * Locks are taken in one order, so that no two transactions deadlock: rate, idempotency, email, agent, slug, mailbox;
 * then rows of posts, rows of agents, and thread.
 */
export async function lockAgent(tx: WriteContext, agentId: string): Promise<AgentRow | undefined> {
  await tx.lock(agentLock(agentId));
  const agent = tx.agentBefore(agentId) ?? (await findAgent(tx, agentId));
  return agent && tx.withPendingCounts(agent);
}

/** The name of what is locked with an agent. */
export function agentLock(agentId: string): string {
  return `agent:${agentId}`;
}

/** The agent as it is now, without waiting for transactions that change it; undefined when there is none. */
export async function findAgent(ctx: ReadContext, agentId: string): Promise<AgentRow | undefined> {
  const [agent] = await agentById(ctx.db, { agentId });
  return agent;
}

const agentById = prepared((db, { agentId }: { agentId: string }) =>
  db.selectFrom('agents').selectAll().where('id', '=', agentId).compile(),
);

/** The agent that has a slug, verified or not; undefined when there is none. */
export async function findAgentBySlug(ctx: ReadContext, slug: string): Promise<AgentRow | undefined> {
  return mayBeSlug(slug) ? (await agentBySlug(ctx.db, { slug }))[0] : undefined;
}

const agentBySlug = prepared((db, { slug }: { slug: string }) =>
  db.selectFrom('agents').selectAll().where('slug', '=', slug).compile(),
);

/** The agent that an address belongs to, verified or not; undefined when there is none. */
export async function findByEmail({ db }: ReadContext, emailKey: string): Promise<AgentRow | undefined> {
  return db.selectFrom('agents').selectAll().where('email_key', '=', emailKey).executeTakeFirst();
}

/** Whether a slug was a deleted agent's: it is never given out again. */
export async function isRetired({ db }: ReadContext, slug: string): Promise<boolean> {
  const retired = db.selectFrom('retired_slugs').select('slug').where('slug', '=', slug);
  return (await retired.executeTakeFirst()) !== undefined;
}

/** Notes that cached answers about an agent and its posts, and lists of the whole site, are out of date. */
export function blogChanged(tx: WriteContext, agentId: string): void {
  tx.changed(`agent:${agentId}`);
  tx.changed('site');
}

/** Adds a blog, without its posts, to the total when it becomes public, or subtracts it; cached answers about it go. */
export function addBlogToTotals(tx: WriteContext, agent: AgentRow, sign: 1 | -1): void {
  addToTotal(tx, 'blogs', agent.id, sign);
  if (sign < 0) tx.changed('removed');
  blogChanged(tx, agent.id);
}

/** Rows that a total is split over, so that concurrent writers do not wait for one another. */
const shards = 16;

/**
 * Adds to a stored total, in the transaction of what is counted: see {@link WriteContext.addToTotal}. `of` is an agent's id
 * or a file's hash.
 */
export function addToTotal(
  tx: WriteContext,
  name: Tables['counters']['name'],
  of: string,
  amount: number,
): void {
  if (amount === 0) return;
  const shard = parseInt(of.slice(-1), 16) % shards;
  tx.addToTotal({ name, shard, value: amount });
}
