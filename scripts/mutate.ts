// Plants the faults of test/mutants one at a time and looks whether a test fails: npm run mutate [-- words of paths or places].
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { folderOf, listMutants, type Mutant, root } from '../test/mutants/list.ts';
import { type Coverage, recordCoverage } from './mutation/coverage.ts';
import { byLikelihood, nextBatch } from './mutation/likely.ts';
import { type Outcome, type Outcomes, idOf, score, writeReport } from './mutation/report.ts';
import { type Bench, type Failure, keepPostgres, makeBench, runFiles } from './mutation/run-files.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  allowNegative: true,
  options: {
    /** Longest time for one fault, minutes: then it is undecided. */
    minutes: { type: 'string', default: '5' },
    /** When no further fault is begun, minutes. */
    within: { type: 'string', default: '1000' },
    /** Faults at once. */
    benches: { type: 'string', default: '2' },
    /** Tries again what an earlier run has decided, or only what survived or was undecided in it. */
    again: { type: 'boolean', default: false },
    survivors: { type: 'boolean', default: false },
    /** Only what was never tried. */
    untried: { type: 'boolean', default: false },
    /** Only so many test files for a fault in one run, the most likely first: then it is undecided, and goes on later. */
    files: { type: 'string', default: '1000' },
    /** `--no-record` takes what was recorded before, and a test file without that for one that runs everything. */
    record: { type: 'boolean', default: true },
    /** Only writes what is known already. */
    report: { type: 'boolean', default: false },
  },
});

const kept = join(root, 'node_modules/.cache/masthead-mutants.json');
const outcomes: Outcomes = existsSync(kept) ? (JSON.parse(readFileSync(kept, 'utf8')) as Outcomes) : {};
const mutants = listMutants();
requirePlaces(mutants);
const chosen = mutants.filter(
  ({ file, text }) =>
    positionals.length === 0 || positionals.some((word) => file.includes(word) || text.includes(word)),
);
if (!values.report) await plantAll(inTurns(chosen.filter((mutant) => isToTry(outcomes[idOf(mutant)]))));
writeReport(join(root, 'bench/mutants.md'), mutants, outcomes);
process.stdout.write(`${score(mutants, outcomes)}\n`);

function requirePlaces(all: readonly Mutant[]): void {
  const misplaced = all.filter(({ file, text }) => {
    const path = join(root, file);
    return !existsSync(path) || readFileSync(path, 'utf8').split(text).length !== 2;
  });
  if (misplaced.length === 0) return;
  const lines = misplaced.map(({ file, text }) => `${file}: ${text}\n`);
  process.stderr.write(
    `Each text must stand exactly once in its file. Mend these in test/mutants, then run this again:\n${lines.join('')}`,
  );
  process.exit(2);
}

/** One of each folder after the other, so that what is done of them is spread over all. */
function inTurns(all: readonly Mutant[]): readonly Mutant[] {
  const place = new Map<Mutant, number>();
  for (const ofFolder of Map.groupBy(all, ({ file }) => folderOf(file)).values())
    // Of each, those first that were listed without a look at the tests.
    for (const [n, mutant] of ofFolder
      .toSorted((a, b) => Number(b.unseen === true) - Number(a.unseen === true))
      .entries())
      place.set(mutant, n / ofFolder.length);
  return all.toSorted((a, b) => (place.get(a) ?? 0) - (place.get(b) ?? 0));
}

function isToTry(known: Outcome | undefined): boolean {
  if (values.again || known === undefined) return true;
  if (values.untried) return false;
  return known.outcome === 'undecided' || (values.survivors && known.outcome !== 'caught');
}

async function plantAll(toTry: readonly Mutant[]): Promise<void> {
  // Whatever else runs on the machine goes first.
  setPriority(10);
  const until = Date.now() + Number(values.within) * 60_000;
  const benches = Array.from({ length: Number(values.benches) }, (_, n) => makeBench(root, `bench-${n}`));
  const endPostgres = await keepPostgres(root);
  try {
    const failing = failingCheck(benches[0]?.folder ?? root);
    if (failing !== null)
      throw new Error(`npm run ${failing} fails without a fault: nothing can be told by it`);
    const recorded = join(dirname(kept), 'masthead-coverage.json');
    const coverage = await recordCoverage(values.record ? benches : [], recorded);
    const waiting = [...toTry.entries()].values();
    await Promise.all(
      benches.map(async (bench) => {
        for (const [n, mutant] of waiting) {
          if (Date.now() > until) return;
          const outcome = await plant(bench, coverage, mutant);
          outcomes[idOf(mutant)] = outcome;
          mkdirSync(dirname(kept), { recursive: true });
          writeFileSync(kept, JSON.stringify(outcomes, null, 1));
          const said = outcome.outcome === 'caught' ? `${outcome.file}: ${outcome.by}` : mutant.why;
          process.stdout.write(`${n + 1} of ${toTry.length} ${outcome.outcome}: ${mutant.file}: ${said}\n`);
        }
      }),
    );
  } finally {
    endPostgres();
    for (const bench of benches) bench.remove();
    rmSync(join(root, '.mutants'), { recursive: true, force: true });
  }
}

async function plant(bench: Bench, coverage: Coverage, mutant: Mutant): Promise<Outcome> {
  const path = join(bench.folder, mutant.file);
  const source = readFileSync(path, 'utf8');
  const begun = Date.now();
  writeFileSync(path, source.split(mutant.text).join(mutant.becomes));
  try {
    const before = values.again || values.survivors ? [] : triedBefore(mutant);
    const { failure, tried, isLate } = await tryTests(bench, coverage, mutant, before);
    const seconds = Math.round((Date.now() - begun) / 1000);
    if (failure !== null)
      return { outcome: 'caught', tier: 'tests', file: failure.file, by: failure.test, seconds };
    const check = failingCheck(bench.folder);
    if (check !== null)
      return { outcome: 'caught', tier: 'check', file: 'npm run check', by: check, seconds };
    if (isLate) return { outcome: 'undecided', seconds, passed: [...before, ...tried] };
    return { outcome: 'survived', seconds };
  } finally {
    writeFileSync(path, source);
  }
}

/** Types and lint come last, for what no test has caught: they take longer than most tests that do. */
function failingCheck(folder: string): string | null {
  for (const name of ['typecheck', 'lint'])
    try {
      execFileSync('npm', ['run', name], { cwd: folder, stdio: 'ignore' });
    } catch {
      return name;
    }
  return null;
}

/** The test files that a fault has passed in runs that ended before it was decided, and that are still the same. */
function triedBefore(mutant: Mutant): readonly string[] {
  const known = outcomes[idOf(mutant)];
  return known?.outcome === 'undecided' ? known.passed : [];
}

type Tried = {
  readonly failure: Failure | null;
  readonly tried: readonly string[];
  readonly isLate: boolean;
};

/** The tests that run the place of a fault, those first that are most likely to fail in the least time. */
async function tryTests(
  bench: Bench,
  coverage: Coverage,
  mutant: Mutant,
  passed: readonly string[],
): Promise<Tried> {
  const end = Date.now() + Number(values.minutes) * 60_000;
  const likely = byLikelihood(coverage, mutant, (path) => catchesOf(path, mutant.file)).filter(
    (path) => !passed.includes(path),
  );
  const waiting = likely.slice(0, Number(values.files));
  const tried: string[] = [];
  const ownPostgres = mutant.file.startsWith('src/db/migrat');
  for (let most = 12; waiting.length > 0; most = 40) {
    const batch = nextBatch(coverage, waiting, most);
    const failure = await runFiles(bench, batch, { ms: end - Date.now(), ownPostgres });
    // Where its time is over, nothing is known of these.
    if (Date.now() > end && (failure === null || failure.isLate))
      return { failure: null, tried, isLate: true };
    tried.push(...batch);
    if (failure !== null) return { failure, tried, isLate: false };
  }
  return { failure: null, tried, isLate: likely.length > tried.length };
}

/** The share of the faults of a source, caught before, that this test file caught. */
function catchesOf(path: string, file: string): number {
  const caught = mutants.flatMap((mutant) => {
    const known = outcomes[idOf(mutant)];
    return mutant.file === file && known?.outcome === 'caught' ? [known.file] : [];
  });
  return caught.length === 0 ? 0 : caught.filter((by) => by === path).length / caught.length;
}
