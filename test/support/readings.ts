import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createApp } from '../../src/app.ts';
import type { JsonSchema, OpenApiDocument } from '../../src/schemas/openapi.ts';
import { createRateLimiter } from '../../src/services/limits/rate-limiter.ts';
import { blogFiles, blogPath, feedTypes, type BlogPath } from '../../src/web/addresses.ts';
import { documentOf, operationsOf } from './api-document.ts';
import type { Answer } from './http.ts';
import type { Instance, TestAgent } from './instance.ts';
import { open } from './pages.ts';

/** What a tool of MCP answered, or its failure. */
export async function callTool(
  instance: Instance,
  key: string,
  name: string,
  args: object,
): Promise<Record<string, unknown>> {
  const params = { name, arguments: args };
  const answer = await instance.call('POST', '/mcp', {
    key,
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
  });
  return JSON.parse(String(answer.at('result.content.0.text')));
}

type Sought = {
  readonly agent: TestAgent;
  readonly postId: string;
  readonly slug: string;
  /** Stands in every text of the post, but not in its slug. */
  readonly word: string;
  /** Finds the post, and is not the word. */
  readonly query: string;
};

/**
 * Every place to read, to its agent or to anybody, in which a post shows its word. The places are those that the service
 * itself lists: its routes, the kinds of addresses of a blog, its operations that read, its tools and resources.
 */
export async function placesOf(instance: Instance, sought: Sought): Promise<string[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    return await placesIn(
      { ...instance, call: async (method, path, more) => instance.call(method, path, { agent, ...more }) },
      sought,
      await listed(instance),
    );
  } finally {
    agent.destroy();
  }
}

/** What a service lists of itself, which stays as it is. */
type Listed = { readonly routes: readonly string[]; readonly document: OpenApiDocument };

const known = new WeakMap<Instance, Listed>();

async function listed(instance: Instance): Promise<Listed> {
  const found = known.get(instance);
  if (found) return found;
  const made = { routes: await routesOf(instance), document: await documentOf(instance) };
  known.set(instance, made);
  return made;
}

async function placesIn(instance: Instance, sought: Sought, { routes, document }: Listed): Promise<string[]> {
  const places = [
    ...ofSite(instance, sought, routes),
    ...ofBlog(instance, sought),
    ...ofApi(instance, sought, document),
    ...(await ofMcp(instance, sought)),
  ];
  const shown: string[] = [];
  for (const [place, read] of places) {
    const { status, text } = await read();
    // One that is refused would show nothing either.
    if (status === 429) throw new Error(`${place} is over a limit`);
    if (text.includes(sought.word)) shown.push(place);
  }
  return [...shown, ...(await ofExport(instance, sought))];
}

type Place = readonly [name: string, read: () => Promise<Pick<Answer, 'status' | 'text'>>];

/** The pages and files of the service: its routes beside the API and MCP. */
function ofSite(instance: Instance, { query }: Sought, routes: readonly string[]): Place[] {
  const names: Readonly<Record<string, string>> = { docs: 'changes', problems: 'not_found' };
  const pages = routes.filter((path) => !/^\/(?:api|mcp|~)|\*/.test(path));
  return pages.map((page) => {
    const path = `${page.replace(/^\/(\w+)\/:name$/, (_, of) => `/${of}/${names[of]}`)}?q=${query}`;
    return [path, async () => open(instance, instance.baseUrl + path)];
  });
}

/** Paths of the routes that answer GET. */
async function routesOf(instance: Instance): Promise<string[]> {
  const limiter = createRateLimiter(instance.ctx(), () => 1);
  const health = { state: () => 'ready' as const, writable: () => true };
  const app = await createApp(instance.ctx(), { limiter, health });
  await app.ready();
  const tree = app.printRoutes({ commonPrefix: false, method: 'GET' });
  await app.close();
  await limiter.close();
  const above: string[] = [];
  return [...tree.matchAll(/^([ │]*)[├└]── (\S+) \(GET/gm)].map(([, { length } = '', name = '']) => {
    above.splice(length / 4, Infinity, name);
    return above.join('');
  });
}

/** The addresses of a blog, of each kind that there is. */
function ofBlog(instance: Instance, { agent, slug, query, word }: Sought): Place[] {
  const forms = ['page', 'twin', ...feedTypes] as const;
  const tag = tagOf(word);
  const kinds: { readonly [K in BlogPath['kind']]: readonly Extract<BlogPath, { kind: K }>[] } = {
    index: forms.map((form) => ({ kind: 'index', form })),
    post: [
      { kind: 'post', slug, form: 'page' },
      { kind: 'post', slug, form: 'twin' },
    ],
    tag: forms.map((form) => ({ kind: 'tag', tag, form })),
    comments: [{ kind: 'comments', slug }],
    search: [{ kind: 'search' }],
    archive: [{ kind: 'archive' }],
    tags: [{ kind: 'tags' }],
    file: blogFiles.map((name) => ({ kind: 'file', name })),
    picture: [{ kind: 'picture', name: `${'0'.repeat(32)}.png` }],
  };
  return Object.values(kinds)
    .flat()
    .map((kind): Place => {
      const path = blogPath(kind) + (kind.kind === 'search' ? `?q=${query}` : '');
      return [`blog ${path}`, async () => open(instance, agent.blogUrl + path)];
    });
}

/** The tag that the posts which are sought have. */
function tagOf(word: string): string {
  return `${word}tag`;
}

/** The operations that read, to the agent and to anybody. */
function ofApi(instance: Instance, sought: Sought, document: OpenApiDocument): Place[] {
  const reads = operationsOf(document).filter(
    // The archive is looked into by itself; a token that verifies nothing reads nothing.
    ({ method, path }) => method === 'GET' && !['/api/me/export', '/api/verify'].includes(path),
  );
  return reads.flatMap(({ path, operation }) => {
    const { parameters = [] } = operation;
    const inQuery = parameters.filter((parameter) => parameter.in === 'query');
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => valuesFor(name, sought)[0] ?? '');
    const addresses = variants(inQuery, sought).map((query) => {
      const text = new URLSearchParams(query).toString();
      return text === '' ? filled : `${filled}?${text}`;
    });
    const read = (address: string, as: object) => async () => instance.call('GET', address, as);
    return addresses.flatMap((address): Place[] => [
      [`own ${address}`, read(address, { key: sought.agent.key })],
      [address, read(address, {})],
    ]);
  });
}

type Parameter = { readonly name: string; readonly required?: boolean; readonly schema?: unknown };

/** Queries of a call: with what it requires, with each other parameter beside that, and with all. */
function variants(parameters: readonly Parameter[], sought: Sought): Record<string, string>[] {
  const choices = parameters.map((parameter) => ({
    ...parameter,
    values:
      (parameter.schema as JsonSchema | undefined)?.enum?.map(String) ?? valuesFor(parameter.name, sought),
  }));
  const required = choices.filter((choice) => choice.required === true);
  const base = Object.fromEntries(required.map(({ name, values }) => [name, values[0] ?? '']));
  const each = choices.flatMap(({ name, values }) => values.map((value) => ({ ...base, [name]: value })));
  // A slug is one of an agent.
  const agent = choices.some(({ name }) => name === 'slug') ? { agent: sought.agent.slug } : {};
  return required.length > 0
    ? each
    : [{}, ...each.map((query) => ({ ...('slug' in query ? agent : {}), ...query }))];
}

/** What a reading sends as a parameter of this name, that may lead to the post; none where nothing does. */
function valuesFor(name: string, { agent, postId, slug, query, word }: Sought): readonly string[] {
  const values: Readonly<Record<string, readonly string[]>> = {
    id: [postId],
    revision: ['1'],
    url: [`${agent.blogUrl}/${slug}`],
    agent: [agent.slug],
    slug: [slug],
    tag: [tagOf(word)],
    q: [query, word],
    since: ['2020-01-01'],
    post: [slug, postId, `${agent.blogUrl}/${slug}`],
    full: ['true'],
    unused: ['true'],
    sha256: [],
    to: [],
    kind: [],
    limit: [],
    offset: [],
    cursor: [],
  };
  const found = values[name];
  if (!found) throw new Error(`say what a reading sends as '${name}'`);
  return found;
}

/** The tools that only read, and the resources, to the agent. */
async function ofMcp(instance: Instance, sought: Sought): Promise<Place[]> {
  const { key } = sought.agent;
  const rpc = async (method: string, params: object) =>
    instance.call('POST', '/mcp', { key, body: { jsonrpc: '2.0', id: 1, method, params } });
  const tools = (await rpc('tools/list', {})).at('result.tools') as readonly ListedTool[];
  const calls = tools
    .filter(({ annotations }) => annotations.readOnlyHint)
    .flatMap(({ name, inputSchema: { properties = {}, required = [] } }) => {
      const parameters = Object.entries(properties).map(([parameter, schema]) => ({
        name: parameter,
        schema,
        required: required.includes(parameter),
      }));
      return variants(parameters, sought).map((args) => ({ name, args }));
    });
  const templates = (await rpc('resources/templates/list', {})).at('result.resourceTemplates');
  const uris = (templates as readonly { uriTemplate: string }[]).map(({ uriTemplate }) =>
    uriTemplate.replace('{id}', sought.postId).replace('{slug}', sought.agent.slug),
  );
  return [
    ...calls.map(({ name, args }): Place => {
      const sent = Object.fromEntries(
        Object.entries(args).map(([parameter, value]) => [
          parameter,
          parameter === 'full' ? true : parameter === 'revision' ? Number(value) : value,
        ]),
      );
      const place = `tool ${name} ${JSON.stringify(sent)}`;
      return [place, async () => rpc('tools/call', { name, arguments: sent })];
    }),
    ['resources', async () => rpc('resources/list', {})],
    ...uris.map((uri): Place => [uri, async () => rpc('resources/read', { uri })]),
  ];
}

type ListedTool = {
  readonly name: string;
  readonly annotations: { readonly readOnlyHint: boolean };
  readonly inputSchema: { readonly properties?: Record<string, JsonSchema>; readonly required?: string[] };
};

/** In which kinds of files of the agent's archive the word stands. */
async function ofExport(instance: Instance, { agent, word }: Sought): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'masthead-readings-'));
  try {
    const answer = await instance.call('GET', '/api/me/export', { key: agent.key });
    const archive = join(folder, 'archive.tar.gz');
    await writeFile(archive, answer.bytes);
    await promisify(execFile)('tar', ['-xzf', archive, '-C', folder]);
    const { stdout } = await promisify(execFile)('grep', ['-rl', word, '--include=*.*', folder]).catch(
      () => ({ stdout: '' }),
    );
    const names = stdout.split('\n').filter((name) => name !== '' && !name.endsWith('.gz'));
    return [
      ...new Set(names.map((name) => (name.includes('.revisions/') ? 'export of revisions' : 'export'))),
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}
