/** What changed between two texts, for people and for `patch`. */
export type TextDiff = {
  /** Unified, with three lines of context; empty where nothing changed. */
  readonly diff: string;
  /** Whether hunks were left out at the end, to stay within the bytes that were asked for. */
  readonly truncated: boolean;
  /** Lines that only the new text has, and that only the old one had. */
  readonly added: number;
  readonly removed: number;
};

type DiffOptions = {
  /** Names of the old and the new text. */
  readonly names: readonly [before: string, after: string];
  /** Most bytes of the diff. */
  readonly longest?: number;
};

/** Most bytes of a diff in an answer. */
const longestDiff = 20 * 1024;
const context = 3;
/** Lines a side beyond which a part is replaced as a whole. */
const mostLines = 20_000;
/** Lines that all looks for anchors together may read, so that no text makes them slow. */
const mostRead = 2_000_000;

/** Lines `from` to `to` of the old text that became lines `at` to `end` of the new one. */
type Block = { readonly from: number; readonly to: number; readonly at: number; readonly end: number };

/**
 * The difference of two texts, anchored on lines that occur once in both (Bram Cohen's patience diff). Made for
 * rewrites, which are the common case: what has no such line is replaced as a whole, so the time is nearly linear.
 */
export function diffTexts(
  before: string,
  after: string,
  { names, longest = longestDiff }: DiffOptions,
): TextDiff {
  const [old, now] = [linesOf(before), linesOf(after)];
  const blocks = changedBlocks(old, now);
  const added = blocks.reduce((sum, { at, end }) => sum + end - at, 0);
  const removed = blocks.reduce((sum, { from, to }) => sum + to - from, 0);
  let diff = `--- ${names[0]}\n+++ ${names[1]}\n`;
  let left = longest - Buffer.byteLength(diff);
  const groups = grouped(blocks);
  for (const [n, group] of groups.entries()) {
    const hunk = hunkOf(group, old, now);
    left -= Buffer.byteLength(hunk);
    if (left < 0) return { diff: n === 0 ? '' : diff, truncated: true, added, removed };
    diff += hunk;
  }
  return { diff: groups.length === 0 ? '' : diff, truncated: false, added, removed };
}

/** Each with the line feed that ends it, so that a last line without one is another line. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function changedBlocks(old: readonly string[], now: readonly string[]): Block[] {
  const blocks: Block[] = [];
  const waiting: Block[] = [{ from: 0, to: old.length, at: 0, end: now.length }];
  let read = 0;
  for (let part = waiting.pop(); part; part = waiting.pop()) {
    const block = withoutCommonEnds(part, old, now);
    const [olds, news] = [block.to - block.from, block.end - block.at];
    if (olds === 0 && news === 0) continue;
    read += olds + news;
    const isSearched = olds > 0 && news > 0 && Math.max(olds, news) <= mostLines && read <= mostRead;
    const anchors = isSearched ? anchorsIn(block, old, now) : [];
    if (anchors.length === 0) blocks.push(block);
    else waiting.push(...between(anchors, block).toReversed());
  }
  return blocks;
}

function withoutCommonEnds(
  { from, to, at, end }: Block,
  old: readonly string[],
  now: readonly string[],
): Block {
  let [first, last, atFirst, atLast] = [from, to, at, end];
  while (first < last && atFirst < atLast && old[first] === now[atFirst]) {
    first++;
    atFirst++;
  }
  while (last > first && atLast > atFirst && old[last - 1] === now[atLast - 1]) {
    last--;
    atLast--;
  }
  return { from: first, to: last, at: atFirst, end: atLast };
}

/** A line of the old text and the same one in the new text. */
type Anchor = readonly [from: number, at: number];

/** The longest run, in the order of both texts, of lines that occur once in each. */
function anchorsIn({ from, to, at, end }: Block, old: readonly string[], now: readonly string[]): Anchor[] {
  const [inOld, inNow] = [placesOf(old, from, to), placesOf(now, at, end)];
  const pairs: Anchor[] = [];
  for (const [line, place] of inOld) {
    const other = inNow.get(line) ?? -1;
    if (place !== -1 && other !== -1) pairs.push([place, other]);
  }
  return longestRise(pairs);
}

/** Where each line stands; -1 for one that stands there several times. */
function placesOf(lines: readonly string[], from: number, to: number): Map<string, number> {
  const places = new Map<string, number>();
  for (let i = from; i < to; i++) {
    const line = lines[i] ?? '';
    places.set(line, places.has(line) ? -1 : i);
  }
  return places;
}

/** Of pairs that rise in the first number, the longest selection that rises in the second too (patience sorting). */
function longestRise(pairs: readonly Anchor[]): Anchor[] {
  /** The pair that ends the selection of each length with the least second number, by its place in `pairs`. */
  const ends: number[] = [];
  const previous: number[] = [];
  for (const [i, [, at]] of pairs.entries()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pairs[ends[middle] ?? 0]?.[1] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    previous[i] = ends[low - 1] ?? -1;
    ends[low] = i;
  }
  const rise: Anchor[] = [];
  for (let i = ends.at(-1) ?? -1; i !== -1; i = previous[i] ?? -1) rise.push(pairs[i] as Anchor);
  return rise.toReversed();
}

function between(anchors: readonly Anchor[], block: Block): Block[] {
  const parts: Block[] = [];
  let { from, at } = block;
  for (const [to, end] of anchors) {
    parts.push({ from, to, at, end });
    [from, at] = [to + 1, end + 1];
  }
  return [...parts, { ...block, from, at }];
}

/** Blocks whose contexts touch share a hunk. */
function grouped(blocks: readonly Block[]): Block[][] {
  const groups: Block[][] = [];
  for (const block of blocks) {
    const last = groups.at(-1);
    if (last && block.from - (last.at(-1)?.to ?? 0) <= 2 * context) last.push(block);
    else groups.push([block]);
  }
  return groups;
}

function hunkOf(group: readonly Block[], old: readonly string[], now: readonly string[]): string {
  const [first, last] = [group[0] as Block, group.at(-1) as Block];
  const begin = Math.max(0, first.from - context);
  const end = Math.min(old.length, last.to + context);
  const lines: string[] = [];
  let at = begin;
  for (const block of group) {
    for (; at < block.from; at++) lines.push(marked(' ', old[at]));
    for (; at < block.to; at++) lines.push(marked('-', old[at]));
    for (let i = block.at; i < block.end; i++) lines.push(marked('+', now[i]));
  }
  for (; at < end; at++) lines.push(marked(' ', old[at]));
  const beginNow = first.at - (first.from - begin);
  const endNow = last.end + (end - last.to);
  return `@@ -${range(begin, end)} +${range(beginNow, endNow)} @@\n${lines.join('')}`;
}

function marked(mark: string, line = ''): string {
  return line.endsWith('\n') ? `${mark}${line}` : `${mark}${line}\n\\ No newline at end of file\n`;
}

/** First line and number of lines; of none, the line before. */
function range(from: number, to: number): string {
  return `${to === from ? from : from + 1},${to - from}`;
}
