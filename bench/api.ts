import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { article } from './article.ts';
import { compare, measure, type Comparison } from './compare.ts';
import type { Shots } from './load.ts';
import { startRival } from './machine.ts';
import { micros, perSecond, type Finding, type Section } from './report.ts';
import { copySeed, startService } from './service.ts';
import type { World } from './world.ts';

const sqlite = `node:sqlite ${process.versions['sqlite'] ?? ''}`;

/** Publishing against a loop that does nothing but what cannot be left out. */
export async function measurePublishing(world: World): Promise<Section> {
  const ours = copySeed(world.seed, join(world.folder, 'ours'));
  const theirs = copySeed(world.seed, join(world.folder, 'theirs'));
  const bodyFile = join(world.folder, 'post.json');
  // wrk puts another text in place of @@, autocannon in place of [<id>].
  const post = { title: 'Load @@ [<id>]', content: article(1), status: 'published', tags: ['measured'] };
  writeFileSync(bodyFile, JSON.stringify(post));

  const service = await startService(world.packageFolder, ours.dataDir);
  const floor = await startRival('publish-floor.ts', { DATABASE: join(theirs.dataDir, 'masthead.db') }, 404);
  try {
    const headers = { Authorization: `Bearer ${ours.apiKey}` };
    const comparison = await compare(
      { server: service, shots: { url: `${service.origin}/api/publish`, headers, bodyFile } },
      { server: floor, shots: { url: `${floor.origin}/`, bodyFile } },
      // Code that runs a thousand times a second takes some seconds until it is compiled.
      { ...world.plan, warmUp: 5 },
    );
    const finding = against('new post of 5 KB, durable', 'its floor', comparison, '≥ 0.6');
    return {
      title: 'Publishing',
      findings: [{ ...finding, met: comparison.ratio >= 0.6 }],
    };
  } finally {
    await Promise.all([service.stop(), floor.stop()]);
  }
}

/** Lists of 50 posts, and what the driver and a bare server make of one. */
export async function measureLists(world: World): Promise<Section> {
  const service = await startService(world.packageFolder, world.seed.dataDir);
  const floor = await startRival('list-floor.ts', { DATABASE: join(world.seed.dataDir, 'masthead.db') });
  try {
    const key = { Authorization: `Bearer ${world.seed.apiKey}` };
    const url = `${service.origin}/api/posts?limit=50`;
    const cases: readonly { what: string; shots: Shots }[] = [
      { what: 'own posts, with the key', shots: { url, headers: key } },
      { what: 'everyone’s posts', shots: { url } },
    ];
    const findings: Finding[] = [];
    for (const { what, shots } of cases) {
      const floorShots = { url: `${floor.origin}/` };
      const sides = [
        { server: service, shots },
        { server: floor, shots: floorShots },
      ] as const;
      const comparison = await compare(...sides, world.plan);
      const finding = against(what, `one query by ${sqlite}, bare server`, comparison, '≥ 6,000/s');
      findings.push({ ...finding, met: comparison.ours.perSecond >= 6_000 });
    }
    const me = await measure(
      { server: service, shots: { url: `${service.origin}/api/limits`, headers: key } },
      world.plan,
    );
    findings.push({
      what: 'GET /api/limits, with the key',
      ours: `${perSecond(me.perSecond)}, ${micros(me.cpu)}`,
      rival: null,
      ratio: null,
      target: 'none',
      met: true,
    });
    return { title: 'Lists of 50', findings };
  } finally {
    await Promise.all([service.stop(), floor.stop()]);
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
