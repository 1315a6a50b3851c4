import { join } from 'node:path';
import { compare, measure, type Comparison } from './compare.ts';
import { startRival } from './machine.ts';
import { micros, perSecond, type Finding, type Section } from './report.ts';
import { lists, publishing } from './rows.ts';
import { copySeed } from './service.ts';
import { within, type World } from './world.ts';

const sqlite = `node:sqlite ${process.versions['sqlite'] ?? ''}`;

/** Publishing against a loop that does nothing but what cannot be left out. */
export async function measurePublishing(world: World): Promise<Section> {
  const theirs = copySeed(world.seed, join(world.folder, 'theirs'));
  const target = await publishing.open(within(world, 'ours'));
  const floor = await startRival('publish-floor.ts', { DATABASE: join(theirs.dataDir, 'masthead.db') }, 404);
  try {
    const findings: Finding[] = [];
    for (const { what, shots } of publishing.rows) {
      const comparison = await compare(
        { server: target.server, shots: await shots(target) },
        { server: floor, shots: { url: `${floor.origin}/`, bodyFile: target.bodyFile } },
        { ...world.plan, ...publishing },
      );
      const met = comparison.ratio >= 0.6;
      findings.push({ ...against(what, 'its floor', comparison, '≥ 0.6'), met });
    }
    return { title: publishing.title, findings };
  } finally {
    await Promise.all([target.stop(), floor.stop()]);
  }
}

/** Lists of 50 posts, and what the driver and a bare server make of one. */
export async function measureLists(world: World): Promise<Section> {
  const target = await lists.open(world);
  const floor = await startRival('list-floor.ts', { DATABASE: join(world.seed.dataDir, 'masthead.db') });
  try {
    const findings: Finding[] = [];
    for (const { what, shots } of lists.rows) {
      const side = { server: target.server, shots: await shots(target) };
      if (!side.shots.url.includes('limit=')) {
        const { perSecond: rate, cpu } = await measure(side, world.plan);
        const ours = `${perSecond(rate)}, ${micros(cpu)}`;
        findings.push({ what, ours, rival: null, ratio: null, target: 'none', met: true });
        continue;
      }
      const theirs = { server: floor, shots: { url: `${floor.origin}/` } };
      const comparison = await compare(side, theirs, world.plan);
      const finding = against(what, `one query by ${sqlite}, bare server`, comparison, '≥ 6,000/s');
      findings.push({ ...finding, met: comparison.ours.perSecond >= 6_000 });
    }
    return { title: lists.title, findings };
  } finally {
    await Promise.all([target.stop(), floor.stop()]);
  }
}

function against(
  what: string,
  rival: string,
  { ours, theirs, ratio }: Comparison,
  target: string,
): Omit<Finding, 'met'> {
  return {
    what,
    ours: `${perSecond(ours.perSecond)}, ${micros(ours.cpu)}`,
    rival: `${rival}: ${perSecond(theirs.perSecond)}, ${micros(theirs.cpu)}`,
    ratio,
    target,
  };
}
