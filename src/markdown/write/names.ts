import type { Token } from 'markdown-it';
import type { Places } from '../parse/places.ts';
import type { Stretch } from '../unseen.ts';
import type { Origin } from './origin.ts';
import type { Seen } from './seen.ts';

/** Names that are left whole, since they say nothing: `1`, `a`, `fn12`, `†`. */
const mark = /^(?:[a-z]{0,2}\d{0,4}|[^\s]|[!-/:-@[-`{-~]*)$/iu;
/** What a name can be cut to: it needs no backslash, and makes nothing else of the brackets around it. */
const usable = /[^\s!-/:-@[-`{-~\p{M}\p{C}]/u;
/** Most characters of a name that are tried, by one, two and three. */
const mostTried = 12;
/** Before the name of a footnote, as no label of a link begins. */
const footnote = '[^';
/** Longest label of a link that markdown-it reads, in UTF-16 units. */
const longestLabel = 2000;

/**
 * Names that readers do not see, of links and footnotes. They only tie a reference to its definition, and so little is
 * left of them: a number at the end or a character, or a few if others have that name.
 */
export class Names {
  private readonly entries = new Map<string, { isShown: boolean; places: Stretch[] }>();
  private readonly places: Places;
  private readonly seen: Seen;

  constructor(places: Places, seen: Seen) {
    this.places = places;
    this.seen = seen;
  }

  /** Notes the name in a link, image or footnote reference, whose `map` is its place in this text. */
  reference({ type, map, meta, info, content }: Token, text: string, origin: Origin): void {
    const [from, to] = map ?? [0, 0];
    if (type === 'footnote_reference') {
      this.note(footnote + info, [origin(from + 2), origin(to - 1)]);
      return;
    }
    if (meta === null) return;
    const label = String(meta['label']);
    if (!this.entries.has(label)) this.definition(label);
    // Behind the text of the link or image may stand a label that is not this text.
    const start = (type === 'image' ? from + 2 + content.length : to) + 2;
    const end = text[start - 1] === '[' ? start + labelLength(text, start) : start;
    const isApart = normalName(text.slice(start, end)) === label;
    this.note(label, isApart ? [origin(start), origin(end)] : null);
  }

  /** Notes the name in the definition of a footnote that is written, whose mark is seen too. */
  footnote({ map, meta, info }: Token): void {
    this.seen.mark(map?.[0] ?? 0);
    const [start = 0] = (meta?.['starts'] as readonly number[] | undefined) ?? [];
    this.note(footnote + info, [start + 2, start + 2 + labelLength(this.places.source, start + 2)]);
  }

  /** A definition is seen because it is used. */
  private definition(label: string): void {
    const [first = 0, end = 0] = this.places.definitions.get(label)?.map ?? [];
    for (let line = first; line < end; line++) this.seen.line(line);
    const start = (this.places.starts[first] ?? 0) + 1;
    this.note(label, [start, start + labelLength(this.places.source, start)]);
  }

  /** A name by its normalized form: where it stands unseen, or null where it is shown. */
  private note(name: string, place: Stretch | null): void {
    const entry = this.entries.get(name) ?? { isShown: false, places: [] };
    this.entries.set(name, entry);
    if (place === null) entry.isShown = true;
    else entry.places.push(place);
  }

  /** Hides what can be left out of the names. */
  shorten(): void {
    const unseen = [...this.entries]
      .filter(([, { isShown, places }]) => !isShown && places.some((place) => !mark.test(this.textOf(place))))
      .toSorted(([a], [b]) => a.length - b.length);
    if (unseen.length === 0) return;
    // Whatever stands in brackets could become a link or reference by the name that another gets.
    const bracketed = this.places.source.matchAll(/\[([^[\]]{1,64})\]/g);
    const taken = new Set(Array.from(bracketed, ([, text = '']) => normalName(text)));
    for (const [name, { places }] of unseen) {
      const spelled = places.map((place) => this.charactersOf(place));
      const kept = keptOf(spelled, name.startsWith(footnote) ? '^' : '', taken);
      if (kept !== undefined) places.forEach((place, at) => this.hideRest(place, kept[at] ?? []));
    }
  }

  private textOf([from, to]: Stretch): string {
    return this.places.source.slice(from, to);
  }

  /** What a name could be cut to, where it is spelled here. */
  private charactersOf(place: Stretch): Character[] {
    let at = place[0];
    const characters: Character[] = [];
    for (const text of this.textOf(place)) {
      if (usable.test(text)) characters.push({ name: normalName(text), at, end: at + text.length });
      at += text.length;
    }
    return characters;
  }

  private hideRest([from, to]: Stretch, kept: readonly Character[]): void {
    let done = from;
    for (const { at, end } of kept) {
      this.seen.hide(done, at);
      done = end;
    }
    this.seen.hide(done, to);
  }
}

type Character = { readonly name: string; readonly at: number; readonly end: number };

/** What is left of a name where it is first spelled, and everywhere else; undefined where it has nothing usable. */
function keptOf(
  spelled: readonly (readonly Character[])[],
  prefix: string,
  taken: Set<string>,
): Character[][] | undefined {
  for (const wanted of shorterNames((spelled[0] ?? []).map(({ name }) => name))) {
    const name = prefix + wanted.join('');
    if (taken.has(name)) continue;
    const kept = spelled.map((characters) => found(wanted, characters));
    if (!kept.every((characters) => characters.length === wanted.length)) continue;
    taken.add(name);
    return kept;
  }
  return undefined;
}

/** What a name may become, the best first: the number at its end, fewest characters, as much as tells it from others. */
function* shorterNames(characters: readonly string[]): Generator<readonly string[]> {
  const digits = /\d{0,4}$/.exec(characters.join(''))?.[0] ?? '';
  if (digits !== '') yield Array.from(digits);
  const few = characters.slice(0, mostTried);
  yield* few.map((one) => [one]);
  for (const [a, one] of few.entries()) for (const two of few.slice(a + 1)) yield [one, two];
  for (const [a, one] of few.entries())
    for (const [b, two] of few.entries())
      if (b > a) for (const three of few.slice(b + 1)) yield [one, two, three];
  for (let length = 4; length < characters.length; length++) yield characters.slice(0, length);
}

/** The first characters that spell this name, in order. */
function found(wanted: readonly string[], characters: readonly Character[]): Character[] {
  let next = 0;
  return characters.filter(({ name }) => name === wanted[next] && ++next > 0);
}

/** Up to the bracket that closes the label. */
function labelLength(text: string, start: number): number {
  const rest = text.slice(start, start + longestLabel);
  return /^(?:[^\\\]]|\\[^])*/.exec(rest)?.[0].length ?? 0;
}

/** As markdown-it compares labels. */
function normalName(name: string): string {
  return name.trim().replace(/\s+/g, ' ').toLowerCase().toUpperCase();
}
