import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { breakingChanges } from '../scripts/api-changes.ts';
import type { JsonSchema, OpenApiDocument, OperationObject } from '../src/schemas/openapi.ts';
import { documentOf } from './support/api-document.ts';
import { startInstance } from './support/instance.ts';

/** A list of posts and the call that adds one. */
function sample() {
  const post: JsonSchema = {
    type: 'object',
    required: ['id', 'status'],
    properties: {
      id: { type: 'string', format: 'uuid' },
      status: { type: 'string', enum: ['draft', 'published'] },
      kind: { type: 'string', enum: ['note'], 'x-open': true },
      cursor: { type: 'string', maxLength: 100 },
      count: { type: 'integer', minimum: 0 },
      note: { type: 'string' },
    },
  };
  const list: OperationObject = {
    operationId: 'listPosts',
    summary: 'List',
    tags: ['Posts'],
    security: [{}, { apiKey: [] }],
    parameters: [
      {
        name: 'limit',
        in: 'query',
        required: false,
        description: '',
        schema: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
      },
    ],
    responses: {
      200: {
        description: 'Done.',
        headers: { ETag: { $ref: '#/components/headers/ETag' } },
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: ['posts'],
              properties: {
                posts: { type: 'array', items: { $ref: '#/components/schemas/Post' } },
              },
            },
            examples: {},
          },
        },
      },
      404: { $ref: '#/components/responses/not_found' },
    },
    'x-policies': ['api'],
    'x-errors': ['not_found'],
    'x-codeSamples': [],
  };
  const add: OperationObject = {
    ...list,
    operationId: 'addPost',
    security: [{ apiKey: [] }],
    parameters: [],
    requestBody: {
      required: false,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['title'],
            properties: {
              title: { type: 'string', minLength: 1, maxLength: 200 },
              status: { type: 'string', enum: ['draft', 'published'] },
              tags: { type: 'array', items: { type: 'string', maxLength: 40 }, maxItems: 10 },
            },
          },
          examples: {},
        },
      },
    },
  };
  const document: OpenApiDocument = {
    openapi: '3.1.1',
    info: { title: 'Blogs', version: '1.0.0', description: '' },
    servers: [],
    tags: [],
    paths: { '/posts': { get: list, post: add } },
    components: {
      schemas: { Post: post },
      responses: { not_found: { description: 'not found' } },
      headers: {},
      examples: {},
      securitySchemes: {},
    },
    'x-limits': [],
  };
  const sent = add.requestBody?.content['application/json']?.schema ?? {};
  const [limit] = list.parameters ?? [];
  const ok = list.responses[200];
  assert.ok(limit && ok && !('$ref' in ok));
  return {
    document,
    list,
    add,
    post: properties(post),
    of: post,
    sent,
    fields: properties(sent),
    limit,
    ok,
  };
}

function properties(schema: JsonSchema): Record<string, JsonSchema> {
  return (schema.properties ??= {});
}

type Sample = ReturnType<typeof sample>;

/** A document for each rule, by what the comparison says of it. */
const breaking: readonly [said: string, change: (of: Sample) => void][] = [
  ['POST /posts: gone', ({ document }) => void delete document.paths['/posts']?.['post']],
  ['GET /posts: operationId is allPosts', ({ list }) => void (list.operationId = 'allPosts')],
  ['GET /posts: needs the key', ({ list }) => void (list.security = [{ apiKey: [] }])],
  ['GET /posts: takes no key', ({ list }) => void (list.security = [])],
  ['GET /posts: query limit: gone', ({ list }) => void (list.parameters = [])],
  ['GET /posts: query limit: now required', ({ limit }) => void (limit.required = true)],
  [
    'GET /posts: query since: new and required',
    ({ list, limit }) => void list.parameters?.push({ ...limit, name: 'since', required: true }),
  ],
  ['GET /posts: query limit: maximum 50', ({ limit }) => void (limit.schema.maximum = 50)],
  ['GET /posts: query limit: minimum 2', ({ limit }) => void (limit.schema.minimum = 2)],
  ['GET /posts: query limit: default 20', ({ limit }) => void (limit.schema.default = 20)],
  ['GET /posts: query limit: type boolean', ({ limit }) => void (limit.schema.type = 'boolean')],
  ['POST /posts: body: gone', ({ add }) => void delete add.requestBody],
  [
    'POST /posts: body: now required',
    ({ add }) =>
      void (add.requestBody = {
        ...add.requestBody,
        content: add.requestBody?.content ?? {},
        required: true,
      }),
  ],
  [
    'POST /posts: body: no application/json',
    ({ add }) => void delete add.requestBody?.content['application/json'],
  ],
  ['POST /posts: body.tags: gone', ({ fields }) => void delete fields['tags']],
  ['POST /posts: body.status: now required', ({ sent }) => void sent.required?.push('status')],
  [
    'POST /posts: body.lang: new and required',
    ({ sent, fields }) => {
      fields['lang'] = { type: 'string' };
      sent.required?.push('lang');
    },
  ],
  [
    'POST /posts: body.status: choices ["draft"]',
    ({ fields }) => void (fields['status'] = { type: 'string', enum: ['draft'] }),
  ],
  [
    'POST /posts: body.title: maxLength 100',
    ({ fields }) => void (fields['title'] = { type: 'string', minLength: 1, maxLength: 100 }),
  ],
  [
    'POST /posts: body.title: pattern ^a',
    ({ fields }) => void (fields['title'] = { ...fields['title'], pattern: '^a' }),
  ],
  [
    'POST /posts: body.tags[]: maxLength 20',
    ({ fields }) => void (fields['tags'] = { ...fields['tags'], items: { type: 'string', maxLength: 20 } }),
  ],
  [
    'POST /posts: body.tags: maxItems 5',
    ({ fields }) => void (fields['tags'] = { ...fields['tags'], maxItems: 5 }),
  ],
  ['GET /posts: 200: gone', ({ list }) => void delete list.responses[200]],
  ['GET /posts: 202: a new status', ({ list }) => void (list.responses[202] = { description: 'Later.' })],
  ['GET /posts: 409: a new status', ({ list }) => void (list.responses[409] = { description: 'Taken.' })],
  ['GET /posts: 200: no header ETag', ({ ok }) => void (ok.headers = {})],
  ['GET /posts: 200: no application/json', ({ ok }) => void (ok.content = {})],
  ['GET /posts: 200.posts[].note: gone', ({ post }) => void delete post['note']],
  ['GET /posts: 200.posts[].status: no longer always there', ({ of }) => void (of.required = ['id'])],
  [
    'GET /posts: 200.posts[].note: type string or null',
    ({ post }) => void (post['note'] = { type: ['string', 'null'] }),
  ],
  [
    'GET /posts: 200.posts[].count: type number',
    ({ post }) => void (post['count'] = { type: 'number', minimum: 0 }),
  ],
  [
    'GET /posts: 200.posts[].count: minimum -1',
    ({ post }) => void (post['count'] = { type: 'integer', minimum: -1 }),
  ],
  [
    'GET /posts: 200.posts[].status: choices ["draft","published","trash"]',
    ({ post }) => void post['status']?.enum?.push('trash'),
  ],
  ['GET /posts: 200.posts[].status: choices null', ({ post }) => void (post['status'] = { type: 'string' })],
  ['GET /posts: 200.posts[].id: format undefined', ({ post }) => void (post['id'] = { type: 'string' })],
  [
    'GET /posts: 200.posts[].cursor: maxLength 513',
    ({ post }) => void (post['cursor'] = { type: 'string', maxLength: 513 }),
  ],
];

/** What the policy lets come at any time. */
const allowed: Readonly<Record<string, (of: Sample) => void>> = {
  'an endpoint': ({ document, list }) => void (document.paths['/blogs'] = { get: list }),
  'an optional query parameter': ({ list, limit }) => void list.parameters?.push({ ...limit, name: 'tag' }),
  'an optional field of a body': ({ fields }) => void (fields['lang'] = { type: 'string' }),
  'another type of a body': ({ add }) =>
    void Object.assign(add.requestBody?.content ?? {}, {
      'text/markdown': { schema: {}, examples: {} },
    }),
  'wider bounds of what is sent': ({ limit, fields }) => {
    limit.schema.maximum = 1000;
    fields['title'] = { type: ['string', 'null'], maxLength: 300 };
  },
  'more choices of what is sent': ({ fields }) => void fields['status']?.enum?.push('scheduled'),
  'a field that need not be sent any more': ({ sent }) => void (sent.required = []),
  'a field of an answer, in any order': ({ of, post }) =>
    void (of.properties = {
      lang: { type: 'string' },
      ...Object.fromEntries(Object.entries(post).toReversed()),
    }),
  'a field that is always answered from now on': ({ of }) => void of.required?.push('note'),
  'a value of an open field': ({ post }) => void post['kind']?.enum?.push('mention'),
  'fewer values of a closed field in answers': ({ post }) => void post['status']?.enum?.pop(),
  'a longer opaque text': ({ post }) => void (post['cursor'] = { type: 'string', maxLength: 512 }),
  'a header field': ({ ok }) =>
    void (ok.headers = { ...ok.headers, Link: { $ref: '#/components/headers/Link' } }),
  'a code under a status that the call has': ({ list }) => void list['x-errors'].push('gone' as never),
  'a failure that does not happen any more': ({ list }) => void delete list.responses[404],
  'reading without a key': ({ add }) => void add.security.push({}),
};

test('a document that breaks clients is named with the place, rule by rule', () => {
  for (const [said, change] of breaking) {
    const after = sample();
    change(after);
    assert.deepEqual(
      breakingChanges(sample().document, after.document).filter((each) => each === said),
      [said],
      JSON.stringify(breakingChanges(sample().document, after.document)),
    );
  }
});

test('what may come at any time breaks nothing', () => {
  for (const [what, change] of Object.entries(allowed)) {
    const after = sample();
    change(after);
    assert.deepEqual(breakingChanges(sample().document, after.document), [], what);
  }
});

test('the program keeps what it has promised: nothing breaks since any recorded document', async () => {
  const instance = await startInstance({ env: { LIMIT_REGISTER: '5' } });
  try {
    const document = await documentOf(instance);
    assert.deepEqual(breakingChanges(document, document), []);
    for (const file of globSync('contract/*.openapi.json', { cwd: import.meta.dirname })) {
      const recorded: OpenApiDocument = JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
      assert.deepEqual(breakingChanges(recorded, document), [], file);
    }
  } finally {
    await instance.close();
  }
});
