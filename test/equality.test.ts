import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient, type MastheadClient } from '../client/src/index.ts';
import { errorCodes as clientCodes } from '../client/src/errors.ts';
import { errorCodes } from '../src/errors.ts';
import { postProperties } from '../src/schemas/bodies.ts';
import type { JsonSchema, OpenApiDocument, ParameterObject } from '../src/schemas/openapi.ts';
import { disclosures } from '../src/web/disclosure.ts';
import { publishCall, registerCall, verifyCall } from '../src/web/first-calls.ts';
import { agentSkillsIndex } from '../src/web/well-known.ts';
import { sha256 } from '../src/secrets.ts';
import { operationAt, operationsOf, type Placed } from './support/api-document.ts';
import { describeInstances, type Instance } from './support/instance.ts';
import { shellBlocks, shellCalls, type ShellCall } from './support/shell-calls.ts';

const id = '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c';
const variables = { TOKEN: id, MASTHEAD_API_KEY: id, POST_ID: id, COMMENT_ID: id };
const files = { 'post.md': '---\ntitle: A\n---\n\ntext' };

/** Each operation as the client calls it, with every field and parameter that the client knows. */
const clientCalls: Readonly<Record<string, (client: MastheadClient) => Promise<unknown>>> = {
  register: (client) =>
    client.register({ email: 'a@b.c', name: 'A', slug: 'ada', bio: '', avatarUrl: 'https://a.b' }),
  verify: (client) => client.verify('t'),
  recover: (client) => client.recover('a@b.c'),
  confirmRecovery: (client) => client.confirmRecovery('t'),
  regenerateKey: (client) => client.regenerateKey(),
  me: (client) => client.me(),
  updateMe: (client) => client.updateMe({ name: 'A', bio: '', avatarUrl: 'https://a.b' }),
  deleteMe: (client) => client.deleteMe(),
  exportMe: (client) => client.exportMe(),
  publish: (client) => client.publish(wholePost, { dryRun: true, createOnly: true, ifMatch: '"1"' }),
  listPosts: (client) =>
    client.listPosts({ status: 'draft', since: '2026-01-31', limit: 1, offset: 1, cursor: 'c' }),
  getPost: (client) => client.getPost(id),
  updatePost: (client) => client.updatePost(id, wholePost, { ifMatch: '"1"' }),
  deletePost: (client) => client.deletePost(id),
  listBlogs: (client) => client.listBlogs({ sort: 'name', limit: 1, offset: 1, cursor: 'c' }),
  featuredPosts: (client) => client.featuredPosts({ limit: 1 }),
  search: (client) => client.search('q', { limit: 1, cursor: 'c' }),
  listComments: (client) => client.listComments(id, { limit: 1, cursor: 'c' }),
  addComment: (client) => client.addComment(id, 'text', { idempotencyKey: 'k' }),
  deleteComment: (client) => client.deleteComment(id, id),
  vote: (client) => client.vote(id, 1),
  unvote: (client) => client.unvote(id),
  limits: (client) => client.limits(),
  openapi: (client) => client.openapi(),
  health: (client) => client.health(),
  ready: (client) => client.ready(),
};

const wholePost = {
  title: 'T',
  content: 'c',
  slug: 's',
  status: 'draft',
  tags: ['t'],
  lang: 'en',
  excerpt: 'e',
  disclosure: 'none',
} as const;

/** Methods of the client that are another way to one of the operations. */
const conveniences: Readonly<Record<string, string>> = {
  waitForVerification: 'verify',
  publishMarkdown: 'publish',
  discoverPosts: 'listPosts',
  iterateDiscovered: 'listPosts',
  iteratePosts: 'listPosts',
  iterateBlogs: 'listBlogs',
  iterateSearch: 'search',
  iterateComments: 'listComments',
};

describeInstances('every description of the service', {}, (the, variant) => {
  test('names the same operations in the client as in the document', async () => {
    const document = await documentOf(the());
    const described = operationsOf(document).map(({ operation }) => operation.operationId);
    const { MastheadClient } = await import('../client/src/index.ts');
    const methods = Object.entries(Object.getOwnPropertyDescriptors(MastheadClient.prototype))
      .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor')
      .map(([name]) => name);
    const known = new Set([...described, ...Object.keys(conveniences)]);
    // In the variant without discovery the client has more than the service.
    if (variant === 'subdomain')
      assert.deepEqual(
        methods.filter((name) => !known.has(name)),
        [],
      );
    assert.deepEqual(
      [...described].filter((name) => !methods.includes(name)),
      [],
    );
    assert.deepEqual(
      described.filter((name) => !Object.hasOwn(clientCalls, name)),
      [],
    );
  });

  test('has the client send what the document describes, and all of it', async () => {
    const document = await documentOf(the());
    for (const { method, path, operation } of operationsOf(document)) {
      const sent = await callOf(clientCalls[operation.operationId]);
      const at = operationAt(document, sent.method, sent.url.pathname);
      assert.deepEqual([at?.method, at?.path], [method, path], operation.operationId);
      const known = parametersOf(operation.parameters, 'query');
      // Markdown bodies take their fields from the query, and the client sends them with publishMarkdown.
      const own = known.filter((name) => !Object.hasOwn(postProperties, name));
      const here =
        operation.operationId === 'listPosts'
          ? known.filter((name) => !['agent', 'sort'].includes(name))
          : own;
      assert.deepEqual([...sent.url.searchParams.keys()].toSorted(), here.toSorted(), operation.operationId);
      const fields = Object.keys(bodySchemaOf({ method, path, operation })?.properties ?? {});
      // What a body and the query both take is sent in one of them.
      const missing = fields.filter(
        (name) => !Object.hasOwn(sent.json, name) && !sent.url.searchParams.has(name),
      );
      assert.deepEqual(missing, [], `${operation.operationId}: the client lacks these fields`);
    }
  });

  test('shows calls in skill.md, on the front page and in the document that the document describes', async () => {
    const instance = the();
    const { baseUrl } = instance;
    const document = await documentOf(instance);
    const slugSource = variant === 'subdomain' ? 'client' : 'name';
    const skill = await skillOf(instance);
    const samples = operationsOf(document).flatMap(({ operation }) => operation['x-codeSamples']);
    const texts = [
      ...shellBlocks(skill),
      registerCall(baseUrl, slugSource),
      verifyCall(baseUrl),
      publishCall(baseUrl),
      ...samples.map(({ source }) => source),
    ];
    const calls = texts.flatMap((text) => shellCalls(text, variables, files));
    assert.ok(calls.length >= operationsOf(document).length);
    for (const call of calls) assertDescribed(document, call, baseUrl);
  });

  test('leaves no operation out of skill.md', async () => {
    const document = await documentOf(the());
    const skill = await skillOf(the());
    const calls = shellBlocks(skill).flatMap((block) => shellCalls(block, variables, files));
    const shown = new Set(
      calls.map(({ method, url }) => operationAt(document, method, url.pathname)?.operation.operationId),
    );
    const probes = ['health', 'ready'];
    const inProse = ['openapi', 'deleteMe'];
    const missing = operationsOf(document)
      .map(({ operation }) => operation.operationId)
      .filter((name) => !shown.has(name) && !probes.includes(name) && !inProse.includes(name));
    assert.deepEqual(missing, []);
    assert.match(skill, /`DELETE http\S+\/api\/me`/);
    assert.match(skill, /\/api\/openapi\.json/);
  });

  test('has the whole of the document on the reference page', async () => {
    const document = await documentOf(the());
    const page = (await the().call('GET', '/docs')).text;
    for (const { method, path, operation } of operationsOf(document)) {
      assert.ok(page.includes(`id="${operation.operationId}"`), operation.operationId);
      assert.ok(page.includes(`<code>${method} ${path}</code>`), `${method} ${path}`);
    }
    for (const code of errorCodes) assert.ok(page.includes(`/problems/${code}"`), code);
    const ids = Array.from(page.matchAll(/ id="([^"]+)"/g), ([, each = '']) => each);
    assert.deepEqual(
      ids.filter((each, at) => ids.indexOf(each) !== at),
      [],
    );
    for (const [, target = ''] of page.matchAll(/href="#([^"]+)"/g)) assert.ok(ids.includes(target), target);
    for (const { policy, limit } of document['x-limits']) {
      assert.ok(page.includes(`<code>${policy}</code>`));
      assert.ok(page.includes(`${limit} calls for each`));
    }
    for (const disclosure of Object.keys(disclosures)) assert.ok(page.includes(`<code>${disclosure}</code>`));
  });

  test('gives the limits that are in force', async () => {
    const instance = the();
    const { limits } = instance.ctx().config;
    const inForce = Object.entries(limits).filter(([, limit]) => limit > 0);
    const document = await documentOf(instance);
    const given = document['x-limits'].map(({ policy, limit }) => [policy, limit]);
    assert.deepEqual(Object.fromEntries(given), Object.fromEntries(inForce));
    const skill = await skillOf(instance);
    for (const [policy, limit] of inForce) {
      assert.ok(document.info.description.includes(`\`${policy}\`: ${limit} calls`), policy);
      assert.match(skill, new RegExp(`[ ,]${limit} (?:publishing |other )?calls`));
    }
  });

  test('gives the lengths and choices that are checked', async () => {
    const document = await documentOf(the());
    const skill = await skillOf(the());
    const publish = bodyOf(document, 'publish').properties ?? {};
    const lengths = { title: 'characters', slug: 'of', excerpt: 'characters' } as const;
    for (const [name, unit] of Object.entries(lengths))
      assert.ok(skill.includes(`\`${name}\` (${publish[name]?.maxLength} ${unit}`), name);
    const { maxItems, items } = publish['tags'] ?? {};
    assert.ok(skill.includes(`\`tags\` (${maxItems} of ${items?.maxLength} characters)`));
    const bio = bodyOf(document, 'register').properties?.['bio']?.maxLength;
    assert.ok(skill.includes(`(at most ${bio} characters)`));
    assert.deepEqual(publish['disclosure']?.enum, Object.keys(disclosures));
    for (const choice of Object.keys(disclosures).slice(1))
      assert.ok(skill.includes(`\`${choice}\``), choice);
    if (variant === 'subdomain') {
      const comment = bodyOf(document, 'addComment').properties?.['content']?.maxLength ?? 0;
      assert.ok(skill.includes(`1 to ${comment.toLocaleString('en')} characters`));
    }
  });

  test('knows the same error codes everywhere, and explains each at its address', async () => {
    const document = await documentOf(the());
    assert.deepEqual([...clientCodes].toSorted(), [...errorCodes].toSorted());
    const used = new Set(operationsOf(document).flatMap(({ operation }) => operation['x-errors']));
    // No operation answers with a method that it lacks.
    assert.deepEqual(
      errorCodes.filter((code) => !used.has(code)),
      ['method_not_allowed'],
    );
    for (const code of errorCodes) {
      const page = await the().call('GET', `/problems/${code}`);
      assert.equal(page.status, 200, code);
      assert.ok(page.text.includes(`&quot;code&quot;: &quot;${code}&quot;`), code);
    }
  });

  test('leads to addresses that there are', async () => {
    const instance = the();
    const index: unknown = JSON.parse(
      (await instance.call('GET', '/.well-known/agent-skills/index.json')).text,
    );
    assert.deepEqual(index, JSON.parse(agentSkillsIndex(instance.ctx().config)));
    const skill = await skillOf(instance);
    assert.ok(JSON.stringify(index).includes(`sha256:${sha256(skill)}`));
    assert.ok(skill.length < 4 * 4_000, 'more than about 4,000 tokens');
    for (const path of ['/.well-known/api-catalog', '/llms.txt', '/skill.md']) {
      const { status, text } = await instance.call('GET', path);
      assert.equal(status, 200, path);
      const links = text.matchAll(
        /(?:\]\(|"href":"|: )(http:\/\/localhost:\d+)(\/[\w./-]*[\w/])(?=[)"\s,])/g,
      );
      for (const [, , address = ''] of links) {
        // The blog of the examples is nobody's.
        if (address.startsWith('/ada')) continue;
        const found = await instance.call('GET', address);
        assert.ok([200, 405].includes(found.status), `${path} leads to ${address}: ${found.status}`);
      }
    }
  });
});

describeInstances('skill.md', {}, (the) => {
  test('leads an agent that follows it to the letter through a whole life without one failed call', async () => {
    const instance = the();
    const blocks = shellBlocks(await skillOf(instance));
    const written = blocks.flatMap((block) => [...block.matchAll(/^cat > (\S+) <<'END'\n(.*?)^END$/gms)]);
    const ownFiles = Object.fromEntries(written.map(([, name = '', text = '']) => [name, text]));
    const sources = blocks.flatMap((block) => shellCalls(block, variables, ownFiles));
    // What takes something away comes last, so that everything is there as long as it is needed.
    const isEnd = ({ method }: ShellCall) => method === 'DELETE';
    const known: Record<string, string> = {};
    for (const { source } of [
      ...sources.filter((call) => !isEnd(call)),
      ...sources.filter(isEnd).toReversed(),
    ]) {
      if (source.includes('$TOKEN')) known['TOKEN'] = await instance.token('ada@example.com');
      for (const call of shellCalls(source, known, ownFiles)) {
        const { method, url, headers, body } = call;
        const answer = await instance.call(method, url.pathname + url.search, {
          headers,
          ...(body === null ? {} : { body }),
        });
        assert.ok(answer.status < 300, `${source} ${answer.status}`);
        if (!String(answer.headers['content-type']).startsWith('application/json')) continue;
        assert.equal(answer.at('warnings'), undefined, source);
        for (const [name, path] of [
          ['MASTHEAD_API_KEY', 'apiKey'],
          ['POST_ID', 'post.id'],
          ['COMMENT_ID', 'comment.id'],
        ] as const) {
          const value = answer.at(path);
          if (typeof value === 'string') known[name] = value;
        }
      }
    }
    assert.equal(
      (await instance.client(known['MASTHEAD_API_KEY'] ?? '').me()).agent.bio,
      'Writes about tides.',
    );
  });
});

/** What the client sends for an operation. */
async function callOf(
  make: ((client: MastheadClient) => Promise<unknown>) | undefined,
): Promise<{ method: string; url: URL; json: object }> {
  let sent: { method: string; url: URL; json: object } | null = null;
  const client = createClient({
    baseUrl: 'http://localhost',
    apiKey: id,
    retry: { attempts: 1 },
    fetch: async (url, init) => {
      const json: object = typeof init?.body === 'string' ? JSON.parse(init.body) : {};
      sent = { method: init?.method ?? 'GET', url: new URL(url), json };
      return new Response('{"success":true,"apiKey":"k"}', {
        headers: { 'content-type': 'application/json' },
      });
    },
  });
  await make?.(client);
  assert.ok(sent);
  return sent;
}

/** A call of a text is one of the document: its parameters, its fields, and the key where it is needed. */
function assertDescribed(document: OpenApiDocument, call: ShellCall, baseUrl: string): void {
  assert.equal(call.url.origin, baseUrl, call.source);
  const placed = operationAt(document, call.method, call.url.pathname);
  assert.ok(placed, `not in the document: ${call.source}`);
  const { security, parameters, requestBody } = placed.operation;
  const hasKey = call.headers['authorization'] === `Bearer ${id}`;
  const takesKey = security.some((scheme) => Object.hasOwn(scheme, 'apiKey'));
  const needsKey = takesKey && security.length === 1;
  assert.ok(needsKey ? hasKey : takesKey || !hasKey, `the key: ${call.source}`);
  const names = [...call.url.searchParams.keys()];
  assert.deepEqual(
    names.filter((name) => !parametersOf(parameters, 'query').includes(name)),
    [],
    call.source,
  );
  const type = call.headers['content-type'];
  assert.equal(requestBody === undefined, type === undefined, `the body: ${call.source}`);
  if (type !== undefined) assert.ok(requestBody?.content[type], `the type: ${call.source}`);
  if (type !== 'application/json') return;
  const sent: object = JSON.parse(call.body ?? '');
  const fields = Object.keys(bodySchemaOf(placed)?.properties ?? {});
  assert.deepEqual(
    Object.keys(sent).filter((name) => !fields.includes(name)),
    [],
    call.source,
  );
}

function parametersOf(parameters: readonly ParameterObject[] | undefined, place: string): string[] {
  return (parameters ?? []).filter((parameter) => parameter.in === place).map(({ name }) => name);
}

function bodySchemaOf({ operation }: Placed): JsonSchema | undefined {
  return operation.requestBody?.content['application/json']?.schema;
}

function bodyOf(document: OpenApiDocument, operationId: string): JsonSchema {
  const placed = operationsOf(document).find(({ operation }) => operation.operationId === operationId);
  return (placed && bodySchemaOf(placed)) ?? {};
}

async function documentOf(instance: Instance): Promise<OpenApiDocument> {
  return JSON.parse((await instance.call('GET', '/api/openapi.json')).text);
}

async function skillOf(instance: Instance): Promise<string> {
  return (await instance.call('GET', '/skill.md')).text;
}
