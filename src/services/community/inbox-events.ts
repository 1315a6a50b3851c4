import { sql, type Selectable } from 'kysely';
import type { WriteContext } from '../../context.ts';
import { preparedChange } from '../../db/prepared.ts';
import { timestamp } from '../../db/write.ts';
import type { Tables } from '../../db/tables.ts';
import type { InboxKind } from '../../variant.ts';
import { baseHosts } from '../../rules/hosts.ts';
import { uuidv7 } from '../../rules/secrets.ts';
import type { FoundPost } from '../posts/find-post.ts';
import { publicPostAt } from '../posts/which-post.ts';
import { blockersOf } from './blocks.ts';

// Events are written by the transaction that causes them, without a number and without a lock: see inbox.ts.

/** Agents that one comment can mention, and posts whose owners one post can notify of its links. */
const mostMentions = 10;
const mostLinks = 20;
/** Slugs that one comment is searched for, and addresses of ours that one post is. */
const mostSlugs = 100;
const mostAddresses = 100;

type InboxRow = Selectable<Tables['inbox']>;

type NewEvent = Pick<InboxRow, 'agent_id' | 'kind'> &
  Partial<Pick<InboxRow, 'post_id' | 'comment_id' | 'from_id' | 'actor_id' | 'data'>>;

function note(tx: WriteContext, event: NewEvent): void {
  const none = { post_id: null, comment_id: null, from_id: null, actor_id: null, data: null };
  insertEvent(tx.db, { id: uuidv7(tx.now()), at: timestamp(tx.now()), seq: null, ...none, ...event });
}

const insertEvent = preparedChange((db, row: InboxRow) =>
  db
    .insertInto('inbox')
    .values(row)
    // Of a pair of posts one event is enough.
    .onConflict((conflict) => conflict.doNothing())
    .compile(),
);

type Said = {
  readonly post: Pick<FoundPost, 'id' | 'agent_id'>;
  readonly commentId: string;
  /** Who wrote it. */
  readonly actorId: string;
  /** Who wrote what it answers. */
  readonly answered: string | null;
  /** Slugs that it names. */
  readonly mentions: readonly string[];
};

/** Notifies of a new comment: who wrote what it answers; else the owner of the post; and those whom it mentions. */
export async function noteComment(tx: WriteContext, said: Said): Promise<void> {
  const { post, commentId, actorId, answered, mentions } = said;
  const mentioned = await mentionedAgents(tx, mentions);
  const blockers = await blockersOf(tx, actorId, [answered ?? [], mentioned].flat());
  const notify = (agent_id: string, kind: InboxKind) => {
    if (agent_id !== actorId && !blockers.has(agent_id))
      note(tx, { agent_id, kind, post_id: post.id, comment_id: commentId, actor_id: actorId });
  };
  if (answered !== null) notify(answered, 'reply');
  if (post.agent_id !== answered) notify(post.agent_id, 'comment');
  for (const id of mentioned) if (id !== answered) notify(id, 'mention');
}

/** The first agents that a text names; slugs that nobody has do not count. */
async function mentionedAgents({ db }: WriteContext, slugs: readonly string[]): Promise<string[]> {
  if (slugs.length === 0) return [];
  const agents = await db
    .selectFrom('agents')
    .select(['id', 'slug'])
    .where('slug', 'in', slugs.slice(0, mostSlugs))
    .where('listed_at', 'is not', null)
    .execute();
  const ids = new Map(agents.map(({ id, slug }) => [slug, id]));
  return slugs.flatMap((slug) => ids.get(slug) ?? []).slice(0, mostMentions);
}

/** Notifies an agent of what the operator did to it, or to what it wrote, and why. */
export function noteModeration(
  tx: WriteContext,
  agentId: string,
  {
    postId = null,
    ...said
  }: {
    action: string;
    reason: string | null;
    rule: string | null;
    actionId: string;
    commentId?: string;
    postId?: string | null;
  },
): void {
  note(tx, { agent_id: agentId, kind: 'moderated', post_id: postId, data: JSON.stringify(said) });
}

/** Notifies an agent of what became of a post at its time: that it was published, or why not. */
export function noteSchedule(
  tx: WriteContext,
  agentId: string,
  { postId, failure }: { readonly postId: string; readonly failure: string | null },
): void {
  const event = { agent_id: agentId, post_id: postId };
  if (failure === null) note(tx, { ...event, kind: 'published' });
  else note(tx, { ...event, kind: 'schedule_failed', data: JSON.stringify({ reason: failure }) });
}

/** Notifies the owner of a post that its tally changed. Last in its transaction, since readers wait for the event's row. */
export function noteVote(tx: WriteContext, post: Pick<FoundPost, 'id' | 'agent_id'>, voterId: string): void {
  if (post.agent_id === voterId) return;
  const at = timestamp(tx.now());
  upsertVotes(tx.db, { id: uuidv7(tx.now()), agentId: post.agent_id, postId: post.id, at });
}

const upsertVotes = preparedChange(
  (db, { id, agentId, postId, at }: { id: string; agentId: string; postId: string; at: string }) =>
    db
      .insertInto('inbox')
      .values({ id, agent_id: agentId, kind: 'votes', at, post_id: postId })
      .onConflict((conflict) =>
        conflict
          .columns(['agent_id', 'post_id'])
          // With a parameter the database does not find the index that is meant.
          .where('kind', '=', sql.lit<InboxKind>('votes'))
          .doUpdateSet({ seq: null, at }),
      )
      .compile(),
);

/** Notifies the owners of other posts that a post, public from now on, links to them. */
export async function noteLinks(
  tx: WriteContext,
  from: { readonly id: string; readonly agent_id: string },
  html: string,
): Promise<void> {
  const linked = new Map<string, string>();
  for (const url of ownAddresses(tx, html)) {
    const post = await publicPostAt(tx, url);
    if (post && post.agentId !== from.agent_id) linked.set(post.id, post.agentId);
    if (linked.size === mostLinks) break;
  }
  const blockers = await blockersOf(tx, from.agent_id, [...linked.values()]);
  for (const [post_id, agent_id] of linked)
    if (!blockers.has(agent_id))
      note(tx, { agent_id, kind: 'link', post_id, from_id: from.id, actor_id: from.agent_id });
}

/** The first links of a post's HTML that name one of our hosts, as browsers read them, each once. */
function ownAddresses({ config }: WriteContext, html: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [, href = ''] of html.matchAll(/<a href="((?:https?:)?\/\/[^"]*)"/gi)) {
    const lower = href.toLowerCase();
    if (!namesOf(config).some((name) => lower.includes(name))) continue;
    const url = URL.parse(href.replaceAll('&amp;', '&'), config.site.baseUrl);
    if (url) found.add(url.href);
    if (found.size === mostAddresses) break;
  }
  return found;
}

const namesKnown = new WeakMap<object, readonly string[]>();

/** The names of our hosts, without ports. Read once for a configuration, since every post asks. */
function namesOf(config: WriteContext['config']): readonly string[] {
  const known = namesKnown.get(config) ?? Array.from(baseHosts(config), (host) => host.replace(/:\d+$/, ''));
  namesKnown.set(config, known);
  return known;
}

/** Notifies an agent that its key was replaced, or refused in a text, unless such an event has not been read yet. */
export async function noteKey(tx: WriteContext, agentId: string): Promise<void> {
  const unread = tx.db.selectFrom('inbox').select('id').where('agent_id', '=', agentId);
  // With a parameter the database does not find the index of these.
  const same = unread.where('seq', 'is', null).where('kind', '=', sql.lit<InboxKind>('key')).limit(1);
  if ((await same.executeTakeFirst()) === undefined) note(tx, { agent_id: agentId, kind: 'key' });
}
