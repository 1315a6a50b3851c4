import { load, type Load, type Shots } from './load.ts';
import type { Measured } from './machine.ts';

/** One side of a comparison. */
export type Side = { readonly server: Pick<Measured, 'cpu'>; readonly shots: Shots };

export type Plan = {
  /** Seconds of one load. */
  readonly seconds: number;
  /** How often each side is loaded. */
  readonly rounds: number;
  /** The number of the first round, of which each odd one begins with the other side; 0 by default. */
  readonly from?: number;
  /** Seconds of load before the first round, in which what is hot is compiled; {@link usualWarmUp} by default. */
  readonly warmUp?: number;
};

export const usualWarmUp = 3;
/** Seconds that one side is loaded, and the other rests, while both are warmed up. */
const longestRest = 2;

export type Comparison = {
  readonly ours: Load;
  readonly theirs: Load;
  /** Of requests a second, and of processor time a request. */
  readonly ratio: number;
  readonly cpuRatio: number;
};

/** Loads two servers in turn; the medians of each, and the medians of the rounds' ratios. */
export async function compare(ours: Side, theirs: Side, plan: Plan): Promise<Comparison> {
  const loads = await loadInTurn(ours, theirs, plan);
  const ratioOf = (figure: (load: Load) => number) =>
    median(loads.map(([mine, other]) => figure(mine) / figure(other)));
  return {
    ours: medianLoad(loads.map(([mine]) => mine)),
    theirs: medianLoad(loads.map(([, other]) => other)),
    ratio: ratioOf(({ perSecond }) => perSecond),
    cpuRatio: ratioOf(({ cpu }) => cpu),
  };
}

/** Warms two servers up, then loads them in turn; the loads of each round. */
export async function loadInTurn(one: Side, other: Side, plan: Plan): Promise<(readonly [Load, Load])[]> {
  const { seconds, rounds, from, warmUp = usualWarmUp } = plan;
  await warmInTurn([one, other], warmUp);
  return inTurn(
    rounds,
    () => load(one.server, one.shots, seconds),
    () => load(other.server, other.shots, seconds),
    from,
  );
}

/**
 * Loads two servers for so many seconds each, in turns: one that rests for 5 s collects its heaps
 * (`platform/memory.ts`), and V8 drops with that what it had compiled.
 */
async function warmInTurn(sides: readonly Side[], seconds: number): Promise<void> {
  const turns = Math.ceil(seconds / longestRest);
  for (let turn = 0; turn < turns; turn++)
    for (const { server, shots } of sides) await load(server, shots, Math.ceil(seconds / turns));
}

/** Does two things in turn, A B B A, so that what else the machine does, and what drifts, falls on both. */
export async function inTurn<T>(
  rounds: number,
  one: () => Promise<T>,
  other: () => Promise<T>,
  from = 0,
): Promise<(readonly [T, T])[]> {
  const done: (readonly [T, T])[] = [];
  for (let round = from; round < from + rounds; round++) {
    if (round % 2 === 0) done.push([await one(), await other()]);
    else {
      const last = await other();
      done.push([await one(), last]);
    }
  }
  return done;
}

/** One server by itself: the median of its loads. */
export async function measure({ server, shots }: Side, plan: Plan): Promise<Load> {
  const { seconds, rounds, warmUp = usualWarmUp } = plan;
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

/**
 * Between which of the values the median of all that could be measured lies, with 95 % confidence or more: for ten,
 * the second and the ninth, with 97.9 % (Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2). Fewer
 * than six cannot say so much: all of them.
 */
export function medianInterval(values: readonly number[]): readonly [number, number] {
  const sorted = values.toSorted((a, b) => a - b);
  const last = sorted.length - 1;
  let left = 0;
  // The chance that so few of the values lie below the median: a sum of binomial terms.
  let term = 0.5 ** sorted.length;
  for (let below = term; ; left++) {
    term *= (sorted.length - left) / (left + 1);
    below += term;
    if (below > 0.025) break;
  }
  return [sorted[left] ?? NaN, sorted[last - left] ?? NaN];
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? NaN)) / 2;
}
