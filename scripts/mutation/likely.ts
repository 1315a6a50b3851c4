import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Mutant, root } from '../../test/mutants/list.ts';
import { isAlone, quickTests } from '../../test/support/groups.ts';
import { type Coverage, lengthRun, listed, shareRun } from './coverage.ts';

/** Seconds of a test file, where nothing was recorded. */
const usual = 16;

/** The next few that share a process, of so many seconds together. */
export function nextBatch({ tests }: Coverage, waiting: string[], most: number): string[] {
  const batch: string[] = [];
  for (let seconds = 0; waiting[0] !== undefined;) {
    const [next] = waiting;
    seconds += tests[next]?.seconds ?? usual;
    if (batch.length > 0 && (seconds > most || isAlone(next))) break;
    batch.push(next);
    waiting.shift();
    if (isAlone(next)) break;
  }
  return batch;
}

/** The test files that run the place of a fault; `catches` says how many faults of its file, of 1, one has caught before. */
export function byLikelihood(
  coverage: Coverage,
  mutant: Mutant,
  catches: (path: string) => number,
): string[] {
  const { file, text } = mutant;
  const runs = quickTests.filter((path) => {
    const runsPlace = shareRun(coverage, path, mutant);
    return path !== listed && coverage.tests[path]?.passes !== false && (runsPlace === null || runsPlace > 0);
  });
  const own = wordsOf(file.replace(/^(?:client\/)?src\//, ''));
  const near = new Set([...own, ...wordsOf(text)]);
  const codes = new Map(runs.map((path) => [path, readFileSync(join(root, path), 'utf8').toLowerCase()]));
  const longest = Math.max(1, ...runs.map((path) => lengthRun(coverage, path, file)));
  const scores = new Map(
    runs.map((path) => {
      const code = codes.get(path) ?? '';
      let sum = lengthRun(coverage, path, file) / longest + 2 * catches(path);
      // It is known to run the place.
      if (coverage.tests[path] !== undefined) sum += 0.5;
      if (code.includes(`${file}'`.toLowerCase())) sum += 1;
      for (const word of own) if (path.includes(word)) sum += 1;
      // A word counts as much as it is rare among these tests.
      for (const word of near) {
        const many = [...codes.values()].filter((each) => each.includes(word)).length;
        if (many > 0 && code.includes(word)) sum += 2 / many;
      }
      return [path, sum / Math.sqrt(2 + (coverage.tests[path]?.seconds ?? usual))];
    }),
  );
  return runs.toSorted((a, b) => (scores.get(b) ?? 0) - (scores.get(a) ?? 0));
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
