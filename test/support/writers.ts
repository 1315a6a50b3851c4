import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { MastheadError, createClient, type MastheadClient } from '../../client/src/index.ts';
import { readNewestMail } from '../../src/mail/stored-mail.ts';

/** Settings of a server whose writers are not held up by limits. */
export const unlimited = {
  LIMIT_PUBLISH: '0',
  LIMIT_COMMENT: '0',
  LIMIT_REGISTER: '0',
  LIMIT_API: '0',
  LIMIT_ANONYMOUS: '0',
  QUOTA_POSTS: '10000000',
  LOG_LEVEL: 'warn',
} as const;

/** Clients that publish as fast as they are answered, and what they were told. */
export type Writers = {
  /** Titles of posts by the id that an answer gave: kept here, outside of the server. */
  readonly acknowledged: ReadonlyMap<string, string>;
  /** How often a call was refused, by code. */
  readonly refusals: ReadonlyMap<string, number>;
  /** Resolves when so many more posts are acknowledged. */
  more(count: number): Promise<void>;
  /** Resolves when the last call is answered. */
  stop(): Promise<void>;
};

export type WriterOptions = {
  readonly clients: number;
  /** Words of each post beside those that name it. */
  readonly words?: number;
  /** Number of the first post of each client, for writers that follow others. */
  readonly first?: number;
};

/** Starts clients of one agent. A post whose answer was lost is sent again: the same title finds it. */
export function startWriters(
  baseUrl: string,
  apiKey: string,
  { clients, words = 0, first = 0 }: WriterOptions,
): Writers {
  const acknowledged = new Map<string, string>();
  const refusals = new Map<string, number>();
  const stop = new AbortController();
  const filling = ' word'.repeat(words);

  async function write(name: number): Promise<void> {
    const client = createClient({ baseUrl, apiKey, retry: { attempts: 1 } });
    for (let n = first; !stop.signal.aborted;) {
      const title = `Client ${name} post ${n}`;
      try {
        const { post } = await client.publish({
          title,
          content: textOf(title) + filling,
          status: 'published',
        });
        acknowledged.set(post.id, title);
        n += 1;
      } catch (error) {
        if (error instanceof MastheadError) refusals.set(error.code, (refusals.get(error.code) ?? 0) + 1);
        await delay(20);
      }
    }
  }
  const running = Array.from({ length: clients }, (_, name) => write(name));

  return {
    acknowledged,
    refusals,
    async more(count) {
      const wanted = acknowledged.size + count;
      while (acknowledged.size < wanted) await delay(5);
    },
    async stop() {
      stop.abort();
      await Promise.all(running);
    },
  };
}

/** Registers and verifies an agent of a server that puts its mail into `dataDir`; a client with its key. */
export async function newAgent(baseUrl: string, dataDir: string): Promise<MastheadClient> {
  const client = createClient({ baseUrl });
  await client.register({ email: 'ada@example.com', name: 'Ada', slug: 'ada' });
  await client.waitForVerification(
    async () => (await readNewestMail(join(dataDir, 'mail'), { holdingToken: true }))?.token ?? null,
    { interval: 20, timeout: 60_000 },
  );
  return client;
}

/** Asserts that everything acknowledged is there, whole and once, and that all counters agree; how many there are. */
export async function assertStored(
  client: MastheadClient,
  acknowledged: ReadonlyMap<string, string>,
): Promise<number> {
  const found = new Map<string, string>();
  for await (const post of client.iteratePosts({ limit: 1000 })) {
    assert.equal(found.has(post.id), false);
    found.set(post.id, post.title);
    assert.ok(post.excerpt.startsWith(textOf(post.title)), `half of a post: ${post.title}`);
  }
  const lost = [...acknowledged].filter(([id, title]) => found.get(id) !== title);
  assert.deepEqual(lost, [], `${lost.length} acknowledged and lost`);
  assert.equal(new Set(found.values()).size, found.size, 'a post is there twice');
  const { agent } = await client.me();
  assert.equal(agent.postCount, found.size, 'a counter was kept apart from what it counts');
  assert.equal((await client.discoverPosts({ limit: 1 })).total, found.size);
  return found.size;
}

function textOf(title: string): string {
  return `Text of ${title}.`;
}
