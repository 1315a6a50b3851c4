/** Part of a text, from one offset up to another, in UTF-16 units. */
export type Stretch = readonly [from: number, to: number];

/** The text without these stretches, which are in order and do not overlap. */
export function without(text: string, stretches: readonly Stretch[]): string {
  let rest = '';
  let done = 0;
  for (const [from, to] of stretches) {
    rest += text.slice(done, from);
    done = to;
  }
  return rest + text.slice(done);
}

/** In order; those that touch or overlap as one. */
export function joined(stretches: readonly Stretch[]): Stretch[] {
  const result: [number, number][] = [];
  for (const [from, to] of stretches.toSorted((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else if (to > from) result.push([from, to]);
  }
  return result;
}

/** Stretches of a text, and `later` ones of what is left without them, all as stretches of the text. */
export function composed(first: readonly Stretch[], later: readonly Stretch[]): Stretch[] {
  let at = 0;
  let shift = 0;
  /** Where an offset of what is left was in the text; behind what was taken out there if `isStart`. */
  const original = (offset: number, isStart: boolean): number => {
    for (let next = first[at]; next; next = first[++at]) {
      const place = next[0] - shift;
      if (place > offset || (place === offset && !isStart)) break;
      shift += next[1] - next[0];
    }
    return offset + shift;
  };
  return joined([
    ...first,
    ...later.map(([from, to]): Stretch => [original(from, true), original(to, false)]),
  ]);
}

/** What must be taken out of a text to get one that is left of it. */
export function takenOut(text: string, rest: string): Stretch[] {
  const taken: Stretch[] = [];
  let next = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === rest[next]) next++;
    else taken.push([at, at + 1]);
  }
  return joined(taken);
}

/** A text as stored, and the stretches of it that readers do not see as {@link storedStretches} wrote them. */
type StoredText = {
  readonly content: string;
  readonly unseen: string | null;
  readonly renderer_version: number | null;
};

/** The first version of the renderer that stores stretches: one before may have replaced the text and left them. */
const firstVersion = 2;

/** Stretches as they are stored beside a text; null for none. */
export function storedStretches(stretches: readonly Stretch[]): string | null {
  return stretches.length === 0 ? null : JSON.stringify(stretches.flat());
}

/** What others than its author get of a text: what readers see. */
export function forOthers({ content, unseen, renderer_version: version }: StoredText): string {
  if (unseen === null || version === null || version < firstVersion) return content;
  const offsets = JSON.parse(unseen) as number[];
  const stretches: Stretch[] = [];
  for (let at = 0; at < offsets.length; at += 2) stretches.push([offsets[at] ?? 0, offsets[at + 1] ?? 0]);
  return without(content, stretches);
}
