import type { Token } from 'markdown-it';
import type { Places } from '../parse/places.ts';
import type { Stretch } from '../unseen.ts';
import type { Origin } from './origin.ts';
import type { Seen } from './seen.ts';

/** Longest name that is left whole, in UTF-16 units: of a language, a link label, a footnote. */
export const longestName = 32;
/** Longest label of a link that markdown-it reads, in UTF-16 units. */
const longestLabel = 2000;

/**
 * Names that readers do not see, of links and footnotes. They only tie a reference to its definition, and so little is
 * left of them: their first word, if that is not the name of another.
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
      this.note(`^${info}`, [origin(from + 2), origin(to - 1)]);
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
    this.note(`^${info}`, [start + 2, start + 2 + labelLength(this.places.source, start + 2)]);
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
      .filter(([, { isShown, places }]) => !isShown && places.some((place) => this.isLong(place)))
      .toSorted(([a], [b]) => a.length - b.length);
    if (unseen.length === 0) return;
    // Whatever stands in brackets could become a link or reference by the name that another gets.
    const bracketed = this.places.source.matchAll(/\[([^[\]]{1,64})\]/g);
    const taken = new Set(Array.from(bracketed, ([, text = '']) => normalName(text)));
    for (const [name, { places }] of unseen) {
      const length = this.freeLength(name, places[0], taken);
      for (const [from, to] of places) {
        const start = from + this.leading(from, to);
        this.seen.hide(from, start);
        this.seen.hide(Math.min(to, start + length), to);
      }
    }
  }

  /** How much of a name is left: its first word, or as much more as tells it from others. */
  private freeLength(name: string, place: Stretch | undefined, taken: Set<string>): number {
    const [from, to] = place ?? [0, 0];
    const text = this.places.source.slice(from + this.leading(from, to), to);
    const prefix = name.startsWith('^') ? '^' : '';
    let length = Math.min(longestName, /^\S*/.exec(text)?.[0].length ?? 0);
    for (; length < text.length; length++) {
      const left = normalName(prefix + text.slice(0, length));
      const splits = /(?<!\\)(?:\\\\)*\\$|[\ud800-\udbff]$/.test(text.slice(0, length));
      if (splits || taken.has(left)) continue;
      taken.add(left);
      break;
    }
    return length;
  }

  /** White space, and what would make a link's label a footnote's. */
  private leading(from: number, to: number): number {
    return /^[\s^]*/.exec(this.places.source.slice(from, to))?.[0].length ?? 0;
  }

  private isLong([from, to]: Stretch): boolean {
    return to - from > longestName || /\S\s+\S/.test(this.places.source.slice(from, to));
  }
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
