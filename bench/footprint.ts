import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { median } from './compare.ts';
import { load } from './load.ts';
import type { Finding, Section } from './report.ts';
import { cachedPages, copied, lists, openService, publishing } from './rows.ts';
import { startService } from './service.ts';
import { within, type Place, type Release, type World } from './world.ts';

/** From the start of the program to its first answer, with the database that is there, ms. */
export async function firstAnswer({ release, seed }: Place): Promise<number> {
  const service = await startService(release.packageFolder, seed.dataDir, {}, { core: null });
  await service.stop();
  return service.firstAnswer;
}

export async function measureStart(world: World): Promise<Section> {
  // The first start compiles; the others find that done.
  await firstAnswer(world);
  const times: number[] = [];
  for (let i = 0; i < 7; i++) times.push(await firstAnswer(world));
  const time = median(times);
  const what = `first answer, ${world.seed.posts} posts`;
  return { title: 'Start', findings: [alone(what, `${Math.round(time)} ms`, '≤ 500 ms', time <= 500)] };
}

/** Starts a service with a database of its own, whose memory is watched (the process tree, shared memory once), MiB. */
export async function watchMemory(place: Place) {
  const target = await openService(copied(place));
  let peak = 0;
  const timer = setInterval(() => (peak = Math.max(peak, target.service.memory())), 50);
  return {
    async atRest(): Promise<number> {
      await delay(10_000);
      return target.service.memory();
    },
    /** The most since the start, after as many seconds of publishing, of lists, and of pages. */
    async underLoad(seconds: number): Promise<number> {
      for (const { rows } of [publishing, lists, cachedPages]) {
        const [row] = rows;
        if (row) await load(target.server, await row.shots(target), seconds);
      }
      return peak;
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      await target.stop();
    },
  };
}

/** Memory: at rest, and the most while it publishes, then lists, then serves pages. */
export async function measureMemory(world: World): Promise<Section> {
  const service = await watchMemory(within(world, 'memory'));
  try {
    const idle = await service.atRest();
    const peak = await service.underLoad(world.plan.seconds * world.plan.rounds);
    return {
      title: 'Memory of the process tree',
      findings: [
        alone('at rest', `${Math.round(idle)} MiB`, '≤ 130 MiB', idle <= 130),
        alone('most under load', `${Math.round(peak)} MiB`, '≤ 260 MiB', peak <= 260),
      ],
    };
  } finally {
    await service.stop();
  }
}

/** What an installation takes, by the lockfile: all packages that are not for development, Node aside. */
export function installation({ root, packageFolder }: Release): { megabytes: number; packages: number } {
  const packages = productionPackages(root).filter((path) => existsSync(join(root, path)));
  const own = ['bin', 'dist', 'assets', 'docs'].map((part) => join(packageFolder, part));
  const folders = [...own, ...packages.map((path) => join(root, path))];
  const megabytes = folders.reduce((sum, folder) => sum + bytesOnDisk(folder), 0) / 1e6;
  return { megabytes, packages: packages.length };
}

export function measureInstall({ release }: World): Section {
  const { megabytes, packages } = installation(release);
  return {
    title: 'Installation, Node aside',
    findings: [
      alone('size', `${Math.round(megabytes)} MB`, '≤ 65 MB', megabytes <= 65),
      alone('packages', String(packages), '≤ 85', packages <= 85),
    ],
  };
}

type Locked = { readonly dev?: boolean; readonly devOptional?: boolean; readonly link?: boolean };

function productionPackages(root: string): string[] {
  const lockfile = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  return Object.entries(lockfile.packages)
    .filter(([path, { dev, devOptional, link }]) => path !== '' && !dev && !devOptional && !link)
    .map(([path]) => path)
    .filter((path) => path.startsWith('node_modules/') && !/\/node-linux-/.test(path));
}

/** As blocks that files take; packages inside a package are counted by themselves. */
function bytesOnDisk(folder: string): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.name !== 'node_modules')
    .reduce((sum, entry) => {
      const path = join(folder, entry.name);
      return sum + (entry.isDirectory() ? bytesOnDisk(path) : lstatSync(path).blocks * 512);
    }, 0);
}

function alone(what: string, ours: string, target: string, met: boolean): Finding {
  return { what, ours, rival: null, ratio: null, target, met };
}
