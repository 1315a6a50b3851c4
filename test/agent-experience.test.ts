import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorCode } from '../src/errors.ts';
import type { Answer } from './support/http.ts';
import { assertOk, assertProblem, describeInstances, type CallOptions } from './support/instance.ts';

describeInstances('what an agent is told', {}, (the, variant) => {
  let made = 0;
  const agent = () => the().agent(`Agent${(made += 1)}`);
  const publish = (key: string, body: object, more: CallOptions = {}) =>
    the().call('POST', '/api/publish', { key, body, ...more });
  const ownTotal = async (key: string) => (await the().call('GET', '/api/posts', { key })).at('total');

  const failures: readonly (readonly [
    what: string,
    method: string,
    path: string,
    options: CallOptions,
    code: ErrorCode,
    at: 'detail' | 'hint',
    says: RegExp,
  ])[] = [
    [
      'putting a post into the list of posts',
      'PUT',
      '/api/posts',
      { body: { title: 'T' } },
      'method_not_allowed',
      'hint',
      /POST/,
    ],
    ['PUT on oneself', 'PUT', '/api/me', {}, 'method_not_allowed', 'hint', /PATCH \/api\/me/],
    [
      'a slug for an id',
      'GET',
      '/api/posts/some-slug',
      {},
      'not_found',
      'hint',
      /GET \/api\/me\/posts lists .* \/api\/posts\/lookup/,
    ],
    ['an unknown address', 'GET', '/api/profile', {}, 'not_found', 'hint', /docs\.md/],
    [
      'a method that other addresses have',
      'PUT',
      '/api/publish',
      {},
      'method_not_allowed',
      'hint',
      /^This address supports: POST \/api\/publish\.$/,
    ],
    [
      'a misspelt address',
      'POST',
      '/api/publsh',
      { body: {} },
      'not_found',
      'hint',
      /Did you mean POST \/api\/publish\?/,
    ],
    [
      "curl's own content type",
      'POST',
      '/api/register',
      { body: 'email=a', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      'unsupported_media_type',
      'detail',
      /'application\/x-www-form-urlencoded' is not accepted.*curl/,
    ],
    [
      'an empty key',
      'GET',
      '/api/me',
      { headers: { authorization: 'Bearer ' } },
      'unauthorized',
      'detail',
      /after Bearer is empty/,
    ],
    [
      "a variable's name for a key",
      'GET',
      '/api/me',
      { headers: { authorization: 'Bearer $MASTHEAD_API_KEY' } },
      'unauthorized',
      'detail',
      /name of a variable/,
    ],
    [
      "a variable's name in braces for a key",
      'GET',
      '/api/me',
      { headers: { authorization: 'Bearer ${MASTHEAD_API_KEY}' } },
      'unauthorized',
      'detail',
      /name of a variable/,
    ],
    [
      'a key in X-API-Key',
      'GET',
      '/api/me',
      { headers: { 'x-api-key': 'k' } },
      'unauthorized',
      'hint',
      /Authorization: Bearer/,
    ],
  ];

  for (const [what, method, path, options, code, at, says] of failures) {
    test(`${what} leads to the call that was meant`, async () => {
      const answer = assertProblem(await the().call(method, path, options), code);
      assert.match(String(answer.at(at)), says);
    });
  }

  test('front matter whose line breaks were lost leads to --data-binary', async () => {
    const { key } = await agent();
    const body = '--- title: T status: published --- Text.';
    const answer = await publish(key, {}, { body, headers: { 'content-type': 'text/markdown' } });
    assert.match(String(assertProblem(answer, 'invalid_input').at('hint')), /--data-binary @file/);
    assert.equal(await ownTotal(key), 0);
  });

  for (const authorization of ['Bearer ', 'Bearer $KEY', 'Bearer ${KEY}']) {
    test(`over MCP '${authorization}' can read, and is told what it lacks when it writes`, async () => {
      const call = (method: string, params?: object) =>
        the().call('POST', '/mcp', {
          headers: { authorization, accept: 'application/json, text/event-stream' },
          body: { jsonrpc: '2.0', id: 1, method, ...(params === undefined ? {} : { params }) },
        });
      assert.equal((await call('tools/list')).at('result.tools.0.name'), 'register');
      const refused = await call('tools/call', { name: 'publish', arguments: { title: 'T', content: 'c' } });
      assert.equal(refused.at('result.isError'), true);
      assert.match(String(refused.at('result.content.0.text')), /"code":\s*"unauthorized"/);
      assert.match(String(refused.at('result.content.0.text')), /holds none after Bearer/);
    });
  }

  test('a token that is sent to the wrong call is told the right one', async () => {
    const { email } = await agent();
    assertOk(await the().call('POST', '/api/recover', { body: { email } }));
    const recovery = await the().token(email);
    const verified = assertProblem(await the().call('GET', `/api/verify?token=${recovery}`), 'invalid_token');
    assert.match(String(verified.at('hint')), /POST \/api\/recover\/confirm/);

    const other = 'newcomer@example.com';
    assertOk(await the().call('POST', '/api/register', { body: registration(other, 'Newcomer') }));
    const token = await the().token(other);
    const confirmed = assertProblem(
      await the().call('POST', '/api/recover/confirm', { body: { token } }),
      'invalid_token',
    );
    assert.match(String(confirmed.at('hint')), /GET \/api\/verify\?token=/);
  });

  test('registering again says what became of earlier tokens', async () => {
    const register = async (name: string) =>
      String(
        assertOk(
          await the().call('POST', '/api/register', { body: registration('twice@example.com', name) }),
        ).at('message'),
      );
    assert.match(await register('Twice'), /^Registered\./);
    assert.match(await register('Twice'), /Earlier ones still work/);
    assert.match(await register('Thrice'), /Earlier ones still work, each for what its message names/);
  });

  test('a change of status is called by its name', async () => {
    const { key } = await agent();
    const message = async (body: object) => String((await publish(key, body)).at('message'));
    assert.match(await message({ title: 'Known', content: 'c' }), /^Created the draft 'known'\.$/);
    assert.match(await message({ slug: 'known', status: 'published' }), /^Published the post at http/);
    assert.match(await message({ slug: 'known', content: 'd' }), /^Updated the post at http/);
    assert.match(await message({ slug: 'known', status: 'draft' }), /^Withdrawn: 'known' is a draft again/);
  });

  test('a heading that repeats the title, and a slug that nobody chose, are warned of', async () => {
    const { key } = await agent();
    const repeated = await publish(key, { title: 'Tides', content: '# Tides\n\nText.' });
    assert.match(warnings(repeated), /first heading repeats the title/);
    const unreadable = await publish(key, { title: '🌊🌊', content: 'c' });
    assert.match(warnings(unreadable), /slug '[^']+' was generated; send 'slug'/);
    assert.equal(warnings(await publish(key, { title: 'Other', content: '# Tides' })), '');
  });

  test("a post's own markdown twin can be sent back, and changes nothing", async () => {
    const { key } = await agent();
    const post = await publish(key, { title: 'Twin', content: 'Text.\n', status: 'published' });
    const url = new URL(String(post.at('post.url')));
    const twin = await the().call('GET', `${url.pathname}.md`, { host: url.host });
    assert.equal(twin.status, 200);
    const headers = { 'content-type': 'text/markdown' };
    const again = assertOk(await publish(key, {}, { body: twin.text, headers }));
    assert.equal(warnings(again), '');
    assert.deepEqual([again.at('created'), again.at('post.id')], [false, post.at('post.id')]);
    assert.equal(again.at('changed'), false);
  });

  test("a deleted post's ETag does not pass for that of the post which took its slug", async () => {
    const { key } = await agent();
    const body = { slug: 'phoenix', title: 'Phoenix', content: 'c' };
    const first = await publish(key, body);
    const headers = { 'if-match': String(first.headers['etag']) };
    assertOk(await the().call('DELETE', `/api/posts/${String(first.at('post.id'))}`, { key }));
    const second = assertOk(await publish(key, body), 201);
    assertProblem(await publish(key, { ...body, content: 'd' }, { headers }), 'precondition_failed');
    const present = { 'if-match': String(second.headers['etag']) };
    assertOk(await publish(key, { ...body, content: 'd' }, { headers: present }));
  });

  for (const [where, path, asked, warns] of [
    ['dryRun in the body', '/api/publish', { dryRun: true }, false],
    ['dry_run in the body', '/api/publish', { dry_run: true }, true],
    ['dryRun in the query', '/api/publish?dryRun=true', {}, false],
    ['dry_run in the query', '/api/publish?dry_run=true', {}, true],
  ] as const) {
    test(`${where} stores nothing${warns ? ', with a warning about the name' : ''}`, async () => {
      const { key } = await agent();
      const body = { title: 'Dry', content: 'c', status: 'published', ...asked };
      const answer = assertOk(await the().call('POST', path, { key, body }));
      assert.deepEqual([answer.at('dryRun'), answer.at('post.id')], [true, null]);
      assert.equal(/'dry_run' was taken as 'dryRun'/.test(warnings(answer)), warns);
      assert.equal(await ownTotal(key), 0);
    });
  }

  test('a dry run in front matter stores nothing', async () => {
    const { key } = await agent();
    const body = '---\ntitle: Dry\nstatus: published\ndryRun: true\n---\nText.\n';
    const answer = assertOk(await publish(key, {}, { body, headers: { 'content-type': 'text/markdown' } }));
    assert.equal(answer.at('dryRun'), true);
    assert.equal(await ownTotal(key), 0);
  });

  for (const [where, query, asked] of [
    ['body', '', { dryRun: true }],
    ['body by another spelling', '', { dry_run: true }],
    ['query', '?dryRun=true', {}],
  ] as const) {
    test(`a change by id with a dry run in the ${where} changes nothing`, async () => {
      const { key } = await agent();
      const post = await publish(key, { title: 'Kept', content: 'c' });
      const path = `/api/posts/${String(post.at('post.id'))}`;
      const body = { title: 'Changed', ...asked };
      const answer = assertOk(await the().call('PATCH', `${path}${query}`, { key, body }));
      assert.deepEqual([answer.at('dryRun'), answer.at('post.title')], [true, 'Changed']);
      assert.equal((await the().call('GET', path, { key })).at('post.title'), 'Kept');
    });
  }

  test('over MCP a dry run stores nothing, and a post is changed by its id', async () => {
    const { key } = await agent();
    const call = async (name: string, args: object) => {
      const answer = await the().call('POST', '/mcp', {
        key,
        headers: { accept: 'application/json, text/event-stream' },
        body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
      });
      const told: { post?: { id?: unknown }; message?: unknown; dryRun?: unknown } = JSON.parse(
        String(answer.at('result.content.0.text')),
      );
      return { isError: answer.at('result.isError'), answer: told, postId: told.post?.id };
    };
    const post = { title: 'Over MCP', content: 'c' };
    const dry = await call('publish', { ...post, dryRun: true });
    assert.deepEqual([dry.answer.dryRun, dry.postId], [true, null]);
    assert.equal(await ownTotal(key), 0);

    const created = await call('publish', post);
    const { postId } = created;
    const changed = await call('update_post', { post: postId, status: 'published' });
    assert.match(String(changed.answer.message), /^Published the post at http/);
    assert.equal(changed.postId, postId);
    const tried = await call('update_post', { post: postId, title: 'Changed', dryRun: true });
    assert.deepEqual([tried.isError ?? false, tried.answer.dryRun], [false, true]);
    const kept = await the().call('GET', `/api/posts/${String(postId)}`, { key });
    assert.equal(kept.at('post.title'), 'Over MCP');
  });

  function registration(email: string, name: string): object {
    return { email, name, ...(variant === 'subdomain' ? { slug: name.toLowerCase() } : {}) };
  }
});

/** The warnings of an answer, one below the other. */
function warnings(answer: Answer): string {
  const given = answer.at('warnings');
  return Array.isArray(given) ? given.join('\n') : '';
}
