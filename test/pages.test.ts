import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import { describe, test } from 'node:test';
import zlib from 'node:zlib';
import { sweep } from '../src/services/upkeep/maintenance.ts';
import { suspendAgent } from '../src/services/operators/moderation.ts';
import { moderatePost } from '../src/services/operators/post-moderation.ts';
import { matchesEtag } from '../src/http/etag.ts';
import { chooseEncoding } from '../src/http/encoding.ts';
import { prefersMarkdown } from '../src/web/cache/negotiation.ts';
import { blogPath, parseBlogPath } from '../src/web/addresses.ts';
import { describeInstances, placesOf, startInstance, type Instance } from './support/instance.ts';
import { open } from './support/pages.ts';

const html = 'text/html; charset=utf-8';
const markdown = 'text/markdown; charset=utf-8';
const text = 'text/plain; charset=utf-8';
const xml = 'application/xml; charset=utf-8';
const feeds = [
  ['/feed.xml', 'application/atom+xml; charset=utf-8'],
  ['/rss.xml', 'application/rss+xml; charset=utf-8'],
  ['/feed.json', 'application/feed+json'],
] as const;

/** Every kind of address of a blog with a post `hello`, tagged `news`, and its media type. */
const blogAddresses = [
  ['', html],
  ['/index.md', markdown],
  ['/hello', html],
  ['/hello.md', markdown],
  ['/tags/news', html],
  ['/tags/news.md', markdown],
  ...feeds,
  ...feeds.map(([path, type]) => [`/tags/news${path}`, type] as const),
  ['/sitemap.xml', xml],
  ['/llms.txt', text],
  ['/-/archive', html],
  ['/-/tags', html],
] as const;

const siteAddresses = [
  ['/', html],
  ['/index.md', markdown],
  ['/llms.txt', text],
  ['/robots.txt', text],
  ['/.well-known/security.txt', text],
  ['/sitemap.xml', xml],
  ['/-/sitemap.xml', xml],
  ['/problems/slug_taken', html],
  ['/favicon.ico', 'image/x-icon'],
  ['/-/marks/ada.svg', 'image/svg+xml'],
  ['/-/cards/ada.png', 'image/png'],
] as const;

const discoveryAddresses = [
  ['/blogs', html],
  ['/blogs?sort=name', html],
  ['/blogs.opml', 'text/x-opml; charset=utf-8'],
  ...feeds,
] as const;

async function withInstance(
  options: Parameters<typeof startInstance>[0],
  run: (site: Instance) => Promise<void>,
): Promise<void> {
  const site = await startInstance(options);
  try {
    await run(site);
  } finally {
    await site.close();
  }
}

for (const { suite, variant, engine } of placesOf('pages')) {
  const hasDiscovery = variant === 'subdomain';

  describe(suite, () => {
    test('every address answers in its type, guarded, with validators; by HEAD and twice alike', async () => {
      await withInstance({ variant, engine }, async (site) => {
        const ada = await site.agent('Ada');
        await ada.client.publish({ title: 'Hello', content: 'Words.', tags: ['news'], status: 'published' });
        const addresses = [
          ...blogAddresses.map(([path, type]) => [ada.blogUrl + path, type] as const),
          ...[...siteAddresses, ...(hasDiscovery ? discoveryAddresses : [])].map(
            ([path, type]) => [site.baseUrl + path, type] as const,
          ),
          ...(hasDiscovery
            ? [
                [`${ada.blogUrl}/robots.txt`, text] as const,
                [`${ada.blogUrl}/favicon.ico`, 'image/x-icon'] as const,
              ]
            : []),
        ];
        for (const [url, type] of addresses) {
          const answer = await open(site, url);
          assert.equal(answer.status, 200, url);
          assert.equal(answer.headers['content-type'], type, url);
          assert.equal(answer.headers['cache-control'], 'public, max-age=0, must-revalidate', url);
          assert.match(String(answer.headers.etag), /^"[\w-]{22}"$/, url);
          assert.match(String(answer.headers.vary), /^(?:Accept, )?Accept-Encoding$/, url);
          assert.match(String(answer.headers['content-security-policy']), /^default-src 'none'/, url);
          assert.equal(answer.headers['x-content-type-options'], 'nosniff', url);
          assert.equal(answer.headers['set-cookie'], undefined, url);

          const again = await open(site, url);
          assert.ok(again.bytes.equals(answer.bytes), url);
          const head = await open(site, url, { method: 'HEAD' });
          assert.equal(head.bytes.length, 0, url);
          for (const other of [again, head]) {
            const { date, 'x-request-id': requestId } = answer.headers;
            assert.match(String(other.headers['x-request-id']), /^[0-9a-f-]{36}$/, url);
            assert.notEqual(other.headers['x-request-id'], requestId, url);
            assert.deepEqual({ ...other.headers, date, 'x-request-id': requestId }, answer.headers, url);
          }
          const known = await open(site, url, { headers: { 'if-none-match': String(answer.headers.etag) } });
          assert.equal(known.status, 304, url);
          assert.match(String(known.headers['x-request-id']), /^[0-9a-f-]{36}$/, url);
        }
      });
    });

    test('cards are drawn one at a time for an address, once, and of blogs that there are', async (t) => {
      await withInstance({ variant, engine }, async (site) => {
        const agents = await Promise.all(['Ada', 'Bob', 'Eve'].map((name) => site.agent(name)));
        const cards = agents.map(({ slug }) => `/-/cards/${slug}.png`);
        const { deflate } = zlib;
        let [drawn, underWay] = [0, 0];
        const deflated = t.mock.method(zlib, 'deflate', ((
          pixels: Buffer,
          options: object,
          done: zlib.CompressCallback,
        ) => {
          drawn++;
          assert.equal(++underWay, 1);
          deflate(pixels, options, (...result) => {
            underWay--;
            done(...result);
          });
        }) as typeof deflate);
        syncBuiltinESMExports();
        try {
          // Changes of before are followed later, and drop some once more.
          const rounds = [0];
          do {
            const answers = await Promise.all(cards.map((path) => site.call('GET', path)));
            assert.deepEqual(
              answers.map(({ status }) => status),
              [200, 200, 200],
            );
            rounds.push(drawn);
            assert.ok(rounds.length < 20, 'drawn each time');
          } while (rounds.at(-1) !== rounds.at(-2));
          assert.equal((await site.call('GET', '/-/cards/nobody.png')).status, 404);
          assert.equal(drawn, rounds.at(-1));
        } finally {
          deflated.mock.restore();
          syncBuiltinESMExports();
        }
        await site.ctx().engine.write(suspendAgent, { slug: agents[0]?.slug ?? '', reason: 'spam' });
        assert.equal((await site.call('GET', cards[0] ?? '')).status, 404);
      });
    });

    test('other forms of an address lead to the canonical one, and what there never was is 404', async () => {
      await withInstance({ variant, engine }, async (site) => {
        const { client, blogUrl } = await site.agent('Ada');
        const longTag = 'x'.repeat(40);
        const tags = ['c/d', 'a/feed', longTag];
        await client.publish({ title: 'Hello', content: 'Words.', tags, status: 'published' });
        const moved = [
          [`${blogUrl}/Hello`, `${blogUrl}/hello`],
          [`${blogUrl}/hello/`, `${blogUrl}/hello`],
          [`${blogUrl}//hello?x=1`, `${blogUrl}/hello?x=1`],
          [`${blogUrl}/hello.html`, `${blogUrl}/hello`],
          [`${blogUrl}/index`, blogUrl],
          [`${blogUrl}/index.html`, blogUrl],
          [`${blogUrl}/tags/C%2FD`, `${blogUrl}/tags/c%2Fd`],
          [`${blogUrl}/%68ell%6f`, `${blogUrl}/hello`],
          [`${blogUrl}/hello%2emd`, `${blogUrl}/hello.md`],
          [`${blogUrl}/t%61gs/c%2Fd`, `${blogUrl}/tags/c%2Fd`],
          [`${blogUrl}/%74ags/c%2Fd/feed%2exml`, `${blogUrl}/tags/c%2Fd/feed.xml`],
          [`${blogUrl}/feed%2Exml`, `${blogUrl}/feed.xml`],
          [`${site.baseUrl}/%61d%61/hello?x=1`, `${blogUrl}/hello?x=1`],
          [`${blogUrl}/FEED.xml`, `${blogUrl}/feed.xml`],
          [`${blogUrl}/atom.xml`, `${blogUrl}/feed.xml`],
          [`${blogUrl}/index.xml`, `${blogUrl}/rss.xml`],
          [`${blogUrl}/feed`, `${blogUrl}/feed.xml`],
          [`${blogUrl}/atom`, `${blogUrl}/feed.xml`],
          [`${blogUrl}/rss`, `${blogUrl}/rss.xml`],
          [`${blogUrl}/rss2`, `${blogUrl}/rss.xml`],
          [`${blogUrl}/feed.rss`, `${blogUrl}/rss.xml`],
          [`${blogUrl}/feed/atom/`, `${blogUrl}/feed.xml`],
          [`${blogUrl}//feed//json?x=1`, `${blogUrl}/feed.json`],
          [`${blogUrl}/feeds/posts/default?alt=rss`, `${blogUrl}/feed.xml`],
          [`${blogUrl}/rss/index.xml`, `${blogUrl}/rss.xml`],
          [`${blogUrl}/blog/feed`, `${blogUrl}/feed.xml`],
          [`${blogUrl}/blog/index.xml`, `${blogUrl}/rss.xml`],
          [`${blogUrl}${hasDiscovery ? '/' : ''}?feed=rss2`, `${blogUrl}/rss.xml`],
          [`${blogUrl}/tags/c%2Fd?feed=atom`, `${blogUrl}/tags/c%2Fd/feed.xml`],
          [`${blogUrl}/tags/c%2Fd/feed`, `${blogUrl}/tags/c%2Fd/feed.xml`],
          [`${blogUrl}/tags/c/d/feed/rss2`, `${blogUrl}/tags/c%2Fd/rss.xml`],
          [`${blogUrl}/tags/${longTag}/index.xml`, `${blogUrl}/tags/${longTag}/rss.xml`],
          [`${site.baseUrl}/index.html`, `${site.baseUrl}/`],
          [`${site.baseUrl}//llms.txt`, `${site.baseUrl}/llms.txt`],
          ...(hasDiscovery
            ? [
                [`${site.baseUrl}/atom.xml`, `${site.baseUrl}/feed.xml`],
                [`${site.baseUrl}/rss`, `${site.baseUrl}/rss.xml`],
                [`${site.baseUrl}/feed/rss2/`, `${site.baseUrl}/rss.xml`],
                [`${site.baseUrl}/blog/feed.json`, `${site.baseUrl}/feed.json`],
                [`${site.baseUrl}/?feed=atom`, `${site.baseUrl}/feed.xml`],
                [`${site.baseUrl}/ada`, blogUrl],
                [`${site.baseUrl}/ada/Hello?x=1`, `${blogUrl}/hello?x=1`],
                [`${site.baseUrl}/blogs/`, `${site.baseUrl}/blogs`],
              ]
            : [
                [`${site.baseUrl}/ada/`, blogUrl],
                [`${site.baseUrl}/ADA/hello`, `${blogUrl}/hello`],
              ]),
        ] as const;
        for (const [from = '', to] of moved) {
          const answer = await open(site, from);
          assert.deepEqual([answer.status, answer.headers.location], [301, to], from);
        }
        const { post } = await client.publish({ title: 'Feed', content: 'x', status: 'published' });
        assert.equal((await open(site, `${blogUrl}/feed`)).status, 200);
        await client.updatePost(post.id, { slug: 'fed' });
        assert.equal((await open(site, `${blogUrl}/feed`)).headers.location, `${blogUrl}/fed`);
        await client.deletePost(post.id);
        assert.equal((await open(site, `${blogUrl}/feed`)).status, 410);
        // A proxy may have decoded the slash of a tag: to redirect it would never end.
        assert.equal((await open(site, `${blogUrl}/tags/c/d`)).status, 200);
        assert.equal((await open(site, `${blogUrl}/tags/a/feed`)).status, 200, 'a tag of that name');
        const unknown = ['/nope', '/nope.md', '/tags', '/tags/nope', '/tags/nope/feed.xml', '/a/b', '/%zz'];
        unknown.push(
          '/tags/nope/rss',
          '/tags/feed',
          '/json',
          '/default',
          '/hello/feed',
          '/blog/feed/x',
          '/blog',
        );
        for (const path of unknown) assert.equal((await open(site, blogUrl + path)).status, 404, path);
        for (const path of ['/nobody', '/nobody/x', '/~', '/~/ada', '/%7Eada', '/-/none', '/problems/nope'])
          assert.equal((await site.call('GET', path)).status, 404, path);
        const away = await site.call('GET', '//evil.example');
        // Never to a host that the address names.
        assert.equal(away.headers.location, `${site.baseUrl}/evil.example`);
        const bad = await open(site, `${blogUrl}/?cursor=%0d%0a`);
        assert.equal(bad.status, variant === 'path' ? 301 : 400);
      });
    });

    test('what leads on to a feed or to the service is 404 while a post that is not public has or had its slug', async () => {
      await withInstance({ variant, engine }, async (site) => {
        const { client, blogUrl } = await site.agent('Ada');
        const named = [
          ['feed', '', `${blogUrl}/feed.xml`],
          ['rss', '', `${blogUrl}/rss.xml`],
          ['atom', '', `${blogUrl}/feed.xml`],
          ['rss2', '', `${blogUrl}/rss.xml`],
          ...(hasDiscovery
            ? ([
                ['docs', '', `${site.baseUrl}/docs`],
                ['mcp', '', `${site.baseUrl}/mcp`],
                ['skill', '.md', `${site.baseUrl}/skill.md`],
              ] as const)
            : []),
        ] as const;
        const moderate = (postId: string, state: 'hidden' | 'held' | null) =>
          site.ctx().engine.write(moderatePost, { postId, to: state && { state, reason: 'a look' } });
        for (const [slug, form, usual] of named) {
          const here = `${blogUrl}/${slug}${form}`;
          const seen = async (said: string, status: number, to?: string) => {
            const answer = await open(site, here);
            assert.deepEqual([answer.status, answer.headers.location], [status, to], `${here} ${said}`);
          };
          await seen('of no post', 301, usual);
          const { post } = await client.publish({ title: 'A post', content: 'Words.', slug });
          await seen('of a draft', 404);
          await client.deletePost(post.id);
          await seen('of a deleted draft', 301, usual);
          await client.restorePost(post.id);
          await client.updatePost(post.id, { status: 'published' });
          await seen('of a post', 200);
          await client.updatePost(post.id, { status: 'draft' });
          await seen('of a withdrawn post', 404);
          await client.updatePost(post.id, { slug: `${slug}-too` });
          await seen('that a withdrawn post had', 404);
          await client.updatePost(post.id, { status: 'published' });
          await seen('that a post had', 301, `${blogUrl}/${slug}-too${form}`);
          await moderate(post.id, 'held');
          await seen('that a post had which is held', 404);
          await client.updatePost(post.id, { slug });
          await seen('of a post which is held', 404);
          await moderate(post.id, 'hidden');
          await seen('of a post that the operator removed', 410);
          await moderate(post.id, null);
          await seen('of a post again', 200);
          await client.updatePost(post.id, { slug: `${slug}-too`, status: 'draft' });
          await client.updatePost(post.id, { formerSlugs: [] });
          await seen('that a withdrawn post gave up', 301, usual);
          await client.updatePost(post.id, { slug });
          await client.deletePost(post.id);
          await seen('of a post that is deleted', 410);
        }
      });
    });

    test('drafts, moved, deleted and suspended content leaves every form at once', async () => {
      await withInstance({ variant, engine }, async (site) => {
        const ada = await site.agent('Ada');
        const bea = await site.agent('Beatrix');
        const everywhere = [
          ...blogAddresses.map(([path]) => ada.blogUrl + path),
          ...siteAddresses.map(([path]) => site.baseUrl + path),
          ...(hasDiscovery ? discoveryAddresses.map(([path]) => site.baseUrl + path) : []),
        ];
        const statuses = async (paths: readonly string[]) =>
          Promise.all(paths.map(async (path) => (await open(site, ada.blogUrl + path)).status));
        const shown = async (words: string) => {
          const texts = await Promise.all(everywhere.map(async (url) => (await open(site, url)).text));
          return texts.filter((body) => body.includes(words)).length;
        };
        const fields = { title: 'Quetzal', slug: 'hello', content: 'Quetzal.', tags: ['news'] };
        const { post } = await ada.client.publish({ ...fields, status: 'draft' });
        assert.equal(await shown('Quetzal'), 0);
        assert.deepEqual(await statuses(['/hello', '/hello.md']), [404, 404]);

        await ada.client.publish({ slug: 'hello', status: 'published' });
        const forms = await shown('Quetzal');
        assert.ok(forms >= 12, String(forms));

        await ada.client.updatePost(post.id, { slug: 'moved' });
        const old = await open(site, `${ada.blogUrl}/hello.md`);
        assert.deepEqual([old.status, old.headers.location], [301, `${ada.blogUrl}/moved.md`]);
        assert.deepEqual(await statuses(['/hello', '/moved', '/moved.md']), [301, 200, 200]);

        await ada.client.publish({ slug: 'moved', status: 'draft' });
        assert.equal(await shown('Quetzal'), 0);
        assert.deepEqual(
          await statuses(['/hello', '/moved', '/moved.md', '/tags/news']),
          [404, 404, 404, 404],
        );

        await ada.client.publish({ slug: 'moved', status: 'published' });
        await ada.client.deletePost(post.id);
        assert.equal(await shown('Quetzal'), 0);
        assert.deepEqual(
          await statuses(['/hello', '/moved', '/moved.md', '/tags/news']),
          [410, 410, 410, 404],
        );

        await ada.client.publish({ ...fields, status: 'published' });
        await site.ctx().engine.write(suspendAgent, { slug: 'ada', reason: 'spam' });
        assert.equal(await shown('Quetzal'), 0);
        const whole = ['', '/hello', '/hello.md', '/feed.xml', '/sitemap.xml', '/never-there'];
        assert.deepEqual(await statuses(whole), Array(whole.length).fill(410));

        await bea.client.publish({ title: 'Okapi', content: 'x', status: 'published' });
        await bea.client.deleteMe({ confirm: bea.slug });
        for (const path of ['', '/okapi', '/feed.xml', '/llms.txt'])
          assert.equal((await open(site, bea.blogUrl + path)).status, 410, path);
        assert.equal(await shown('Okapi'), 0);
      });
    });

    test('a post keeps its 20 latest former addresses', async () => {
      await withInstance({ variant, engine }, async (site) => {
        const { client } = await site.agent('Ada');
        const { post } = await client.publish({
          title: 'T',
          slug: 'at-0',
          content: 'x',
          status: 'published',
        });
        const status = async (n: number) => (await open(site, post.url.replace(/0$/, String(n)))).status;
        for (let n = 1; n <= 20; n++) {
          site.clock.advance(1_000);
          await client.updatePost(post.id, { slug: `at-${n}` });
        }
        assert.deepEqual([await status(0), await status(1), await status(20)], [301, 301, 200]);
        for (let n = 21; n <= 22; n++) {
          site.clock.advance(1_000);
          await client.updatePost(post.id, { slug: `at-${n}` });
        }
        const now = await Promise.all([0, 1, 2, 3, 21, 22].map(status));
        assert.deepEqual(now, [404, 404, 301, 301, 301, 200]);
        // What is free again can be had by another post.
        await client.publish({ title: 'Other', slug: 'at-0', content: 'y', status: 'published' });
        assert.equal(await status(0), 200);
      });
    });

    test('a deleted post stays gone while drafts come and go at its address, until another is published there', async () => {
      await withInstance({ variant, engine }, async (site) => {
        const { client } = await site.agent('Ada');
        const first = await client.publish({
          title: 'Once',
          slug: 'once',
          content: 'x',
          status: 'published',
        });
        const status = async () => (await open(site, first.post.url)).status;
        await client.deletePost(first.post.id);
        for (const slug of ['once', 'other']) {
          const draft = await client.publish({ title: 'Draft', slug, content: 'x' });
          if (slug === 'other') await client.updatePost(draft.post.id, { slug: 'once' });
          assert.equal(await status(), 410, `a draft made as ${slug}`);
          await client.deletePost(draft.post.id);
          assert.equal(await status(), 410, `a deleted draft made as ${slug}`);
        }
        const second = await client.publish({ title: 'Twice', slug: 'once', content: 'x' });
        await client.publish({ slug: 'once', status: 'published' });
        assert.equal(await status(), 200);
        await client.updatePost(second.post.id, { slug: 'moved' });
        assert.equal(await status(), 301);
        await client.deletePost(second.post.id);
        assert.equal(await status(), 410);
      });
    });

    test('a deleted post is gone for a year, and then unknown', async () => {
      await withInstance({ variant, engine }, async (site) => {
        const ada = await site.agent('Ada');
        const { post } = await ada.client.publish({ title: 'Brief', content: 'x', status: 'published' });
        site.clock.freeze();
        await ada.client.deletePost(post.id);
        for (const [ms, expected] of [
          [365 * 24 * 3_600_000, 410],
          [1, 404],
        ] as const) {
          site.clock.advance(ms);
          await site.ctx().engine.write(sweep, null);
          assert.equal((await open(site, post.url)).status, expected);
        }
      });
    });

    test('the page behind the link in the mail changes nothing until its button is pressed', async () => {
      await withInstance({ variant, engine }, async (site) => {
        const client = site.client();
        const slug = variant === 'subdomain' ? { slug: 'ada' } : {};
        await client.register({ email: 'ada@example.com', name: 'Ada', ...slug });
        const token = await site.token('ada@example.com');
        const address = `/verify?token=${token}`;
        for (const method of ['GET', 'HEAD', 'GET']) {
          const form = await site.call(method, address);
          assert.equal(form.status, 200);
          assert.equal(form.headers['cache-control'], 'no-store');
          assert.equal(form.headers['referrer-policy'], 'no-referrer');
          assert.match(String(form.headers['content-security-policy']), /form-action 'self'/);
          if (method === 'GET') assert.match(form.text, /ada@example\.com/);
        }
        assert.equal((await site.call('GET', '/ada')).status, 404, 'nothing is confirmed yet');
        const press = (body: string, type = 'application/x-www-form-urlencoded') =>
          site.call('POST', '/verify', { body, headers: { 'content-type': type } });
        assert.equal((await press(`token=${token}`, 'multipart/form-data')).status, 415);
        assert.equal((await press('')).status, 400);
        assert.equal((await press('token=nope')).status, 404);

        const results = await Promise.all([press(`token=${token}`), press(`token=${token}`)]);
        const keys = results.map((result) => /<code>([0-9a-f-]{36})<\/code>/.exec(result.text)?.[1]);
        assert.deepEqual([results[0]?.status, results[1]?.status, keys[0] === keys[1]], [200, 200, true]);
        const me = await site.client(keys[0]).me();
        assert.equal(me.agent.name, 'Ada');
        const used = await site.call('GET', address);
        assert.deepEqual([used.status, used.text.includes(token)], [410, false]);
        const elsewhere = await site.call('POST', '/api/register', {
          body: 'email=a%40example.com',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        });
        assert.equal(elsewhere.status, 415);
      });
    });
  });
}

test('a file with the hash of another release is the present one, which is not kept', async () => {
  await withInstance({}, async (site) => {
    const { text: home } = await open(site, site.baseUrl);
    const named = [...home.matchAll(/"((?:https?:\/\/[^"/]*)?\/-\/[\w-]+\.[0-9a-f]{8}\.\w+)"/g)].map(
      ([, path]) => path,
    );
    assert.ok(named.length >= 3);
    for (const path of named) {
      const url = new URL(path ?? '', site.baseUrl).href;
      const present = await open(site, url);
      const former = await open(site, url.replace(/[0-9a-f]{8}(?=\.\w+$)/, '01234567'));
      assert.deepEqual([former.status, former.bytes.equals(present.bytes)], [200, true], url);
      assert.match(String(present.headers['cache-control']), /immutable/);
      assert.equal(former.headers['cache-control'], 'public, max-age=0, must-revalidate');
    }
    for (const path of ['/-/style.0123abc.css', '/-/style.01234567.svg', '/-/other.01234567.css'])
      assert.equal((await open(site, site.baseUrl + path)).status, 404, path);
  });
});

test('every kind of page has the headers for which public observatories give their best grade', async () => {
  const site = await startInstance();
  try {
    const { client } = await site.agent('Ada');
    await client.publish({ title: 'Hello', content: 'Words.', status: 'published' });
    await site.restart({ BASE_URL: 'https://masthead.example' });
    for (const [host, path] of [
      ['masthead.example', '/'],
      ['masthead.example', '/verify?token=x'],
      ['masthead.example', '/nothing/there'],
      ['ada.masthead.example', '/'],
      ['ada.masthead.example', '/hello'],
      ['ada.masthead.example', '/nothing'],
    ] as const) {
      const { headers } = await site.call('GET', path, { host });
      const policy = String(headers['content-security-policy']);
      for (const directive of [
        "default-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        'form-action ',
      ])
        assert.ok(policy.includes(directive), `${path}: ${directive}`);
      assert.doesNotMatch(policy, /unsafe|script-src|object-src|\*/, path);
      const [, age = ''] =
        /^max-age=(\d+); includeSubDomains$/.exec(String(headers['strict-transport-security'])) ?? [];
      assert.ok(Number(age) >= 31_536_000, path);
      assert.equal(headers['x-content-type-options'], 'nosniff', path);
      assert.match(
        String(headers['referrer-policy']),
        /^(?:no-referrer|strict-origin-when-cross-origin)$/,
        path,
      );
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin', path);
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin', path);
      for (const absent of ['set-cookie', 'access-control-allow-origin', 'server', 'x-powered-by'])
        assert.equal(headers[absent], undefined, `${path}: ${absent}`);
    }
  } finally {
    await site.close();
  }
});

test('a failure is a page for those who asked for one, and a problem document for programs', async () => {
  await withInstance({}, async (site) => {
    const cases = [
      ['GET', '/nobody', {}, 404, html],
      ['GET', '/nobody', { accept: 'application/json' }, 404, 'application/problem+json'],
      ['GET', '/', { 'x-forwarded-host': 'evil.example' }, 200, html],
      ['GET', '/nobody', { 'x-forwarded-host': 'evil.example' }, 404, html],
      ['GET', '/api/nope', {}, 404, 'application/problem+json'],
      ['GET', '/-/nope', {}, 404, 'application/problem+json'],
      ['POST', '/', {}, 405, 'application/problem+json'],
      ['POST', '/publish', {}, 404, 'application/problem+json'],
    ] as const;
    for (const [method, path, headers, status, type] of cases) {
      const answer = await site.call(method, path, { headers });
      assert.deepEqual(
        [answer.status, answer.headers['content-type']?.split(';')[0]],
        [status, type.split(';')[0]],
        path,
      );
      assert.doesNotMatch(answer.text, /evil/, path);
      if (status !== 200) assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/, path);
    }
    const misdirected = await site.call('GET', '/', { host: 'evil.example' });
    assert.equal(misdirected.status, 421);
    assert.doesNotMatch(misdirected.text, /(?:href|src)="[^"]*evil/);
  });
});

test('an address is read from any spelling of it and written in one', () => {
  const cases = [
    ['', ''],
    ['/', ''],
    ['/index.md', '/index.md'],
    ['/feed.xml', '/feed.xml'],
    ['/A-Post', '/a-post'],
    ['/a-post.md', '/a-post.md'],
    ['/tags/Café', '/tags/caf%C3%A9'],
    ['/tags/caf%C3%A9.md', '/tags/caf%C3%A9.md'],
    ['/tags/a%20%20b/rss.xml', '/tags/a%20b/rss.xml'],
    ['/tags/a/b', '/tags/a%2Fb'],
    ['/tags/feed.xml', '/tags/feed.xml'],
    ['/sitemap.xml', '/sitemap.xml'],
    ['/-/archive', '/-/archive'],
    ['/-//tags/', '/-/tags'],
  ] as const;
  for (const [path, canonical] of cases) {
    const parsed = parseBlogPath(path);
    assert.ok(parsed, path);
    assert.equal(blogPath(parsed), canonical, path);
    assert.deepEqual(parseBlogPath(canonical), parsed, path);
  }
  for (const path of [
    '/tags',
    '/-/archive/x',
    '/-/none',
    '/tags.md',
    '/-a',
    '/a_b',
    '/a.b',
    '/a/b',
    '/%',
    '/%ff',
    '/tags/%00',
    '/tags/..',
    `/${'a'.repeat(101)}`,
  ])
    assert.equal(parseBlogPath(path), null, path);
});

test('markdown is sent where it is preferred, by weight and then by order', () => {
  const cases: [string | undefined, boolean][] = [
    [undefined, false],
    ['*/*', false],
    ['text/markdown', true],
    ['TEXT/Markdown ; q=0.5', true],
    ['text/markdown, text/html', true],
    ['text/html, text/markdown', false],
    ['text/markdown;q=0.9, text/html', false],
    ['text/html;q=0.8, text/markdown;q=0.9', true],
    ['text/markdown, */*', true],
    ['*/*, text/markdown', false],
    ['text/markdown;q=0.5, */*;q=0.1', true],
    ['text/html;q=0.3, text/markdown;q=0.5, */*', true],
    ['text/markdown;q=0', false],
    ['text/markdown;q=x, text/html;q=0', false],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', false],
  ];
  for (const [header, wanted] of cases) assert.equal(prefersMarkdown(header), wanted, header);
});

test('an encoding is chosen by weight, by ours among equals, and identity when in doubt', () => {
  const cases: [string | undefined, string][] = [
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip', 'gzip'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, zstd', 'zstd'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['*', 'br'],
    ['*;q=0', 'identity'],
    ['br;q=0, *', 'zstd'],
    ['identity, gzip;q=0.5', 'identity'],
    ['identity;q=0', 'identity'],
    ['GZIP', 'gzip'],
    ['x-gzip', 'gzip'],
    ['br;q=2', 'identity'],
    ['compress, deflate', 'identity'],
    [`gzip${', x'.repeat(500)}`, 'gzip'],
  ];
  for (const [header, wanted] of cases) assert.equal(chooseEncoding(header), wanted, header);
});

test('an entity tag is compared weakly and whole', () => {
  for (const header of ['"a"', 'W/"a"', '*', '"b", "a"', '"b",W/"a"'])
    assert.ok(matchesEtag(header, '"a"'), header);
  for (const header of ['a', '"a-br"', '"A"', '"b"', '']) assert.ok(!matchesEtag(header, '"a"'), header);
});

describeInstances('robots.txt', {}, (the) => {
  test('keeps crawlers off the page of a mailed link, and off no post or blog that begins like it', async () => {
    const { rules } = await robotsOf(the().ctx().config.site.baseUrl);
    assert.deepEqual(rules, ['Allow: /', 'Disallow: /verify$', 'Disallow: /verify?']);
    if (!the().ctx().config.variant.blogHosts) return;
    const { blogUrl } = await the().agent('Verifier');
    assert.deepEqual((await robotsOf(blogUrl)).rules, ['Allow: /']);
  });

  async function robotsOf(origin: string) {
    const answer = await open(the(), `${origin}/robots.txt`);
    return { rules: answer.text.split('\n').filter((line) => /^(?:Dis)?allow:/i.test(line)) };
  }
});
