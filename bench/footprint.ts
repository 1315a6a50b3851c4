import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { article } from './article.ts';
import { median } from './compare.ts';
import { load } from './load.ts';
import type { Finding, Section } from './report.ts';
import { copySeed, startService } from './service.ts';
import type { World } from './world.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** From the start of the program to its first answer, with the database that is there. */
export async function measureStart({ packageFolder, seed }: World): Promise<Section> {
  const times: number[] = [];
  // The first start compiles; the others find that done.
  for (let i = 0; i < 8; i++) {
    const service = await startService(packageFolder, seed.dataDir, {}, { core: null });
    if (i > 0) times.push(service.firstAnswer);
    await service.stop();
  }
  const time = median(times);
  return {
    title: 'Start',
    findings: [alone(`first answer, ${seed.posts} posts`, `${Math.round(time)} ms`, '≤ 500 ms', time <= 500)],
  };
}

/** Resident memory: at rest, and the most while it publishes, then lists, then serves pages. */
export async function measureMemory({ folder, packageFolder, seed, plan }: World): Promise<Section> {
  const copy = copySeed(seed, join(folder, 'memory'));
  const service = await startService(packageFolder, copy.dataDir);
  let peak = 0;
  const timer = setInterval(() => (peak = Math.max(peak, service.resident())), 50);
  try {
    await delay(10_000);
    const idle = service.resident();
    const bodyFile = join(folder, 'memory.json');
    const post = { title: 'Memory @@ [<id>]', content: article(1), status: 'published' };
    writeFileSync(bodyFile, JSON.stringify(post));
    const headers = { Authorization: `Bearer ${copy.apiKey}` };
    const seconds = plan.seconds * plan.rounds;
    await load(service, { url: `${service.origin}/api/publish`, headers, bodyFile }, seconds);
    await load(service, { url: `${service.origin}/api/posts?limit=50`, headers }, seconds);
    const Host = `${copy.slug}.localhost:${service.port}`;
    await load(service, { url: `${service.origin}/post-0`, headers: { Host } }, seconds);
    const mebibytes = (value: number) => `${Math.round(value)} MiB`;
    return {
      title: 'Resident memory',
      findings: [
        alone('at rest', mebibytes(idle), '≤ 130 MiB', idle <= 130),
        alone('most under load', mebibytes(peak), '≤ 260 MiB', peak <= 260),
      ],
    };
  } finally {
    clearInterval(timer);
    await service.stop();
  }
}

/** What an installation takes, by the lockfile: all packages that are not for development, Node aside. */
export function measureInstall({ packageFolder }: World): Section {
  const packages = productionPackages().filter((path) => existsSync(join(root, path)));
  const own = ['bin', 'dist', 'assets', 'docs'].map((part) => join(packageFolder, part));
  const folders = [...own, ...packages.map((path) => join(root, path))];
  const megabytes = folders.reduce((sum, folder) => sum + bytesOnDisk(folder), 0) / 1e6;
  return {
    title: 'Installation, Node aside',
    findings: [
      alone('size', `${Math.round(megabytes)} MB`, '≤ 65 MB', megabytes <= 65),
      alone('packages', String(packages.length), '≤ 85', packages.length <= 85),
    ],
  };
}

type Locked = { readonly dev?: boolean; readonly devOptional?: boolean; readonly link?: boolean };

function productionPackages(): string[] {
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
