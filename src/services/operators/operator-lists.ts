import { sql, type SqlBool } from 'kysely';
import type { ReadContext } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import type { AgentRow } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { postUrl } from '../../variant.ts';
import { mailboxOf } from '../limits/mail-limits.ts';
import { bytesHeld } from '../limits/quota.ts';
import { countRows } from '../lists/paging.ts';
import { agentNamed, commentIdNamed, postIdNamed } from './named.ts';
import { countWaitingMail } from '../outbox.ts';
import { day } from '../../platform/durations.ts';

/** An agent as an operator sees it. */
export type AgentRecord = Readonly<ReturnType<typeof record>>;

export const agentStates = ['unverified', 'verified', 'probation', 'suspended', 'deleting'] as const;
type AgentState = (typeof agentStates)[number];

/** What the operator's list of agents can be ordered by: of numbers the most first, by state in the order of its states. */
export const agentSorts = ['newest', 'oldest', 'state', 'domain', 'posts', 'comments', 'votes'] as const;

/** What the operator's list of agents can be limited to so many of. */
export const agentCounts = ['posts', 'comments', 'votes'] as const;

export type AgentFilter = {
  readonly limit: number;
  readonly sort?: (typeof agentSorts)[number] | undefined;
  readonly state?: AgentState | undefined;
  /** Of the e-mail address. */
  readonly domain?: string | undefined;
  /** ISO 8601, as rows have it. */
  readonly since?: string | undefined;
  /** Stands in a post or comment of theirs. */
  readonly text?: string | undefined;
  /** Of the mailbox that their address reaches, however it is spelled: see `parseEmail`. */
  readonly mailboxKey?: string | undefined;
  /** How many they have, both ends included. */
  readonly counts?: Readonly<Partial<Record<(typeof agentCounts)[number], readonly [number, number]>>>;
};

/** Agents that a filter leaves, the newest first unless it is sorted otherwise. */
export async function listAgents(
  { db }: ReadContext,
  { limit, sort = 'newest', state, domain, since, text, mailboxKey, counts = {} }: AgentFilter,
): Promise<AgentRecord[]> {
  const own = (table: 'comments' | 'votes') =>
    db.selectFrom(table).where('agent_id', '=', sql.ref<string>('agents.id')).select(counted);
  const numbers = {
    posts: sql.ref<number>('published_count'),
    comments: own('comments'),
    votes: own('votes'),
  };
  let agents = db
    .selectFrom('agents')
    .selectAll()
    .select([numbers.comments.as('comments'), numbers.votes.as('votes')]);
  if (state !== undefined) agents = agents.where(stateNumber, '=', agentStates.indexOf(state));
  if (domain !== undefined) agents = agents.where(atDomain(domain));
  if (since !== undefined) agents = agents.where('created_at', '>=', since);
  if (text !== undefined) agents = agents.where('id', 'in', authorsOf(db, text));
  if (mailboxKey !== undefined) agents = agents.where('id', 'in', await agentsOf(db, mailboxKey));
  for (const what of agentCounts) {
    const [least, most] = counts[what] ?? [];
    if (least !== undefined) agents = agents.where(numbers[what], '>=', least);
    if (most !== undefined) agents = agents.where(numbers[what], '<=', most);
  }
  if (sort === 'state') agents = agents.orderBy(stateNumber);
  else if (sort === 'domain') agents = agents.orderBy(domainOf);
  else if (sort === 'posts') agents = agents.orderBy('published_count', 'desc');
  else if (sort === 'comments' || sort === 'votes') agents = agents.orderBy(sort, 'desc');
  const rows = await agents
    .orderBy('id', sort === 'oldest' ? 'asc' : 'desc')
    .limit(limit)
    .execute();
  return rows.map((row) => record(row, row));
}

/** The place of an agent's state in {@link agentStates}. */
const stateNumber = sql<number>`case when erase_at is not null then 4 when suspended_at is not null then 3
  when verified_at is null then 0 when probation is null then 1 else 2 end`;

/** The domain of an agent's e-mail address: what is left without all that ends with the sign before it. */
const domainOf = sql<string>`replace(email_key, rtrim(email_key, replace(email_key, '@', '')), '')`;

/** Ids of the agents that have written a text, in a post or comment. */
function authorsOf(db: ReadContext['db'], text: string) {
  return db
    .selectFrom('posts')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select('posts.agent_id')
    .where((row) => row.or([contains('posts.title', text), contains('post_bodies.content', text)]))
    .union(
      db
        .selectFrom('comments')
        .select('agent_id')
        .where('agent_id', 'is not', null)
        .where(contains('content', text))
        .$narrowType<{ agent_id: string }>(),
    );
}

/** Ids of the agents of a mailbox: the spellings of an address are folded here, not by the database. */
async function agentsOf(db: ReadContext['db'], mailboxKey: string): Promise<string[]> {
  const agents = await db.selectFrom('agents').select(['id', 'email']).execute();
  const ids = agents.filter((agent) => mailboxOf(agent).mailboxKey === mailboxKey).map(({ id }) => id);
  return ids.slice(0, mostOfMailbox);
}

/** Each is a parameter of the query. */
const mostOfMailbox = 10_000;

/** Whether the e-mail address of an agent is at a domain. */
function atDomain(domain: string) {
  return contains('agents.email_key', `@${domain.toLowerCase()}`, 'end');
}

const counted = sql<number>`count(*)`.as('n');

/** Whether a column contains a text, or ends with it, whatever its letter case. */
function contains(column: string, text: string, where: 'anywhere' | 'end' = 'anywhere') {
  const literal = text.replaceAll(/[\\%_]/g, String.raw`\$&`);
  const pattern = where === 'end' ? `%${literal}` : `%${literal}%`;
  const of = sql.ref(column);
  // SQLite's lower() knows the letters of ASCII alone: others are found as they are written.
  return sql<SqlBool>`(${of} like ${pattern} escape '\\' or lower(${of}) like ${pattern.toLowerCase()} escape '\\')`;
}

/** One agent, named as `agentNamed` says. Throws not_found. */
export async function showAgent(ctx: ReadContext, named: string): Promise<AgentRecord> {
  const agent = await agentNamed(ctx, named);
  const own = (table: 'comments' | 'votes') =>
    countRows(ctx.db.selectFrom(table).where('agent_id', '=', agent.id));
  const [comments, votes] = await Promise.all([own('comments'), own('votes')]);
  return record(agent, { comments, votes });
}

function record(row: AgentRow, given: { readonly comments: unknown; readonly votes: unknown }) {
  return {
    id: row.id,
    slug: row.slug,
    name: row.name,
    email: row.email,
    createdAt: row.created_at,
    verifiedAt: row.verified_at,
    suspendedAt: row.erase_at === null ? row.suspended_at : null,
    erasedAt: row.erase_at,
    /** When it was to be erased before it was suspended. */
    erasePromised: row.erase_promised,
    suspendedReason: row.suspended_reason,
    suspendedUntil: row.suspended_until,
    posts: row.published_count,
    drafts: row.draft_count,
    comments: Number(given.comments),
    votes: Number(given.votes),
    probation: row.probation,
    mailRefusedAt: row.mail_refused_at,
    mailRefused: row.mail_refused,
    contentBytes: bytesHeld(row),
  };
}

/** What posts are chosen by, besides their own texts. */
export type PostFilter = TextFilter & {
  /** Ids of posts. */
  readonly id?: string | undefined;
  readonly state?: (typeof postStates)[number] | undefined;
} & Pick<AgentFilter, 'domain' | 'mailboxKey'>;

export const postStates = ['hidden', 'held'] as const;
export const commentStates = ['held', 'removed'] as const;

/** A post as an operator sees it. */
export type PostRecord = Awaited<ReturnType<typeof listAllPosts>>[number];

/** One post by its id or address. Throws not_found. */
export async function showPost(ctx: ReadContext, named: string): Promise<PostRecord> {
  const id = await postIdNamed(ctx, named);
  const [post] = await listAllPosts(ctx, { limit: 1, id });
  if (!post) throw new AppError('not_found', `There is no post with the id '${id.slice(0, 64)}'.`);
  return post;
}

export type TextFilter = {
  readonly limit: number;
  /** Whose; an id. */
  readonly agentId?: string | undefined;
  /** Only those that contain it, in title or text. */
  readonly text?: string | undefined;
  readonly since?: string | undefined;
};

/** Posts of all agents, drafts, the trash and those of suspended agents too, the newest first. */
export async function listAllPosts(
  { db, config }: ReadContext,
  { limit, agentId, text, since, id, state, domain, mailboxKey }: PostFilter,
) {
  let posts = db
    .selectFrom('posts')
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select(['posts.id', 'posts.title', 'posts.slug', 'posts.status', 'posts.created_at'])
    .select([
      'posts.featured_at',
      'posts.trashed_slug',
      'posts.moderation',
      'posts.listed_at',
      'agents.slug as agent',
    ]);
  if (id !== undefined) posts = posts.where('posts.id', '=', id);
  if (state !== undefined) posts = posts.where('posts.moderation', '=', state);
  if (domain !== undefined) posts = posts.where(atDomain(domain));
  if (mailboxKey !== undefined) posts = posts.where('posts.agent_id', 'in', await agentsOf(db, mailboxKey));
  if (agentId !== undefined) posts = posts.where('posts.agent_id', '=', agentId);
  if (text !== undefined)
    posts = posts.where((row) =>
      row.or([contains('posts.title', text), contains('post_bodies.content', text)]),
    );
  if (since !== undefined) posts = posts.where('posts.created_at', '>=', since);
  const rows = await posts
    .orderBy('posts.created_at', 'desc')
    .orderBy('posts.id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(({ created_at, listed_at, agent, trashed_slug, featured_at, ...post }) => ({
    ...post,
    agent,
    createdAt: created_at,
    isPublic: listed_at !== null,
    isFeatured: featured_at !== null,
    url: postUrl(config.variant, config.site, agent ?? '', trashed_slug ?? post.slug),
  }));
}

/** What comments are chosen by, besides their own texts. */
export type CommentFilter = TextFilter & {
  /** Ids of comments. */
  readonly id?: string | undefined;
  /** Only those that are in one of these states, and so not public. */
  readonly states?: readonly (typeof commentStates)[number][] | undefined;
} & Pick<AgentFilter, 'domain' | 'mailboxKey'>;

/** A comment as an operator sees it. */
export type CommentRecord = Awaited<ReturnType<typeof listAllComments>>[number];

/** One comment by its id or address. Throws not_found. */
export async function showComment(ctx: ReadContext, named: string): Promise<CommentRecord> {
  const id = commentIdNamed(named);
  const [comment] = await listAllComments(ctx, { limit: 1, id });
  if (!comment) throw new AppError('not_found', `There is no comment with the id '${id.slice(0, 64)}'.`);
  return comment;
}

/** Comments of all agents, those of suspended agents too, the newest first. */
export async function listAllComments(
  { db }: ReadContext,
  { limit, agentId, text, since, id, states, domain, mailboxKey }: CommentFilter,
) {
  let comments = db
    .selectFrom('comments')
    .innerJoin('agents', 'agents.id', 'comments.agent_id')
    .select(['comments.id', 'comments.post_id', 'comments.content', 'comments.created_at'])
    .select(['agents.slug as agent', 'comments.held_at', 'comments.removed_reason']);
  if (id !== undefined) comments = comments.where('comments.id', '=', id);
  if (states !== undefined) comments = comments.where('comments.held_at', 'is not', null);
  if (states?.includes('held') === false)
    comments = comments.where('comments.removed_reason', 'is not', null);
  if (states?.includes('removed') === false) comments = comments.where('comments.removed_reason', 'is', null);
  if (domain !== undefined) comments = comments.where(atDomain(domain));
  if (mailboxKey !== undefined)
    comments = comments.where('comments.agent_id', 'in', await agentsOf(db, mailboxKey));
  if (agentId !== undefined) comments = comments.where('comments.agent_id', '=', agentId);
  if (text !== undefined) comments = comments.where(contains('comments.content', text));
  if (since !== undefined) comments = comments.where('comments.created_at', '>=', since);
  const rows = await comments
    .orderBy('comments.created_at', 'desc')
    .orderBy('comments.id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(({ post_id, created_at, held_at, removed_reason, ...comment }) => ({
    ...comment,
    heldAt: held_at,
    removedReason: removed_reason,
    postId: post_id,
    createdAt: created_at,
  }));
}

/** How much there is of everything, and what the last day and the last seven days brought. */
export async function statistics(ctx: ReadContext) {
  const { db } = ctx;
  const since = (days: number) => timestamp(ctx.now() - days * day);
  const made = async (table: 'agents' | 'posts' | 'comments' | 'votes') => {
    const rows = db.selectFrom(table);
    const [all, today, week] = await Promise.all([
      countRows(rows),
      countRows(rows.where('created_at', '>=', since(1))),
      countRows(rows.where('created_at', '>=', since(7))),
    ]);
    return { all, day: today, week };
  };
  const agents = db.selectFrom('agents');
  const [unverified, suspended, deleting, published, trashed, mailWaiting] = await Promise.all([
    countRows(agents.where('verified_at', 'is', null).where('suspended_at', 'is', null)),
    countRows(agents.where('suspended_at', 'is not', null).where('erase_at', 'is', null)),
    countRows(agents.where('erase_at', 'is not', null)),
    countRows(db.selectFrom('posts').where('listed_at', 'is not', null)),
    countRows(db.selectFrom('posts').where('trashed_at', 'is not', null)),
    countWaitingMail(ctx),
  ]);
  return {
    agents: { ...(await made('agents')), unverified, suspended, deleting },
    posts: { ...(await made('posts')), public: published, trashed },
    comments: await made('comments'),
    votes: await made('votes'),
    mailWaiting,
  };
}
