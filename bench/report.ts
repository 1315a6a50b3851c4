import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

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

/** One line of a paired run: two releases, and how the new one stands to the old. */
export type PairedFinding = {
  readonly what: string;
  readonly old: string;
  readonly new: string;
  /** 1 is as before, more is better: the median of the pairs' ratios, and its interval. */
  readonly ratio: number;
  readonly interval: readonly [number, number];
  /** Likewise of processor time a request; null where there are no requests. */
  readonly cpu: number | null;
  /** The interval must not lie wholly below it. */
  readonly least: number;
  /** What it is if it does. */
  readonly worse: 'slower' | 'larger';
};

export type PairedSection = { readonly title: string; readonly findings: readonly PairedFinding[] };

/** Whether a finding shows a loss. */
export function isWorse({ interval, least }: PairedFinding): boolean {
  return interval[1] < least;
}

/** The results of a paired run as markdown. */
export function reportPaired(about: readonly string[], sections: readonly PairedSection[]): string {
  const tables = sections.map(({ title, findings }) => [
    `## ${title}`,
    '',
    '| | old | new | ratio | 95 % interval | processor time | |',
    '|---|---|---|---|---|---|---|',
    ...findings.map((finding) => {
      const [from, to] = finding.interval.map((value) => value.toFixed(3));
      const cpu = finding.cpu === null ? '' : finding.cpu.toFixed(3);
      const verdict = isWorse(finding) ? `**${finding.worse}**` : 'kept';
      return `| ${finding.what} | ${finding.old} | ${finding.new} | ${finding.ratio.toFixed(3)} | ${from} to ${to} | ${cpu} | ${verdict} |`;
    }),
    '',
  ]);
  return [
    '# Paired results',
    '',
    'Written by `npm run bench:paired`. Two releases are measured in turn; a figure is the median of its rounds. A ratio',
    'is the median of the pairs’ ratios, turned so that 1 is as before and more is better: of requests a second, times',
    'and sizes, and beside it of processor time a request. The verdict is on the first: slower or larger is what has its',
    'interval wholly below 0.97 (publishing: 0.95). Of fewer than six pairs the interval is all of them, and says little.',
    '',
    ...about.map((line) => `- ${line}`),
    '',
    ...tables.flat(),
  ].join('\n');
}

/** Writes results as `npm run check` wants them; nowhere when the file has no name. */
export function writeReport(file: string, text: string): void {
  if (file === '') return;
  writeFileSync(file, text);
  spawnSync(fileURLToPath(new URL('../node_modules/.bin/oxfmt', import.meta.url)), [file]);
}

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
