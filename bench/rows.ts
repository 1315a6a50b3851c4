import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { startNginx } from '../test/support/nginx.ts';
import { article } from './article.ts';
import type { Shots } from './load.ts';
import { cores, cpuOfChildren, freePort, pinned, type Measured } from './machine.ts';
import { record } from './record.ts';
import { copySeed, newAgent, startService, type Seed, type Service } from './service.ts';
import type { Place } from './world.ts';

/** A service that can be loaded. */
export type Target = {
  /** Whose processor time counts. */
  readonly server: Pick<Measured, 'cpu'>;
  /** Where it is loaded: `http://127.0.0.1:{port}`. */
  readonly origin: string;
  /** `Host` of the site, and of the blog with most posts. */
  readonly site: string;
  readonly blog: string;
  readonly seed: Seed;
  /** A post to publish, as `Shots` want it. */
  readonly bodyFile: string;
  stop(): Promise<void>;
};

/** One kind of request that is measured. */
export type Row = {
  readonly what: string;
  readonly shots: (target: Target) => Shots | Promise<Shots>;
};

/** Rows that are measured on one service. */
export type Stage = {
  readonly title: string;
  readonly rows: readonly Row[];
  /** Seconds of load before the first that counts; as `Plan` says unless told. */
  readonly warmUp?: number;
  open(place: Place): Promise<Target>;
};

const cached: readonly Row[] = [
  page('post, br', 'blog', '/post-0', 'br'),
  page('post, gzip', 'blog', '/post-0', 'gzip'),
  page('post, identity', 'blog', '/post-0', 'identity'),
  { what: 'post, 304', shots: askUnchanged },
  page('post as markdown', 'blog', '/post-0.md', 'br'),
  page('blog, br', 'blog', '/', 'br'),
  page('feed, gzip', 'blog', '/feed.xml', 'gzip'),
  page('home, br', 'site', '/', 'br'),
];
const ownPosts: Row = {
  what: 'own posts, with the key',
  shots: (target) => ({ url: `${target.origin}/api/posts?limit=50`, headers: withKey(target) }),
};
const newPost: Row = {
  what: 'new post of 5 KB, durable',
  shots: (target) => ({
    url: `${target.origin}/api/publish`,
    headers: withKey(target),
    bodyFile: target.bodyFile,
  }),
};
const everyonesPosts: Row = {
  what: 'everyone’s posts',
  shots: ({ origin }) => ({ url: `${origin}/api/posts?limit=50` }),
};
/** The same calls by a client that takes compressed answers. */
async function asking({ shots }: Row, target: Target, encoding: string): Promise<Shots> {
  const same = await shots(target);
  return { ...same, headers: { ...same.headers, 'Accept-Encoding': encoding } };
}
/** Code that runs a thousand times a second takes some seconds until it is compiled. */
const untilCompiled = 5;
/** Of the first ten thousand publish calls a tenth of the processor time is V8's, which compiles what is called less often. */
export const untilPublishingCompiled = 3 * untilCompiled;

export const cachedPages: Stage = {
  title: 'Cached pages',
  rows: cached,
  open: (place) => openService(place),
};

/** With a cache too small to keep anything, every request makes its page and compresses it. */
export const uncachedPages: Stage = {
  title: 'Pages that are not in the cache',
  rows: ['br', 'gzip', 'zstd'].map((encoding) =>
    page(`post of 5 KB, ${encoding}`, 'blog', '/post-0', encoding),
  ),
  // Much of what makes a page is called once for each.
  warmUp: 2 * untilCompiled,
  open: (place) => openService(place, { PAGE_CACHE_MB: '0' }),
};

export const lists: Stage = {
  title: 'Lists of 50',
  rows: [
    ownPosts,
    everyonesPosts,
    { what: 'own posts, zstd', shots: (target) => asking(ownPosts, target, 'zstd') },
    { what: 'own posts, gzip', shots: (target) => asking(ownPosts, target, 'gzip') },
    { what: 'everyone’s posts, zstd', shots: (target) => asking(everyonesPosts, target, 'zstd') },
    { what: 'everyone’s posts, gzip', shots: (target) => asking(everyonesPosts, target, 'gzip') },
    {
      what: 'GET /api/limits, with the key',
      shots: (target) => ({ url: `${target.origin}/api/limits`, headers: withKey(target) }),
    },
  ],
  open: (place) => openService(place),
};

/** The same post again and again, each time with another text: with wrk only. */
const changedPost: Row = {
  what: 'a post of 5 KB changed, durable',
  shots(target) {
    const bodyFile = join(dirname(target.bodyFile), 'changed.json');
    const content = `${article(1)}\n\nRun @@.`;
    writeFileSync(bodyFile, JSON.stringify({ slug: 'changed', title: 'Load', content, status: 'published' }));
    return { url: `${target.origin}/api/publish`, headers: withKey(target), bodyFile };
  },
};

export const publishing: Stage = {
  title: 'Publishing',
  rows: [newPost],
  warmUp: untilPublishingCompiled,
  open: (place) => openService(copied(place)),
};

/** Publishing beside another revision. */
export const writing: Stage = { ...publishing, rows: [newPost, changedPost] };

/** Many agents at one post: with wrk only, which sends their keys in turn. */
export const engagement: Stage = {
  title: 'Votes and comments of 64 agents on one post',
  rows: [
    { what: 'vote, each time the other way', shots: (target) => engage(target, 'vote', { vote: '±1' }) },
    {
      what: 'comment',
      shots: (target) => engage(target, 'comments', { content: 'Measured @@, in *words*.' }),
    },
  ],
  warmUp: untilCompiled,
  async open(place) {
    const own = copied(place);
    const target = await openService(own);
    const keys: string[] = [];
    for (let i = 100; i < 164; i++) keys.push(await newAgent(target.service, own.seed.dataDir, i));
    writeFileSync(keysFileOf(own.folder), keys.join('\n'));
    return target;
  },
};

const keysFileOf = (folder: string) => join(folder, 'keys.txt');

async function engage({ origin, seed, bodyFile }: Target, call: string, body: object): Promise<Shots> {
  const folder = dirname(bodyFile);
  const answer = await fetch(`${origin}/api/posts?agent=${seed.slug}&limit=1`);
  const { posts } = (await answer.json()) as { posts: { id: string }[] };
  const file = join(folder, `${call}.json`);
  writeFileSync(file, JSON.stringify(body).replace('"±1"', '±1'));
  return {
    url: `${origin}/api/posts/${posts[0]?.id ?? ''}/${call}`,
    bodyFile: file,
    keysFile: keysFileOf(folder),
  };
}

/** So many workers on all cores, beside the load. */
export function workers(count: number): Stage {
  return {
    title: 'Two workers on all cores',
    rows: [page('post, br', 'blog', '/post-0', 'br'), ownPosts, { ...newPost, what: 'new post of 5 KB' }],
    warmUp: untilCompiled,
    open: (place) => openService(copied(place), { WORKERS: String(count) }, { core: null }),
  };
}

/** nginx, measured, with the configuration that is shipped. */
export const behindNginx: Stage = {
  title: 'Behind nginx, at most one second old',
  rows: [page('post, br', 'blog', '/post-0', 'br')],
  open: (place) => openBehindNginx(place),
};

export async function openBehindNginx(
  place: Place,
  { staticPort }: { readonly staticPort?: number } = {},
): Promise<Target> {
  const port = await freePort();
  const env = { BASE_URL: `http://localhost:${port}`, TRUST_PROXY: 'loopback' };
  // It answers once a second, so it may share the core of the load.
  const { service, ...target } = await openService(place, env, { core: cores.load });
  const nginx = await startNginx({
    folder: place.folder,
    port,
    upstreamPort: service.port,
    prefix: pinned(cores.server, []),
    configuration: join(place.release.root, 'deploy/nginx/masthead.conf'),
    ...(staticPort === undefined ? {} : { staticPort }),
  });
  return {
    ...target,
    server: { cpu: () => cpuOfChildren(nginx.pid) },
    origin: `http://127.0.0.1:${port}`,
    ...hosts(place.seed, port),
    async stop() {
      await nginx.stop();
      await service.stop();
    },
  };
}

/** A place with a database of its own, for what writes. */
export function copied(place: Place): Place {
  return { ...place, seed: copySeed(place.seed, join(place.folder, 'data')) };
}

export async function openService(
  { folder, release, seed }: Place,
  env: Readonly<Record<string, string>> = {},
  where: { readonly core?: number | null } = {},
): Promise<Target & { readonly service: Service }> {
  mkdirSync(folder, { recursive: true });
  const bodyFile = join(folder, 'post.json');
  // wrk puts another text in place of @@, autocannon in place of [<id>].
  const content = `${article(1)}\n\nRun @@.`;
  const post = { title: 'Load @@ [<id>]', content, status: 'published', tags: ['measured'] };
  writeFileSync(bodyFile, JSON.stringify(post));
  const service = await startService(release.packageFolder, seed.dataDir, env, where);
  const { origin, pid, port } = service;
  const alone = Number(env['WORKERS'] ?? 1) === 1;
  const cpu = () => service.cpu() + (alone ? 0 : cpuOfChildren(pid));
  return {
    service,
    server: { cpu },
    origin,
    ...hosts(seed, port),
    seed,
    bodyFile,
    stop: () => service.stop(),
  };
}

function hosts({ slug }: Seed, port: number): Pick<Target, 'site' | 'blog'> {
  return { site: `localhost:${port}`, blog: `${slug}.localhost:${port}` };
}

function page(what: string, host: 'site' | 'blog', path: string, encoding: string): Row {
  return {
    what,
    shots: (target) => ({
      url: target.origin + path,
      headers: { Host: target[host], 'Accept-Encoding': encoding },
    }),
  };
}

async function askUnchanged({ origin, blog }: Target): Promise<Shots> {
  const url = `${origin}/post-0`;
  const headers = { Host: blog, 'Accept-Encoding': 'br' };
  // The first answer may still be made without a cache.
  await record(url, headers);
  const { headers: sent } = await record(url, headers);
  const etag = sent[sent.findIndex((name) => name.toLowerCase() === 'etag') + 1] ?? '';
  return { url, headers: { ...headers, 'If-None-Match': etag } };
}

function withKey({ seed }: Target): Readonly<Record<string, string>> {
  return { Authorization: `Bearer ${seed.apiKey}` };
}
