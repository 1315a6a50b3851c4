import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { loadConfig } from '../src/config/config.ts';
import { createLog } from '../src/platform/log.ts';
import { startServer } from '../src/server.ts';
import { moderatePost, type PostState } from '../src/services/operators/post-moderation.ts';
import { createPageCache, followChanges, type PageCache } from '../src/web/cache/page-cache.ts';
import { representationOf, storePage, type PageTag } from '../src/web/cache/page.ts';
import { request, rawRequest } from './support/http.ts';
import { startInstance, type Instance, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';
import { freePort } from './support/processes.ts';
import { openSqlite } from './support/sqlite-file.ts';

const config = loadConfig({});

function page(body: string, tags: readonly PageTag[] = []) {
  return storePage({ type: 'html', body, tags }, config, 0);
}

test('a page takes no more memory than its bytes, in any encoding', async () => {
  const stored = page('A page. '.repeat(1_000));
  for (const encoding of ['identity', 'br', 'gzip', 'zstd'] as const) {
    const { body } = await representationOf(stored, encoding);
    assert.equal(body.buffer.byteLength, body.length, encoding);
  }
});

test('a page is stored uncompressed only for those who ask for it so, and is whole in every encoding', async () => {
  const text = 'A page. '.repeat(1_000);
  const names = ['br', 'zstd', 'gzip', 'identity'] as const;
  const storedOf = ({ representations }: ReturnType<typeof page>) =>
    names.filter((name) => representations[name] !== null);
  for (const first of names)
    for (const second of names) {
      const stored = page(text);
      for (const name of [first, second, first]) {
        const { body } = await representationOf(stored, name);
        assert.equal(decoders[name](body).toString(), text, `${name} of ${first}, ${second}`);
      }
      assert.deepEqual(
        storedOf(stored),
        names.filter((name) => name === first || name === second),
      );
    }
  const atOnce = page(text);
  const answers = await Promise.all(names.map(async (name) => representationOf(atOnce, name)));
  for (const { encoding, body } of answers) assert.equal(decoders[encoding](body).toString(), text, encoding);
  const small = page('Hello.');
  assert.equal((await representationOf(small, 'br')).body.toString(), 'Hello.');
  assert.deepEqual(storedOf(small), ['identity']);
});

test('a page is compressed once for all who ask at the same time', async () => {
  const stored = page('A page. '.repeat(1_000));
  const [first, second] = [representationOf(stored, 'br'), representationOf(stored, 'br')];
  assert.equal(first, second);
  const made = await first;
  assert.equal(representationOf(stored, 'br'), made);
});

test('a page is forgotten when something that it shows changes, and no other is', () => {
  const cases: [readonly string[], string[]][] = [
    [['post:1'], ['blog', 'site']],
    [['agent:1'], ['home', 'site']],
    [['site'], ['blog', 'home', 'post']],
    [
      ['agent:2', 'post:2'],
      ['post', 'site'],
    ],
    [['everything'], []],
    [[], ['blog', 'home', 'post', 'site']],
  ];
  for (const [changed, kept] of cases) {
    const cache = createPageCache(1e6);
    cache.put('post', page('p', ['post:1', 'agent:1']), cache.generation());
    cache.put('blog', page('b', ['agent:1', 'post:2']), cache.generation());
    cache.put('home', page('h', ['post:*']), cache.generation());
    cache.put('site', page('s', ['site']), cache.generation());
    cache.drop(changed);
    const left = ['blog', 'home', 'post', 'site'].filter((key) => cache.get(key) !== undefined);
    assert.deepEqual(left, kept, changed.join());
  }
});

test('a page that was being read while something that it shows changed is not kept', () => {
  const cache = createPageCache(1e6);
  const cases: [(cache: PageCache) => void, boolean][] = [
    [() => undefined, true],
    [() => cache.drop(['post:2']), true],
    [() => cache.drop(['post:1']), false],
    [() => cache.clear(), false],
  ];
  for (const [meanwhile, isKept] of cases) {
    const since = cache.generation();
    meanwhile(cache);
    cache.put('post', page('old', ['post:1']), since);
    assert.equal(cache.get('post') !== undefined, isKept, String(meanwhile));
  }
  cache.put('post', page('new', ['post:1']), cache.generation());
  assert.ok(cache.get('post'));
});

test('the cache keeps to its bounds, what is asked for stays longest, and what is dropped makes room', () => {
  const cache = createPageCache(200_000);
  const kept = () => Array.from({ length: 1_000 }, (_, i) => cache.get(`cold-${i}`)).filter(Boolean).length;
  cache.put('hot', page('x'.repeat(10_000), ['agent:1']), 0);
  for (let i = 0; i < 1_000; i++) {
    assert.ok(cache.get('hot'), `after ${i}`);
    cache.put(`cold-${i}`, page('y'.repeat(5_000), ['agent:1']), 0);
  }
  assert.ok(cache.get('cold-999'));
  assert.equal(cache.get('cold-0'), undefined);
  cache.put('huge', page('z'.repeat(110_000)), 0);
  assert.equal(cache.get('huge'), undefined, 'one page may not push out all others');
  const most = kept();
  assert.ok(most > 20 && most * 5_000 <= 200_000, `${most} kept`);
  cache.drop(['agent:1']);
  assert.equal(kept(), 0);
  cache.put('hot', page('x'.repeat(10_000), ['agent:1']), cache.generation());
  for (let i = 0; i < 1_000; i++) cache.put(`cold-${i}`, page('y'.repeat(5_000)), cache.generation());
  assert.ok(kept() >= most);
  const none = createPageCache(0);
  none.put('any', page('x'), 0);
  assert.equal(none.get('any'), undefined);
});

const decoders = {
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
  gzip: gunzipSync,
  identity: (bytes: Buffer) => bytes,
} as const;

/** Runs with a published post of 200 KB, and its address. */
async function withPost(
  run: (site: Instance, url: string, author: TestAgent) => Promise<void>,
): Promise<void> {
  const site = await startInstance();
  try {
    const ada = await site.agent('Ada');
    const content = Array.from({ length: 200 }, (_, i) => createHash('sha256').update(`${i}`).digest('hex'));
    const { post } = await ada.client.publish({
      title: 'Hello',
      content: content.join(' '),
      status: 'published',
    });
    await run(site, post.url, ada);
  } finally {
    await site.close();
  }
}

test('each encoding is the same page under an entity tag of its own, and 304 is for that one only', async () => {
  await withPost(async (site, url) => {
    const names = Object.keys(decoders);
    const plain = await open(site, url);
    const etags = new Map<string, string>();
    for (const [name, decode] of Object.entries(decoders)) {
      const answer = await open(site, url, { headers: { 'accept-encoding': name } });
      assert.equal(answer.headers['content-encoding'] ?? 'identity', name);
      assert.ok(decode(answer.bytes).equals(plain.bytes), name);
      etags.set(name, String(answer.headers.etag));
    }
    etags.set('twin', String((await open(site, `${url}.md`)).headers.etag));
    etags.set('feed', String((await open(site, `${new URL(url).origin}/feed.xml`)).headers.etag));
    assert.equal(new Set(etags.values()).size, etags.size);
    for (const [had, etag] of etags) {
      for (const wanted of names) {
        const headers = { 'accept-encoding': wanted, 'if-none-match': etag };
        const answer = await open(site, url, { headers });
        assert.equal(answer.status, had === wanted ? 304 : 200, `${had} for ${wanted}`);
        if (answer.status === 304) assert.deepEqual([answer.headers.etag, answer.bytes.length], [etag, 0]);
      }
    }
  });
});

test('markdown by negotiation says where it stands by itself and is not for shared caches', async () => {
  await withPost(async (site, url) => {
    for (const encoding of ['identity', 'br']) {
      const headers = { accept: 'text/markdown, text/html;q=0.5', 'accept-encoding': encoding };
      const answer = await open(site, url, { headers });
      assert.equal(answer.headers['content-type'], 'text/markdown; charset=utf-8');
      assert.equal(answer.headers['content-location'], `${url}.md`);
      assert.equal(answer.headers['cache-control'], 'private, no-store');
      assert.equal(answer.headers.vary, 'Accept, Accept-Encoding');
      assert.equal(answer.headers.etag, undefined);
      assert.match(
        decoders[encoding === 'br' ? 'br' : 'identity'](answer.bytes).toString(),
        /^---\ntitle: Hello\n/,
      );
    }
    assert.match((await open(site, url)).text, /^<!doctype html>/, 'the page is kept apart from its twin');
  });
});

test('the date of a feed is told once nothing else can have it, and another date never gives 304', async () => {
  await withPost(async (site, url, { client }) => {
    const feed = `${new URL(url).origin}/feed.xml`;
    // Within a second the process reads its own changes, too, and drops what shows them once more.
    await delay(1_000);
    site.clock.freeze();
    assert.equal((await open(site, feed)).headers['last-modified'], undefined);
    site.clock.advance(3_000);
    const { headers } = await open(site, feed);
    const told = String(headers['last-modified']);
    const since = async (date: string) =>
      (await open(site, feed, { headers: { 'if-modified-since': date } })).status;
    assert.equal(await since(told), 304);
    assert.equal(await since(new Date(Date.parse(told) + 1_000).toUTCString()), 200);
    const both = { 'if-modified-since': told, 'if-none-match': '"other"' };
    assert.equal((await open(site, feed, { headers: both })).status, 200);
    const { posts } = await client.listPosts();
    await client.deletePost(posts[0]?.id ?? '');
    assert.equal(await since(told), 200, 'the post is gone from the feed, which is older for it');
  });
});

test('what changed shows in the next answer, wherever it is shown', async () => {
  const site = await startInstance();
  try {
    const [ada, bea] = [await site.agent('Ada'), await site.agent('Beatrix')];
    const { post } = await ada.client.publish({
      title: 'One',
      content: 'x',
      tags: ['t'],
      status: 'published',
    });
    await ada.client.publish({ title: 'Between', content: 'x', status: 'published' });
    const other = { title: 'Other', content: 'x', tags: ['t', 'u'], status: 'published' } as const;
    const related = await ada.client.publish(other);
    await bea.client.addComment(post.id, 'Well said.');
    const pages = {
      home: `${site.baseUrl}/`,
      blogs: `${site.baseUrl}/blogs`,
      allFeed: `${site.baseUrl}/feed.json`,
      blog: ada.blogUrl,
      post: post.url,
      twin: `${post.url}.md`,
      tag: `${ada.blogUrl}/tags/t`,
      feed: `${ada.blogUrl}/rss.xml`,
      sitemap: `${ada.blogUrl}/sitemap.xml`,
      llms: `${ada.blogUrl}/llms.txt`,
      archive: `${ada.blogUrl}/-/archive`,
      tags: `${ada.blogUrl}/-/tags`,
      related: related.post.url,
    };
    const read = async () =>
      new Map(
        await Promise.all(
          Object.entries(pages).map(async ([name, url]) => [name, (await open(site, url)).text] as const),
        ),
      );
    const steps: [string, () => Promise<unknown>, string[]][] = [
      ['nothing', async () => undefined, []],
      ['a vote', () => bea.client.vote(post.id, 1), ['post']],
      ['a comment', () => bea.client.addComment(post.id, 'More.'), ['post', 'blog', 'home', 'tag']],
      [
        'a new title',
        () => ada.client.publish({ slug: 'one', title: 'First' }),
        ['home', 'allFeed', 'blog', 'post', 'twin', 'tag', 'feed', 'sitemap', 'llms', 'archive', 'related'],
      ],
      ['a new name of a commenter', () => bea.client.updateMe({ name: 'Bea' }), ['post', 'home', 'blogs']],
      [
        'a new name',
        () => ada.client.updateMe({ name: 'Ada L.' }),
        'home blogs allFeed blog post twin tag feed llms archive tags related'.split(' '),
      ],
      ['a bio of a commenter', () => bea.client.updateMe({ bio: 'New here.' }), ['home', 'blogs']],
      [
        'another bio',
        () => ada.client.updateMe({ bio: 'Wrote this.' }),
        ['home', 'blogs', 'blog', 'feed', 'llms', 'post', 'related'],
      ],
      [
        'other tags',
        () => ada.client.publish({ slug: 'other', tags: ['t', 'v'] }),
        ['home', 'allFeed', 'blog', 'feed', 'tag', 'tags', 'related', 'sitemap'],
      ],
      [
        'a post that leaves',
        () => ada.client.publish({ slug: 'one', status: 'draft' }),
        'home blogs allFeed blog post twin tag feed sitemap llms archive tags related'.split(' '),
      ],
      [
        'another post',
        () => bea.client.publish({ title: 'Two', content: 'y', status: 'published' }),
        ['home', 'blogs', 'allFeed'],
      ],
    ];
    let before = await read();
    for (const [name, step, expected] of steps) {
      await step();
      const after = await read();
      const changed = [...after].filter(([key, text]) => before.get(key) !== text).map(([key]) => key);
      assert.deepEqual(changed.toSorted(), expected.toSorted(), name);
      before = after;
    }
  } finally {
    await site.close();
  }
});

/** Tags and their numbers of posts, as the front page of a blog lists them. */
const tagsIn = (html: string) =>
  Array.from(
    html.matchAll(/rel="tag" href="[^"]*"><bdi>([^<]*)<[^>]*>[^<]*<\/a>\s*<span class="fact">(\d+)</g),
    (m) => `${m[1]} ${m[2]}`,
  );

test('the tags of a blog are counted when its posts change, not after each vote and comment', async () => {
  const site = await startInstance();
  try {
    const [ada, bea] = [await site.agent('Ada'), await site.agent('Beatrix')];
    const say = { content: 'x', status: 'published' } as const;
    const { post } = await ada.client.publish({ ...say, title: 'One', tags: ['t'] });
    const front = async () => (await open(site, ada.blogUrl)).text;
    const locations = async () =>
      Array.from(
        (await open(site, `${ada.blogUrl}/sitemap.xml`)).text.matchAll(/<loc>[^<]*?([^/<]*)<\/loc>/g),
        ([, last]) => last,
      ).slice(1);
    const { database } = site.ctx().config;
    assert.equal(database.engine, 'sqlite');
    // A row that no change tells of shows whether they were counted. The process meets its own changes once more when
    // it likes, and then they are: not always.
    for (let attempt = 1; ; attempt++) {
      await front();
      const direct = openSqlite(database.file);
      direct
        .prepare('insert into post_tags (agent_id, tag, published_at, post_id) values (?, ?, ?, ?)')
        .run(ada.id, `unseen-${attempt}`, post.publishedAt, post.id);
      direct.close();
      await bea.client.vote(post.id, attempt % 2 === 0 ? 1 : -1);
      await bea.client.addComment(post.id, 'Well said.');
      const made = await front();
      assert.match(made, new RegExp(`\\b${attempt} comments?\\b`), 'the page was made again');
      if (!made.includes(`unseen-${attempt}`)) break;
      assert.ok(attempt < 10, 'tags are counted after each comment');
    }

    const { post: two } = await ada.client.publish({ ...say, title: 'Two', tags: ['t', 'u'] });
    const moderate = async (to: PostState) => site.ctx().engine.write(moderatePost, { postId: two.id, to });
    const steps: [() => Promise<unknown>, tags: string[], posts: string[]][] = [
      [async () => ada.client.updatePost(post.id, { tags: ['v'] }), ['t 1', 'u 1', 'v 1'], ['one', 'two']],
      [
        async () => ada.client.updatePost(post.id, { tags: ['t', 'v'] }),
        ['t 2', 'u 1', 'v 1'],
        ['one', 'two'],
      ],
      [async () => moderate({ state: 'hidden', reason: 'spam' }), ['t 1', 'v 1'], ['one']],
      [async () => moderate(null), ['t 2', 'u 1', 'v 1'], ['one', 'two']],
      [async () => ada.client.deletePost(two.id), ['t 1', 'v 1'], ['one']],
      [async () => ada.client.restorePost(two.id), ['t 2', 'u 1', 'v 1'], ['one', 'two']],
      [async () => ada.client.updatePost(two.id, { slug: 'three' }), ['t 2', 'u 1', 'v 1'], ['one', 'three']],
      [async () => ada.client.updatePost(two.id, { status: 'draft' }), ['t 1', 'v 1'], ['one']],
    ];
    for (const [n, [step, tags, posts]] of steps.entries()) {
      await step();
      assert.deepEqual(tagsIn(await front()), tags, `step ${n}`);
      assert.deepEqual(await locations(), posts, `step ${n}`);
    }
    await ada.client.updateMe({ name: 'Ada Lovelace' });
    assert.match(await front(), /<title>Ada Lovelace/);
  } finally {
    await site.close();
  }
});

test('a sitemap is not written anew for a bio', async () => {
  const site = await startInstance();
  try {
    const ada = await site.agent('Ada');
    const { post } = await ada.client.publish({ title: 'One', content: 'x', status: 'published' });
    const sitemap = async () => (await open(site, `${ada.blogUrl}/sitemap.xml`)).text;
    const { database } = site.ctx().config;
    assert.equal(database.engine, 'sqlite');
    // As above: a change that nothing tells of shows whether it was.
    for (let attempt = 1; ; attempt++) {
      await sitemap();
      const direct = openSqlite(database.file);
      direct.prepare('update posts set slug = ? where id = ?').run(`moved-${attempt}`, post.id);
      direct.close();
      await ada.client.updateMe({ bio: `Number ${attempt}.` });
      if (!(await sitemap()).includes(`moved-${attempt}`)) break;
      assert.ok(attempt < 10, 'it is written anew for each bio');
    }
  } finally {
    await site.close();
  }
});

test('another profile drops only the pages that show it, however much the agent has commented', async () => {
  const site = await startInstance();
  try {
    const [ada, bea] = [await site.agent('Ada'), await site.agent('Beatrix')];
    const urls: string[] = [];
    for (let n = 0; n < 3; n++) {
      const { post } = await ada.client.publish({ title: `Post ${n}`, content: 'x', status: 'published' });
      urls.push(post.url);
      await bea.client.addComment(post.id, 'Well said.');
    }
    // As many as an agent has after a while, in one statement.
    const { database } = site.ctx().config;
    assert.equal(database.engine, 'sqlite');
    const direct = openSqlite(database.file);
    const columns = direct
      .prepare(`select name from pragma_table_info('posts') where name not in ('id', 'slug', 'listed_at')`)
      .all()
      .map(({ name }) => String(name))
      .join(', ');
    direct.exec(`
      with recursive n (n) as (select 1 union all select n + 1 from n where n < 300)
      insert into posts (id, slug, ${columns}) select 'p' || n, 'p' || n, ${columns}
        from n, (select * from posts limit 1);
      insert into comments (id, post_id, agent_id, content, html, created_at)
        select 'c' || id, id, '${bea.id}', '', '', '' from posts where slug like 'p%' and length(id) < 10`);
    direct.close();
    const cache = createPageCache(1e6);
    const changes = followChanges(site.ctx(), cache);
    await changes.look();
    const pages = {
      stranger: ['agent:s', 'blog:s'],
      commented: ['agent:a', 'blog:a', `agent:${bea.id}`],
      own: [`agent:${bea.id}`, `blog:${bea.id}`],
      blogs: ['site', 'agent:*', 'blog:*'],
      sitemap: ['site'],
    } as const;
    const left = async (change: Parameters<typeof bea.client.updateMe>[0]) => {
      for (const [key, tags] of Object.entries(pages)) cache.put(key, page('x', tags), cache.generation());
      await bea.client.updateMe(change);
      await changes.look();
      return Object.keys(pages).filter((key) => cache.get(key));
    };
    assert.deepEqual(await left({ bio: 'New.' }), ['stranger', 'commented', 'sitemap']);
    assert.deepEqual(await left({ name: 'Bea' }), ['stranger', 'sitemap']);
    assert.deepEqual(await left({ avatarUrl: 'https://example.com/a.png' }), ['stranger', 'sitemap']);
    assert.deepEqual(await left({ avatarUrl: null, bio: 'Newer.' }), ['stranger', 'sitemap']);
    assert.match((await open(site, urls[0] ?? '')).text, /Bea/);
    await changes.stop();
  } finally {
    await site.close();
  }
});

test('what another process commits shows here too, and leaves here too', async () => {
  const site = await startInstance();
  const other = await startServer(
    loadConfig({ PORT: String(await freePort()), DATA_DIR: site.dataDir, LOG_LEVEL: 'silent' }),
    {
      log: createLog('silent'),
    },
  );
  try {
    const ada = await site.agent('Ada');
    const host = `ada.localhost:${other.port}`;
    const there = (path: string) => request(`http://127.0.0.1:${other.port}`, { path, host });
    const until = async (path: string, status: number, words: string) => {
      for (let tries = 0; tries < 1_200; tries++) {
        const answer = await there(path);
        if (answer.status === status && answer.text.includes(words)) return;
        await delay(50);
      }
      assert.fail(`${path} never became ${status} with '${words}'`);
    };
    await until('/', 200, 'Nothing has been published');
    const { post } = await ada.client.publish({ title: 'First title', content: 'x', status: 'published' });
    await until('/', 200, 'First title');
    await until('/first-title', 200, 'First title');
    await ada.client.updatePost(post.id, { title: 'Second title' });
    await until('/first-title', 200, 'Second title');
    await ada.client.deletePost(post.id);
    await until('/first-title', 410, 'deleted');
    await until('/feed.xml', 200, '<title>Ada</title>');
  } finally {
    await other.close();
    await site.close();
  }
});

test('a change that becomes visible after one with a higher number is seen all the same', async () => {
  const site = await startInstance();
  const { database } = site.ctx().config;
  assert.ok(database.engine === 'sqlite');
  const elsewhere = openSqlite(database.file);
  const cache = createPageCache(1e6);
  const changes = followChanges(site.ctx(), cache);
  try {
    for (const [seq, tag] of [
      [12, 'post:a'],
      [10, 'post:b'],
      [11, 'post:c'],
      [1, 'post:e'],
      [13, 'post:d'],
      // As after a sweep of all before it: the numbers go on.
      [5_000, 'post:f'],
      [4_999, 'post:g'],
    ] as const) {
      await changes.look();
      cache.put('page', page('x', [tag]), cache.generation());
      elsewhere.prepare('insert into changes (seq, tag, at) values (?, ?, 0)').run(seq, tag);
      assert.ok(cache.get('page'), tag);
      await changes.look();
      assert.equal(cache.get('page'), undefined, tag);
    }
  } finally {
    await changes.stop();
    elsewhere.close();
    await site.close();
  }
});

test('a change is seen that commits after the first that a start finds, with a number below', async () => {
  const site = await startInstance();
  const { database } = site.ctx().config;
  assert.ok(database.engine === 'sqlite');
  const elsewhere = openSqlite(database.file);
  const commit = (seq: number) =>
    elsewhere.prepare('insert into changes (seq, tag, at) values (?, ?, 0)').run(seq, `post:${seq}`);
  commit(50);
  const cache = createPageCache(1e6);
  const changes = followChanges(site.ctx(), cache);
  try {
    await changes.look();
    cache.put('page', page('x', ['post:49']), cache.generation());
    commit(49);
    await changes.look();
    assert.equal(cache.get('page'), undefined);
  } finally {
    await changes.stop();
    elsewhere.close();
    await site.close();
  }
});

test('after a time without a look, in which changes may have been deleted, nothing made before is used', async () => {
  const site = await startInstance();
  const ctx = site.ctx();
  let now = ctx.now();
  let caughtUp = 0;
  const engine = { ...ctx.engine, version: () => Math.random(), catchUp: () => void caughtUp++ };
  const cache = createPageCache(1e6);
  const changes = followChanges({ ...ctx, now: () => now, engine }, cache);
  try {
    await changes.look();
    for (const [minutes, isMade] of [
      [4, false],
      [20, true],
    ] as const) {
      const before = caughtUp;
      cache.put('page', page('x', ['post:a']), cache.generation());
      now += minutes * 60_000;
      await changes.look();
      assert.deepEqual([caughtUp - before, cache.get('page') === undefined], [isMade ? 1 : 0, isMade]);
    }
  } finally {
    await changes.stop();
    await site.close();
  }
});

test('no query, preference or spelling of the host changes the page that others are sent', async () => {
  await withPost(async (site, url) => {
    const { host, pathname } = new URL(url);
    const clean = await open(site, url);
    const forged = [
      { accept: 'evil/evil' },
      { accept: ',;q=,' },
      { 'accept-encoding': 'evil, identity;q=9' },
    ];
    for (const headers of forged) {
      const answer = await open(site, url, { headers });
      assert.ok(answer.status === 200 && answer.bytes.equals(clean.bytes), JSON.stringify(headers));
    }
    for (const query of ['?x=1', '?cursor=a', '?utm_source=%3Cscript%3E', '?', '?%ff'])
      assert.ok((await site.call('GET', pathname + query, { host })).bytes.equals(clean.bytes), query);

    const twice = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n`;
    assert.match(await rawRequest(site.port, twice), /^HTTP\/1\.1 400/);
    for (const spelt of [host.toUpperCase(), host.replace(':', '.:')]) {
      const answer = await site.call('GET', pathname, { host: spelt });
      assert.ok(answer.bytes.equals(clean.bytes), spelt);
    }
    assert.ok((await open(site, url)).bytes.equals(clean.bytes));
  });
});
