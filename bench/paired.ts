// Another revision against what is here, in one run: npm run bench:paired -- --against main
// Both are built from their own source, have their own copy of one database that the other revision filled, and are
// measured in turn. Ends with exit code 1 when anything has become slower or larger.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nginxVersion } from '../test/support/nginx.ts';
import { inTurn, loadInTurn, median, medianInterval, usualWarmUp } from './compare.ts';
import { firstAnswer, installation, watchMemory } from './footprint.ts';
import { loader, type Load } from './load.ts';
import { describeMachine, temporaryFolder } from './machine.ts';
import {
  isWorse,
  micros,
  perSecond,
  reportPaired,
  writeReport,
  type PairedFinding,
  type PairedSection,
} from './report.ts';
import {
  behindNginx,
  cachedPages,
  engagement,
  lists,
  publishing,
  uncachedPages,
  workers,
  writing,
  type Stage,
} from './rows.ts';
import { copySeed, seed } from './service.ts';
import { within, type Place, type Release } from './world.ts';

/** What a row may lose (the goals); publishing waits for the disk, and wavers more. */
const least = 0.97;
const leastPublishing = 0.95;

const parts: Readonly<Record<string, () => Promise<PairedSection[]>>> = {
  pages: async () => [await inPairs(cachedPages), await inPairs(uncachedPages)],
  lists: async () => [await inPairs(lists)],
  publishing: async () => [await inPairs(loader === 'wrk' ? writing : publishing)],
  engagement: async () => (loader === 'wrk' ? [await inPairs(engagement)] : []),
  workers: async () => [await inPairs(workers(2))],
  proxy: async () => (nginxVersion() === null ? [] : [await inPairs(behindNginx)]),
  start: async () => [await starts()],
  memory: async () => [await memory()],
  install: async () => [installed()],
};

const { values } = parseArgs({
  options: {
    /** The revision to be measured against. */
    against: { type: 'string' },
    only: { type: 'string', default: Object.keys(parts).join(',') },
    pairs: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '1' },
    posts: { type: 'string', default: '10000' },
    out: { type: 'string', default: fileURLToPath(new URL('./PAIRED.md', import.meta.url)) },
  },
});
const { against } = values;
if (against === undefined) throw new Error('--against REVISION says what to compare with');
const chosen = values.only.split(',').map((name) => {
  const part = parts[name];
  if (!part) throw new Error(`there is no part '${name}': choose from ${Object.keys(parts).join(', ')}`);
  return part;
});
const plan = { seconds: Number(values.seconds), rounds: Number(values.pairs) };

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = temporaryFolder('paired');
const releases = {
  old: layOut(checkOut(against, join(folder, 'source')), join(folder, 'old')),
  new: layOut(root, join(folder, 'new')),
};
say('filling a database');
const filled = await seed(releases.old.packageFolder, join(folder, 'seed'), Number(values.posts));
const [old, now] = [place('old'), place('new')];

const sections: PairedSection[] = [];
for (const part of chosen) sections.push(...(await part()));
const text = reportPaired(
  [
    `old: ${describe(against)}; new: ${describe('HEAD')}${git('status', '--porcelain', '--', 'src') === '' ? '' : ' with changes'}`,
    ...describeMachine(),
    `${values.posts} posts of about 5 KB; ${loader}, ${values.pairs} pairs of ${values.seconds} s a side`,
  ],
  sections,
);
process.stdout.write(`${text}\n`);
writeReport(values.out, text);
process.exit(sections.some(({ findings }) => findings.some(isWorse)) ? 1 : 0);

/**
 * The rows of a stage, on both releases. Each pair has processes of its own: how V8 compiled one of them is worth up to
 * a fifth of a row, and the pairs of one process all say the same.
 */
async function inPairs(stage: Stage): Promise<PairedSection> {
  const name = stage.title.replaceAll(/\W+/g, '-');
  const measured = stage.rows.map((row) => ({ row, isPublishing: false, pairs: new Array<Pair<Load>>() }));
  for (let round = 0; round < plan.rounds; round++) {
    const before = await stage.open(within(old, name));
    const after = await stage.open(within(now, name));
    try {
      for (const [at, one] of measured.entries()) {
        const sides = [
          { server: before.server, shots: await one.row.shots(before) },
          { server: after.server, shots: await one.row.shots(after) },
        ] as const;
        one.isPublishing = sides[0].shots.bodyFile !== undefined;
        const once = { seconds: plan.seconds, rounds: 1, from: round, warmUp: warmUpOf(stage, at) };
        one.pairs.push(...(await loadInTurn(...sides, once)));
      }
    } finally {
      await Promise.all([before.stop(), after.stop()]);
    }
    say(`${stage.title}: pair ${round + 1} of ${plan.rounds}`);
  }
  const findings = measured.map(({ row, isPublishing, pairs }): PairedFinding => {
    const rates = pairs.map(([one, other]) => [one.perSecond, other.perSecond] as const);
    const costs = pairs.map(([one, other]) => [one.cpu, other.cpu] as const);
    const show = (side: 0 | 1) => `${perSecond(middle(rates, side))}, ${micros(middle(costs, side))}`;
    return {
      ...compared(row.what, rates, 'more'),
      old: show(0),
      new: show(1),
      cpu: compared(row.what, costs, 'less').ratio,
      least: isPublishing ? leastPublishing : least,
      worse: 'slower',
    };
  });
  return { title: stage.title, findings };
}

/** Seconds of load before a row counts: the rows of a stage share most of their code, which the first has compiled. */
function warmUpOf({ warmUp = usualWarmUp }: Stage, row: number): number {
  return row === 0 ? warmUp : Math.ceil(warmUp / 3);
}

async function starts(): Promise<PairedSection> {
  // The first start compiles; the others find that done.
  await firstAnswer(old);
  await firstAnswer(now);
  const times = await inTurn(
    plan.rounds,
    () => firstAnswer(old),
    () => firstAnswer(now),
  );
  return { title: 'Start', findings: [amount(`first answer, ${filled.posts} posts`, times, 'ms')] };
}

async function memory(): Promise<PairedSection> {
  const rest: (readonly [number, number])[] = [];
  const peaks: (readonly [number, number])[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    const before = await watchMemory(within(old, 'memory'));
    const after = await watchMemory(within(now, 'memory'));
    try {
      rest.push(await Promise.all([before.atRest(), after.atRest()]));
      const [first, second] = round % 2 === 0 ? [before, after] : [after, before];
      const peak = [await first.underLoad(plan.seconds), await second.underLoad(plan.seconds)] as const;
      peaks.push(round % 2 === 0 ? peak : [peak[1], peak[0]]);
    } finally {
      await Promise.all([before.stop(), after.stop()]);
    }
  }
  say('Resident memory');
  return {
    title: 'Resident memory',
    findings: [amount('at rest', rest, 'MiB'), amount('most under load', peaks, 'MiB')],
  };
}

/** The same whenever it is asked for: one pair. */
function installed(): PairedSection {
  const [before, after] = [installation(old.release), installation(now.release)];
  return {
    title: 'Installation, Node aside',
    findings: [
      amount('size', [[before.megabytes, after.megabytes]], 'MB'),
      amount('packages', [[before.packages, after.packages]], ''),
    ],
  };
}

type Pair<T> = readonly [old: T, now: T];
type Pairs = readonly Pair<number>[];

/** Figures of which less is better. */
function amount(what: string, pairs: Pairs, unit: string): PairedFinding {
  const show = (side: 0 | 1) => `${Math.round(middle(pairs, side))} ${unit}`.trimEnd();
  const worse = unit === 'ms' ? 'slower' : 'larger';
  return { ...compared(what, pairs, 'less'), old: show(0), new: show(1), cpu: null, least, worse };
}

function compared(what: string, pairs: Pairs, better: 'more' | 'less') {
  const ratios = pairs.map(([one, other]) => (better === 'more' ? other / one : one / other));
  return { what, ratio: median(ratios), interval: medianInterval(ratios) };
}

function middle(pairs: Pairs, side: 0 | 1): number {
  return median(pairs.map((pair) => pair[side]));
}

/** A folder, and a copy of the database, for one of the two. */
function place(side: keyof typeof releases): Place {
  const own = join(folder, `${side}-data`);
  return { folder: own, release: releases[side], seed: copySeed(filled, join(own, 'seed')) };
}

/** Unpacks a revision, with the packages that are installed here if it wants the same. Returns its folder. */
function checkOut(revision: string, target: string): string {
  mkdirSync(target, { recursive: true });
  const archive = execFileSync('git', ['archive', revision], { cwd: root, maxBuffer: 2 ** 30 });
  execFileSync('tar', ['-x', '-C', target], { input: archive });
  const lockfile = (at: string) => readFileSync(join(at, 'package-lock.json'), 'utf8');
  if (lockfile(target) === lockfile(root)) {
    const packages = [join(root, 'node_modules'), join(target, 'node_modules')];
    // Links cannot cross file systems, where a copy has to do.
    const linked = spawnSync('cp', ['-al', ...packages], { stdio: 'ignore' });
    if (linked.status !== 0) execFileSync('cp', ['-a', '-T', ...packages]);
  } else {
    say('installing its packages');
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: target, stdio: 'ignore' });
  }
  return target;
}

/** Builds a release by its own script. */
function layOut(source: string, target: string): Release {
  say(`building ${target}`);
  const script = `import { layOutPackage } from './scripts/build.ts'; await layOutPackage(process.argv[1]);`;
  mkdirSync(target, { recursive: true });
  execFileSync(process.execPath, ['--input-type=module', '-e', script, target], { cwd: source });
  return { root: source, packageFolder: join(target, 'package') };
}

function describe(revision: string): string {
  return git('log', '-1', '--format=%h (%s)', revision);
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}

function say(what: string): void {
  process.stderr.write(`${what}\n`);
}
