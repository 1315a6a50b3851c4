import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { isLogged, traceOf } from '../src/http/observe.ts';
import { startInstance, type CallOptions, type Instance, type TestAgent } from './support/instance.ts';

const trace = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`;

describe('the log of requests', () => {
  let instance: Instance;
  let ada: TestAgent;
  before(async () => {
    instance = await startInstance({ env: { LOG_REQUESTS: 'all', TRUST_PROXY: 'loopback' } });
    ada = await instance.agent('Ada');
    await ada.client.publish({ title: 'A post', content: 'text', status: 'published' });
  });
  after(() => instance.close());

  /** The line of a request, which is written once its answer is sent. */
  const lineOf = async (method: string, path: string, options: CallOptions = {}) => {
    const { headers } = await instance.call(method, path, options);
    for (;;) {
      const line = instance
        .log()
        .split('\n')
        .find(
          (text) =>
            text.includes(`"requestId":"${String(headers['x-request-id'])}"`) &&
            text.includes('"message":"request"'),
        );
      if (line !== undefined) return JSON.parse(line) as Record<string, unknown>;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  test('has what a request was, and whose', async () => {
    const line = await lineOf('GET', '/api/me?x=1', { key: ada.key });
    const { time, ms, bytes, requestId, ...rest } = line;
    assert.deepEqual(rest, {
      level: 'info',
      message: 'request',
      route: '/api/me',
      method: 'GET',
      status: 200,
      agentId: ada.id,
    });
    assert.ok(typeof time === 'string' && typeof requestId === 'string');
    assert.ok(Number(ms) >= 0 && Number(bytes) > 200);
  });

  test('has pages, cached ones too, and calls of MCP', async () => {
    const host = `ada.localhost:${instance.port}`;
    for (const route of ['blog', 'blog']) {
      const { route: found, status, bytes } = await lineOf('GET', '/a-post', { host });
      assert.deepEqual([found, status], [route, 200]);
      assert.ok(Number(bytes) > 1_000);
    }
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const headers = { accept: 'application/json, text/event-stream' };
    const { route, agentId } = await lineOf('POST', '/mcp', { key: ada.key, body, headers });
    assert.deepEqual([route, agentId], ['/mcp', ada.id]);
  });

  test('names the trace that a valid traceparent belongs to', async () => {
    const { traceId, parentId } = await lineOf('GET', '/healthz', { headers: { traceparent: trace } });
    assert.deepEqual([traceId, parentId], ['a1'.repeat(16), 'b2'.repeat(8)]);
    assert.equal('traceId' in (await lineOf('GET', '/healthz')), false);
  });

  test('ignores a traceparent that is not valid', () => {
    const [id, parent] = ['a1'.repeat(16), 'b2'.repeat(8)];
    const valid = [trace, `01-${id}-${parent}-00-more`, `cc-${id}-${parent}-00`];
    const invalid = [
      '',
      'x',
      `00-${id}-${parent}`,
      `00-${id}-${parent}-01-more`,
      `ff-${id}-${parent}-01`,
      `00-${'0'.repeat(32)}-${parent}-01`,
      `00-${id}-${'0'.repeat(16)}-01`,
      `00-${id.toUpperCase()}-${parent}-01`,
      `00-${id}-${parent}-0g`,
      `${trace}, ${trace}`,
      ` ${trace}`,
      `00-${id}x-${parent}-01`,
    ];
    for (const traceparent of valid)
      assert.deepEqual(traceOf({ headers: { traceparent } }), { traceId: id, parentId: parent }, traceparent);
    for (const traceparent of invalid)
      assert.deepEqual(traceOf({ headers: { traceparent } }), {}, traceparent);
    const key = 'a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1';
    assert.deepEqual(traceOf({ headers: { traceparent: trace, authorization: `Bearer ${key}` } }), {});
  });

  test('is of failures, of what is slow too, or of all', () => {
    const of = (status: number, seconds: number) =>
      (['off', 'errors', 'slow', 'all'] as const).filter((logged) => isLogged(logged, status, seconds));
    assert.deepEqual(of(200, 0.1), ['all']);
    assert.deepEqual(of(404, 0.1), ['all']);
    assert.deepEqual(of(200, 1), ['slow', 'all']);
    assert.deepEqual(of(500, 0), ['errors', 'slow', 'all']);
  });

  for (const mode of ['all', 'slow', 'errors', 'off'])
    test(`${mode}: has no key, token, e-mail address or client address, wherever it is sent`, async () => {
      if (mode !== 'all') await instance.restart({ LOG_REQUESTS: mode });
      const begin = instance.log().length;
      const email = `private-${mode}@secret.example`;
      const address = '203.0.113.77';
      await instance.call('POST', '/api/register', {
        body: { email, name: `Private ${mode}`, slug: `private-${mode}` },
        headers: { 'x-forwarded-for': address },
      });
      const token = await instance.token(email);
      const secrets = [
        ada.key,
        ada.key.toUpperCase(),
        ada.key.replaceAll('-', ''),
        token,
        email,
        encodeURIComponent(email),
        address,
        '2001:db8::77',
      ];
      await sendEverywhere(secrets.join(' '));
      for (const secret of secrets)
        await instance.call('GET', '/api/me', {
          key: secret,
          headers: { traceparent: `00-${secret}-${'b2'.repeat(8)}-01` },
        });
      await instance.call('GET', `/api/verify?token=${token}`, { headers: { 'x-forwarded-for': address } });
      const written = instance.log().slice(begin);
      const hasLines = written.includes('"message":"request"');
      if (mode === 'all' || mode === 'off') assert.equal(hasLines, mode === 'all');
      for (const secret of secrets) assert.ok(!written.includes(secret), `${secret} is in the log`);
      assert.ok(!written.includes('127.0.0.1'));
    });

  async function sendEverywhere(secret: string): Promise<void> {
    const plain = encodeURIComponent(secret);
    const host = `ada.localhost:${instance.port}`;
    for (const path of [
      `/${plain}`,
      `/-/${plain}`,
      `/api/${plain}`,
      `/api/posts/${plain}`,
      `/api/posts?agent=${plain}&q=${plain}`,
      `/verify?token=${plain}`,
      `/%zz${plain}`,
    ])
      for (const at of [undefined, host])
        await instance.call('GET', path, at === undefined ? {} : { host: at });
    const names = [
      'authorization',
      'x-api-key',
      'x-forwarded-for',
      'user-agent',
      'referer',
      'cookie',
      'traceparent',
      'tracestate',
      'x-request-id',
      'accept',
      'if-none-match',
      'idempotency-key',
      'origin',
      'content-type',
    ];
    for (const name of names)
      await instance.call('POST', '/api/publish', { headers: { [name]: secret }, body: { title: secret } });
    for (const body of [
      { [secret]: secret, title: secret, content: secret },
      `${secret} is not JSON`,
      secret,
    ])
      for (const path of ['/api/publish', '/api/recover', '/mcp'])
        await instance.call('POST', path, { key: ada.key, body });
    await instance.call('GET', '/', { host: `${plain.replaceAll('%', '')}.example` });
  }
});
