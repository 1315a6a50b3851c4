import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { MastheadClient } from '../../client/src/index.ts';
import type { OpenApiDocument, ParameterObject } from '../../src/schemas/openapi.ts';
import { mostHeaders } from '../../src/http/connection.ts';
import { answerFaults, inlined, operationAt, operationsOf, type Placed } from './api-document.ts';
import type { Answer } from './http.ts';
import { anything, chance, encoded, fieldsOf, headerValue, mostly, text, valueOf } from './fuzz-values.ts';

/** What generated requests may name, so that they get past the first look-up. */
export type World = {
  /** API keys by what they are called in a generated request. The spare one may be replaced and deleted. */
  readonly keys: { readonly ada: string; readonly bob: string; spare: string };
  readonly postIds: readonly string[];
  readonly commentIds: readonly string[];
};

/** A generated request, as a failing property prints it. */
type Generated = {
  readonly key: keyof World['keys'] | 'none' | 'wrong';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
};

type FuzzOptions = {
  readonly document: OpenApiDocument;
  readonly world: World;
  /** Of each operation: rounded up to whole batches. */
  readonly requests: number;
  readonly seed: number;
  readonly send: (
    method: string,
    path: string,
    options: { readonly headers: Readonly<Record<string, string>>; readonly body?: string },
  ) => Promise<Answer>;
};

const batch = 16;

/**
 * Sends generated requests for every operation of the document and holds each answer against it: no 5xx, no status,
 * header, type or field that it does not describe. Rejects with seed and request at the first that is not so.
 * How many of each status there were, by operation.
 */
export async function fuzz(options: FuzzOptions): Promise<Map<string, Map<number, number>>> {
  const statuses = new Map<string, Map<number, number>>();
  for (const placed of inOrder(operationsOf(options.document))) {
    const seen = new Map<number, number>();
    const requests = fc.array(requestTo(placed, options), { minLength: batch, maxLength: batch });
    await fc.assert(
      fc.asyncProperty(requests, async (sent) => {
        for (const status of await Promise.all(sent.map((each) => check(placed, each, options))))
          seen.set(status, (seen.get(status) ?? 0) + 1);
      }),
      { seed: options.seed, numRuns: Math.ceil(options.requests / batch), endOnFailure: true },
    );
    statuses.set(placed.operation.operationId, seen);
  }
  return statuses;
}

/** The posts and comments that requests may name. */
export async function populate(ada: MastheadClient, bob: MastheadClient, hasComments: boolean) {
  const postIds: string[] = [];
  const commentIds: string[] = [];
  for (const client of [ada, bob]) {
    for (const status of ['draft', 'published', 'published'] as const) {
      const title = `Post ${postIds.length}`;
      const { post } = await client.publish({ title, content: `Text of *${title}*.`, status });
      postIds.push(post.id);
      if (!hasComments || status === 'draft') continue;
      commentIds.push((await bob.addComment(post.id, 'A comment.')).comment.id);
    }
  }
  return { postIds, commentIds };
}

/** Reads first, while lists are short; last what takes away what the others name. */
function inOrder(operations: readonly Placed[]): Placed[] {
  const last = ['deletePost', 'deleteMe'];
  const rank = ({ method, operation }: Placed): number =>
    method === 'GET' ? -2 : last.indexOf(operation.operationId);
  return operations.toSorted((a, b) => rank(a) - rank(b));
}

async function check({ method, operation }: Placed, sent: Generated, { document, world, send }: FuzzOptions) {
  const { key, path, body, headers } = sent;
  const secret = key === 'none' ? null : key === 'wrong' ? 'wrong' : world.keys[key];
  const answer = await send(method, path, {
    headers: { ...headers, ...(secret === null ? {} : { authorization: `Bearer ${secret}` }) },
    ...(body === null ? {} : { body }),
  });
  if (operation.operationId === 'regenerateKey' && answer.status === 200)
    world.keys.spare = String(answer.at('apiKey'));
  assert.ok(answer.status < 500, `${method} ${path}: ${answer.status} ${answer.text.slice(0, 500)}`);
  // Refused before it is known what it asks for; generated queries can be as long.
  if (answer.status === 431 && path.length > mostHeaders / 2) return answer.status;
  // A generated parameter can make the path that of no operation.
  const pathname = URL.parse(path, 'http://x')?.pathname;
  if (pathname !== undefined && operationAt(document, method, pathname) !== null)
    assert.deepEqual(
      answerFaults(document, { method, path }, answer),
      [],
      `${method} ${path} ${answer.status}`,
    );
  return answer.status;
}

function requestTo(placed: Placed, { document, world }: FuzzOptions): fc.Arbitrary<Generated> {
  const { operation } = placed;
  const parameters = operation.parameters ?? [];
  const at = (place: ParameterObject['in']) => parameters.filter((parameter) => parameter.in === place);
  const replacesKey = ['regenerateKey', 'deleteMe'].includes(operation.operationId);
  const key = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.constantFrom(...(replacesKey ? ['spare' as const] : ['ada' as const, 'bob' as const])),
    },
    { weight: 2, arbitrary: fc.constantFrom('none' as const, 'wrong' as const) },
  );
  const path = fc
    .record(Object.fromEntries(at('path').map(({ name }) => [name, idFor(name, world)])))
    .map((values) => placed.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(values[name])));
  const query = fc
    .record({
      named: fieldsOf(
        at('query').map(({ name, schema, required }) => [name, required ? 100 : 25, mostly(valueOf(schema))]),
      ),
      odd: chance(5, fc.constantFrom('limit=1&limit=2', 'unknown=1', '%', '&&=', '__proto__=1')),
    })
    .map(({ named, odd }) =>
      [...Object.entries(named).map(([name, value]) => `${name}=${encoded(value)}`), odd ?? []].flat(),
    );
  const headers = fieldsOf(at('header').map(({ name }) => [name.toLowerCase(), 25, headerValue]));
  return fc
    .record({ key, path, query, headers, content: contentOf(placed, document) })
    .map(({ content, query: asked, ...rest }) => ({
      key: rest.key,
      path: asked.length === 0 ? rest.path : `${rest.path}?${asked.join('&')}`,
      headers: { ...rest.headers, ...(content ? { 'content-type': content.type } : {}) },
      body: content?.body ?? null,
    }));
}

/** A body and its type; where the operation takes none, now and then one all the same. */
function contentOf({ operation }: Placed, document: OpenApiDocument) {
  const json = operation.requestBody?.content['application/json']?.schema;
  const isMarkdownToo = operation.requestBody?.content['text/markdown'] !== undefined;
  const types = fc.oneof(
    { weight: 30, arbitrary: fc.constant('application/json') },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        'text/plain',
        'application/json; charset=utf-16',
        'x',
        'multipart/form-data',
      ),
    },
  );
  const malformed = fc.constantFrom(
    '',
    '{',
    'null',
    '[]',
    '"x"',
    '{"a":1}}',
    '[1,]',
    '{"title":"T","title":5}',
  );
  if (json === undefined) return chance(5, fc.record({ type: types, body: malformed }));
  const { properties = {}, required = [] } = inlined(document, json);
  const fields = fieldsOf(
    Object.entries(properties).map(([name, schema]) => [
      name,
      required.includes(name) ? 98 : 60,
      mostly(valueOf(schema)),
    ]),
  );
  const whole = fc
    .tuple(fields, chance(5, fc.dictionary(fc.string(), anything, { maxKeys: 3 })))
    .map(([known, unknown]) => JSON.stringify({ ...known, ...unknown }));
  const asJson = fc.record({
    type: types,
    body: fc.oneof({ weight: 20, arbitrary: whole }, { weight: 1, arbitrary: malformed }),
  });
  if (!isMarkdownToo) return asJson;
  const begin = fc.constantFrom('', '---\ntitle: T\n---\n', '---\ntags: [a, b]\n', '# T\n\n');
  const markdown = fc.record({
    type: fc.constant('text/markdown'),
    body: fc.tuple(begin, text).map((parts) => parts.join('')),
  });
  return fc.oneof({ weight: 4, arbitrary: asJson }, { weight: 1, arbitrary: markdown });
}

function idFor(name: string, { postIds, commentIds }: World): fc.Arbitrary<string> {
  const known = name === 'commentId' ? commentIds : postIds;
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...known) },
    { weight: 1, arbitrary: fc.uuid() },
    { weight: 1, arbitrary: text },
  );
}
