import { execFileSync } from 'node:child_process';
import { writeReport as writeFormatted } from '../../bench/report.ts';
import { folderOf, type Mutant, root } from '../../test/mutants/list.ts';
import { hashOf } from './coverage.ts';

export type Outcome =
  | {
      readonly outcome: 'caught';
      /** By a test of the quick tier; or by none of them, but by types or lint. */
      readonly tier: 'tests' | 'check';
      readonly file: string;
      readonly by: string;
      readonly seconds: number;
    }
  | { readonly outcome: 'survived'; readonly seconds: number }
  /** With the test files that it has passed. */
  | { readonly outcome: 'undecided'; readonly seconds: number; readonly passed: readonly string[] };

/** By what was planted, so that a run goes on where another ended. */
export type Outcomes = Record<string, Outcome>;

export function idOf({ file, text, becomes }: Mutant): string {
  return hashOf(JSON.stringify([file, text, becomes]));
}

/** The score in one line. */
export function score(mutants: readonly Mutant[], outcomes: Outcomes): string {
  const [tried, tests, check] = counts(mutants, outcomes);
  const percent = (part: number) => (tried === 0 ? '0' : ((100 * part) / tried).toFixed(1));
  return `${tests} of ${tried} faults caught by npm test (${percent(tests)} %), ${tests + check} with types and lint (${percent(tests + check)} %); ${mutants.length - tried} not tried yet.`;
}

type Counts = readonly [tried: number, tests: number, check: number, survived: number, undecided: number];

function counts(mutants: readonly Mutant[], outcomes: Outcomes): Counts {
  const found = mutants.flatMap((mutant) => outcomes[idOf(mutant)] ?? []);
  const caught = (tier: string) =>
    found.filter((each) => each.outcome === 'caught' && each.tier === tier).length;
  const other = (outcome: string) => found.filter((each) => each.outcome === outcome).length;
  return [found.length, caught('tests'), caught('check'), other('survived'), other('undecided')];
}

/** Writes the score by folder, and what is not caught. */
export function writeReport(path: string, mutants: readonly Mutant[], outcomes: Outcomes): void {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const row = (name: string, of: readonly Mutant[]) =>
    `| ${[name, of.length, ...counts(of, outcomes)].join(' | ')} |`;
  const byFolder = [...Map.groupBy(mutants, ({ file }) => folderOf(file))].toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  );
  const left = mutants.filter((mutant) =>
    ['survived', 'undecided'].includes(outcomes[idOf(mutant)]?.outcome ?? ''),
  );
  const code = (text: string) => `\`${text.trim().replaceAll(/\s+/g, ' ').replaceAll('`', "'")}\``;
  const text = `# Faults that tests catch

\`npm run mutate\` writes this: each fault listed in [test/mutants](../test/mutants) is planted by itself, and the tests of the quick tier that run its place are run until one fails; what none of them catches is shown to the compiler and the linter. Undecided are those whose tests took longer than their time.

${new Date().toISOString().slice(0, 10)}, commit ${git('rev-parse', '--short', 'HEAD')}. ${score(mutants, outcomes)}

Of these, listed by a reader who had not seen the tests: ${score(
    mutants.filter(({ unseen }) => unseen === true),
    outcomes,
  )}

| | listed | tried | caught by a test | by types or lint | survived | undecided |
|---|---|---|---|---|---|---|
${byFolder.map(([name, of]) => row(name, of)).join('\n')}
${row('all', mutants)}

## Not caught

${left.length === 0 ? 'None.' : left.map((mutant) => `- ${outcomes[idOf(mutant)]?.outcome}: \`${mutant.file}\`: ${code(mutant.text)} → ${code(mutant.becomes) === '``' ? 'nothing' : code(mutant.becomes)} (${mutant.why})`).join('\n')}
`;
  writeFormatted(path, text);
}
