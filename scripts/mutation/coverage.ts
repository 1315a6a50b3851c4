import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Mutant, root } from '../../test/mutants/list.ts';
import { quickTests } from '../../test/support/groups.ts';
import { type Bench, runFiles } from './run-files.ts';

/** Beginnings and ends of what ran of one source, in turn: as V8 counts, offsets into the text. */
type Ranges = readonly number[];

type Recorded = {
  /** Of the test file, so that another one is recorded again. */
  readonly hash: string;
  readonly seconds: number;
  readonly passes: boolean;
  /** By source, and with the text that was run, since offsets are into that. */
  readonly ran: Readonly<Record<string, { readonly text: string; readonly ranges: Ranges }>>;
};

/** What each test file runs of the sources, found by running each of them once by itself. */
export type Coverage = {
  readonly texts: Record<string, string>;
  readonly tests: Record<string, Recorded>;
};

/**
 * Takes what was recorded before, and records the test files that are new or have changed since, one at a time on each
 * bench. What fails there fails without any fault, and says nothing.
 */
export async function recordCoverage(benches: readonly Bench[], kept: string): Promise<Coverage> {
  const coverage: Coverage = existsSync(kept)
    ? (JSON.parse(readFileSync(kept, 'utf8')) as Coverage)
    : { texts: {}, tests: {} };
  for (const path of Object.keys(coverage.tests)) if (!quickTests.includes(path)) delete coverage.tests[path];
  mkdirSync(dirname(kept), { recursive: true });
  const waiting = quickTests
    .filter((path) => path !== listed && coverage.tests[path]?.hash !== hashOf(sourceOf(path)))
    .values();
  await Promise.all(
    benches.map(async (bench) => {
      for (const path of waiting) {
        coverage.tests[path] = await recordOne(bench, path, coverage.texts);
        writeFileSync(kept, JSON.stringify(coverage));
        process.stderr.write(`recorded ${path}\n`);
      }
    }),
  );
  return coverage;
}

/** It fails for any fault at all: the text is no longer there. */
export const listed = 'test/mutants.test.ts';

async function recordOne(bench: Bench, path: string, texts: Record<string, string>): Promise<Recorded> {
  const folder = join(bench.temporary, 'coverage');
  const begun = Date.now();
  const failure = await runFiles(bench, [path], { ms: 300_000, coverage: folder });
  const seconds = (Date.now() - begun) / 1000;
  if (failure !== null) process.stderr.write(`fails without any fault: ${path}: ${failure.test}\n`);
  const ran = readFolder(bench.folder, folder, texts);
  return { hash: hashOf(sourceOf(path)), seconds, passes: failure === null, ran };
}

function sourceOf(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

type V8Coverage = {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly {
        readonly startOffset: number;
        readonly endOffset: number;
        readonly count: number;
      }[];
    }[];
  }[];
};

/** What all processes and threads of one run have left there, put together. */
function readFolder(copy: string, folder: string, texts: Record<string, string>): Recorded['ran'] {
  const ran = new Map<string, Uint8Array>();
  for (const name of existsSync(folder) ? globSync('*.json', { cwd: folder }) : []) {
    const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as V8Coverage;
    for (const { url, functions } of result) {
      const source = url.startsWith('file:') ? fileURLToPath(url).replace(`${copy}/`, '') : '';
      if (!/^(?:client\/)?src\/.*\.ts$/.test(source)) continue;
      const all = functions.flatMap(({ ranges }) => ranges);
      const marks = new Uint8Array(Math.max(...all.map(({ endOffset }) => endOffset)));
      // Of ranges within one another the innermost says it, and that is the shortest.
      for (const { startOffset, endOffset, count } of all.toSorted(
        (a, b) => b.endOffset - b.startOffset - (a.endOffset - a.startOffset),
      ))
        marks.fill(count > 0 ? 1 : 0, startOffset, endOffset);
      const before = ran.get(source);
      if (before === undefined) ran.set(source, marks);
      else for (const [at, mark] of before.entries()) if (mark === 0) before[at] = marks[at] ?? 0;
    }
  }
  return Object.fromEntries(
    [...ran].map(([source, marks]) => {
      const text = readFileSync(join(copy, source), 'utf8');
      texts[hashOf(text)] = text;
      return [source, { text: hashOf(text), ranges: rangesOf(marks) }];
    }),
  );
}

function rangesOf(marks: Uint8Array): Ranges {
  const ranges: number[] = [];
  for (const [at, mark] of marks.entries()) if (mark !== (marks[at - 1] ?? 0)) ranges.push(at);
  return ranges.length % 2 === 0 ? ranges : [...ranges, marks.length];
}

/** How much of the place of a fault a test file runs, of 1; null where that is not known. */
export function shareRun({ texts, tests }: Coverage, path: string, mutant: Mutant): number | null {
  const recorded = tests[path];
  if (recorded === undefined) return null;
  const ran = recorded.ran[mutant.file];
  if (ran === undefined) return 0;
  const place = mutant.text.trim();
  const at = (texts[ran.text] ?? '').indexOf(place);
  if (at === -1) return null;
  return lengthWithin(ran.ranges, at, at + place.length) / place.length;
}

/** How much of the file of a fault a test file runs, in letters. */
export function lengthRun({ tests }: Coverage, path: string, file: string): number {
  return lengthWithin(tests[path]?.ran[file]?.ranges ?? [], 0, Infinity);
}

function lengthWithin(ranges: Ranges, from: number, to: number): number {
  let sum = 0;
  for (let n = 0; n < ranges.length; n += 2)
    sum += Math.max(0, Math.min(to, ranges[n + 1] ?? 0) - Math.max(from, ranges[n] ?? 0));
  return sum;
}
