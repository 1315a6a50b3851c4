import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { rawRequest, request, type Answer } from './support/http.ts';
import { startInstance, type Instance } from './support/instance.ts';

/** Request headers that some server, cache, proxy or framework reads, and none that HTTP itself gives a meaning here. */
const names =
  'x-forwarded-host x-forwarded-proto x-forwarded-scheme x-forwarded-port x-forwarded-server x-forwarded-prefix ' +
  'x-forwarded-path x-forwarded-uri x-forwarded-ssl x-forwarded-by x-forwarded-for x-forwarded x-forward-for ' +
  'x-forwarded-for-original x-original-forwarded-for forwarded forwarded-for via x-host x-http-host-override ' +
  'x-original-host x-proxy-host x-backend-host x-original-url x-original-uri x-rewrite-url x-override-url ' +
  'x-request-uri x-uri x-path x-url x-url-scheme x-scheme front-end-https x-real-ip x-client-ip client-ip ' +
  'true-client-ip cf-connecting-ip cf-visitor cf-ipcountry fastly-client-ip fastly-host x-cluster-client-ip ' +
  'x-remote-ip x-remote-addr x-originating-ip x-http-method x-http-method-override x-method-override x-wap-profile ' +
  'x-amz-website-redirect-location x-amz-server-side-encryption x-oss-process x-timer x-varnish x-cache ' +
  'x-cache-hash x-swift-object x-nextjs-data x-middleware-prefetch x-middleware-subrequest x-invoke-path rsc ' +
  'next-router-state-tree x-inertia x-pjax x-requested-with x-request-id x-correlation-id traceparent tracestate ' +
  'baggage x-b3-traceid authorization proxy-authorization cookie set-cookie origin referer from user-agent ' +
  'accept-language accept-charset accept-ch dnt sec-gpc sec-fetch-site sec-fetch-mode sec-fetch-dest sec-ch-ua ' +
  'save-data purpose x-moz pragma cache-control age warning max-forwards range if-range if-match ' +
  'if-unmodified-since content-type content-language content-location content-encoding content-disposition ' +
  'location link refresh status surrogate-capability surrogate-control cdn-loop x-accel-redirect x-sendfile ' +
  'x-powered-by access-control-request-headers access-control-request-method last-event-id idempotency-key debug ' +
  'x-debug x-forwarded-user remote-user x-authenticated-user x-user x-webhook-url destination';

const values = [
  'evil.example',
  'https://evil.example/evil',
  '//evil.example',
  '"><script>evil()</script>',
  'evil, https, http',
  'for="[::1]";host=evil.example;proto=https',
  'bytes=0-1',
  '/evil?evil=1',
  '443',
  'PURGE',
  `evil${'x'.repeat(40)}`,
];

/** Spellings of a host that is not ours, or not well formed; HOST stands for one that is. */
const wrongHosts =
  'evil.example evil.example:80 evil@HOST HOST@evil.example HOST.evil.example 127.0.0.2 evil.example/HOST HOST/evil ' +
  'HOST#evil HOST?evil HOST\\evil HOST,evil.example evil-HOST HOSTevil HOST:1 HOST: :HOST [evil] [::1 ' +
  '[::ffff:7f00:1]:1 localhost "HOST" <script> %65vil.example xn--a.HOST a.b.HOST .HOST _.HOST evil\texample ' +
  'http://HOST //HOST HOST;evil evil%00HOST é.example * 0 2130706433 0x7f.1';

describe('what a request says of itself', () => {
  let site: Instance;
  let pages: URL[] = [];
  const connections = new Agent({ keepAlive: true });

  before(async () => {
    site = await startInstance();
    const { client, blogUrl } = await site.agent('Ada');
    await client.publish({
      title: 'Hello',
      content: '# Words\n\n[a](/b)',
      tags: ['news'],
      status: 'published',
    });
    const ofBlog = [
      '',
      '/hello',
      '/hello.md',
      '/index.md',
      '/tags/news',
      '/feed.xml',
      '/rss.xml',
      '/feed.json',
    ];
    const ofSite = [
      '/',
      '/blogs',
      '/docs',
      '/skill.md',
      '/llms.txt',
      '/robots.txt',
      '/sitemap.xml',
      '/blogs.opml',
    ];
    pages = [
      ...[...ofBlog, '/sitemap.xml', '/llms.txt', '/nothing'].map((path) => new URL(blogUrl + path)),
      ...[
        ...ofSite,
        '/feed.xml',
        '/search?q=words',
        '/verify?token=x',
        '/problems/not_found',
        '/nothing',
        '/ada',
      ].map((path) => new URL(path, site.baseUrl)),
    ];
  });
  after(async () => {
    connections.destroy();
    await site.close();
  });

  const get = ({ host, pathname, search }: URL, headers: Record<string, string> = {}) =>
    request(`http://127.0.0.1:${site.port}`, { host, path: pathname + search, headers, agent: connections });

  test(`in ${names.split(' ').length * values.length} headers changes no page, for itself or for others`, async () => {
    for (const page of pages) {
      const clean = await get(page);
      for (const value of values) {
        const forged = await get(page, Object.fromEntries(names.split(' ').map((name) => [name, value])));
        assert.deepEqual(lasting(forged), lasting(clean), `${page.href} with ${value}`);
      }
      assert.deepEqual(lasting(await get(page)), lasting(clean), page.href);
    }
  });

  test('never makes one page pass for another, or for the same in another encoding', async () => {
    const tags = new Map<string, string>();
    const forms = pages.flatMap((page) =>
      ['identity', 'gzip', 'br', 'zstd'].map((encoding) => ({ page, encoding })),
    );
    for (const { page, encoding } of forms) {
      const { etag } = (await get(page, { 'accept-encoding': encoding })).headers;
      if (etag !== undefined) tags.set(`${page.href} ${encoding}`, etag);
    }
    assert.ok(tags.size > 60);
    for (const { page, encoding } of forms) {
      const own = tags.get(`${page.href} ${encoding}`);
      if (own === undefined) continue;
      const others = [...new Set(tags.values())].filter((tag) => tag !== own);
      const ask = (known: readonly string[]) =>
        get(page, { 'accept-encoding': encoding, 'if-none-match': known.join(', ') });
      assert.equal((await ask(others)).status, 200, `${page.href} ${encoding}`);
      assert.equal((await ask([...others, own])).status, 304, `${page.href} ${encoding}`);
    }
  });

  test('of its host gives no page of ours, and no address in a mail', async () => {
    const { host } = new URL(site.baseUrl);
    const wrong = wrongHosts.replaceAll('HOST', host).split(' ');
    for (const [at, spelt] of wrong.entries()) {
      const body = JSON.stringify({
        email: `reader-${at}@example.com`,
        name: 'Reader',
        slug: `reader-${at}`,
      });
      for (const head of [
        `GET / HTTP/1.1\r\nHost: ${spelt}\r\n`,
        // Where it would end the host, it begins a path or query of ours.
        ...(/[/?#]/.test(spelt) ? [] : [`GET http://${spelt}/ HTTP/1.1\r\nHost: ${host}\r\n`]),
        `POST /api/register HTTP/1.1\r\nHost: ${spelt}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`,
      ]) {
        const answer = await rawRequest(
          site.port,
          `${head}Connection: close\r\n\r\n${head.startsWith('P') ? body : ''}`,
        );
        assert.match(answer, /^HTTP\/1\.1 (?:400|404|421) /, head);
      }
    }
    const forged = Object.fromEntries(names.split(' ').map((name) => [name, 'evil.example']));
    const { authorization: _none, 'idempotency-key': _once, 'content-encoding': _plain, ...headers } = forged;
    const body = { email: 'reader@example.com', name: 'Reader', slug: 'reader' };
    const answer = await site.call('POST', '/api/register', {
      body,
      headers: { ...headers, 'content-type': 'application/json' },
    });
    assert.equal(answer.status, 200, answer.text);
    const mails = await site.mails();
    assert.deepEqual(
      mails.slice(-1).map(({ to }) => to),
      [['reader@example.com']],
    );
    for (const { raw } of mails) assert.doesNotMatch(raw, /evil/);
    assert.ok(wrong.length + names.split(' ').length > 50);
  });
});

/** What of an answer must be the same for all. */
function lasting({ status, headers, text }: Answer): object {
  const others = Object.entries(headers).filter(([name]) => !/^date$|^x-request-id$|ratelimit/.test(name));
  const ids = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g;
  // A page of a failure names its request.
  return { status, others, text: status < 400 ? text : text.replace(ids, 'id') };
}
