import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compare, measure, type Comparison } from './compare.ts';
import { startRival, type Measured, type Rival } from './machine.ts';
import { micros, perSecond, type Finding, type Section } from './report.ts';
import { record } from './record.ts';
import type { Recorded } from './rivals/bare-server.ts';
import { startService, type Service } from './service.ts';
import type { World } from './world.ts';

/** Every kind of page, in the form it is asked for. */
const kinds = [
  { what: 'post, br', path: '/post-0', blog: true, encoding: 'br' },
  { what: 'post, gzip', path: '/post-0', blog: true, encoding: 'gzip' },
  { what: 'post, identity', path: '/post-0', blog: true, encoding: 'identity' },
  { what: 'post, 304', path: '/post-0', blog: true, encoding: 'br', unchanged: true },
  { what: 'post as markdown', path: '/post-0.md', blog: true, encoding: 'br' },
  { what: 'blog, br', path: '/', blog: true, encoding: 'br' },
  { what: 'feed, gzip', path: '/feed.xml', blog: true, encoding: 'gzip' },
  { what: 'home, br', path: '/', blog: false, encoding: 'br' },
];

/** Cached pages against a bare server that sends the same bytes with the same headers, and pages made anew. */
export async function measurePages(world: World): Promise<Section[]> {
  const service = await startService(world.packageFolder, world.seed.dataDir);
  try {
    const cached: Finding[] = [];
    for (const kind of kinds) cached.push(await againstBareServer(world, service, kind));
    const rivals: Finding[] = [];
    for (const rival of world.rivals) rivals.push(await againstRival(world, service, rival));
    return [
      { title: 'Cached pages', findings: cached },
      ...(rivals.length > 0 ? [{ title: 'A post, by other programs', findings: rivals }] : []),
      { title: 'Pages that are not in the cache', findings: await uncached(world) },
    ];
  } finally {
    await service.stop();
  }
}

type Kind = (typeof kinds)[number];

async function againstBareServer(world: World, service: Service, kind: Kind): Promise<Finding> {
  const host = kind.blog ? `${world.seed.slug}.localhost:${service.port}` : `localhost:${service.port}`;
  const plain = { Host: host, 'Accept-Encoding': kind.encoding };
  const url = service.origin + kind.path;
  await record(url, plain);
  const whole = await record(url, plain);
  const etag = whole.headers[whole.headers.findIndex((name) => name.toLowerCase() === 'etag') + 1] ?? '';
  const headers = kind.unchanged ? { ...plain, 'If-None-Match': etag } : plain;
  const recorded = kind.unchanged ? await record(url, headers) : whole;
  if (recorded.status !== (kind.unchanged ? 304 : 200)) throw new Error(`${url}: ${recorded.status}`);

  const bare = await startBareServer(world.folder, recorded);
  try {
    const ours = { server: service, shots: { url, headers } };
    const theirs = { server: bare, shots: { url: bare.origin + kind.path, headers } };
    return finding(kind.what, `node:http ${process.versions.node}`, await compare(ours, theirs, world.plan));
  } finally {
    await bare.stop();
  }
}

function finding(what: string, rival: string, { ours, theirs, ratio }: Comparison): Finding {
  return {
    what,
    ours: `${perSecond(ours.perSecond)}, ${micros(ours.cpu)}`,
    rival: `${rival}: ${perSecond(theirs.perSecond)}, ${micros(theirs.cpu)}`,
    ratio,
    target: '≥ 0.9',
    met: ratio >= 0.9,
  };
}

/** A server of somebody else, on its own core or not: what it runs on is not ours to choose. */
async function againstRival(
  world: World,
  service: Service,
  { name, url }: World['rivals'][number],
): Promise<Finding> {
  const headers = { 'Accept-Encoding': 'gzip' };
  const host = `${world.seed.slug}.localhost:${service.port}`;
  const ours = {
    server: service,
    shots: { url: `${service.origin}/${world.seed.post}`, headers: { ...headers, Host: host } },
  };
  const unknown: Pick<Measured, 'cpu'> = { cpu: () => NaN };
  const comparison = await compare(ours, { server: unknown, shots: { url, headers } }, world.plan);
  return {
    what: 'post, gzip',
    ours: perSecond(comparison.ours.perSecond),
    rival: `${name}: ${perSecond(comparison.theirs.perSecond)}`,
    ratio: comparison.ratio,
    target: '> 1',
    met: comparison.ratio > 1,
  };
}

/** With a cache too small to keep anything, every request makes its page and compresses it. */
async function uncached({ packageFolder, seed, plan }: World): Promise<Finding[]> {
  const service = await startService(packageFolder, seed.dataDir, { PAGE_CACHE_MB: '0' });
  try {
    const findings: Finding[] = [];
    for (const encoding of ['br', 'gzip', 'zstd']) {
      const headers = { Host: `${seed.slug}.localhost:${service.port}`, 'Accept-Encoding': encoding };
      const shots = { url: `${service.origin}/${seed.post}`, headers };
      const { perSecond: rate, cpu } = await measure({ server: service, shots }, plan);
      findings.push({
        what: `post of 5 KB, ${encoding}`,
        ours: `${perSecond(rate)}, ${micros(cpu)}`,
        rival: null,
        ratio: null,
        target: '≤ 1,000 µs',
        met: cpu <= 1_000,
      });
    }
    return findings;
  } finally {
    await service.stop();
  }
}

function startBareServer(folder: string, recorded: Recorded): Promise<Rival> {
  const file = join(folder, 'answer.json');
  writeFileSync(file, JSON.stringify(recorded));
  return startRival('bare-server.ts', { ANSWER: file }, recorded.status);
}
