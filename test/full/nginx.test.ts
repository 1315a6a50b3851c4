import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request, type Answer } from '../support/http.ts';
import {
  assertOk,
  assertProblem,
  startInstance,
  variantNames,
  type CallOptions,
  type Instance,
  type VariantName,
} from '../support/instance.ts';
import { startLoad } from '../support/load.ts';
import { makeLargePng } from '../support/made-pictures.ts';
import { nginxVersion, startNginx } from '../support/nginx.ts';
import { open } from '../support/pages.ts';
import { freePort } from '../support/processes.ts';

const missing = nginxVersion() === null ? 'nginx is not installed: apt-get install nginx-light' : false;
if (missing) console.error(`SKIPPED: ${missing}`);

/** Milliseconds after the answer to a change from which nothing older may be seen. */
const mayBeOld = 1_000;

/** What a client accepts, and the encoding that it gets by way of nginx. */
const encodings = [
  [undefined, undefined],
  ['identity', undefined],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip', 'gzip'],
  ['br;q=0, gzip;q=0.5', 'gzip'],
  ['gzip;q=0.000', undefined],
] as const;

for (const variant of variantNames) {
  describe(`behind nginx as it is shipped (${variant})`, { skip: missing }, () => {
    test('pages, feeds and twins are kept, in each encoding, as Masthead sends them', async (t) => {
      const { site, blog } = await startBlog(t, variant);
      const ofBlog = ['', '/kept', '/kept.md', '/tags/news', '/feed.xml', '/rss.xml', '/feed.json'];
      const ofSite = ['/', '/skill.md', '/llms.txt'];
      const urls = [...ofBlog.map((path) => blog + path), ...ofSite.map((path) => site.baseUrl + path)];
      for (const url of urls) {
        for (const [accepted, encoding] of encodings) {
          const kept = await untilKept(site, url, accepting(accepted));
          const sent = await openDirectly(site, url, accepting(encoding));
          assert.equal(kept.status, 200, url);
          assert.equal(kept.headers['content-encoding'], encoding, `${url} for ${accepted}`);
          assert.equal(decoded(kept), decoded(sent), url);
          assert.deepEqual(describing(kept), describing(sent), url);
        }
      }
    });

    test('HEAD, conditional and partial requests are answered from what is kept', async (t) => {
      const { site, blog } = await startBlog(t, variant);
      for (const path of ['/kept', '/feed.xml', '/kept.md']) {
        const url = blog + path;
        const brotli = await untilKept(site, url, accepting('br'));
        const gzip = await untilKept(site, url, accepting('gzip'));
        const head = await open(site, url, { method: 'HEAD', ...accepting('br') });
        assert.equal(head.bytes.length, 0);
        assert.deepEqual(describing(head), describing(brotli));
        const ask = (etag: unknown) =>
          open(site, url, { headers: { 'accept-encoding': 'br', 'if-none-match': String(etag) } });
        const same = await ask(brotli.headers.etag);
        assert.deepEqual([same.status, same.bytes.length], [304, 0]);
        assert.equal(same.headers.etag, brotli.headers.etag);
        assert.equal(same.headers['cache-control'], brotli.headers['cache-control']);
        for (const other of [gzip.headers.etag, '"other"']) assert.equal((await ask(other)).status, 200);
        const part = await open(site, url, { headers: { 'accept-encoding': 'br', range: 'bytes=0-9' } });
        assert.deepEqual([part.status, part.text], [200, brotli.text]);
      }
    });

    test('who prefers markdown gets the twin, which nobody else does', async (t) => {
      const { site, blog } = await startBlog(t, variant);
      const url = `${blog}/kept`;
      const page = await untilKept(site, url);
      const twin = await untilKept(site, `${url}.md`);
      for (const accept of ['text/markdown', 'text/html;q=0.5, Text/Markdown']) {
        const answers = await askQuickly(site, url, { headers: { accept } });
        assertNotKept(answers);
        for (const answer of answers) {
          assert.equal(answer.text, twin.text);
          assert.equal(answer.headers['content-location'], `${url}.md`);
          assert.match(String(answer.headers['cache-control']), /no-store/);
        }
      }
      for (const accept of ['*/*', 'text/html, text/markdown;q=0.5', 'text/*'])
        assert.equal((await open(site, url, { headers: { accept } })).text, page.text);
    });

    test('what is not public is never kept', async (t) => {
      const { site, blog, key } = await startBlog(t, variant);
      const { baseUrl } = site;
      for (const url of [
        `${baseUrl}/api/me`,
        `${baseUrl}/api/posts`,
        `${baseUrl}/api/limits`,
        `${baseUrl}/api/openapi.json`,
        `${baseUrl}/verify?token=0b0d4a9a-2f34-4ce6-9e2b-2c6f0e4c1a11`,
        `${baseUrl}//api/me`,
        `${blog}/absent`,
        // It says what is left of its client's limit.
        ...(variant === 'subdomain' ? [`${baseUrl}/search?q=kept`, `${blog}/-/search?q=kept`] : []),
      ]) {
        assertNotKept(await askQuickly(site, url, { key }));
        assertNotKept(await askQuickly(site, url));
      }
      const method = 'POST';
      assertNotKept(
        await askQuickly(site, `${baseUrl}/mcp`, { method, body: { jsonrpc: '2.0', id: 1, method: 'ping' } }),
      );
      assertProblem(await open(site, `${baseUrl}/api/me`), 'unauthorized');
      assertOk(await open(site, `${baseUrl}/api/me`, { key }));
      // A page is the same for all, whatever they bring: it may be kept, and gives nobody a cookie.
      const plain = await untilKept(site, `${blog}/kept`);
      const withCookie = await open(site, `${blog}/kept`, { key, headers: { cookie: 'session=1' } });
      assert.equal(withCookie.text, plain.text);
      assert.equal(withCookie.headers['set-cookie'], undefined);
    });

    test('a change is seen by whoever asks a second after its answer, however often it is asked for', async (t) => {
      const { site, blog, client, posts } = await startBlog(t, variant);
      const { host, pathname } = new URL(`${blog}/kept`);
      const load = startLoad(originOf(site), {
        clients: 4,
        next: () => ({ host, path: pathname }),
        keepAlive: true,
      });
      const forms = [
        { url: `${blog}/kept` },
        { url: `${blog}/kept`, ...accepting('br') },
        { url: `${blog}/kept`, headers: { accept: 'text/markdown' } },
        { url: `${blog}/kept.md` },
      ];
      for (let version = 1; version <= 3; version++) {
        const text = `This is version ${version}.`;
        await client.publish({ slug: 'kept', content: text });
        await delay(mayBeOld);
        for (const { url, ...options } of forms)
          assert.ok(
            decoded(await open(site, url, options)).includes(text),
            `${url} lacks version ${version}`,
          );
      }
      assert.deepEqual(await load.stop(), []);

      const lists = [blog, `${blog}/feed.xml`, `${blog}/feed.json`, `${blog}/sitemap.xml`];
      const seenIn = async (word: string) =>
        (await Promise.all(lists.map((url) => open(site, url)))).map(({ text }) => text.includes(word));
      for (const url of lists) await untilKept(site, url);
      await client.updatePost(posts.kept, { status: 'draft' });
      await client.deletePost(posts.other);
      await delay(mayBeOld);
      for (const { url, ...options } of forms) assert.equal((await open(site, url, options)).status, 404);
      for (const path of ['/other', '/other.md']) assert.equal((await open(site, blog + path)).status, 410);
      assert.deepEqual(await seenIn('/kept'), [false, false, false, false]);
      assert.deepEqual(await seenIn('/other'), [false, false, false, false]);
    });

    test('a client counts by its own address, whatever it claims', async (t) => {
      const { site } = await startBlog(t, variant, { LIMIT_REGISTER: '1' });
      let n = 0;
      const register = async (from: string, claimed?: string) => {
        // An address of this machine beside the usual one.
        const agent = new Agent({ localAddress: from });
        const name = `Reader ${++n}`;
        const { status } = await site.call('POST', '/api/register', {
          host: new URL(site.baseUrl).host,
          agent,
          headers: claimed === undefined ? {} : { 'x-forwarded-for': claimed },
          body: {
            name,
            email: `reader-${n}@example.com`,
            ...(variant === 'subdomain' ? { slug: `reader-${n}` } : {}),
          },
        });
        agent.destroy();
        return status;
      };
      assert.equal(await register('127.0.0.2'), 200);
      assert.equal(await register('127.0.0.2'), 429);
      assert.equal(await register('127.0.0.2', '203.0.113.9'), 429);
      assert.equal(await register('127.0.0.3', '127.0.0.2'), 200);
    });

    test('no page outlives the service by more than a second', async (t) => {
      const { site, blog, stopMasthead } = await startBlog(t, variant);
      const urls = [`${blog}/kept`, `${blog}/feed.xml`, site.baseUrl];
      for (const url of urls) await untilKept(site, url);
      await stopMasthead();
      await delay(mayBeOld);
      for (const url of urls) assert.equal((await open(site, url)).status, 502);
    });
  });
}

/** Masthead behind nginx, with a blog of two posts, `kept` and `other`. */
test(
  'pictures of 10 MiB pass, at any speed, and what is larger is refused as Masthead would',
  { skip: missing },
  async (t) => {
    const { site, key } = await startBlog(t, 'subdomain', { QUOTA_MEDIA_NEW: '100000000' });
    const { host } = new URL(site.baseUrl);
    const headers = { 'content-type': 'image/png' };
    const send = (body: Uint8Array) => site.call('POST', '/api/media', { key, body, headers, host });
    const picture = makeLargePng(10 * 1024 ** 2 - 20_000);
    const stored = assertOk(await send(picture), 201);
    const shown = await open(site, String(stored.at('media.url')));
    assert.deepEqual([shown.status, shown.bytes.length], [200, stored.at('media.bytes')]);
    // In pieces, each sent when the one before has gone out.
    const slow = await fetch(`${site.baseUrl}/api/media`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${key}` },
      body: ReadableStream.from(inPieces(makeLargePng(2 ** 20), 64 * 1024)),
      duplex: 'half',
    });
    assert.equal(slow.status, 201, await slow.text());
    // By Masthead, and by nginx in its place.
    for (const bytes of [11, 13]) {
      const refused = assertProblem(await send(makeLargePng(bytes * 1024 ** 2)), 'too_large');
      assert.match(refused.text, /10(?: MiB|485760)/);
    }
    const body = JSON.stringify({ title: 'Long', content: 'x'.repeat(9 * 1024 ** 2) });
    assertProblem(await site.call('POST', '/api/publish', { key, body, host }), 'too_large');
  },
);

async function* inPieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) {
    yield bytes.subarray(at, at + length);
    await delay(20);
  }
}

async function startBlog(t: TestContext, variant: VariantName, env: Readonly<Record<string, string>> = {}) {
  const [port, upstreamPort] = [await freePort(), await freePort()];
  const site = await startInstance({
    variant,
    env: {
      BASE_URL: `http://localhost:${port}`,
      PORT: String(upstreamPort),
      TRUST_PROXY: 'loopback',
      LIMIT_ANONYMOUS: '100000',
      ...env,
    },
  });
  const folder = await mkdtemp(join(tmpdir(), 'masthead-nginx-'));
  const nginx = await startNginx({ folder, port, upstreamPort });
  let stopping: Promise<void> | undefined;
  const stopMasthead = () => (stopping ??= site.close());
  t.after(async () => {
    await stopMasthead();
    await nginx.stop();
    await rm(folder, { recursive: true });
  });
  const ada = await site.agent('Ada');
  const publish = async (slug: string) => {
    const content = 'Some text, long enough to be worth compressing. '.repeat(20);
    const { post } = await ada.client.publish({
      slug,
      title: slug,
      content,
      tags: ['news'],
      status: 'published',
    });
    return post.id;
  };
  const posts = { kept: await publish('kept'), other: await publish('other') };
  return {
    site,
    blog: ada.blogUrl.replace(/\/$/, ''),
    client: ada.client,
    key: ada.key,
    posts,
    stopMasthead,
  };
}

function accepting(encoding: string | undefined): CallOptions {
  return encoding === undefined ? {} : { headers: { 'accept-encoding': encoding } };
}

/** Where nginx listens, without a name to look up. */
function originOf(site: Instance): string {
  return site.baseUrl.replace('localhost', '127.0.0.1');
}

/** The same address, asked for without nginx. */
async function openDirectly(site: Instance, url: string, options: CallOptions): Promise<Answer> {
  const { host, pathname } = new URL(url);
  const { headers = {} } = options;
  return request(`http://127.0.0.1:${site.port}`, { host, path: pathname, headers });
}

/** Asks until an answer is one that was given before: each answer of Masthead has an id of its own. */
async function untilKept(site: Instance, url: string, options: CallOptions = {}): Promise<Answer> {
  const seen = new Set<unknown>();
  for (let tries = 0; tries < 50; tries++) {
    const answer = await open(site, url, options);
    const id = answer.headers['x-request-id'];
    if (seen.has(id)) return answer;
    seen.add(id);
  }
  throw new Error(`${url} is not kept`);
}

/** Asks ten times at once: within the time for which anything is kept. */
function askQuickly(
  site: Instance,
  url: string,
  options: CallOptions & { readonly method?: string } = {},
): Promise<Answer[]> {
  return Promise.all(Array.from({ length: 10 }, () => open(site, url, options)));
}

function assertNotKept(answers: readonly Answer[]): void {
  const ids = new Set(answers.map(({ headers }) => headers['x-request-id']));
  assert.ok(!ids.has(undefined));
  assert.equal(ids.size, answers.length);
}

/** All headers but those that belong to one answer or one connection. */
function describing({ headers }: Answer): Record<string, unknown> {
  const own = [
    'date',
    'server',
    'connection',
    'keep-alive',
    'x-request-id',
    'transfer-encoding',
    'last-modified',
  ];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !own.includes(name)));
}

function decoded({ headers, bytes }: Answer): string {
  const encoding = headers['content-encoding'];
  const plain =
    encoding === 'br' ? brotliDecompressSync(bytes) : encoding === 'gzip' ? gunzipSync(bytes) : bytes;
  return plain.toString('utf8');
}
