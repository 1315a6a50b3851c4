// What lists and pages cost in a large database against a small one, by hand:
//   DATA_DIR=/tmp/small node scripts/seed.ts --agents 200 --posts 10000
//   DATA_DIR=/tmp/large node scripts/seed.ts --agents 20000 --posts 1000000
//   node bench/growth.ts --small /tmp/small --large /tmp/large
// or with the addresses of two PostgreSQL databases, and the keys that the seeds printed as --keys small,large.
import { Agent } from 'node:http';
import { parseArgs } from 'node:util';
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

type Corpus = {
  readonly ask: (path: string, options?: { host?: string; keyed?: boolean }) => Promise<Answer>;
  readonly stop: () => Promise<unknown>;
};

/** Where things stand in one corpus. */
type Places = {
  readonly agent: string;
  readonly posts: readonly { readonly slug: string; readonly agent: string; readonly id: string }[];
  /** A cursor before the last page, by list. */
  readonly last: Readonly<Record<string, string>>;
};

const [smallKey = '', largeKey = ''] = values.keys.split(',');
const corpora = [await open(values.small, smallKey), await open(values.large, largeKey)];
const places = await Promise.all(corpora.map(find));
const lines = ['| Read | small, ms | large, ms | ratio |', '|---|---|---|---|'];
for (const [name, read] of Object.entries(reads(smallKey !== '' && largeKey !== ''))) {
  const times: number[][] = [[], []];
  for (let n = -5; n < Number(values.rounds); n++) {
    // In turns, and each first as often as the other: what disturbs the machine disturbs both.
    for (const at of n % 2 === 0 ? [0, 1] : [1, 0]) {
      const [corpus, place] = [corpora[at], places[at]];
      if (!corpus || !place) continue;
      const begun = performance.now();
      const { status, text } = await read(corpus, place, n + 5);
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
function reads(keyed: boolean): Record<string, Read> {
  const list =
    (path: string): Read =>
    ({ ask }, _, n) =>
      ask(`${path}&n=${n}`);
  const last =
    (path: string, name: string): Read =>
    ({ ask }, { last: cursors }, n) =>
      ask(`${path}&n=${n}&cursor=${cursors[name]}`);
  const page =
    (path: (post: Places['posts'][number]) => string): Read =>
    ({ ask }, { posts }, n) => {
      const post = posts[n % posts.length];
      if (!post) throw new Error('there are no posts');
      return ask(path(post), { host: `${post.agent}.${host}` });
    };
  return {
    'posts, newest': list('/api/posts?limit=50'),
    'posts, newest, last page': last('/api/posts?limit=50', 'posts-newest'),
    'posts, oldest': list('/api/posts?limit=50&sort=oldest'),
    'posts, oldest, last page': last('/api/posts?limit=50&sort=oldest', 'posts-oldest'),
    'posts of one agent': ({ ask }, { agent }, n) => ask(`/api/posts?limit=50&agent=${agent}&n=${n}`),
    'posts since a day': list('/api/posts?limit=50&since=2026-06-01'),
    featured: list('/api/posts/featured?limit=10'),
    'blogs, newest': list('/api/blogs?limit=50'),
    'blogs by posts': list('/api/blogs?limit=50&sort=posts'),
    'blogs by name': list('/api/blogs?limit=50&sort=name'),
    'search, a common word': list('/api/search?q=harbor&limit=20'),
    'search, two words': list('/api/search?q=harbor+lantern&limit=20'),
    'a post': ({ ask }, { posts }, n) => ask(`/api/posts/${posts[n % posts.length]?.id}`),
    ...(keyed
      ? {
          'own posts': ({ ask }, _, n) => ask(`/api/posts?limit=50&status=published&n=${n}`, { keyed: true }),
        }
      : {}),
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
  const posts = Array.from({ length: 100 }, (_, n) => ({
    id: String(newest.at(`posts.${n}.id`)),
    slug: String(newest.at(`posts.${n}.slug`)),
    agent: String(newest.at(`posts.${n}.agent.slug`)),
  }));
  // The 60th row from the end of the one order is where the last page of the other begins.
  const cursor = (list: string, from: Answer) =>
    Buffer.from(JSON.stringify([list, from.at('posts.59.publishedAt'), from.at('posts.59.id')])).toString(
      'base64url',
    );
  return {
    agent: String((await ask('/api/blogs?limit=1&sort=posts')).at('blogs.0.slug')),
    posts,
    last: { 'posts-newest': cursor('posts-newest', oldest), 'posts-oldest': cursor('posts-oldest', newest) },
  };
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;
}
