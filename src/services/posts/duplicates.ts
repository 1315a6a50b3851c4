import { sql } from 'kysely';
import type { Context, ReadContext } from '../../context.ts';
import { defineWrite, prepared } from '../../db/write.ts';
import type { PostRow } from '../../db/tables.ts';
import { sha256 } from '../../rules/secrets.ts';
import type { SaveInput } from './post-plan.ts';

type DuplicateRow = Pick<PostRow, 'id' | 'slug' | 'title' | 'status' | 'published_at'>;

/**
 * Posts of the same agent that are like a new one: the first with its content, the first of these that the operator has
 * hidden, and the first with its title.
 */
export type Duplicates = Readonly<Record<'content' | 'hidden' | 'title', DuplicateRow | null>>;

export const noDuplicates: Duplicates = { content: null, hidden: null, title: null };

/** Looks for posts with the content and title that are sent, where they may create a post. */
export async function duplicatesOf(
  ctx: ReadContext,
  { agentId, postId, sent: { title, content } }: SaveInput,
): Promise<Duplicates> {
  if (postId !== null || title === undefined || content === null) return noDuplicates;
  const alike = await postsAlike(ctx.db, { agentId, content: contentHash(content), title: titleKey(title) });
  const first = (what: Same) => alike.find(({ same }) => same === what) ?? null;
  return { content: first('content'), hidden: first('hidden'), title: first('title') };
}

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

type Alike = { agentId: string; content: string; title: string };

/** One statement, since every new post pays for it. What is in the trash has another status. */
const postsAlike = prepared((db, { agentId, content, title }: Alike) => {
  const first = (same: Same, column: 'content_hash' | 'title_hash', hash: string) =>
    db
      .selectFrom((row) =>
        row
          .selectFrom('posts')
          .select(['id', 'slug', 'title', 'status', 'published_at'])
          .select(sql<Same>`${sql.lit(same)}`.as('same'))
          .where('agent_id', '=', agentId)
          .where(column, '=', hash)
          .where('status', 'in', ['draft', 'published'])
          .$if(same === 'hidden', (hidden) =>
            // Literally, so that the partial index of hidden posts serves it.
            hidden.where('moderation', '=', sql.lit('hidden')),
          )
          .orderBy('id')
          .limit(1)
          .as('alike'),
      )
      .selectAll()
      .$narrowType<Pick<PostRow, 'status'>>();
  return first('content', 'content_hash', content)
    .unionAll(first('hidden', 'content_hash', content))
    .unionAll(first('title', 'title_hash', title))
    .compile();
});

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
