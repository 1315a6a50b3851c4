/** One line of the results. */
export type Finding = {
  readonly what: string;
  readonly ours: string;
  /** What it was compared with, by name and version, and its figure; null where it stands by itself. */
  readonly rival: string | null;
  /** Ours to the rival's. */
  readonly ratio: number | null;
  readonly target: string;
  readonly met: boolean;
};

export type Section = { readonly title: string; readonly findings: readonly Finding[] };

/** The results as markdown, without a date: what was run, ratios, and the shape of the machine. */
export function report(machine: readonly string[], sections: readonly Section[]): string {
  const tables = sections.map(({ title, findings }) => [
    `## ${title}`,
    '',
    '| | Masthead | compared with | ratio | target | |',
    '|---|---|---|---|---|---|',
    ...findings.map(
      ({ what, ours, rival, ratio, target, met }) =>
        `| ${what} | ${ours} | ${rival ?? ''} | ${ratio === null ? '' : ratio.toFixed(2)} | ${target} | ${met ? 'met' : '**missed**'} |`,
    ),
    '',
  ]);
  return [
    '# Results',
    '',
    'Written by `npm run bench`. Sides of a comparison are loaded in turn; a figure is the median of its rounds, a',
    'ratio the median of the rounds’ ratios. Absolute figures belong to one machine, ratios travel better.',
    '',
    ...machine.map((line) => `- ${line}`),
    '',
    ...tables.flat(),
  ].join('\n');
}

/** `12,345/s`. */
export function perSecond(value: number): string {
  return `${Math.round(value).toLocaleString('en-US')}/s`;
}

/** `17 µs` of processor time. */
export function micros(value: number): string {
  return `${Math.round(value)} µs`;
}
