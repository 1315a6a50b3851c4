import { sql, type Kysely } from 'kysely';
import type { Context, ReadContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import type { PostRow, Tables } from '../../db/tables.ts';
import { sha256 } from '../../rules/secrets.ts';
import type { SaveInput } from './post-plan.ts';

type DuplicateRow = Pick<PostRow, 'id' | 'slug' | 'title' | 'status' | 'published_at'>;

/**
 * Posts of the same agent that are like a new one: the first with its content, the first of these that the operator has
 * hidden, and the first with its title.
 */
export type Duplicates = Readonly<Record<'content' | 'hidden' | 'title', DuplicateRow | null>>;

export const noDuplicates: Duplicates = { content: null, hidden: null, title: null };

/** What posts are looked for by that are like a new one. */
export type Likeness = { readonly content: string; readonly title: string };

/** What the posts have that are like what is sent, where it may create a post; else null. */
export function likenessOf({ postId, sent }: Pick<SaveInput, 'postId' | 'sent'>): Likeness | null {
  const { title, content } = sent;
  if (postId !== null || title === undefined || content === null) return null;
  const known = likenesses.get(sent) ?? { content: contentHash(content), title: titleKey(title) };
  likenesses.set(sent, known);
  return known;
}

const likenesses = new WeakMap<SaveInput['sent'], Likeness>();

/** By what a post is recognised as a duplicate; `content` is null where it stays. */
export function postHashes(
  title: string,
  content: string | null,
  existing: Pick<PostRow, 'content_hash'> | null,
): Pick<PostRow, 'content_hash' | 'title_hash'> {
  const content_hash = content === null ? (existing?.content_hash ?? null) : contentHash(content);
  return { content_hash, title_hash: titleKey(title) };
}

function contentHash(content: string): string {
  return sha256(content.trim());
}

function titleKey(title: string): string {
  return sha256(title.normalize('NFC').toLowerCase());
}

/** What is found of {@link postsAlike}, by what is the same. */
export function duplicatesIn(rows: readonly (DuplicateRow & { readonly as: string | null })[]): Duplicates {
  const first = (same: Same) => rows.find((row) => row.as === same) ?? null;
  return { content: first('content'), hidden: first('hidden'), title: first('title') };
}

/**
 * Whether an agent's post has, or comes to have, the text of another one that the operator has hidden, be that in the
 * trash. Not where it had that text in public already.
 */
export async function isHiddenAlike(
  { db }: ReadContext,
  post: Pick<PostRow, 'id' | 'agent_id' | 'status' | 'content_hash'>,
  { content }: Pick<SaveInput['sent'], 'content'>,
): Promise<boolean> {
  const hash = content === null ? post.content_hash : contentHash(content);
  if (hash === null || (post.status === 'published' && hash === post.content_hash)) return false;
  const hidden = await db
    .selectFrom('posts')
    .select('id')
    .where('agent_id', '=', post.agent_id)
    .where('content_hash', '=', hash)
    // Literally, so that the partial index of hidden posts serves it.
    .where('moderation', '=', sql.lit('hidden'))
    .where('id', '<>', post.id)
    .limit(1)
    .executeTakeFirst();
  return hidden !== undefined;
}

/** Posts of an agent that are like a new one, each with what is the same; of those in the trash only what is hidden. */
export function postsAlike(db: Kysely<Tables>, agentId: string, { content, title }: Likeness) {
  const first = (same: Same, column: 'content_hash' | 'title_hash', hash: string) =>
    db
      .selectFrom((row) =>
        row
          .selectFrom('posts')
          .selectAll()
          .where('agent_id', '=', agentId)
          .where(column, '=', hash)
          // As the indexes have it, which walk no posts of the trash.
          .$if(same !== 'hidden', (kept) => kept.where('trashed_at', 'is', null))
          .$if(same === 'hidden', (hidden) => hidden.where('moderation', '=', sql.lit('hidden')))
          .orderBy('id')
          .limit(1)
          .as('alike'),
      )
      .selectAll()
      .select([sql<string | null>`${sql.lit(same)}`.as('as'), sql<string | null>`null`.as('deletedAt')])
      .$narrowType<Pick<PostRow, 'status' | 'trashed_at'>>();
  return first('content', 'content_hash', content)
    .unionAll(first('hidden', 'content_hash', content))
    .unionAll(first('title', 'title_hash', title));
}

type Same = keyof Duplicates;

/** Posts that one write hashes, and that one round does. */
const postsAtOnce = 20;
const postsARound = 500;

/**
 * Hashes posts that an earlier release has stored, some at a time. Any number of processes may do it. `between` is called
 * after each write, to let others go first; it returns whether to go on.
 */
export async function hashStored(ctx: Context, between: () => Promise<boolean>): Promise<void> {
  for (let left = postsARound; left > 0; left -= postsAtOnce) {
    const some = await unhashed(ctx).select('id').orderBy('id').limit(postsAtOnce).execute();
    if (some.length === 0) return;
    await ctx.engine.write(hashPosts, { ids: some.map(({ id }) => id) });
    if (!(await between())) return;
  }
}

export const hashPosts = defineWrite('posts.hash', async (tx, { ids }: { ids: readonly string[] }) => {
  const rows = await tx.db
    .selectFrom('posts')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .select(['posts.id', 'posts.title', 'post_bodies.content'])
    .where('posts.id', 'in', ids)
    .where('posts.content_hash', 'is', null)
    .orderBy('posts.id')
    .execute();
  for (const { id, title, content } of rows)
    await tx.db
      .updateTable('posts')
      .set(postHashes(title, content, null))
      .where('id', '=', id)
      // Whoever has changed the post meanwhile has hashed it.
      .where('content_hash', 'is', null)
      .execute();
});

/** Posts without a hash, which are found as no duplicate. */
export function unhashed({ db }: ReadContext) {
  return db.selectFrom('posts').where('content_hash', 'is', null);
}
