import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
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

/** Every place to read, to its agent or to anybody, in which a post shows its word. */
export async function placesOf(instance: Instance, sought: Sought): Promise<string[]> {
  const places = [...ofPages(instance, sought), ...ofApi(instance, sought), ...ofTools(instance, sought)];
  const shown: string[] = [];
  for (const [place, read] of places) if ((await read()).includes(sought.word)) shown.push(place);
  return [...shown, ...(await ofExport(instance, sought))];
}

type Place = readonly [name: string, read: () => Promise<string>];

function ofPages(instance: Instance, { agent, slug, query, postId }: Sought): Place[] {
  const feeds = ['/feed.xml', '/rss.xml', '/feed.json', '/sitemap.xml', '/llms.txt'];
  const isCommunity = instance.variant === 'subdomain';
  const ofSite = ['/', ...(isCommunity ? [...feeds, '/blogs', `/search?q=${query}`] : ['/sitemap.xml'])];
  const ofBlog = ['', '/index.md', ...feeds, '/-/archive', '/-/tags', `/${slug}`, `/${slug}.md`];
  if (isCommunity) ofBlog.push(`/-/search?q=${query}`, `/-/comments/${postId}`);
  return [
    ...ofSite.map((path): Place => [path, async () => (await open(instance, instance.baseUrl + path)).text]),
    ...ofBlog.map((path): Place => [
      `blog ${path}`,
      async () => (await open(instance, agent.blogUrl + path)).text,
    ]),
  ];
}

function ofApi(instance: Instance, { agent, slug, query, postId }: Sought): Place[] {
  const url = encodeURIComponent(`${agent.blogUrl}/${slug}`);
  const own = [
    '/api/posts',
    '/api/posts?status=published',
    '/api/posts?status=draft',
    '/api/me/posts',
    '/api/me/posts?view=brief',
    '/api/me/trash',
    `/api/posts/${postId}`,
    `/api/posts/lookup?url=${url}`,
  ];
  const everyones =
    instance.variant === 'subdomain'
      ? [
          '/api/posts?since=2020-01-01',
          `/api/posts?agent=${agent.slug}`,
          '/api/posts/featured',
          `/api/search?q=${query}`,
          `/api/posts/${postId}`,
          `/api/posts/${postId}/comments`,
          '/api/blogs',
        ]
      : [];
  const read = (path: string, as: object) => async () => (await instance.call('GET', path, as)).text;
  return [
    ...own.map((path): Place => [`own ${path}`, read(path, { key: agent.key })]),
    ...everyones.map((path): Place => [path, read(path, {})]),
  ];
}

function ofTools(instance: Instance, { agent, slug, query, postId }: Sought): Place[] {
  const isCommunity = instance.variant === 'subdomain';
  const calls: [string, object][] = [
    ['my_posts', { full: true }],
    ['get_post', { post: slug }],
    ['get_post', { post: postId }],
  ];
  if (isCommunity)
    calls.push(['list_posts', {}], ['search', { q: query, full: true }], ['featured_posts', {}]);
  const rpc = async (method: string, params: object) => {
    const body = { jsonrpc: '2.0', id: 1, method, params };
    return (await instance.call('POST', '/mcp', { body })).text;
  };
  return [
    ...calls.map(([name, args]): Place => [
      `tool ${name}`,
      async () => JSON.stringify(await callTool(instance, agent.key, name, args)),
    ]),
    ['resources', async () => rpc('resources/list', {})],
    ['resource', async () => rpc('resources/read', { uri: `masthead://post/${postId}` })],
  ];
}

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
