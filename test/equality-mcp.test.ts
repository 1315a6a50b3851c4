import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCodes } from '../src/errors.ts';
import { postProperties } from '../src/schemas/posts.ts';
import { suspendAgent } from '../src/services/operators/moderation.ts';
import type { JsonSchema, OpenApiDocument } from '../src/schemas/openapi.ts';
import { documentOf, operationsOf, type Placed } from './support/api-document.ts';
import type { Answer } from './support/http.ts';
import { describeInstances, type Instance } from './support/instance.ts';

/** Calls of variant A alone that no tool makes. */
const communityOverHttpOnly = [
  'edit_comment',
  'get_vote',
  'my_comments',
  'my_votes',
  'list_blocks',
  'block',
  'unblock',
];

/** Operations within another tool, those that no model should carry out with a key of its own, and those for programs. */
const overHttpOnly = [
  'confirm_recovery',
  'verify_by_post',
  'regenerate_key',
  'publish_post',
  'get_revision',
  'diff_revisions',
  'restore_revision',
  'erase_revision',
  'erase_revisions',
  'end_previews',
  'list_trash',
  'empty_trash',
  'limits',
  'lookup_post',
  'delete_me',
  'restore_me',
  'appeal',
  'export_me',
  'upload_by_link',
  'list_media',
  'get_media',
  'update_media',
  'delete_media',
  'about',
  'mark_inbox_seen',
  'openapi',
  'health',
  'ready',
];

/** Arguments in which a tool is not its operation: what a model reads is short unless it asks for all. */
type Unlike = { readonly without?: string; readonly also?: readonly string[]; readonly needs?: string[] };
const unlike: Readonly<Record<string, Unlike>> = {
  list_posts: { without: 'status' },
  my_posts: { without: 'view', also: ['full'] },
  inbox: { without: 'limit', also: ['markSeen'] },
  search: { also: ['full'] },
  get_post: { also: ['revision', 'offset', 'limit'] },
  restore_post: { without: 'slug status', also: ['revision'] },
  preview_post: { without: 'expiresIn' },
  // The body of the operation is the picture itself.
  upload_media: { also: ['data', 'type'], needs: ['type'] },
  report: { without: 'name email goodFaith' },
  update_post: { without: 'formerSlugs', also: ['ifMatch'] },
};

/** What is spent of the context of a model before its first call. */
const [mostTools, mostBytes, mostBeforeFirstPost] = [25, 20_000, 22_000];

type ListedTool = {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: { readonly readOnlyHint: boolean };
};

describeInstances('the tools of MCP', { env: { LIMIT_REGISTER: '100' } }, (the, variant) => {
  test('are the operations of the document, by their names', async () => {
    const described = operationsOf(await documentOf(the())).map(toolName);
    const tools = (await toolsOf(the())).map(({ name }) => name);
    assert.deepEqual(
      tools.filter((name) => !described.includes(name)),
      [],
    );
    // Where there is no list of everyone's posts, my_posts lists the same.
    const others = [...overHttpOnly, ...(variant === 'subdomain' ? communityOverHttpOnly : ['list_posts'])];
    assert.deepEqual(described.filter((name) => !tools.includes(name)).toSorted(), others.toSorted());
  });

  test('count against the limits of their operations', async () => {
    const { key } = await the().agent('Counted');
    for (const [{ name }, { operation }] of await pairsOf(the(), await documentOf(the()))) {
      const params = { name, arguments: { unknown: 1 } };
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const { headers } = await the().call('POST', '/mcp', { key, body });
      const own = /Counts against the limit `(\w+)`/.exec(operation.description ?? '')?.[1];
      assert.match(String(headers['ratelimit-policy']), new RegExp(`^"${own ?? 'api'}"`), name);
    }
  });

  test('take the fields of their operations, within the same bounds', async () => {
    const document = await documentOf(the());
    for (const [tool, placed] of await pairsOf(the(), document)) {
      const { required = [], properties = {} } = tool.inputSchema;
      const { without = '', also = [], needs = [] } = unlike[tool.name] ?? {};
      const fields = fieldsOf(placed);
      for (const left of without.split(' ').filter(Boolean)) assert.ok(fields.delete(left), tool.name);
      const names = [...fields.keys(), ...also];
      assert.deepEqual(Object.keys(properties).toSorted(), names.toSorted(), tool.name);
      const needed = [...fields].flatMap(([name, field]) => (field.required ? [name] : []));
      assert.deepEqual([...required].toSorted(), [...needed, ...needs].toSorted(), tool.name);
      for (const [name, { schema }] of fields) {
        const [here, there] = [boundsOf(properties[name] ?? {}), boundsOf(clearable(schema))];
        // A tool takes a slug and an address too; a page that a model reads may be smaller.
        if (name === 'post') continue;
        if (name === 'limit')
          assert.ok(Number(here['maximum']) <= Number(there['maximum']), `${tool.name} ${name}`);
        else assert.deepEqual(here, there, `${tool.name} ${name}`);
      }
    }
  });

  test('are few and short, since every client reads all of them', async () => {
    const tools = await toolsOf(the());
    assert.ok(tools.length <= mostTools, `${tools.length} tools`);
    const bytes = Buffer.byteLength(JSON.stringify({ tools }));
    assert.ok(bytes <= mostBytes, `${bytes} bytes`);
    const clientInfo = { name: 'test', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    const greeting = Buffer.byteLength((await the().call('POST', '/mcp', { body })).text);
    assert.ok(bytes + greeting <= mostBeforeFirstPost, `${bytes} and ${greeting} bytes`);
    assert.doesNotMatch(JSON.stringify(tools), /"examples"|\["string","null"\]/);
  });

  test('say who needs the key, and name nothing that there is not', async () => {
    const tools = await toolsOf(the());
    const names = new Set(tools.map(({ name }) => name));
    for (const [tool, { operation }] of await pairsOf(the(), await documentOf(the()))) {
      const needsKey = operation.security.every((scheme) => Object.hasOwn(scheme, 'apiKey'));
      assert.equal(/[Nn]eeds the API key|which it needs/.test(tool.description), needsKey, tool.name);
      for (const [name] of tool.description.matchAll(/\b[a-z]+_[a-z]+\b/g))
        assert.ok(names.has(name), `${tool.name} names ${name}`);
    }
  });

  test('refuse a key that was replaced, and say what hides an agent, as their operations do', async () => {
    const [eve, fay] = [await the().agent('Eve'), await the().agent('Fay')];
    const { apiKey } = await fay.client.regenerateKey();
    await the().ctx().engine.write(suspendAgent, { agentId: eve.id, reason: 'spam' });
    await the().client(apiKey).deleteMe();
    for (const [tool, { operation }] of await pairsOf(the(), await documentOf(the()))) {
      const { name } = tool;
      const replaced = await callTool(the(), name, {}, fay.key);
      assert.equal(replaced.status, 401, name);
      const takesKey = operation.security.some((scheme) => Object.hasOwn(scheme, 'apiKey'));
      for (const [key, code] of [
        [eve.key, 'suspended'],
        [apiKey, 'deleting'],
      ] as const) {
        const answer = contentOf(await callTool(the(), name, {}, key));
        // The own profile is what says why.
        if (name === 'me') assert.equal(answer['success'], true, JSON.stringify(answer));
        else assert.equal(answer['code'] === code, takesKey, `${name}: ${JSON.stringify(answer)}`);
      }
    }
  });

  test('mark every answer that has a text of others, and none that has only own ones', async () => {
    const [ann, ben] = [
      await the().agent('Ann', { bio: 'Of the zanzibar.' }),
      await the().agent('Ben', { bio: 'Of the quagga.' }),
    ];
    const posts = new Map<string, string>();
    for (const [{ client }, word] of [
      [ann, 'zanzibar'],
      [ben, 'quagga'],
    ] as const) {
      const written = {
        title: `The ${word}`,
        content: `A ${word}.`,
        tags: [word],
        status: 'published',
      } as const;
      posts.set(word, (await client.publish(written)).post.id);
    }
    if (variant === 'subdomain') await ann.client.addComment(posts.get('quagga') ?? '', 'A zanzibar.');
    const document = await documentOf(the());
    const [marked, mixed] = [new Set<string>(), new Set<string>()];
    for (const [{ name }] of await pairsOf(the(), document))
      for (const [word, post] of posts) {
        const given = { post, q: word, agent: `of ${word}` };
        const { properties = {} } =
          (await toolsOf(the())).find((each) => each.name === name)?.inputSchema ?? {};
        const args = Object.fromEntries(
          Object.entries({ ...given, agent: word === 'quagga' ? ben.slug : ann.slug }).filter(([field]) =>
            Object.hasOwn(properties, field),
          ),
        );
        const answer = contentOf(await callTool(the(), name, args, ben.key));
        const hasOthers = /A zanzibar|The zanzibar|Of the zanzibar/.test(JSON.stringify(answer));
        if (Object.keys(answer)[0] === 'notice') marked.add(name);
        else assert.ok(!hasOthers, `${name} ${word}`);
        if (hasOthers) mixed.add(name);
      }
    const everywhere = ['get_post'];
    const discovered = ['featured_posts', 'inbox', 'list_blogs', 'list_comments', 'list_posts', 'search'];
    assert.deepEqual([...marked].toSorted(), [...mixed].toSorted());
    assert.deepEqual(
      [...marked].toSorted(),
      (variant === 'subdomain' ? [...everywhere, ...discovered] : everywhere).toSorted(),
    );
  });

  test('that write are refused by a read-only service', async () => {
    const { key, client } = await the().agent('Gus');
    const { post } = await client.publish({ title: 'Kept', content: 'c' });
    const before = await client.me();
    await the().restart({ READ_ONLY: 'on' });
    const accepted: string[] = [];
    const args = { post: post.id, title: 'Other', content: 'c', bio: 'Other.', vote: 1, type: 'image/png' };
    for (const { name, annotations, inputSchema } of await toolsOf(the())) {
      const { properties = {} } = inputSchema;
      const taken = Object.fromEntries(
        Object.entries(args).filter(([field]) => Object.hasOwn(properties, field)),
      );
      const { code, success } = contentOf(await callTool(the(), name, taken, key));
      if (code !== 'read_only' && success === true && !annotations.readOnlyHint) accepted.push(name);
    }
    // A link is made of what is stored; of the inbox nothing was to be marked.
    assert.deepEqual(accepted.toSorted(), ['inbox', 'preview_post']);
    assert.deepEqual([await client.me(), (await client.getPost(post.id)).post.title], [before, 'Kept']);
    await the().restart({ READ_ONLY: 'off' });
  });

  test('fail with codes of the catalogue', async () => {
    const { operation } =
      operationsOf(await documentOf(the())).find((each) => toolName(each) === 'get_post') ?? {};
    const body = { name: 'get_post', arguments: { post: '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c' } };
    const answer = await send(the(), 'tools/call', body);
    const failure: { code?: unknown } = JSON.parse(String(answer.at('result.content.0.text')));
    assert.ok(errorCodes.some((code) => code === failure.code && operation?.['x-errors'].includes(code)));
    assert.equal(failure.code, 'not_found');
  });
});

function toolName({ operation }: Placed): string {
  return operation.operationId.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

async function pairsOf(instance: Instance, document: OpenApiDocument): Promise<[ListedTool, Placed][]> {
  const operations = new Map(operationsOf(document).map((placed) => [toolName(placed), placed]));
  return (await toolsOf(instance)).flatMap((tool) => {
    const placed = operations.get(tool.name);
    return placed ? [[tool, placed]] : [];
  });
}

type Field = { readonly schema: JsonSchema; readonly required: boolean };

/** What an operation takes by path, query and body, under the names that a tool has for it. */
function fieldsOf({ operation }: Placed): Map<string, Field> {
  const { properties = {}, required = [] } = operation.requestBody?.content['application/json']?.schema ?? {};
  const parameters = (operation.parameters ?? [])
    .filter(({ in: place }) => place !== 'header')
    .filter(({ name }) => !(operation.operationId === 'deletePost' && name === 'dryRun'))
    // A model goes on by cursors; markdown bodies take their fields from the query.
    .filter(
      ({ name, in: place }) =>
        place === 'path' || (name !== 'offset' && !isPostField(operation.operationId, name)),
    );
  return new Map([
    ...parameters.map((parameter): [string, Field] => [
      parameter.in === 'path' && parameter.name === 'id' ? 'post' : parameter.name,
      parameter,
    ]),
    ...Object.entries(properties).map(([name, schema]): [string, Field] => [
      name,
      { schema, required: required.includes(name) },
    ]),
  ]);
}

function isPostField(operationId: string, name: string): boolean {
  return ['publish', 'updatePost'].includes(operationId) && Object.hasOwn(postProperties, name);
}

const annotations = new Set(['description', 'examples', 'default', 'writeOnly']);

/** What null takes away is a text that a tool is sent empty. */
function clearable({ type, minLength, ...schema }: JsonSchema): JsonSchema {
  const isClearable = Array.isArray(type) && type.includes('null');
  const least = minLength === undefined || isClearable ? {} : { minLength };
  return { ...schema, ...least, ...(type === undefined ? {} : { type: isClearable ? 'string' : type }) };
}

/** A schema without what only explains it. */
function boundsOf(schema: JsonSchema): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(schema, (name, value: unknown) => (annotations.has(name) ? undefined : value)),
  );
}

async function toolsOf(instance: Instance): Promise<ListedTool[]> {
  const { result }: { result: { tools: ListedTool[] } } = JSON.parse(
    (await send(instance, 'tools/list', {})).text,
  );
  return result.tools;
}

function callTool(instance: Instance, name: string, args: object, key: string): Promise<Answer> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
  return instance.call('POST', '/mcp', { key, body });
}

/** What a tool answered, which is one JSON object. */
function contentOf(answer: Answer): Record<string, unknown> {
  return JSON.parse(String(answer.at('result.content.0.text')));
}

function send(instance: Instance, method: string, params: object) {
  return instance.call('POST', '/mcp', { body: { jsonrpc: '2.0', id: 1, method, params } });
}
