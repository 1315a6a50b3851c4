import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertProblem, startInstance, type CallOptions, type Instance } from './support/instance.ts';
import { rawRequest, request, type Answer } from './support/http.ts';

/** Posts one message of the revision 2025-11-25, which needs no more than JSON-RPC does. */
function send(at: Instance, method: string, params: object = {}, options: CallOptions = {}): Promise<Answer> {
  return at.call('POST', '/mcp', { body: { jsonrpc: '2.0', id: 7, method, params }, ...options });
}

function callTool(at: Instance, name: string, args: object, options: CallOptions = {}): Promise<Answer> {
  return send(at, 'tools/call', { name, arguments: args }, options);
}

/** The JSON in the text of a tool's answer. */
function resultOf(answer: Answer): Record<string, unknown> {
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(String(answer.at('result.content.0.text')));
}

describe('POST /mcp', () => {
  let at: Instance;
  before(async () => {
    at = await startInstance();
  });
  after(() => at.close());

  test('a plain JSON-RPC message without any header of the protocol is answered with one JSON object', async () => {
    const answer = await send(at, 'tools/list');
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
    assert.equal(answer.headers['cache-control'], 'no-store');
    assert.equal(answer.headers['ratelimit-policy'], '"anonymous";q=6000;w=3600');
    assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
    assert.equal(answer.at('id'), 7);
    assert.equal(answer.at('result.tools.0.name'), 'register');
  });

  test('a slash at the end of the address makes no difference', async () => {
    const body = { jsonrpc: '2.0', id: 7, method: 'tools/list' };
    for (const path of ['/mcp/', '/mcp//', '/mcp/?structured=1'])
      assert.equal((await at.call('POST', path, { body })).at('result.tools.0.name'), 'register', path);
    assert.equal((await at.call('GET', '/mcp/')).status, 405);
    assert.equal((await at.call('POST', '/mcp/x', { body })).status, 404);
  });

  test('a notification is taken without a body', async () => {
    const body = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const answer = await at.call('POST', '/mcp', { body });
    assert.deepEqual([answer.status, answer.text, answer.headers['content-type']], [202, '', undefined]);
  });

  const malformed = [
    ['no body', '', 400, 'invalid_json'],
    ['what is not JSON', '{', 400, 'invalid_json'],
    ['a batch', [{ jsonrpc: '2.0', id: 1, method: 'ping' }], 400, 'invalid_json'],
    ['a number', '5', 400, 'invalid_json'],
    ['JSON that is too deep', '['.repeat(40) + ']'.repeat(40), 400, 'invalid_json'],
    ['more than 64 KiB', `{"a":"${'x'.repeat(64 * 1024)}"}`, 413, 'too_large'],
  ] as const;
  test('a batch is told how a message is sent', async () => {
    const body = [
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { jsonrpc: '2.0', id: 2, method: 'ping' },
    ];
    const [example = ''] = /\{.*\}/.exec(String((await at.call('POST', '/mcp', { body })).at('hint'))) ?? [];
    const sent = await at.call('POST', '/mcp', { body: JSON.parse(example) });
    assert.equal(sent.at('result.tools.0.name'), 'register');
  });

  for (const [what, body, status, code] of malformed) {
    test(`${what} is refused with ${status} and counted`, async () => {
      const earlier = (await send(at, 'ping')).headers['x-ratelimit-remaining'];
      const answer = assertProblem(await at.call('POST', '/mcp', { body }), code);
      assert.equal(answer.status, status);
      assert.equal(answer.headers['x-ratelimit-remaining'], String(Number(earlier) - 1));
    });
  }

  const outOfProtocol = [
    ['an object that is no message', {}, 400, undefined],
    ['an unknown method', { jsonrpc: '2.0', id: 1, method: 'tools/burn' }, 200, -32_601],
    ['a tool call without a name', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} }, 200, -32_602],
    ['a tool call with a list', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: [] }, 400, undefined],
    ['a resource without a URI', { jsonrpc: '2.0', id: 1, method: 'resources/read' }, 200, -32_602],
  ] as const;
  for (const [what, body, status, code] of outOfProtocol) {
    test(`${what} is an error of the protocol`, async () => {
      const answer = await at.call('POST', '/mcp', { body });
      assert.equal(answer.status, status, answer.text);
      assert.equal(typeof answer.at('error.code'), 'number');
      if (code !== undefined) assert.equal(answer.at('error.code'), code);
    });
  }

  test('params that lack something are answered with all that they lack, and with an example', async () => {
    const faults = [
      ['initialize', {}, "'protocolVersion' is missing; 'capabilities' is missing; 'clientInfo' is missing."],
      [
        'initialize',
        { protocolVersion: '2025-11-25', capabilities: [], clientInfo: { name: 5 } },
        "'capabilities' must be an object, not a list; 'clientInfo.name' must be a string, not a number; 'clientInfo.version' is missing.",
      ],
      ['tools/call', { arguments: null }, "'name' is missing; 'arguments' must be an object, not null."],
      ['tools/list', { cursor: 5 }, "'cursor' must be a string, not a number."],
      ['resources/read', {}, "'uri' is missing."],
    ] as const;
    for (const [method, params, fault] of faults) {
      const answer = await send(at, method, params);
      assert.deepEqual([answer.status, answer.at('error.code')], [200, -32_602], method);
      const [, told = '', example = ''] =
        /^(.*) Send 'params' like (.*)\.$/.exec(String(answer.at('error.message'))) ?? [];
      assert.equal(told, fault);
      const followed = await send(at, method, JSON.parse(example));
      assert.notEqual(followed.at('error.message'), answer.at('error.message'));
    }
  });

  test('of an argument that is sent twice the last counts, with a warning', async () => {
    const sent = (name: string, args: string) =>
      at.call('POST', '/mcp', {
        body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`,
      });
    const listed = resultOf(await sent('list_blogs', '{"limit":3,"l\\u0069mit":5}'));
    assert.deepEqual([listed['limit'], listed['warningCodes']], [5, ['repeated_field']]);
    assert.match(String(listed['warnings']), /'limit'.*last/);
    const once = resultOf(await sent('list_blogs', '{"limit":3}'));
    assert.deepEqual(once['warnings'], []);
    const refused = resultOf(await sent('list_blogs', '{"limit":3,"limit":0}'));
    assert.match(String(refused['hint']), /'limit' was sent more than once/);
  });

  test('a revision that is not served is answered with the newest that is', async () => {
    const asked = {
      protocolVersion: '1999-01-01',
      capabilities: {},
      clientInfo: { name: 'a', version: '1' },
    };
    const answer = await send(at, 'initialize', asked);
    assert.equal(answer.at('result.protocolVersion'), '2025-11-25');
    // Nothing is sent when a list changes, and no list does.
    assert.deepEqual(answer.at('result.capabilities'), { tools: {}, resources: {} });
  });

  test('markdown and other content types are refused', async () => {
    for (const type of ['text/markdown', 'text/plain', 'application/x-www-form-urlencoded']) {
      const answer = await at.call('POST', '/mcp', { body: 'x', headers: { 'content-type': type } });
      assert.equal(answer.status, 415);
    }
  });

  test('a revision that nobody knows is refused with those that are served', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2099-01-01',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const answer = await send(
      at,
      'tools/list',
      { _meta: meta },
      { headers: { 'mcp-protocol-version': '2099-01-01', 'mcp-method': 'tools/list' } },
    );
    assert.equal(answer.status, 400);
    assert.deepEqual(answer.at('error.data.supported'), ['2026-07-28']);
  });

  test('nobody can hold a stream of changes open', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const answer = await send(
      at,
      'subscriptions/listen',
      { _meta: meta, notifications: { toolsListChanged: true } },
      { headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' } },
    );
    assert.match(String(answer.at('error.message')), /limit/i);
  });

  test('other methods are 405 with the one that there is', async () => {
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await at.call(method, '/mcp', { headers: { accept: 'text/event-stream' } });
      assert.deepEqual([answer.status, answer.headers['allow']], [405, 'OPTIONS, POST']);
      assert.equal(answer.headers['x-ratelimit-limit'], '6000');
      if (method === 'HEAD') continue;
      assertProblem(answer, 'method_not_allowed');
      const [configuration = ''] = /\{.*\}/.exec(String(answer.at('hint'))) ?? [];
      const { masthead } = JSON.parse(configuration).mcpServers;
      assert.deepEqual(masthead, {
        type: 'http',
        url: `${at.baseUrl}/mcp`,
        headers: { Authorization: 'Bearer API_KEY' },
      });
      assert.match((await at.call('GET', '/docs')).text, /<h2 id="mcp">[^]*\/mcp/);
    }
    const options = await at.call('OPTIONS', '/mcp');
    assert.deepEqual([options.status, options.headers['allow']], [204, 'OPTIONS, POST']);
  });

  test('a key that does not work is 401, without a word of OAuth', async () => {
    const headers = ['Bearer 3f0c9a52-5b0e-4d7e-8a53-6f2d1c7b9e04', 'Bearer x', 'Basic YTpi', 'Bearer a b'];
    for (const authorization of headers) {
      const answer = assertProblem(
        await send(at, 'tools/list', {}, { headers: { authorization } }),
        'unauthorized',
      );
      const isKey = /^Bearer \S+$/.test(authorization);
      const error = isKey ? ', error="invalid_token"' : '';
      assert.equal(answer.headers['www-authenticate'], `Bearer realm="masthead"${error}`);
      assert.equal(answer.headers['ratelimit-policy'], '"anonymous";q=6000;w=3600');
      // Clients show no more than the text of the answer: no tool can be called to ask.
      assert.match(
        String(answer.at('detail')),
        /take the header out: reading, 'register', 'verify' and 'recover' need/,
      );
      assert.match(String(answer.at('hint')), /'recover' where a key was lost.*mcpServers/);
    }
  });

  test('what looks for OAuth finds that there is none', async () => {
    for (const name of ['oauth-protected-resource', 'oauth-authorization-server', 'openid-configuration']) {
      for (const path of [`/.well-known/${name}`, `/.well-known/${name}/mcp`, `/mcp/.well-known/${name}`]) {
        assertProblem(await at.call('GET', path, { headers: { accept: '*/*' } }), 'not_found');
      }
    }
  });

  test('pages of this service and of this machine may call, and no others', async () => {
    const { baseUrl, port } = at;
    const trusted = [baseUrl, `http://127.0.0.1:${port}`, 'http://localhost:6274', 'http://[::1]:5173'];
    const foreign = [
      'https://evil.example',
      'null',
      'file://',
      'http://localhost.evil.example',
      'http://127.0.0.1.evil.example',
      'chrome-extension://abcdef',
      `${baseUrl}, https://evil.example`,
      'x',
    ];
    for (const origin of trusted) {
      const answer = await send(at, 'tools/list', {}, { headers: { origin } });
      assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [200, origin]);
      assert.equal(answer.headers['vary'], 'Origin, Accept-Encoding');
      const preflight = await at.call('OPTIONS', '/mcp', { headers: { origin } });
      assert.deepEqual([preflight.status, preflight.headers['access-control-allow-methods']], [204, 'POST']);
      assert.match(String(preflight.headers['access-control-allow-headers']), /Authorization/);
    }
    for (const origin of foreign) {
      for (const method of ['POST', 'OPTIONS']) {
        const answer = assertProblem(
          await at.call(method, '/mcp', { headers: { origin }, body: {} }),
          'forbidden',
        );
        assert.equal(answer.headers['access-control-allow-origin'], undefined);
      }
    }
  });

  test('the origin of another scheme is another site', async () => {
    const secure = await startInstance({ env: { BASE_URL: 'https://masthead.example' } });
    for (const [origin, status] of [
      ['https://masthead.example', 200],
      ['http://masthead.example', 403],
      ['https://ada.masthead.example', 403],
    ] as const) {
      const answer = await request(`http://127.0.0.1:${secure.port}`, {
        method: 'POST',
        path: '/mcp',
        host: 'masthead.example',
        headers: { origin, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      });
      assert.equal(answer.status, status, origin);
    }
    await secure.close();
  });
});

test('publishing over MCP counts against the same limit as over the API', async () => {
  const at = await startInstance({ env: { LIMIT_PUBLISH: '3' } });
  const { key } = await at.agent('Ada');
  at.clock.freeze();
  const publish = (title: unknown) => callTool(at, 'publish', { title, content: 'x' }, { key });

  const first = await publish('One');
  assert.equal(first.headers['ratelimit'], '"publish";r=2;t=3600');
  assert.equal((await publish(5)).headers['ratelimit'], '"publish";r=1;t=3600');
  const byApi = await at.call('POST', '/api/publish', { key, body: { title: 'Two', content: 'x' } });
  assert.equal(byApi.headers['ratelimit'], '"publish";r=0;t=3600');

  const refused = await publish('Three');
  assert.equal(refused.at('result.isError'), true);
  const { code, retryAfter, retryable, limit } = resultOf(refused);
  assert.deepEqual([code, retryAfter, retryable], ['rate_limited', 3600, true]);
  assert.deepEqual(limit, { policy: 'publish', limit: 3, remaining: 0, reset: 3600 });
  assert.equal(refused.headers['retry-after'], '3600');
  assert.equal((await at.call('POST', '/api/publish', { key, body: {} })).status, 429);
  const others = await callTool(at, 'list_posts', {}, { key });
  assert.equal(others.headers['ratelimit-policy'], '"api";q=6000;w=3600');
  const dry = (names: object) => callTool(at, 'publish', { title: 'Three', content: 'x', ...names }, { key });
  for (const names of [{ dryRun: true }, { dry_run: true }])
    assert.equal(resultOf(await dry(names))['dryRun'], true);
  // One of them is meant, and a tool that writes takes no other argument.
  const twice = await dry({ dry_run: false, dryrun: true });
  assert.equal(resultOf(twice)['code'], 'invalid_input');
  assert.match(String(twice.headers['ratelimit']), /^"api"/);
  for (const names of [
    { dryRun: false, dry_run: true },
    { dry_run: true, dryrun: false },
  ])
    assert.equal(resultOf(await dry(names))['code'], 'rate_limited');

  at.clock.advance(3_600_000);
  assert.equal(resultOf(await publish('Three'))['created'], true);
  await at.close();
});

test('registering over MCP counts against the limit of the address', async () => {
  const at = await startInstance({ env: { LIMIT_REGISTER: '1' } });
  const register = (slug: string) =>
    callTool(at, 'register', { email: `${slug}@example.com`, name: slug, slug });
  assert.equal((await register('ada')).headers['ratelimit-policy'], '"register";q=1;w=3600');
  assert.equal(resultOf(await register('bob'))['code'], 'rate_limited');
  assert.deepEqual(await at.mails('bob@example.com'), []);
  await at.close();
});

test('who asks or guesses too often without a key is refused before anything is done', async () => {
  const at = await startInstance({ env: { LIMIT_ANONYMOUS: '3' } });
  at.clock.freeze();
  const badKey = { headers: { authorization: 'Bearer x' } };
  assertProblem(await send(at, 'tools/list', {}, badKey), 'unauthorized');
  assert.equal((await send(at, 'tools/list')).status, 200);
  assert.equal(resultOf(await callTool(at, 'publish', {}))['code'], 'unauthorized');
  assertProblem(await send(at, 'tools/list', {}, badKey), 'rate_limited');
  const listed = assertProblem(await send(at, 'tools/list'), 'rate_limited');
  assert.equal(listed.headers['retry-after'], '3600');
  assert.equal(resultOf(await callTool(at, 'list_posts', {}))['code'], 'rate_limited');
  await at.close();
});

test('a message is at most 64 KiB without a key and 4 MiB with one, however it is sent', async () => {
  const at = await startInstance();
  const { key } = await at.agent('Ada');
  const ping = (size: number) => `{"jsonrpc":"2.0","id":1,"method":"ping"}${' '.repeat(size - 40)}`;
  const small = 64 * 1024;
  assert.equal((await at.call('POST', '/mcp', { body: ping(small) })).status, 200);
  assert.equal((await at.call('POST', '/mcp', { body: ping(4 * 1024 * 1024), key })).status, 200);
  assertProblem(await at.call('POST', '/mcp', { body: ping(4 * 1024 * 1024 + 1), key }), 'too_large');
  assertProblem(await at.call('POST', '/mcp', { body: ping(small + 1) }), 'too_large');
  const chunked = (body: string) =>
    rawRequest(
      at.port,
      `POST /mcp HTTP/1.1\r\nHost: localhost:${at.port}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    );
  assert.match(await chunked(ping(small)), /^HTTP\/1\.1 200 /);
  assert.match(await chunked(ping(small + 1)), /^HTTP\/1\.1 413 .*"code":"too_large"/s);
  await at.close();
});

test('who has used up its calls is refused for malformed ones, and for large ones before they are read', async () => {
  const at = await startInstance({ env: { LIMIT_API: '3', LIMIT_ANONYMOUS: '3' } });
  const { key } = await at.agent('Ada');
  at.clock.advance(3_600_001);
  at.clock.freeze();
  for (const options of [{}, { key }]) {
    for (let i = 0; i < 3; i++)
      assertProblem(await at.call('POST', '/mcp', { body: '{', ...options }), 'invalid_json');
    for (const body of ['{', '[]', '{}', ' '.repeat(64 * 1024 + 1)])
      assertProblem(await at.call('POST', '/mcp', { body, ...options }), 'rate_limited');
    // Refused before it is sent: the length alone tells.
    const started = await rawRequest(
      at.port,
      `POST /mcp HTTP/1.1\r\nHost: localhost:${at.port}\r\n${'key' in options ? `Authorization: Bearer ${key}\r\n` : ''}Content-Type: application/json\r\nContent-Length: 4000000\r\n\r\n`,
    );
    assert.match(started, /^HTTP\/1\.1 429 /);
  }
  const published = await callTool(at, 'publish', { title: 'T', content: 'c' }, { key });
  assert.equal(resultOf(published)['created'], true, 'publishing has a limit of its own');
  await at.close();
});
