import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compare, measure, type Comparison } from './compare.ts';
import { startRival, type Measured } from './machine.ts';
import { micros, perSecond, type Finding, type Section } from './report.ts';
import { record } from './record.ts';
import { cachedPages, uncachedPages, type Row, type Target } from './rows.ts';
import type { World } from './world.ts';

/** Cached pages against a bare server that sends the same bytes with the same headers, and pages made anew. */
export async function measurePages(world: World): Promise<Section[]> {
  const target = await cachedPages.open(world);
  try {
    const cached: Finding[] = [];
    for (const row of cachedPages.rows) cached.push(await againstBareServer(world, target, row));
    const rivals: Finding[] = [];
    for (const rival of world.rivals) rivals.push(await againstRival(world, target, rival));
    return [
      { title: cachedPages.title, findings: cached },
      ...(rivals.length > 0 ? [{ title: 'A post, by other programs', findings: rivals }] : []),
      { title: uncachedPages.title, findings: await uncached(world) },
    ];
  } finally {
    await target.stop();
  }
}

async function againstBareServer({ folder, plan }: World, target: Target, row: Row): Promise<Finding> {
  const shots = await row.shots(target);
  // The first answer may still be made without a cache.
  await record(shots.url, shots.headers);
  const recorded = await record(shots.url, shots.headers);
  if (recorded.status !== (shots.headers?.['If-None-Match'] === undefined ? 200 : 304))
    throw new Error(`${shots.url}: ${recorded.status}`);
  const file = join(folder, 'answer.json');
  writeFileSync(file, JSON.stringify(recorded));
  const bare = await startRival('bare-server.ts', { ANSWER: file }, recorded.status);
  try {
    const theirs = { ...shots, url: bare.origin + new URL(shots.url).pathname };
    const comparison = await compare({ server: target.server, shots }, { server: bare, shots: theirs }, plan);
    return finding(row.what, `node:http ${process.versions.node}`, comparison);
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
  { server, origin, blog }: Target,
  { name, url }: World['rivals'][number],
): Promise<Finding> {
  const headers = { 'Accept-Encoding': 'gzip' };
  const ours = {
    server,
    shots: { url: `${origin}/${world.seed.post}`, headers: { ...headers, Host: blog } },
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

async function uncached(world: World): Promise<Finding[]> {
  const target = await uncachedPages.open(world);
  try {
    const findings: Finding[] = [];
    for (const { what, shots } of uncachedPages.rows) {
      const side = { server: target.server, shots: await shots(target) };
      const { perSecond: rate, cpu } = await measure(side, world.plan);
      findings.push({
        what,
        ours: `${perSecond(rate)}, ${micros(cpu)}`,
        rival: null,
        ratio: null,
        target: '≤ 1,000 µs',
        met: cpu <= 1_000,
      });
    }
    return findings;
  } finally {
    await target.stop();
  }
}
