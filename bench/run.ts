import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { layOutPackage } from '../scripts/build.ts';
import { measureLists, measurePublishing } from './api.ts';
import { measureInstall, measureMemory, measureStart } from './footprint.ts';
import { loader } from './load.ts';
import { describeMachine, temporaryFolder } from './machine.ts';
import { measurePages } from './pages.ts';
import { measureProxy } from './proxy.ts';
import { report, writeReport, type Section } from './report.ts';
import { seed } from './service.ts';
import { measureWorkers } from './workers.ts';
import type { World } from './world.ts';

const parts: Readonly<Record<string, (world: World) => Promise<Section[]> | Section[]>> = {
  pages: measurePages,
  lists: async (world) => [await measureLists(world)],
  publishing: async (world) => [await measurePublishing(world)],
  workers: async (world) => [await measureWorkers(world)],
  proxy: measureProxy,
  start: async (world) => [await measureStart(world)],
  memory: async (world) => [await measureMemory(world)],
  install: (world) => [measureInstall(world)],
};

const { values } = parseArgs({
  options: {
    /** Parts to run, by name, parted by commas; all unless told. */
    only: { type: 'string', default: Object.keys(parts).join(',') },
    /** Short loads, many times in turn: what else the machine does for some seconds spoils few of the pairs. */
    seconds: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '15' },
    posts: { type: 'string', default: '10000' },
    /** `Ghost 6.65=http://127.0.0.1:2368/a-post/`: a post of somebody else's server; can be repeated. */
    rival: { type: 'string', multiple: true, default: [] },
    /** Where to write the results; nowhere when empty. */
    out: { type: 'string', default: new URL('./RESULTS.md', import.meta.url).pathname },
  },
});

const chosen = values.only.split(',').map((name) => {
  const part = parts[name];
  if (!part) throw new Error(`there is no part '${name}': choose from ${Object.keys(parts).join(', ')}`);
  return part;
});
const rivals = values.rival.map((text) => {
  const [, name = '', url = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (!/^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?\//.test(url))
    throw new Error(`'${text}' is not NAME=http://127.0.0.1:PORT/PATH: nothing else is loaded`);
  return { name, url };
});

const folder = temporaryFolder('bench');
const packageFolder = await layOutPackage(folder);
const world: World = {
  folder,
  release: { root: fileURLToPath(new URL('..', import.meta.url)), packageFolder },
  seed: await seed(packageFolder, join(folder, 'seed'), Number(values.posts)),
  plan: { seconds: Number(values.seconds), rounds: Number(values.rounds) },
  rivals,
};
const sections: Section[] = [];
for (const part of chosen) sections.push(...(await part(world)));

const machine = [
  ...describeMachine(),
  `${values.posts} posts of about 5 KB; ${loader}, ${values.rounds} rounds of ${values.seconds} s a side`,
];
const text = report(machine, sections);
process.stdout.write(`${text}\n`);
writeReport(values.out, text);
const missed = sections.flatMap(({ findings }) => findings.filter(({ met }) => !met));
process.exit(missed.length > 0 ? 1 : 0);
