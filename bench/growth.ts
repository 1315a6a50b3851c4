// What lists and pages cost in a large database against a small one, by hand:
//   DATA_DIR=/tmp/small node scripts/seed.ts --agents 200 --posts 10000
//   DATA_DIR=/tmp/large node scripts/seed.ts --agents 20000 --posts 1000000
//   node bench/growth.ts --small /tmp/small --large /tmp/large
//     --keys KEY,KEY
// with a key that each seed has printed; in place of the directories, the addresses of two PostgreSQL databases.
import { Agent } from 'node:http';
import { parseArgs } from 'node:util';
import { median } from './compare.ts';
import { request, type Answer } from '../test/support/http.ts';
import { spawnServer } from '../test/support/processes.ts';

const { values } = parseArgs({
  options: {
    small: { type: 'string', default: '' },
    large: { type: 'string', default: '' },
    keys: { type: 'string', default: ',' },
    rounds: { type: 'string', default: '60' },
  },
});

/** How much more a large database may cost (the goals). */
const mayGrow = 1.5;
const host = 'masthead.test';
/** Posts and their blogs that are read in turn. Each is read once before it counts: what comes off the disk is not. */
const placeCount = 20;

type Corpus = {
  readonly ask: (path: string, options?: { host?: string; keyed?: true | undefined }) => Promise<Answer>;
  readonly stop: () => Promise<unknown>;
};

/** Where things stand in one corpus. */
type Places = {
  readonly agent: string;
  readonly posts: readonly { readonly slug: string; readonly agent: string; readonly id: string }[];
  /** The cursor of the last full page, by the name of the list. */
  readonly last: Readonly<Record<string, string>>;
};

/** Lists that are read by cursor to their end. */
const lists: Readonly<Record<string, { path: (agent: string) => string; keyed?: true }>> = {
  'posts, newest': { path: () => '/api/posts?limit=50' },
  'posts, oldest': { path: () => '/api/posts?limit=50&sort=oldest' },
  'posts of one agent': { path: (agent) => `/api/posts?limit=50&agent=${agent}` },
  'own posts': { path: () => '/api/posts?limit=50&status=published', keyed: true },
  'blogs, newest': { path: () => '/api/blogs?limit=50' },
  'blogs by posts': { path: () => '/api/blogs?limit=50&sort=posts' },
  'blogs by name': { path: () => '/api/blogs?limit=50&sort=name' },
  'search, a common word': { path: () => '/api/search?q=harbor&limit=20' },
};

const [smallKey = '', largeKey = ''] = values.keys.split(',');
const corpora = [await open(values.small, smallKey), await open(values.large, largeKey)];
const places = await Promise.all(corpora.map(find));
const lines = ['| Read | small, ms | large, ms | ratio |', '|---|---|---|---|'];
for (const [name, read] of Object.entries(reads())) {
  const times: number[][] = [[], []];
  for (let n = -placeCount; n < Number(values.rounds); n++) {
    // In turns, and each first as often as the other: what disturbs the machine disturbs both.
    for (const at of n % 2 === 0 ? [0, 1] : [1, 0]) {
      const [corpus, place] = [corpora[at], places[at]];
      if (!corpus || !place) continue;
      const begun = performance.now();
      const { status, text } = await read(corpus, place, n + placeCount);
      const took = performance.now() - begun;
      if (status !== 200) throw new Error(`${name}: ${status} ${text.slice(0, 200)}`);
      if (n >= 0) times[at]?.push(took);
    }
  }
  const [small = 0, large = 0] = times.map(median);
  const verdict = large <= small * mayGrow ? '' : ' (more)';
  lines.push(
    `| ${name} | ${small.toFixed(2)} | ${large.toFixed(2)} | ${(large / small).toFixed(2)}${verdict} |`,
  );
}
process.stdout.write(`${lines.join('\n')}\n`);
await Promise.all(corpora.map((corpus) => corpus.stop()));

type Read = (corpus: Corpus, place: Places, n: number) => Promise<Answer>;

/** A number that changes with each call keeps answers from being given from memory. */
function reads(): Record<string, Read> {
  const ofLists = Object.entries(lists).flatMap(([name, { path, keyed }]): [string, Read][] => [
    [name, ({ ask }, { agent }, n) => ask(`${path(agent)}&n=${n}`, { keyed })],
    [
      `${name}, last page`,
      ({ ask }, { agent, last }, n) => ask(`${path(agent)}&n=${n}&cursor=${last[name]}`, { keyed }),
    ],
  ]);
  const list =
    (path: string): Read =>
    ({ ask }, _, n) =>
      ask(`${path}&n=${n}`);
  const page =
    (path: (post: Places['posts'][number]) => string): Read =>
    ({ ask }, { posts }, n) => {
      const post = posts[n % posts.length];
      if (!post) throw new Error('there are no posts');
      return ask(path(post), { host: `${post.agent}.${host}` });
    };
  return {
    ...Object.fromEntries(ofLists),
    'posts since a day': list('/api/posts?limit=50&since=2026-06-01'),
    featured: list('/api/posts/featured?limit=10'),
    'search, two words': list('/api/search?q=harbor+lantern&limit=20'),
    'a post': ({ ask }, { posts }, n) => ask(`/api/posts/${posts[n % posts.length]?.id}`),
    'page of a post': page(({ slug }) => `/${slug}`),
    'page of a blog': page(() => '/'),
    'feed of a blog': page(() => '/feed.xml'),
    'sitemap of a blog': page(() => '/sitemap.xml'),
    'home page': ({ ask }) => ask('/'),
    'feed of all blogs': ({ ask }) => ask('/feed.xml'),
    'index of sitemaps': ({ ask }) => ask('/sitemap.xml'),
  } satisfies Record<string, Read>;
}

async function open(database: string, key: string): Promise<Corpus> {
  const server = await spawnServer({
    env: {
      ...(database.includes('://')
        ? { DATABASE_URL: database, DATA_DIR: '/nonexistent' }
        : { DATA_DIR: database }),
      SECRET: 'x'.repeat(32),
      READ_ONLY: 'on',
      BASE_URL: `http://${host}`,
      PAGE_CACHE_MB: '0',
      LIMIT_ANONYMOUS: '0',
      LIMIT_API: '0',
    },
  });
  const agent = new Agent({ keepAlive: true });
  return {
    ask: (path, options = {}) =>
      request(server.baseUrl, {
        path,
        agent,
        host: options.host ?? host,
        ...(options.keyed === true ? { headers: { authorization: `Bearer ${key}` } } : {}),
      }),
    async stop() {
      agent.destroy();
      await server.stop();
    },
  };
}

async function find({ ask }: Corpus): Promise<Places> {
  const newest = await ask('/api/posts?limit=100');
  const oldest = await ask('/api/posts?limit=100&sort=oldest');
  const posts = Array.from({ length: placeCount }, (_, n) => ({
    id: String(newest.at(`posts.${n}.id`)),
    slug: String(newest.at(`posts.${n}.slug`)),
    agent: String(newest.at(`posts.${n}.agent.slug`)),
  }));
  const agent = String((await ask('/api/blogs?limit=1&sort=posts')).at('blogs.0.slug'));
  // The 60th row from the end of the one order is where the last full page of the other begins.
  const cursor = (list: string, from: Answer) =>
    Buffer.from(JSON.stringify([list, from.at('posts.59.publishedAt'), from.at('posts.59.id')])).toString(
      'base64url',
    );
  const last: Record<string, string> = {
    'posts, newest': cursor('posts-newest', oldest),
    'posts, oldest': cursor('posts-oldest', newest),
  };
  for (const [name, { path, keyed }] of Object.entries(lists))
    last[name] ??= await lastCursor((at) => ask(path(agent) + at, { keyed }));
  return { agent, posts, last };
}

/** Reads a list to its end. */
async function lastCursor(read: (at: string) => Promise<Answer>): Promise<string> {
  for (let [before, cursor] = ['', '']; ;) {
    const answer = await read(cursor === '' ? '' : `&cursor=${cursor}`);
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text.slice(0, 200)}`);
    const next = answer.at('nextCursor');
    if (typeof next !== 'string') return before;
    [before, cursor] = [cursor, next];
  }
}
