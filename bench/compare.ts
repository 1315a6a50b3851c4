import { load, type Load, type Shots } from './load.ts';
import type { Measured } from './machine.ts';

/** One side of a comparison. */
export type Side = { readonly server: Pick<Measured, 'cpu'>; readonly shots: Shots };

export type Plan = {
  /** Seconds of one load. */
  readonly seconds: number;
  /** How often each side is loaded. */
  readonly rounds: number;
  /** Seconds of load before the first round, in which what is hot is compiled; 3 unless told. */
  readonly warmUp?: number;
};

export type Comparison = {
  readonly ours: Load;
  readonly theirs: Load;
  /** Of requests a second, and of processor time a request. */
  readonly ratio: number;
  readonly cpuRatio: number;
};

/**
 * Loads two servers in turn, A B A B, so that what else the machine does falls on both; the medians of each,
 * and the medians of the rounds' ratios.
 */
export async function compare(ours: Side, theirs: Side, plan: Plan): Promise<Comparison> {
  const { seconds, rounds, warmUp = 3 } = plan;
  for (const side of [ours, theirs]) await load(side.server, side.shots, warmUp);
  const mine: Load[] = [];
  const other: Load[] = [];
  for (let round = 0; round < rounds; round++) {
    mine.push(await load(ours.server, ours.shots, seconds));
    other.push(await load(theirs.server, theirs.shots, seconds));
  }
  const ratioOf = (figure: (load: Load) => number) =>
    median(mine.map((one, i) => figure(one) / figure(other[i] ?? one)));
  return {
    ours: medianLoad(mine),
    theirs: medianLoad(other),
    ratio: ratioOf(({ perSecond }) => perSecond),
    cpuRatio: ratioOf(({ cpu }) => cpu),
  };
}

/** One server by itself: the median of its loads. */
export async function measure({ server, shots }: Side, plan: Plan): Promise<Load> {
  const { seconds, rounds, warmUp = 3 } = plan;
  await load(server, shots, warmUp);
  const loads: Load[] = [];
  for (let round = 0; round < rounds; round++) loads.push(await load(server, shots, seconds));
  return medianLoad(loads);
}

function medianLoad(loads: readonly Load[]): Load {
  return {
    perSecond: median(loads.map(({ perSecond }) => perSecond)),
    cpu: median(loads.map(({ cpu }) => cpu)),
  };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? NaN)) / 2;
}
