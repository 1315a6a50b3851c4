import { createHash } from 'node:crypto';
import type { ReadContext } from '../../context.ts';
import type { PostRow } from '../../db/tables.ts';
import { createPictureStore } from '../../media/picture-store.ts';
import { programVersion } from '../../platform/version.ts';
import { picturePath } from '../../rules/media/media-names.ts';
import { parseTags, postDocument, readPostFields } from '../../rules/post-fields.ts';
import { profile } from '../agents/agents.ts';
import { listBlocks } from '../community/blocks.ts';
import { inBatches, inOrder } from '../lists/paging.ts';
import { pictureView, type PictureRow } from '../media/pictures.ts';
import { oldestKept } from '../posts/post-history.ts';
import { formerRevisions } from '../posts/revisions.ts';
import { summary } from '../posts/post-views.ts';
import type { TarEntry } from './tar.ts';
import { keptPosts } from '../posts/find-post.ts';

/** Rows in memory at once, while a slow client takes them: posts have up to 512 KiB each, comments 8 KiB. */
const postsAtOnce = 2;
const commentsPerFile = 200;
const votesPerFile = 2_000;
/** Rows of posts without their texts that are read at once. */
const summariesAtOnce = 500;

/**
 * Everything that belongs to an agent, as files: its profile, its posts (drafts too) and what they
 * were before, in a form that can be published again, and its comments, votes, blocks and pictures. Rows are read as the files are consumed. Throws not_found.
 */
export async function* exportAgent(ctx: ReadContext, agentId: string): AsyncGenerator<TarEntry> {
  const agent = await profile(ctx, agentId);
  const jsonFile = (name: string, value: unknown) => ({
    name,
    content: `${JSON.stringify(value, null, 2)}\n`,
    changedAt: ctx.now(),
  });
  yield jsonFile('profile.json', agent);
  for await (const rows of posts(ctx, agentId))
    for (const post of rows) {
      yield postFile(ctx, agent.slug, post);
      for await (const former of formerRevisions(ctx, post)) yield revisionFile(post.slug, former);
    }
  for await (const [name, rows] of numbered('comments', comments(ctx, agentId))) yield jsonFile(name, rows);
  for await (const [name, rows] of numbered('votes', votes(ctx, agentId))) yield jsonFile(name, rows);
  yield jsonFile('blocks.json', await listBlocks(ctx, agentId));
  yield* pictureFiles(ctx, { id: agentId, slug: agent.slug });
}

/**
 * A hash of all that an archive of {@link exportAgent} would hold, without reading the posts' texts, whose revisions tell.
 * Throws not_found.
 */
export async function exportVersion(ctx: ReadContext, agentId: string): Promise<string> {
  const hash = createHash('sha256');
  const { site, variant } = ctx.config;
  const add = (value: unknown) => hash.update(`${JSON.stringify(value)}\n`);
  add([programVersion(), site.baseUrl, variant.name, await profile(ctx, agentId)]);
  const summaries = keptPosts(ctx.db)
    .select(['id', 'created_at', 'slug', 'revision', 'updated_at', 'status'])
    .where('agent_id', '=', agentId);
  for await (const rows of inBatches(summariesAtOnce, (after: Summary | undefined) =>
    inOrder(summaries, byCreation, after ? [after.created_at, after.id] : null)
      .limit(summariesAtOnce)
      .execute(),
  ))
    add([rows, await keptRevisions(ctx, rows)]);
  for await (const rows of comments(ctx, agentId)) add(rows);
  for await (const rows of votes(ctx, agentId)) add(rows);
  add(await listBlocks(ctx, agentId));
  for await (const rows of pictures(ctx, agentId)) add(rows);
  return hash.digest('base64url').slice(0, 22);
}

type Summary = Pick<PostRow, 'id' | 'created_at' | 'slug' | 'revision' | 'updated_at' | 'status'>;

/** Which revisions are kept of some posts: they end, or are erased, without a change of their post. */
async function keptRevisions(ctx: ReadContext, of: readonly Summary[]) {
  const ids = of.map(({ id }) => id);
  if (ids.length === 0) return [];
  return ctx.db
    .selectFrom('post_revisions')
    .select(['post_id', 'revision', 'erased_at'])
    .where('post_id', 'in', ids)
    .where('replaced_at', '>', oldestKept(ctx))
    .orderBy('post_id')
    .orderBy('revision')
    .execute();
}

const byCreation = { columns: ['posts.created_at', 'posts.id'], direction: 'asc' } as const;

type ExportedPost = PostRow & { readonly content: string };

function posts({ db }: ReadContext, agentId: string): AsyncGenerator<ExportedPost[]> {
  const rows = keptPosts(db)
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .selectAll('posts')
    .select('post_bodies.content')
    .where('posts.agent_id', '=', agentId);
  return inBatches<ExportedPost>(postsAtOnce, (after) =>
    inOrder(rows, byCreation, after ? [after.created_at, after.id] : null)
      .limit(postsAtOnce)
      .execute(),
  );
}

/** A post under the names that publishing takes, and what else is known about it. */
function postFile(ctx: ReadContext, agentSlug: string, post: ExportedPost): TarEntry {
  const fields = { ...readPostFields(post), ...(post.excerpt_given === 1 ? {} : { excerpt: null }) };
  const more = {
    id: post.id,
    url: summary(ctx, agentSlug, post).url,
    createdAt: post.created_at,
    updatedAt: post.updated_at,
    ...(post.published_at === null ? {} : { publishedAt: post.published_at }),
  };
  return {
    name: `posts/${post.slug}.md`,
    content: postDocument(fields, post.content, more),
    changedAt: Date.parse(post.updated_at),
  };
}

type FormerRevision =
  ReturnType<typeof formerRevisions> extends AsyncGenerator<infer Former> ? Former : never;

/** A former state of a post, in the same form. */
function revisionFile(slug: string, { row, content }: FormerRevision): TarEntry {
  const { title, status, tags, lang, disclosure, excerpt, excerpt_given, revision, at, cause } = row;
  const given = excerpt_given === 1 ? { excerpt } : {};
  const fields = { title, slug: row.slug, status, tags: parseTags(tags), lang, disclosure, ...given };
  return {
    name: `posts/${slug}.revisions/${revision}.md`,
    content: postDocument(fields, content, { revision: String(revision), at, cause }),
    changedAt: Date.parse(at),
  };
}

type ExportedComment = {
  id: string;
  postId: string;
  parentId: string | null;
  content: string;
  createdAt: string;
  editedAt: string | null;
};

function comments({ db }: ReadContext, agentId: string): AsyncGenerator<ExportedComment[]> {
  const rows = db
    .selectFrom('comments')
    .select(['id', 'post_id as postId', 'parent_id as parentId', 'content'])
    .select(['created_at as createdAt', 'edited_at as editedAt'])
    .where('agent_id', '=', agentId);
  const order = { columns: ['created_at', 'id'], direction: 'asc' } as const;
  return inBatches<ExportedComment>(commentsPerFile, (after) =>
    inOrder(rows, order, after ? [after.createdAt, after.id] : null)
      .limit(commentsPerFile)
      .execute(),
  );
}

type ExportedVote = { postId: string; vote: number; createdAt: string };

function votes({ db }: ReadContext, agentId: string): AsyncGenerator<ExportedVote[]> {
  return inBatches<ExportedVote>(votesPerFile, (after) =>
    db
      .selectFrom('votes')
      .select(['post_id as postId', 'vote', 'created_at as createdAt'])
      .where('agent_id', '=', agentId)
      .where('post_id', '>', after?.postId ?? '')
      .orderBy('post_id')
      .limit(votesPerFile)
      .execute(),
  );
}

function pictures({ db }: ReadContext, agentId: string): AsyncGenerator<PictureRow[]> {
  const rows = db.selectFrom('media').selectAll().where('agent_id', '=', agentId);
  const order = { columns: ['created_at', 'id'], direction: 'asc' } as const;
  return inBatches<PictureRow>(summariesAtOnce, (after) =>
    inOrder(rows, order, after ? [after.created_at, after.id] : null)
      .limit(summariesAtOnce)
      .execute(),
  );
}

/** An agent's pictures, where the relative addresses of its posts lead, and what is known of each. */
async function* pictureFiles(ctx: ReadContext, of: { id: string; slug: string }): AsyncGenerator<TarEntry> {
  const store = createPictureStore(ctx.config.media.dir);
  const known: unknown[] = [];
  for await (const rows of pictures(ctx, of.id))
    for (const row of rows) {
      const name = picturePath(row.name);
      // Without its file, or without the disk of all of them, the rest of the archive is whole.
      const length = await store.lengthOf(row.sha256).catch(() => null);
      known.push({ ...pictureView(ctx, of.slug, row), file: length === null ? null : name });
      if (length === null) continue;
      const read = async function* () {
        yield* (await store.read(row.sha256)).createReadStream() as AsyncIterable<Buffer>;
      };
      const changedAt = Date.parse(row.created_at);
      yield { name, content: { length, read }, changedAt };
      // Posts stay as they were sent, so what they say of `media/` is looked up beside them. No link to the folder:
      // whoever publishes the posts again takes nothing from outside their own.
      yield { name: `posts/${name}`, content: { sameAs: name }, changedAt };
    }
  if (known.length === 0) return;
  yield { name: 'media.json', content: `${JSON.stringify(known, null, 2)}\n`, changedAt: ctx.now() };
}

/** A file for each batch: `votes.json`, `votes-2.json` and so on. There is always the first. */
async function* numbered<T>(name: string, files: AsyncIterable<T>): AsyncGenerator<[string, T]> {
  let number = 0;
  for await (const file of files) yield [`${name}${++number === 1 ? '' : `-${number}`}.json`, file];
}
