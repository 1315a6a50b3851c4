import assert from 'node:assert/strict';
import { test } from 'node:test';
import Fastify from 'fastify';
import { Type } from 'typebox';
import { addEndpoint } from '../src/api/endpoint.ts';
import { createReference } from '../src/api/openapi/openapi.ts';
import { loadConfig } from '../src/config/config.ts';
import { answer } from '../src/schemas/answer-parts.ts';
import type { Deprecation } from '../src/schemas/openapi.ts';
import { docsIndex, docsPiece } from '../src/web/documents/pieces.ts';

const whole: Deprecation = { since: '2026-12-01', sunset: '2027-06-01', id: 'limits-moved' };
const field: Deprecation = { since: '2027-01-01', sunset: '2027-07-01', id: 'nickname' };
const config = loadConfig({ BASE_URL: 'https://blogs.example', SECRET: 's'.repeat(43), MAIL_FROM: 'a@b.cd' });

/** Three operations: one ends, one ends a field of its body and of its query, and one a field of its answer. */
function serve() {
  const app = Fastify();
  const reference = createReference(config);
  app.addHook('onRoute', ({ method, config: route }) => {
    if (route?.operation && method !== 'HEAD') reference.add(route.operation);
  });
  app.decorate('answers', {
    get: () => undefined,
    put: () => undefined,
    generation: () => 0,
  } as unknown as (typeof app)['answers']);
  const said = { tag: 'Service', auth: 'none' } as const;
  const nickname = Type.Optional(Type.String({ description: 'Short name.', deprecated: field }));
  const name = Type.Optional(Type.String({ description: 'Name.' }));
  const plain = answer({ name });
  addEndpoint(app, {
    ...said,
    operationId: 'limits',
    summary: 'Read the limits',
    deprecated: whole,
    answers: { 200: plain },
    handle: async () => ({ body: {}, headers: { link: '</next>; rel="next"' } }),
  });
  addEndpoint(app, {
    ...said,
    operationId: 'updateMe',
    summary: 'Change the profile',
    body: Type.Object({ nickname, name }),
    query: Type.Object({ nickname }),
    answers: { 200: plain },
    handle: async () => ({ body: {} }),
  });
  addEndpoint(app, {
    ...said,
    operationId: 'me',
    summary: 'Read the profile',
    answers: { 200: answer({ agent: Type.Object({ nickname, name }) }) },
    handle: async () => ({ body: { agent: {} } }),
  });
  return { app, document: () => reference.document() };
}

test('an operation that ends says so with every answer, and leaves other links', async () => {
  const { app } = serve();
  const { headers } = await app.inject('/limits');
  assert.equal(headers['deprecation'], `@${Date.parse(whole.since) / 1000}`);
  assert.equal(headers['sunset'], 'Tue, 01 Jun 2027 00:00:00 GMT');
  assert.equal(
    headers['link'],
    '</next>; rel="next", </docs/changes#h-limits-moved>; rel="deprecation"; type="text/html"',
  );
});

test('a field that ends is announced to those who send it, and to all who may be answered it', async () => {
  const { app } = serve();
  const change = async (payload: object, query = '') =>
    (await app.inject({ method: 'PATCH', url: `/me${query}`, payload })).headers;
  assert.equal((await change({ name: 'Ada' }))['deprecation'], undefined);
  for (const headers of [
    await change({ nickname: 'A' }),
    await change({ name: 'Ada' }, '?nickname=A'),
    (await app.inject('/me')).headers,
  ]) {
    assert.equal(headers['deprecation'], `@${Date.parse(field.since) / 1000}`);
    assert.equal(headers['link'], '</docs/changes#h-nickname>; rel="deprecation"; type="text/html"');
  }
  // A failure of such a call says so too.
  const refused = await app.inject({ method: 'PATCH', url: '/me', payload: { nickname: 7 } });
  assert.ok(refused.statusCode >= 400);
  assert.equal(refused.headers['sunset'], 'Thu, 01 Jul 2027 00:00:00 GMT');
});

test('OpenAPI and the documents say what ends, and nothing else does', async () => {
  const { app, document } = serve();
  await app.ready();
  const described = document();
  const { get, patch } = { ...described.paths['/api/limits'], ...described.paths['/api/me'] };
  const limits = described.paths['/api/limits']?.['get'];
  assert.deepEqual([limits?.deprecated, limits?.['x-deprecation']], [true, whole]);
  assert.match(
    limits?.description ?? '',
    /^Deprecated since 2026-12-01, ends on 2027-06-01: \/docs\/changes#h-limits-moved\./,
  );
  const { nickname, name } = patch?.requestBody?.content['application/json']?.schema.properties ?? {};
  assert.deepEqual(
    [nickname?.deprecated, nickname?.['x-deprecation'], name?.deprecated],
    [true, field, undefined],
  );
  const [parameter] = patch?.parameters ?? [];
  assert.deepEqual([parameter?.deprecated, parameter?.schema.deprecated], [true, undefined]);
  assert.deepEqual([get?.deprecated, patch?.deprecated], [undefined, undefined]);
  const changes = docsPiece('changes', config, described)?.markdown ?? '';
  assert.match(
    changes,
    /### limits-moved\n\nDeprecated since 2026-12-01, ends on 2027-06-01:\n\n- GET \/api\/limits\n/,
  );
  assert.match(
    changes,
    /### nickname\n\n.*:\n\n(?:- `(?:agent\.)?nickname` of (?:GET|PATCH) \/api\/me\n){2}$/,
  );
  assert.match(
    docsPiece('updateMe', config, described)?.markdown ?? '',
    /`nickname` string: Short name\. Deprecated since/,
  );
  assert.match(docsIndex('Masthead', config, described), /`limits`: GET \/api\/limits, \*deprecated\*: Read/);
  // What does not end is not named.
  const none = docsPiece('changes', config, { ...described, paths: {} })?.markdown ?? '';
  assert.doesNotMatch(none, /What ends/);
});
