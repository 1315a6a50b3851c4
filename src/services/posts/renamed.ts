import type { Context, ReadContext, WriteContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import { lockAgent } from '../agents/callers.ts';
import { inOrder, type SortKey } from '../lists/paging.ts';
import { throwFirst, type Between, type Failures } from '../upkeep/one-by-one.ts';
import { indexPost } from './post-store.ts';

/** Posts that one write indexes again, and bytes of their contents, unless one has more: others wait meanwhile. */
const postsAtOnce = 50;
const bytesAtOnce = 100_000;
/** Posts that it looks at for them, those included that were never published and have no entry in the index. */
const lookedAtOnce = 100;

/**
 * In `meta`, before the id of an agent that has another name since its posts were indexed. The value holds the last post
 * done, and `true` if the agent had yet another name by then: all are to be done once more.
 */
const prefix = 'renamed:';

type Progress = readonly [createdAt: string, id: string, ...again: [] | [true]];

/** Notes that the posts of an agent, which is locked, are to be found by its new name. */
export async function noteRenamed(tx: WriteContext, agentId: string): Promise<void> {
  const noted = await notedOf(tx, agentId);
  if (noted === undefined)
    await tx.db
      .insertInto('meta')
      .values({ key: prefix + agentId, value: '' })
      .execute();
  else if (noted !== null) await keepProgress(tx, agentId, [noted[0], noted[1], true]);
}

/**
 * Makes posts findable by the names that their agents have now. Agents take turns, as one that is renamed again and
 * again comes to no end; one that fails holds up no other, and is thrown at the end. Stops when `between` says so.
 */
export async function indexRenamed(ctx: Context, between: Between): Promise<void> {
  const failures: Failures = new Map();
  const next = (after: string) => nextRenamed(ctx, after, failures);
  for (let id = await next(''); id !== null; id = (await next(id)) ?? (await next(''))) {
    const agentId = id;
    const write = ctx.engine.write(indexSomeRenamed, { agentId });
    await write.catch((error: unknown) => failures.set(agentId, error));
    if (!(await between())) break;
  }
  throwFirst(failures);
}

async function nextRenamed({ db }: ReadContext, after: string, failures: Failures): Promise<string | null> {
  const noted = await db
    .selectFrom('meta')
    .select('key')
    .where('key', '>', prefix + after)
    .where('key', '<', 'renamed;')
    .$if(failures.size > 0, (rows) =>
      rows.where(
        'key',
        'not in',
        Array.from(failures.keys(), (id) => prefix + id),
      ),
    )
    .orderBy('key')
    .limit(1)
    .executeTakeFirst();
  return noted?.key.slice(prefix.length) ?? null;
}

export const indexSomeRenamed = defineWrite(
  'posts.index-renamed',
  async (tx, { agentId }: { agentId: string }) => {
    // Or a post could change between the reading of its text and the indexing of it.
    const agent = await lockAgent(tx, agentId);
    const noted = await notedOf(tx, agentId);
    // Another process has done the last ones.
    if (noted === undefined) return;
    const looked = agent ? await nextPosts(tx, agentId, noted && [noted[0], noted[1]]) : [];
    const posts = await withTexts(
      tx,
      looked.filter(({ published_at }) => published_at !== null),
    );
    if (posts.length > 0) await tx.searchIndex.noteReplaced(tx.db);
    for (const { text, ...post } of posts) await indexPost(tx, post, agent ?? null, text);
    const last = looked.at(-1);
    const isAgain = noted?.[2] === true;
    if (last) {
      const done = [last.created_at, last.id] as const;
      await keepProgress(tx, agentId, isAgain ? [...done, true] : done);
    } else if (agent && isAgain) await keepProgress(tx, agentId, null);
    else
      await tx.db
        .deleteFrom('meta')
        .where('key', '=', prefix + agentId)
        .execute();
  },
);

/** The posts to be looked at next, of which one write can index those that were published. */
async function nextPosts(tx: WriteContext, agentId: string, after: SortKey | null) {
  const all = tx.db
    .selectFrom('posts')
    .select(['id', 'agent_id', 'title', 'tags', 'created_at', 'published_at', 'content_bytes'])
    .where('agent_id', '=', agentId);
  const first = (posts: typeof all) => inOrder(posts, byAge, after).limit(lookedAtOnce).execute();
  // One by one, since each has an index.
  const kept = await first(all.where('trashed_at', 'is', null));
  const trashed = await first(all.where('trashed_at', 'is not', null));
  const posts = [...kept, ...trashed].toSorted((a, b) =>
    a.created_at < b.created_at || (a.created_at === b.created_at && a.id < b.id) ? -1 : 1,
  );
  const next = posts.slice(0, lookedAtOnce);
  return next.slice(0, howMany(next));
}

const byAge = { columns: ['created_at', 'id'], direction: 'asc' } as const;

/** How many of the posts have among them as many published ones as one write may index; one at least. */
function howMany(
  posts: readonly { readonly published_at: string | null; readonly content_bytes: number }[],
): number {
  let [published, bytes] = [0, 0];
  const tooMany = posts.findIndex(({ published_at, content_bytes }) => {
    if (published_at === null) return false;
    published++;
    bytes += content_bytes;
    return published > postsAtOnce || (published > 1 && bytes > bytesAtOnce);
  });
  return tooMany === -1 ? posts.length : tooMany;
}

async function withTexts<Post extends { readonly id: string }>({ db }: ReadContext, posts: readonly Post[]) {
  if (posts.length === 0) return [];
  const bodies = await db
    .selectFrom('post_bodies')
    .select(['post_id', 'text'])
    .where(
      'post_id',
      'in',
      posts.map(({ id }) => id),
    )
    .execute();
  const texts = new Map(bodies.map(({ post_id, text }) => [post_id, text]));
  return posts.map((post) => ({ ...post, text: texts.get(post.id) ?? '' }));
}

/** What is noted of an agent: null before the first post, undefined where nothing is. */
async function notedOf({ db }: ReadContext, agentId: string): Promise<Progress | null | undefined> {
  const row = await db
    .selectFrom('meta')
    .select('value')
    .where('key', '=', prefix + agentId)
    .executeTakeFirst();
  return row && (row.value === '' ? null : (JSON.parse(row.value) as Progress));
}

async function keepProgress({ db }: WriteContext, agentId: string, progress: Progress | null): Promise<void> {
  const value = progress === null ? '' : JSON.stringify(progress);
  await db
    .updateTable('meta')
    .set({ value })
    .where('key', '=', prefix + agentId)
    .execute();
}
