import { Agent } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { request, type RequestOptions } from '../../test/support/http.ts';
import { article } from '../article.ts';

import type { PublicPost } from './attack.ts';

/** An honest client: what it asks for, and how often. */
type Bystander = {
  /** Milliseconds from one call to the next, whether or not that has been answered. */
  readonly every: number;
  /** The p99 that it may see in any case, ms. */
  readonly atMost: number;
  readonly next: (place: Place, n: number) => RequestOptions;
};

export type Place = {
  readonly port: number;
  readonly key: string;
  readonly posts: readonly PublicPost[];
};

/** Ms; calls that failed, or took more than 10 s, count as 10 s. */
export type Delays = {
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
  readonly calls: number;
};

const patience = 10_000;
const words = 'water summit ridge stone prism pocket model linen kernel horizon grain feather'.split(' ');

/** Who is looked at, by name. Each at an address of its own. */
export const bystanders: Readonly<Record<string, Bystander>> = {
  page: {
    every: 20,
    atMost: 50,
    next: ({ port, posts }, n) => {
      const { host, pathname } = new URL(posts[(n * 31) % posts.length]?.url ?? `http://localhost:${port}`);
      return { host, path: pathname };
    },
  },
  API: {
    every: 40,
    atMost: 50,
    next: ({ key, posts }, n) => ({
      headers: { authorization: `Bearer ${key}` },
      path:
        n % 2 === 0
          ? `/api/posts/${posts[(n * 17) % posts.length]?.id}`
          : `/api/posts?limit=20&offset=${n % 400}`,
    }),
  },
  search: {
    every: 100,
    atMost: 50,
    next: (_, n) => ({
      path: `/api/search?q=${words[n % words.length]}+${words[(n * 5 + 1) % words.length]}+${n % 50}`,
    }),
  },
  publish: {
    every: 100,
    atMost: 250,
    next: ({ key }, n) => ({
      method: 'POST',
      path: '/api/publish',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        slug: `beside-${process.pid}-${n}`,
        title: `Beside ${n}`,
        content: article(n),
        status: 'published',
      }),
    }),
  },
};

let called = 0;

/** What each sees while all of them call for so long; `own` is by how much this process itself was late (p99, ms). */
export async function watch(place: Place, names: readonly string[], seconds: number) {
  const late = monitorEventLoopDelay({ resolution: 5 });
  late.enable();
  const seen = await Promise.all(
    names.map(async (name, at) => [name, await watchOne(place, name, at, seconds)] as const),
  );
  late.disable();
  return { seen: Object.fromEntries(seen), own: late.percentile(99) / 1e6 - 5 };
}

async function watchOne(place: Place, name: string, at: number, seconds: number): Promise<Delays> {
  const bystander = bystanders[name];
  if (!bystander) throw new Error(`nobody is called ${name}`);
  const agent = new Agent({ keepAlive: true });
  const begun = performance.now();
  const calls: Promise<number | null>[] = [];
  for (let due = 0; due < seconds * 1000; due += bystander.every) {
    await delay(Math.max(0, begun + due - performance.now()));
    const { headers, host, ...call } = bystander.next(place, called++);
    calls.push(
      request(`http://127.0.0.1:${place.port}`, {
        agent,
        timeout: patience,
        ...call,
        host: host ?? `localhost:${place.port}`,
        headers: { 'x-forwarded-for': `198.51.100.${at + 1}`, ...headers },
      }).then(
        // From when it was due, so that waiting for a connection counts.
        ({ status }) => (status < 400 ? Math.min(patience, performance.now() - begun - due) : null),
        () => null,
      ),
    );
  }
  const times = await Promise.all(calls);
  agent.destroy();
  const sorted = times.map((time) => time ?? patience).toSorted((a, b) => a - b);
  const percentile = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN;
  const failed = times.filter((time) => time === null).length;
  return { p50: percentile(0.5), p99: percentile(0.99), failed, calls: times.length };
}
