import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import type { JsonSchema } from '../../src/schemas/openapi.ts';
import type { World } from './fuzz.ts';
import { anything, chance, fieldsOf, mostly, text, valueOf } from './fuzz-values.ts';
import type { Answer } from './http.ts';

type FuzzOptions = {
  readonly world: World;
  /** Messages in all: rounded up to whole batches. */
  readonly requests: number;
  readonly seed: number;
  readonly send: (headers: Readonly<Record<string, string>>, body: string) => Promise<Answer>;
};

type Tool = { readonly name: string; readonly inputSchema: JsonSchema };

const batch = 16;
const methods = [
  'initialize',
  'ping',
  'tools/list',
  'resources/list',
  'resources/templates/list',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'logging/setLevel',
  'notifications/initialized',
  'nothing/known',
  '__proto__',
];
/** JSON-RPC's code for a fault of the server (JSON-RPC 2.0, section 5.1). */
const internalError = /"code":\s*-32603/;

/**
 * Sends generated MCP messages: calls of every tool with what its schema allows and what is just beyond, other methods,
 * and what is no message. Rejects at the first 5xx or internal error; how many of each status there were.
 */
export async function fuzzMcp({ world, requests, seed, send }: FuzzOptions): Promise<Map<number, number>> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const list = await send(
    headers,
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  );
  const tools = list.at('result.tools') as Tool[];
  assert.ok(tools.length > 0, list.text);
  const message = fc.oneof(
    { weight: 16, arbitrary: fc.oneof(...tools.map((tool) => callOf(tool, world))) },
    { weight: 3, arbitrary: otherMessage(world) },
    { weight: 1, arbitrary: fc.oneof(text, fc.constantFrom('[]', 'null', '{"jsonrpc":"2.0"}', '{"id":')) },
  );
  const key = fc.constantFrom(...Object.values(world.keys), null, 'wrong');
  const seen = new Map<number, number>();
  const sent = fc.array(fc.record({ key, message }), { minLength: batch, maxLength: batch });
  await fc.assert(
    fc.asyncProperty(sent, async (messages) => {
      const answers = await Promise.all(
        messages.map(async (each) => ({
          ...each,
          answer: await send(
            { ...headers, ...(each.key === null ? {} : { authorization: `Bearer ${each.key}` }) },
            each.message,
          ),
        })),
      );
      for (const { message: body, answer } of answers) {
        assert.ok(answer.status < 500, `${body}: ${answer.status} ${answer.text.slice(0, 500)}`);
        assert.doesNotMatch(answer.text, internalError, body);
        seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
      }
    }),
    { seed, numRuns: Math.ceil(requests / batch), endOnFailure: true },
  );
  return seen;
}

function callOf({ name, inputSchema }: Tool, world: World): fc.Arbitrary<string> {
  const { properties = {}, required = [] } = inputSchema;
  const known = (field: string) =>
    field === 'commentId' ? world.commentIds : /^(?:id|post|postId)$/.test(field) ? world.postIds : [];
  const fields = fieldsOf<unknown>(
    Object.entries(properties).map(([field, schema]) => [
      field,
      required.includes(field) ? 97 : 40,
      known(field).length > 0
        ? fc.oneof(
            { weight: 6, arbitrary: fc.constantFrom<unknown>(...known(field)) },
            mostly(valueOf(schema)),
          )
        : mostly(valueOf(schema)),
    ]),
  );
  const params = fc
    .tuple(fields, chance(3, fc.dictionary(fc.string(), anything, { maxKeys: 3 })))
    .map(([given, unknown]) => ({ name, arguments: { ...given, ...unknown } }));
  return messageOf(fc.constant('tools/call'), mostly(params));
}

function otherMessage({ postIds }: World): fc.Arbitrary<string> {
  const uri = fc.oneof(
    text,
    fc.constantFrom('masthead://', ...postIds.map((id) => `masthead://posts/${id}`)),
  );
  return fc.oneof(
    messageOf(fc.constantFrom(...methods), anything),
    messageOf(fc.constant('resources/read'), fc.record({ uri })),
    messageOf(text, anything),
  );
}

function messageOf(method: fc.Arbitrary<string>, params: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const id = fc.oneof({ weight: 9, arbitrary: fc.nat() }, { weight: 1, arbitrary: anything });
  return fc
    .record({ method, params, id, version: mostly(fc.constant('2.0')) })
    .map(({ version, ...rest }) => JSON.stringify({ jsonrpc: version, ...rest }));
}
