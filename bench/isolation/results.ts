import { median } from '../compare.ts';
import { bystanders, type Delays } from './bystanders.ts';

/** One attack in one round, or nobody's. */
export type Round = {
  /** What each honest client saw, by name. */
  readonly seen: Readonly<Record<string, Delays>>;
  /** By how much the honest clients' own process was late: p99, ms. */
  readonly own: number;
  /** What the attacker was answered, and how often. */
  readonly outcome: Readonly<Record<string, number>>;
  /** The most that the process tree took, MiB. */
  readonly memory: number;
};

export type AttackResult = { readonly what: string; readonly rounds: readonly Round[] };

const mostMemory = 300;

/** A table of one service, and whether all of it is met. The first result is that without an attack. */
export function isolationReport(title: string, results: readonly AttackResult[]) {
  const [alone] = results;
  const names = Object.keys(alone?.rounds[0]?.seen ?? {});
  const p99 = (result: AttackResult | undefined, name: string) =>
    median(result?.rounds.map(({ seen }) => seen[name]?.p99 ?? Number.NaN) ?? []);
  const p50 = (result: AttackResult | undefined, name: string) =>
    median(result?.rounds.map(({ seen }) => seen[name]?.p50 ?? Number.NaN) ?? []);
  const allowed = (name: string) => Math.max(3 * p99(alone, name), bystanders[name]?.atMost ?? 0);
  const failed = ({ rounds }: AttackResult) =>
    rounds.reduce(
      (sum, { seen }) => sum + Object.values(seen).reduce((all, each) => all + each.failed, 0),
      0,
    );
  const memory = ({ rounds }: AttackResult) => Math.max(...rounds.map((round) => round.memory));
  const isMet = (result: AttackResult) =>
    names.every((name) => p99(result, name) <= allowed(name)) &&
    failed(result) === 0 &&
    memory(result) <= mostMemory;
  const rows = results.map((result) => {
    const cells = names.map((name) => {
      const cell = `${figure(p50(result, name))} / ${figure(p99(result, name))}`;
      return p99(result, name) <= allowed(name) ? cell : `**${cell}**`;
    });
    const late = median(result.rounds.map(({ own }) => own));
    const lost = failed(result);
    const tree = Math.round(memory(result));
    return [
      result.what,
      ...cells,
      lost === 0 ? '0' : `**${lost}**`,
      tree <= mostMemory ? String(tree) : `**${tree}**`,
      figure(late),
      outcomeOf(result.rounds),
      isMet(result) ? 'met' : '**missed**',
    ];
  });
  const heads = [
    'one key or address',
    ...names.map((name) => `${name}, p50 / p99 ms`),
    'failed',
    'MiB',
    'clients late by',
    'it was answered',
    '',
  ];
  const limits = [
    'allowed',
    ...names.map((name) => figure(allowed(name))),
    '0',
    String(mostMemory),
    '',
    '',
    '',
  ];
  const table = [heads, heads.map(() => '---'), limits, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return { text: [`## ${title}`, '', ...table, ''].join('\n'), met: results.every(isMet) };
}

/** Ms without more digits than it has meaning. */
function figure(value: number): string {
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}

/** What the attacker was answered in all rounds: `201: 40, 503: 12`. */
function outcomeOf(rounds: readonly Round[]): string {
  const sums = new Map<string, number>();
  for (const { outcome } of rounds)
    for (const [what, count] of Object.entries(outcome)) sums.set(what, (sums.get(what) ?? 0) + count);
  return [...sums].map(([what, count]) => `${what}: ${count}`).join(', ');
}
