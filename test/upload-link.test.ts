import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, test } from 'node:test';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { blockSource, listSourceBlocks, setSourceBlock } from '../src/services/trust/source-blocks.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { makeLargePng, makePng } from './support/made-pictures.ts';
import { shellCalls } from './support/shell-calls.ts';

const png = { 'content-type': 'image/png' };
const env = {
  LIMIT_API: '200',
  LOG_REQUESTS: 'all',
  MEDIA_MAX: '500000',
  QUOTA_MEDIA: '400000',
  ACCOUNT_GRACE_DAYS: '3',
};

describeInstances('an upload link', { env }, (the) => {
  let ada: TestAgent;
  let bob: TestAgent;
  before(async () => {
    [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
  });

  /** What the tool answers. */
  async function ask(more: object = {}, key = ada.key) {
    const params = { name: 'upload_media', arguments: { type: 'image/png', ...more } };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const { text } = await the().call('POST', '/mcp', { key, body });
    const { result } = JSON.parse(text) as {
      result: { content: [{ text: string }]; isError?: true };
    };
    return { failed: result.isError === true, ...JSON.parse(result.content[0].text) };
  }
  const link = async (more: object = {}, key?: string): Promise<string> => (await ask(more, key)).uploadUrl;
  const put = (url: string, body: Uint8Array, headers: Record<string, string> = png, key?: string) => {
    const { pathname, search } = new URL(url);
    return the().call('PUT', pathname + search, { body, headers, ...(key === undefined ? {} : { key }) });
  };
  const listed = async (agent = ada) => (await agent.client.listMedia()).media.map(({ id }) => id);

  test('is a command that stores the file for who asked, without its key, and again as often as it is run', async () => {
    const args = { alt: "What it's like: 50 %, a&b.", filename: "the engine's {1}.png" };
    const earliest = Math.floor(the().clock.now() / 1000) + 600;
    const { message, uploadUrl, expiresAt, curl, media } = await ask(args);
    const end = Date.parse(expiresAt) / 1000;
    assert.ok(end >= earliest && end <= the().clock.now() / 1000 + 600, expiresAt);
    assert.match(message, /run the command of curl/);
    assert.equal(media, undefined);
    const [sent] = shellCalls(curl, {}, { [args.filename]: 'bytes' });
    assert.deepEqual(
      [sent?.method, sent?.url.href, sent?.headers, sent?.body],
      ['PUT', uploadUrl, png, 'bytes'],
    );
    assert.ok(uploadUrl.startsWith(`${the().baseUrl}/api/media/upload/`));

    const bytes = makePng({ text: 'secret' });
    const stored = assertOk(await put(uploadUrl, bytes), 201);
    assert.equal(stored.headers['location'], stored.at('media.url'));
    assert.match(String(stored.at('message')), /^'the engine's \{1\}\.png' is stored\./);
    assert.deepEqual([stored.at('media.alt'), stored.at('media.removed')], [args.alt, ['text']]);
    assert.deepEqual(await listed(), [stored.at('media.id')]);
    // By the key of another, by the ordinary call, without a type, or by the client: the same picture.
    for (const again of [
      await put(uploadUrl, bytes),
      await put(uploadUrl, bytes, png, bob.key),
      await put(uploadUrl, bytes, png, 'nonsense'),
      await the().call('POST', '/api/media', { key: ada.key, body: bytes, headers: png }),
    ])
      assert.equal(assertOk(again).at('media.id'), stored.at('media.id'));
    const untyped = await fetch(uploadUrl, { method: 'PUT', body: bytes });
    assert.deepEqual([untyped.status, await listed()], [200, [stored.at('media.id')]]);
    const byClient = await the().client().uploadByLink(uploadUrl, bytes, { type: 'image/png' });
    assert.deepEqual([byClient.media.id, byClient.media.alt], [stored.at('media.id'), args.alt]);
    assert.deepEqual(await listed(bob), []);
    const dry = assertProblem(await put(`${uploadUrl}&dryRun=true`, bytes), 'invalid_input');
    assert.match(dry.text, /POST \/api\/publish has one/);
  });

  test('counts against the limit of who asked', async () => {
    const url = await link();
    const left = async () => {
      const { headers } = await the().call('GET', '/api/me', { key: ada.key });
      return Number(headers['x-ratelimit-remaining']);
    };
    const first = await left();
    const { headers } = assertOk(await put(url, makePng(), png, bob.key), 201);
    assert.match(String(headers['ratelimit-policy']), /^"api"/);
    assert.equal(Number(headers['x-ratelimit-remaining']), first - 1);
    assert.equal(await left(), first - 2);
    assert.match(String(headers['cache-control']), /private/);
  });

  test('works for ten minutes', async () => {
    const url = await link();
    the().clock.advance(590_000);
    assertOk(await put(url, makePng()), 201);
    the().clock.advance(11_000);
    const refused = assertProblem(await put(url, makePng()), 'token_expired');
    assert.match(refused.text, /upload_media answers another/);
    assert.match(String(refused.headers['ratelimit-policy']), /^"anonymous"/);
  });

  test('is of its agent, type and alternative text alone, and signed', async () => {
    const url = await link({ alt: 'A square.' });
    const { pathname } = new URL(url);
    const token = pathname.split('/').at(-1) ?? '';
    const bytes = Buffer.from(token, 'base64url');
    const flipped = (at: number) => {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ 1;
      return url.replace(token, copy.toString('base64url'));
    };
    const ofBob = Buffer.from(bytes);
    Buffer.from(bob.id.replaceAll('-', ''), 'hex').copy(ofBob);
    const wrong = [
      ...[...bytes.keys()].map(flipped),
      url.replace(token, ofBob.toString('base64url')),
      url.replace(token, `${token}A`),
      url.replace(token, `${token}=`),
      url.replace(token, token.slice(0, -1)),
      url.replace(token, 'x'.repeat(501)),
      url.replace('square', 'circle'),
      url.replace(/\?.*/, ''),
      `${url}&alt=B`,
      url.replace('alt=', 'ALT='),
      url.replace(/\?.*/, '?alt=%FF'),
    ];
    for (const other of wrong) {
      const answer = await put(other, makePng());
      assert.ok(answer.status === 404 || answer.status === 400, `${other} ${answer.text}`);
      assert.ok(!answer.text.includes(token), answer.text);
    }
    assertProblem(await put(flipped(0), makePng()), 'invalid_token');
    assert.equal(assertOk(await put(url, makePng()), 201).at('media.alt'), 'A square.');
    // Not the key of anything else, nor another method.
    assertProblem(await the().call('GET', '/api/me', { key: token }), 'unauthorized');
    assertProblem(
      await the().call('POST', pathname, { body: makePng(), headers: png }),
      'method_not_allowed',
    );
  });

  test('refuses what the ordinary call refuses, in the same words', async () => {
    const url = await link();
    const bytes = makePng();
    for (const [body, headers] of [
      [bytes, { 'content-type': 'image/gif' }],
      [bytes, { 'content-type': 'image/svg+xml' }],
      [bytes, { 'content-type': 'application/x-www-form-urlencoded' }],
      [bytes, { ...png, 'content-encoding': 'gzip' }],
    ] as const)
      assertProblem(await put(url, body, headers), 'unsupported_media_type');
    const gif = await link({ type: 'image/gif' });
    assertProblem(await put(gif, bytes), 'unsupported_media_type');
    assertProblem(await put(gif, bytes, { 'content-type': 'image/gif' }), 'unsupported_media_type');
    for (const [code, body] of [
      ['invalid_media', bytes.subarray(0, -20)],
      ['invalid_media', Buffer.alloc(0)],
      ['too_large', makeLargePng(600_000)],
      ['quota_exceeded', makeLargePng(450_000)],
    ] as const) {
      const [byLink, byKey] = [
        assertProblem(await put(url, body), code),
        assertProblem(await the().call('POST', '/api/media', { key: ada.key, body, headers: png }), code),
      ];
      assert.deepEqual([byLink.at('detail'), byLink.at('hint')], [byKey.at('detail'), byKey.at('hint')]);
    }
    const { engine } = the().ctx();
    const value = createHash('sha256').update(bytes).digest('hex');
    await engine.write(blockSource, { kind: 'media', value });
    assertProblem(await put(url, bytes), 'blocked_media');
    for (const { id } of await listSourceBlocks(the().ctx(), ['media']))
      await engine.write(setSourceBlock, { id, isOn: false });
    assertOk(await put(url, bytes), 201);
    for (const [args, code] of [
      [{ alt: `see ${ada.key}` }, 'leaked_key'],
      [{ alt: 'a\nb' }, 'invalid_input'],
      [{ type: 'image/tiff' }, 'invalid_input'],
    ] as const)
      assert.deepEqual(await ask(args).then(({ failed, code: is }) => [failed, is]), [true, code]);
  });

  test('stops with the key, and follows the agent through suspension, deletion and erasure', async () => {
    const { engine } = the().ctx();
    const eve = await the().agent('Eve');
    const old = await link({}, eve.key);
    const { apiKey } = await eve.client.regenerateKey();
    assertProblem(await put(old, makePng()), 'invalid_token');

    const url = await link({}, apiKey);
    await engine.write(suspendAgent, { slug: 'eve', reason: 'Spam.' });
    const refused = assertProblem(await put(url, makePng()), 'suspended');
    assert.match(String(refused.at('detail')), /Spam/);
    assert.equal((await ask({}, apiKey)).code, 'suspended');
    await engine.write(restoreAgent, { slug: 'eve' });
    assertOk(await put(url, makePng()), 201);
    const until = new Date(the().clock.now() + 60_000).toISOString();
    await engine.write(suspendAgent, { slug: 'eve', reason: 'Spam.', until });
    assertProblem(await put(url, makePng()), 'suspended');
    the().clock.advance(61_000);
    assertOk(await put(url, makePng()), 201);

    await eve.client.deleteMe();
    assertProblem(await put(url, makePng()), 'deleting');
    await the().call('DELETE', '/api/me?confirm=eve', { key: apiKey });
    assertProblem(await put(url, makePng()), 'invalid_token');
  });

  test('is neither given nor taken by a read-only service', async () => {
    const url = await link();
    await the().restart({ READ_ONLY: 'on' });
    assertProblem(await put(url, makePng()), 'read_only');
    assert.equal((await ask()).code, 'read_only');
    await the().restart({ READ_ONLY: 'off' });
    assertOk(await put(url, makePng()), 201);
  });

  test('is in no line of the log, no measurement and no answer', async () => {
    const { expiresAt: _expires, ...answer } = await ask();
    const url = String(answer.uploadUrl);
    const token = new URL(url).pathname.split('/').at(-1) ?? '';
    assert.match(token, /^[\w-]{50}$/);
    const answers = [
      await put(url, makePng()),
      await put(url, makePng().subarray(0, 20)),
      await put(`${url}/more`, makePng()),
      await put(url.replace('upload', 'uplaod'), makePng()),
      await the().call('GET', new URL(url).pathname),
      await put(`${url}?alt=%`, makePng()),
    ];
    for (const { text, headers } of answers)
      assert.ok(!text.includes(token) && !JSON.stringify(headers).includes(token), text);
    assert.match(the().log(), /"route":"\/api\/media\/upload\/:token"/);
    assert.ok(!the().log().includes(token));
  });
});
