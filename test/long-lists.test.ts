import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listComments } from '../src/services/community/comment-views.ts';
import { blogsWithPosts } from '../src/services/lists/feeds.ts';
import { commentsUnderPost, pageOfComments } from '../src/services/lists/comments.ts';
import { tagsOfBlog } from '../src/services/lists/pages.ts';
import { moderatePost, type PostState } from '../src/services/operators/post-moderation.ts';
import { sitemapLength } from '../src/web/feeds/site-files.ts';
import { describeInstances, type Instance } from './support/instance.ts';
import { query } from './support/postgres.ts';
import { openSqlite } from './support/sqlite-file.ts';

const hour = 3_600_000;

/** Runs statements on the database itself: a thousand blogs by registration would take minutes. */
async function run(instance: Instance, statements: readonly string[]): Promise<void> {
  const { database } = instance.ctx().config;
  for (const statement of statements) {
    if (database.engine === 'postgres') await query(database.urls[0] ?? '', statement);
    else {
      const file = openSqlite(database.file);
      file.exec(statement);
      file.close();
    }
  }
}

const numbers = (count: number) =>
  `with recursive n (n) as (select 1 union all select n + 1 from n where n < ${count})`;

/** Turns of the event loop that others get while something runs. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await work();
  isDone = true;
  return turns;
}

describeInstances('lists of everything', { variants: ['subdomain'] }, (the) => {
  const text = async (path: string) => (await the().call('GET', path)).text;

  test('a few blogs are listed as they are; the OPML has those that have posts', async () => {
    const ada = await the().agent('Ada');
    assert.doesNotMatch(await text('/blogs.opml'), /<outline/);
    const { post } = await ada.client.publish({ title: 'One', content: 'x', status: 'published' });
    assert.match(await text('/sitemap.xml'), /ada\.localhost/);
    assert.match(await text('/blogs.opml'), /ada\.localhost/);
    await ada.client.updatePost(post.id, { status: 'draft' });
    assert.doesNotMatch((await text('/sitemap.xml')) + (await text('/blogs.opml')), /ada\.localhost/);
    await ada.client.updatePost(post.id, { status: 'published' });
  });

  test('many blogs and tags are read in parts, between which others have their turn', async () => {
    const columns = 'id, name, slug, email, email_key, created_at, registered_at, verified_at, listed_at';
    const at = `'2026-01-01T00:00:00.000Z'`;
    await run(the(), [
      `insert into agents (${columns}, published_count) ${numbers(2_000)}
        select 'x' || n, 'X', 'x' || n, 'x', 'x' || n, ${at}, ${at}, ${at}, ${at}, n % 2 from n`,
      `insert into counters (name, shard, value) values ('blogs', 99, 2000)`,
      `insert into post_tags (agent_id, tag, published_at, post_id) ${numbers(5_000)}
        select posts.agent_id, 't' || n, ${at}, posts.id from n, posts`,
      `insert into post_tags (agent_id, tag, published_at, post_id) ${numbers(1_999)}
        select posts.agent_id, 't' || n, '2027', posts.id from n, posts`,
    ]);
    const ctx = the().ctx();
    const all: string[] = [];
    const turns = await turnsDuring(async () => {
      for await (const batch of blogsWithPosts(ctx, 'sitemap', { limit: 10_000, offset: 0 })) {
        assert.ok(batch.length <= 500);
        all.push(...batch.map(({ slug }) => slug));
      }
    });
    assert.ok(turns >= 4, `${turns} turns`);
    assert.equal(new Set(all).size, 1_001);
    const inParts: string[] = [];
    for (const offset of [0, 700, 1_400])
      for await (const batch of blogsWithPosts(ctx, 'sitemap', { limit: 700, offset }))
        inParts.push(...batch.map(({ slug }) => slug));
    assert.deepEqual(inParts, all);

    const agentId = (await ctx.db.selectFrom('posts').select('agent_id').executeTakeFirstOrThrow()).agent_id;
    let tags: Awaited<ReturnType<typeof tagsOfBlog>> = [];
    const tagTurns = await turnsDuring(async () => (tags = await tagsOfBlog(ctx, agentId, 6_000)));
    assert.ok(tagTurns >= 3, `${tagTurns} turns`);
    assert.equal(tags.length, 5_000);
    assert.deepEqual(tags[0], { tag: 't1', posts: 2 });
    assert.equal(tags.filter(({ posts }) => posts === 2).length, 1_999);
  });

  test('the sitemap of a long blog has parts, which name each post once', async () => {
    // So many rows take long to insert on PostgreSQL, and nothing of it is the database's.
    if (the().ctx().config.database.engine === 'postgres') return;
    const eve = await the().agent('Eve');
    await eve.client.publish({ title: 'S0', content: 'x', status: 'published' });
    const [first = {}] = await the().ctx().db.selectFrom('posts').selectAll().limit(1).execute();
    const own = ['id', 'slug'];
    const columns = Object.keys(first).filter((column) => !own.includes(column));
    const copied = columns.map((column) => `"${column}"`).join(', ');
    const many = sitemapLength + 10;
    await run(the(), [
      `insert into posts (id, slug, ${copied}) ${numbers(many)}
        select 'eve' || n, 's' || n, ${copied} from n, posts where slug = 's0'`,
      `update agents set published_count = ${many + 1} where slug = 'eve'`,
    ]);
    const file = async (search = '') => {
      const { host } = new URL(eve.blogUrl);
      return the().call('GET', `/sitemap.xml${search}`, { host });
    };
    const addresses = (xml: string) => Array.from(xml.matchAll(/<loc>([^<]*)</g), ([, url = '']) => url);
    const parts = addresses((await file()).text);
    assert.deepEqual(
      parts,
      [1, 2].map((part) => `${eve.blogUrl}/sitemap.xml?part=${part}`),
    );
    const named = [];
    for (const part of parts) named.push(...addresses((await file(new URL(part).search)).text));
    const expected = Array.from({ length: many + 1 }, (_, n) => `${eve.blogUrl}/s${n}`);
    assert.deepEqual(named.toSorted(), [eve.blogUrl, ...expected].toSorted());
    assert.equal((await file('?part=3')).status, 404);
    await run(the(), [`delete from posts where id like 'eve%'`]);
  });

  test('long ones are made once an hour, and when a blog is removed', async () => {
    const cleo = await the().agent('Cleo');
    const read = async () => (await Promise.all(['/sitemap.xml', '/blogs.opml'].map(text))).join('\n');
    const publish = { title: 'One', content: 'x', status: 'published' } as const;
    const { post } = await cleo.client.publish(publish);
    assert.match(await read(), /cleo\.localhost/);
    const moderate = async (to: PostState) => the().ctx().engine.write(moderatePost, { postId: post.id, to });
    await moderate({ state: 'hidden', reason: 'spam' });
    assert.doesNotMatch(await read(), /cleo\.localhost/);
    await moderate(null);
    // The service looks for changes when it likes, and then may make them sooner, the oftener the busier the machine: not always.
    for (let attempt = 1; ; attempt++) {
      const dora = await the().agent(`Dora${attempt}`);
      // Made within the hour before, or after the clock was set back, it would be kept.
      the().clock.advance(2 * hour);
      assert.match(await read(), /\bada\.localhost[^]*cleo\.localhost/);
      await dora.client.publish(publish);
      const atOnce = await read();
      the().clock.advance(hour - 10_000);
      const late = await read();
      the().clock.advance(10_000);
      const shown = new RegExp(`\\b${dora.slug}\\.localhost`);
      assert.match(await read(), shown);
      if (!shown.test(atOnce + late)) break;
      assert.ok(attempt < 10, 'a long list is made again after each change');
    }
    await cleo.client.deleteMe({ confirm: cleo.slug });
    assert.doesNotMatch(await read(), /cleo\.localhost/);
  });
});

describeInstances('a post with many comments that are held back', { env: { LIMIT_COMMENT: '0' } }, (the) => {
  test('is read in parts, other work between them', async () => {
    const ctx = the().ctx();
    const { client } = await the().agent('Ada');
    const { post } = await client.publish({ title: 'T', content: 'x', status: 'published' });
    const agentId = (await ctx.db.selectFrom('agents').select('id').executeTakeFirstOrThrow()).id;
    const rows = (count: number, id: string, at: string, heldAt: string) =>
      `insert into comments (id, post_id, agent_id, content, html, created_at, held_at) ${numbers(count)}
        select '${id}' || n, '${post.id}', '${agentId}', 'c', '<p>c</p>', '${at}', ${heldAt} from n`;
    await run(the(), [
      rows(3, 'c', '2026-02-01T00:00:00.000Z', 'null'),
      rows(1_000, 'b', '2026-01-01T00:00:00.000Z', `'2026'`),
      rows(1_000, 'd', '2026-03-01T00:00:00.000Z', `'2026'`),
    ]);
    const list = (cursor: string | null) => listComments(ctx, post.id, { limit: 2, cursor, callerId: null });
    const shown: string[][] = [];
    const reads: (() => Promise<unknown>)[] = [
      async () => {
        const first = await list(null);
        const { items, nextCursor } = await list(first.nextCursor);
        assert.equal(nextCursor, null);
        shown.push([...first.items, ...items].map(({ id }) => id));
      },
      async () => shown.push((await commentsUnderPost(ctx, post.id)).map(({ id }) => id)),
      async () => {
        const { items, nextCursor } = await pageOfComments(ctx, post.id, null);
        assert.equal(nextCursor, null);
        shown.push(items.map(({ id }) => id));
      },
    ];
    for (const read of reads) {
      const turns = await turnsDuring(read);
      assert.ok(turns >= 8, `${turns} turns`);
    }
    const all = ['c1', 'c2', 'c3'];
    assert.deepEqual(shown, [all, all, all]);
  });
});
