import type { Kysely } from 'kysely';
import { preparedChange, preparedInsert } from '../../db/prepared.ts';
import { defineWrite } from '../../db/write.ts';
import type { ReadContext, WriteContext } from '../../context.ts';
import type { AgentRow, PostRow, Tables, TrashedRow } from '../../db/tables.ts';
import { storedStretches } from '../../markdown/unseen.ts';
import { addToTotal, agentLock, blogChanged, lockCaller } from '../agents/callers.ts';
import { bySourceBlock, bySystem, noteAction } from '../operators/audit.ts';
import { notifyAgent } from '../operators/notices.ts';
import { noteLinks } from '../community/inbox-events.ts';
import { recall, remember, type Remembered, type Replayable } from '../limits/idempotency.ts';
import { ticketLock } from '../limits/rate-window.ts';
import { likenessOf } from './duplicates.ts';
import { storedText } from './find-post.ts';
import { moveAddress } from './former-slugs.ts';
import { fitRevisions, keepRevision } from './post-history.ts';
import type { PostInput } from './post-input.ts';
import { summary, taggedPost, type SummaryRow, type TaggedPost } from './post-views.ts';
import { linkPictures } from '../media/post-pictures.ts';
import { askAhead, dropAhead } from './post-target.ts';
import { planPost, type Plan, type SaveInput } from './post-plan.ts';
import { askBlocksAhead } from '../trust/source-blocks.ts';
import { parseTags } from '../../rules/post-fields.ts';
import { postSlugFromTitle } from '../../rules/slug.ts';
import type { TextDiff } from '../../rules/edits/text-diff.ts';
import type { Warning } from '../../rules/warnings.ts';
import { hostedName, namesUsed } from '../../rules/media/shown-pictures.ts';
import { searchEntry } from '../../rules/search/search-terms.ts';

/** A post as a call left it. */
export type Saved = {
  readonly post: TaggedPost;
  readonly created: boolean;
  /** False when the call asked for what was already so. */
  readonly changed: boolean;
  /** Its status before the call; null where it is new. */
  readonly was: PostRow['status'] | null;
  /** Whether it replaced the published text of a post that the call named neither by id nor by If-Match. */
  readonly overwrote: boolean;
  /** Slug of the post that the address redirected to until now; null where it did not. */
  readonly tookOver: string | null;
  /** The former slug by which the post was found; null where it was found otherwise. */
  readonly foundBy: string | null;
  /** The slug that it had before; null where that is the one it has. */
  readonly movedFrom: string | null;
  /** Another post of the agent with the content of the one that was created, and one with its title. */
  readonly duplicateOf: DuplicateOf | null;
  readonly sameTitle: DuplicateOf | null;
  /** Whether a time of publication was ignored, since the post is published already. */
  readonly isLate: boolean;
  /** The revision that takes back what a call by id, or with edits, made of title or text; absent or null for others. */
  readonly former?: number | null;
  /** Whether such a call gave it a title that makes another slug than it has. */
  readonly isRetitled?: boolean;
};

/** A post that another is a duplicate of. */
type DuplicateOf = Pick<TaggedPost, 'id' | 'slug' | 'url' | 'status'>;

/** Stores a post: the one transaction behind publishing and changing. */
export const savePost = defineWrite('posts.save', savePostOnce, {
  // What locks more than its agent shares no transaction.
  about: ({ agentId, replay }) => (replay ? `${agentId} ${replay.key}` : agentId),
  locks: ({ agentId, replay }, ticket) =>
    replay ? null : [...(ticket ? [ticketLock(ticket)] : []), agentLock(agentId)],
  ahead: (tx, input) => {
    askAhead(tx, { ...input, likeness: likenessOf(input) });
    askBlocksAhead(tx);
  },
  onlyAddsPostCounts: true,
});

/** What an answer says besides what was stored. */
export type Noted = {
  readonly warnings: readonly Warning[];
  /** What edits changed of the content; null where there were none. */
  readonly diff: Pick<TextDiff, 'diff' | 'truncated'> | null;
};

type Saving = SaveInput & { readonly replay: Replayable | null; readonly noted: Noted };

async function savePostOnce(tx: WriteContext, input: Saving): Promise<Remembered<Saved & Noted>> {
  const { agentId, replay, noted } = input;
  return remember(tx, replay, async () => ({
    result: { ...(await savePostOf(tx, input)), ...noted },
    agentId,
  }));
}

/** What an earlier call with the same Idempotency-Key stored; null if there was none. */
export const recallSaved = defineWrite(
  'posts.recall',
  async (tx, replay: Replayable): Promise<(Saved & Noted) | null> =>
    ((await recall(tx, replay))?.result ?? null) as (Saved & Noted) | null,
);

/** The body of {@link savePost}, for writes that decide under the lock of the agent what to store. */
export async function savePostOf(tx: WriteContext, input: SaveInput): Promise<Saved> {
  const { agent, plan } = await planPost(tx, lockCaller(tx, input.agentId), input);
  if (!plan.changed) await tx.confirmDurable();
  else {
    const { existing, next } = plan;
    const kept = keepRevision(tx, plan);
    await store(tx, plan, input.sent);
    await linkPicturesOf(tx, plan, input.sent);
    await storeTags(tx, plan);
    await updateSearchEntry(tx, agent, plan, input.sent);
    await adjustTotals(tx, agent, existing, next, {
      revisions: kept,
      changesOther: plan.former?.leadsTo != null,
    });
    await fitRevisions(tx, agent, kept);
    if (!existing?.listed_at && next.listed_at) await noteLinksOf(tx, next, input.sent);
    if (existing?.listed_at || next.listed_at) blogChanged(tx, agent.id);
    if (next.moderation === 'held' && existing?.moderation !== 'held') await noteHold(tx, agent, plan);
    tx.changed(`post:${next.id}`);
    // What was asked while this changed something came too early.
    dropAhead(tx, plan);
  }
  return outcomeOf(tx, agent, plan, input);
}

async function linkPicturesOf(
  tx: WriteContext,
  { existing, next, contentChanged }: Plan,
  { rendered }: PostInput,
): Promise<void> {
  const imageChanged = (existing?.image ?? null) !== next.image;
  if (!rendered && !imageChanged) return;
  const names = namesUsed(rendered?.html ?? (await storedText(tx, next.id, 'html')));
  const image = next.image === null ? [] : [hostedName(next.image) ?? ''];
  const replaces = existing !== null && (contentChanged || imageChanged);
  await linkPictures(tx, next, [...image, ...names], { replaces });
}

/** Notes that a source block holds a post back, which may have been public. */
export async function noteHold(
  tx: WriteContext,
  agent: AgentRow,
  { existing, next, heldFor }: Pick<Plan, 'existing' | 'next' | 'heldFor'>,
): Promise<void> {
  const before = { state: null, reason: null, block: heldFor };
  const by =
    heldFor === null
      ? { ...bySystem, reason: 'It is the text of a post that the operator has hidden.' }
      : bySourceBlock;
  const noted = await noteAction(tx, by, 'hold', { kind: 'post', id: next.id }, before);
  await notifyAgent(tx, by, agent, noted, { postId: next.id });
  if (existing?.listed_at) tx.changed('removed');
}

/** Notifies the owners of the posts that a post, public from now on, links to. */
export async function noteLinksOf(
  tx: WriteContext,
  post: PostRow,
  { rendered }: Pick<PostInput, 'rendered'>,
): Promise<void> {
  if (!tx.config.variant.engagement) return;
  await noteLinks(tx, post, rendered?.html ?? (await storedText(tx, post.id, 'html')));
}

/** What a call answers, whether its plan was carried out or only made. */
export function outcomeOf(
  ctx: ReadContext,
  agent: AgentRow,
  { existing, next, changed, contentChanged, former, foundBy, duplicates, isLate }: Plan,
  { postId, preconditions, base }: Pick<SaveInput, 'postId' | 'preconditions' | 'base'>,
): Saved {
  const isNamed = postId !== null || preconditions.ifMatch !== null || Boolean(base);
  return {
    post: taggedPost(ctx, agent, next),
    created: existing === null,
    changed,
    was: existing?.status ?? null,
    overwrote: existing?.status === 'published' && contentChanged && !isNamed,
    tookOver: former?.leadsTo?.slug ?? null,
    foundBy,
    movedFrom: existing && existing.slug !== next.slug ? existing.slug : null,
    duplicateOf: duplicates.content && named(ctx, agent, duplicates.content),
    sameTitle: duplicates.title && named(ctx, agent, duplicates.title),
    isLate,
    ...(existing && (postId !== null || base) && changeOf(existing, next, contentChanged)),
  };
}

/** What a call made of the post that it names by id, or whose text it edits. */
function changeOf(
  existing: PostRow,
  next: PostRow,
  contentChanged: boolean,
): Pick<Saved, 'former' | 'isRetitled'> {
  const retitled = existing.title !== next.title;
  return {
    former: retitled || contentChanged ? existing.revision : null,
    isRetitled: retitled && postSlugFromTitle(next.title) !== next.slug,
  };
}

function named(ctx: ReadContext, agent: AgentRow, row: SummaryRow): DuplicateOf {
  const { id, slug, url, status } = summary(ctx, agent.slug ?? '', row);
  return { id, slug, url, status };
}

async function store(tx: WriteContext, plan: Plan, { content, rendered }: PostInput): Promise<void> {
  const { existing, next, contentChanged } = plan;
  if (existing) {
    await tx.db
      .updateTable('posts')
      .set((row) => ({
        ...next,
        // What others may change meanwhile is left alone: a vote or comment must not be undone.
        comment_count: row.ref('comment_count'),
        upvotes: row.ref('upvotes'),
        downvotes: row.ref('downvotes'),
        rank_score: row.ref('rank_score'),
        featured_at: row.ref('featured_at'),
        ...(existing.published_at === null ? {} : { hot_rank: row.ref('hot_rank') }),
      }))
      .where('id', '=', next.id)
      .execute();
  } else insertPosts(tx.db, [next]);
  if (rendered && content !== null && (contentChanged || !existing)) {
    const body = {
      post_id: next.id,
      content,
      html: rendered.html,
      text: rendered.text,
      headings: JSON.stringify(rendered.headings),
      unseen: storedStretches(rendered.unseen),
    };
    if (existing) replaceBody(tx.db, body);
    else insertBodies(tx.db, [body]);
  }
  await moveAddress(tx, plan);
}

const insertPosts = preparedInsert('posts');
const insertBodies = preparedInsert('post_bodies');
export const insertTags = preparedInsert('post_tags');

const replaceBody = preparedChange((db, body: Tables['post_bodies']) =>
  db
    .insertInto('post_bodies')
    .values(body)
    // The new texts by name, which are long: as parameters again they would be sent twice.
    .onConflict((conflict) =>
      conflict.column('post_id').doUpdateSet((row) => ({
        content: row.ref('excluded.content'),
        html: row.ref('excluded.html'),
        text: row.ref('excluded.text'),
        headings: row.ref('excluded.headings'),
        unseen: row.ref('excluded.unseen'),
      })),
    )
    .compile(),
);

export async function storeTags(
  tx: WriteContext,
  { existing, next }: Pick<Plan, 'existing' | 'next'>,
): Promise<void> {
  const before = existing?.listed_at ? existing.tags : '[]';
  const after = next.listed_at ? next.tags : '[]';
  if (before === after) return;
  if (before !== '[]') await tx.db.deleteFrom('post_tags').where('post_id', '=', next.id).execute();
  if (after !== '[]') insertTags(tx.db, tagRows(next));
}

/** What lists by tag read of a published post. */
export function tagRows({ id, agent_id, tags, published_at }: TaggedRow) {
  return parseTags(tags).map((tag) => ({ agent_id, tag, published_at: published_at ?? '', post_id: id }));
}

type TaggedRow = Pick<PostRow, 'id' | 'agent_id' | 'tags' | 'published_at'>;

/** Every post once published keeps its entry: `listed_at` decides at search time whether it is shown. */
export async function updateSearchEntry(
  tx: WriteContext,
  agent: AgentRow,
  { existing, next, contentChanged }: Pick<Plan, 'existing' | 'next' | 'contentChanged'>,
  { rendered }: Pick<PostInput, 'rendered'>,
): Promise<void> {
  if (next.published_at === null) return;
  const isSame = !contentChanged && existing?.title === next.title && existing.tags === next.tags;
  if (existing?.published_at && isSame) return;
  if (existing?.published_at) await tx.searchIndex.noteReplaced(tx.db);
  await indexPost(tx, next, agent, rendered?.text ?? (await storedText(tx, next.id, 'text')));
}

/** Makes a post findable by its title, tags, plain text and author, and nothing else. */
export async function indexPost(
  tx: WriteContext,
  post: Pick<PostRow, 'id' | 'title' | 'tags' | 'agent_id'>,
  author: Pick<AgentRow, 'name' | 'slug'> | null,
  plainText: string,
): Promise<void> {
  const names = { author_name: author?.name ?? '', author_slug: author?.slug ?? null };
  const { fields, digest } = searchEntry({ ...post, ...names }, plainText);
  await tx.searchIndex.store(tx.db, { postId: post.id, digest }, fields);
}

/**
 * Adjusts all totals for a post that was `before` and is now `after`; null if it did not or does not exist.
 * `changesOther`: whether another post of the agent was changed too.
 */
export async function adjustTotals(
  tx: WriteContext,
  agent: AgentRow,
  before: Counted | null,
  after: Counted | null,
  {
    revisions = 0,
    changesOther = false,
  }: { readonly revisions?: number; readonly changesOther?: boolean } = {},
): Promise<void> {
  const difference = (is: (post: Counted) => boolean) =>
    (after && is(after) ? 1 : 0) - (before && is(before) ? 1 : 0);
  const all = difference(({ status }) => status === 'published');
  const moderated = difference(({ status, moderation }) => status === 'published' && moderation !== null);
  const published = all - moderated;
  const listed = (after?.listed_at ? 1 : 0) - (before?.listed_at ? 1 : 0);
  let latest = agent.last_published_at;
  if (published < 0) latest = await lastPublished(tx.db, agent.id);
  else if (published > 0 && after?.listed_at && after.listed_at > (latest ?? '')) latest = after.listed_at;
  // Also where no number changes: the row's version tells other processes that the agent's lists did.
  const added = {
    id: agent.id,
    published_count: published,
    moderated_count: moderated,
    draft_count: difference(({ status }) => status === 'draft'),
    content_bytes: (after?.content_bytes ?? 0) - (before?.content_bytes ?? 0),
    revision_bytes: revisions,
    last_published_at: latest,
  };
  // Revisions that were let go are out of the row already: what was read of it no longer holds.
  tx.addPostCounts(added, before === null && !changesOther ? 'last' : 'now');
  addToTotal(tx, 'posts', agent.id, listed);
}

/** What totals depend on; a post in the trash holds its bytes, and nothing else. */
type Counted = Pick<TrashedRow, 'status' | 'content_bytes' | 'listed_at' | 'moderation'>;

/** When an agent last published what is public now. */
export async function lastPublished(db: Kysely<Tables>, agentId: string): Promise<string | null> {
  const row = await db
    .selectFrom('posts')
    .select('listed_at')
    .where('agent_id', '=', agentId)
    .where('listed_at', 'is not', null)
    .orderBy('listed_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.listed_at ?? null;
}
