import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { article } from './article.ts';
import { compare } from './compare.ts';
import type { Shots } from './load.ts';
import { cpuOfChildren } from './machine.ts';
import { micros, perSecond, type Finding, type Section } from './report.ts';
import { copySeed, startService } from './service.ts';
import type { World } from './world.ts';

/** What a request may cost with two workers, against one. */
const most = 1.1;

/** Two workers and one, each on all cores, beside the load: what it costs that they share their work. */
export async function measureWorkers(world: World): Promise<Section> {
  const { folder, packageFolder, seed, plan } = world;
  const [first, second] = ['one', 'two'].map((name) => copySeed(seed, join(folder, name)));
  if (!first || !second) throw new Error('there is no seed');
  const bodyFile = join(folder, 'workers.json');
  const post = { title: 'Load @@ [<id>]', content: article(1), status: 'published' };
  writeFileSync(bodyFile, JSON.stringify(post));
  const everywhere = { core: null };
  const one = await startService(packageFolder, first.dataDir, {}, everywhere);
  const two = await startService(packageFolder, second.dataDir, { WORKERS: '2' }, everywhere);
  try {
    const key = { Authorization: `Bearer ${seed.apiKey}` };
    const cases: readonly { what: string; path: string; shots: Omit<Shots, 'url'>; blog?: true }[] = [
      {
        what: 'post, br',
        path: `/${seed.post}`,
        shots: { headers: { 'Accept-Encoding': 'br' } },
        blog: true,
      },
      { what: 'own posts, with the key', path: '/api/posts?limit=50', shots: { headers: key } },
      { what: 'new post of 5 KB', path: '/api/publish', shots: { headers: key, bodyFile } },
    ];
    const findings: Finding[] = [];
    for (const { what, path, shots, blog } of cases) {
      const side = (service: typeof one, cpu: () => number) => {
        const headers = blog
          ? { ...shots.headers, Host: `${seed.slug}.localhost:${service.port}` }
          : shots.headers;
        return { server: { cpu }, shots: { ...shots, headers: headers ?? {}, url: service.origin + path } };
      };
      const {
        ours,
        theirs,
        cpuRatio: ratio,
      } = await compare(
        side(two, () => two.cpu() + cpuOfChildren(two.pid)),
        side(one, () => one.cpu()),
        { ...plan, warmUp: 5 },
      );
      findings.push({
        what,
        ours: `${micros(ours.cpu)}, ${perSecond(ours.perSecond)}`,
        rival: `one worker: ${micros(theirs.cpu)}, ${perSecond(theirs.perSecond)}`,
        ratio,
        target: `≤ ${most}`,
        met: ratio <= most,
      });
    }
    return { title: 'Two workers on all cores, processor time a request', findings };
  } finally {
    await Promise.all([one.stop(), two.stop()]);
  }
}
