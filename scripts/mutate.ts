// Plants the faults of test/mutants one at a time and looks whether a test fails: npm run mutate [-- words of paths or places].
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { folderOf, listMutants, root, type Mutant } from '../test/mutants/list.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Longest time for one fault, minutes: then it counts as undecided. */
    minutes: { type: 'string', default: '15' },
    /** Only so many test files, the most related first: what survives them is undecided. */
    files: { type: 'string', default: '1000' },
    /** Test files at once. */
    concurrency: { type: 'string', default: '2' },
    /** Try again what an earlier run has decided. */
    again: { type: 'boolean', default: false },
  },
});

type Outcome = { readonly outcome: 'caught' | 'survived' | 'undecided'; readonly by: string };
type Caught = Outcome & { readonly files: readonly string[] };

/** Names of tests that have failed with a fault and pass without any: a test that always fails catches nothing. */
const sound = new Set<string>();

const scratch = join(root, '.mutants');
const kept = join(root, 'node_modules/.cache/masthead-mutants.json');
mkdirSync(dirname(kept), { recursive: true });
/** By what was planted, so that a run goes on where another ended. */
const outcomes: Record<string, Outcome> = existsSync(kept) ? JSON.parse(readFileSync(kept, 'utf8')) : {};
const tests = globSync(['test/*.test.ts', 'client/test/*.test.ts', 'test/full/*.test.ts'], {
  cwd: root,
}).filter(
  // It fails for any fault at all: the text is no longer there.
  (path) => path !== 'test/mutants.test.ts',
);
/** Of the tests, in lower case. */
const codes = new Map(tests.map((path) => [path, readFileSync(join(root, path), 'utf8').toLowerCase()]));

const mutants = listMutants().filter(
  ({ file, text }) =>
    positionals.length === 0 || positionals.some((word) => file.includes(word) || text.includes(word)),
);
const misplaced = mutants.filter(({ file, text }) => {
  const path = join(root, file);
  return !existsSync(path) || readFileSync(path, 'utf8').split(text).length !== 2;
});
if (misplaced.length > 0) {
  const lines = misplaced.map(({ file, text }) => `${file}: ${text}\n`);
  process.stderr.write(
    `Each text must stand exactly once in its file. Mend these in test/mutants, then run this again:\n${lines.join('')}`,
  );
  process.exit(2);
}
makeScratch();
try {
  for (const [n, mutant] of mutants.entries()) {
    const id = idOf(mutant);
    if (outcomes[id] === undefined || outcomes[id].outcome === 'undecided' || values.again) {
      outcomes[id] = await plant(mutant);
      writeFileSync(kept, JSON.stringify(outcomes, null, 1));
    }
    const { outcome, by } = outcomes[id];
    process.stdout.write(`${n + 1} of ${mutants.length} ${outcome}: ${mutant.file}: ${by || mutant.why}\n`);
  }
} finally {
  rmSync(scratch, { recursive: true });
}
process.stdout.write(`\n${report(mutants)}\n`);

/** A copy of what git knows of, as it is now, with the libraries linked. */
function makeScratch(): void {
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch);
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0');
  for (const file of files)
    if (file !== '' && existsSync(join(root, file))) cpSync(join(root, file), join(scratch, file));
  execFileSync('cp', ['-al', join(root, 'node_modules'), scratch]);
  execFileSync(process.execPath, ['test/support/bundled-libraries.ts'], { cwd: scratch });
}

function idOf({ file, text, becomes }: Mutant): string {
  return createHash('sha256')
    .update(JSON.stringify([file, text, becomes]))
    .digest('hex')
    .slice(0, 12);
}

async function plant(mutant: Mutant): Promise<Outcome> {
  const path = join(scratch, mutant.file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(path, source.split(mutant.text).join(mutant.becomes));
  const outcome = await tryTests(mutant).finally(() => writeFileSync(path, source));
  if ('files' in outcome && !sound.has(outcome.by)) {
    const without = await runTests(outcome.files, Number(values.minutes) * 60_000);
    if (without !== null) throw new Error(`This fails without any fault, mend it first: ${without.by}`);
    sound.add(outcome.by);
  }
  return { outcome: outcome.outcome, by: outcome.by };
}

/** Related files first, few at a time, since most faults are caught there. */
async function tryTests(mutant: Mutant): Promise<Outcome | Caught> {
  const end = Date.now() + Number(values.minutes) * 60_000;
  const files = byRelation(mutant).slice(0, Number(values.files));
  for (let first = 0, size = 4; first < files.length; first += size, size = 12) {
    if (first > 0) size = 12;
    const batch = files.slice(first, first + size);
    const failure = await runTests(batch, end - Date.now());
    if (failure !== null) return failure.outcome === 'caught' ? { ...failure, files: batch } : failure;
  }
  return { outcome: files.length === tests.length ? 'survived' : 'undecided', by: '' };
}

/**
 * The tests, those first that import the file, or have words of its path and of what is changed, in their name above
 * all: each word counts as much as it is rare among the tests.
 */
function byRelation({ file, text }: Mutant): readonly string[] {
  const own = wordsOf(file.replace(/^(?:client\/)?src\//, ''));
  const near = [...new Set([...own, ...wordsOf(text)])];
  /** How much each of these words counts, by the number of tests of which this holds. */
  const worth = (words: Iterable<string>, isIn: (path: string, word: string) => boolean) =>
    new Map([...words].map((word) => [word, 1 / tests.filter((path) => isIn(path, word)).length]));
  const inName = worth(own, (path, word) => path.includes(word));
  const inCode = worth(near, (path, word) => codes.get(path)?.includes(word) === true);
  const score = (path: string): number => {
    const code = codes.get(path) ?? '';
    let sum = code.includes(`${file}'`.toLowerCase()) ? 1 : 0;
    for (const [word, value] of inName) if (path.includes(word)) sum += 2 * value;
    for (const [word, value] of inCode) if (code.includes(word)) sum += value;
    return sum;
  };
  const scores = new Map(tests.map((path) => [path, score(path)]));
  return tests.toSorted((a, b) => (scores.get(b) ?? 0) - (scores.get(a) ?? 0));
}

/** Words of at least four letters, in lower case and without the s of a plural. */
function wordsOf(text: string): Set<string> {
  const words =
    text
      .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
      .toLowerCase()
      .match(/[a-z]{4,}/g) ?? [];
  return new Set(
    words.filter((word) => word !== 'test' && word !== 'client').map((word) => word.replace(/s$/, '')),
  );
}

/** What the first failure is; null where all pass. */
async function runTests(files: readonly string[], ms: number): Promise<Outcome | null> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const args = [
    '--import=./test/support/bundled-libraries.ts',
    '--test',
    '--test-reporter=tap',
    '--test-timeout=120000',
    `--test-concurrency=${values.concurrency}`,
    ...files,
  ];
  const child = spawn(process.execPath, args, {
    cwd: scratch,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    // The rest of the files would say nothing more.
    if (failureIn(output) !== undefined) end();
  });
  let isLate = false;
  const end = () => {
    try {
      process.kill(-(child.pid ?? 0), 'SIGTERM');
    } catch {
      // It has ended by itself.
    }
  };
  const timer = setTimeout(
    () => {
      isLate = true;
      end();
    },
    Math.max(0, ms),
  );
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  const failed = failureIn(output);
  if (failed !== undefined) return { outcome: 'caught', by: failed };
  if (isLate) return { outcome: 'undecided', by: 'not within its time' };
  return code === 0 ? null : { outcome: 'caught', by: 'a file that did not run' };
}

/** The name of a test that failed: of the innermost, which is reported first. */
function failureIn(tap: string): string | undefined {
  return /^ *not ok \d+ - (.*)\n/m.exec(tap)?.[1];
}

/** The score by folder, and what survived. */
function report(planted: readonly Mutant[]): string {
  const rows = Map.groupBy(planted, ({ file }) => folderOf(file));
  const count = (of: readonly Mutant[], wanted: Outcome['outcome']) =>
    of.filter((mutant) => outcomes[idOf(mutant)]?.outcome === wanted).length;
  const line = (name: string, of: readonly Mutant[]) =>
    `| ${name} | ${of.length} | ${count(of, 'caught')} | ${count(of, 'survived')} | ${count(of, 'undecided')} |`;
  const left = planted.filter((mutant) => outcomes[idOf(mutant)]?.outcome !== 'caught');
  return [
    '| | planted | caught | survived | undecided |',
    '|---|---|---|---|---|',
    ...[...rows].toSorted(([a], [b]) => a.localeCompare(b)).map(([name, of]) => line(name, of)),
    line('all', planted),
    '',
    ...left.map(
      (mutant) =>
        `${outcomes[idOf(mutant)]?.outcome}: ${mutant.file}: ${mutant.text} → ${mutant.becomes} (${mutant.why})`,
    ),
  ].join('\n');
}
