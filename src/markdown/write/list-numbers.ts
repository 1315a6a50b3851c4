import type { Token } from 'markdown-it';
import { direction } from './tokens.ts';

/** What is known of a list while its items are written: its first number, its items so far, and what would come next. */
type Count = { readonly first: number; items: number; next: number };

/** Digits from which on a number needs more room than the indent of a list; the style sheet knows those up to 10. */
const leastDigits = 3;

/**
 * The numbers of ordered lists. Browsers count from the first, so those behind it would be read by machines alone, with
 * nine digits each; what cannot be just another way of counting is therefore shown as it was written.
 */
export class ListNumbers {
  /** By the level of their items: a list begins before its first and ends before the next list there. */
  private readonly counts = new Map<number, Count>();

  open(list: Token): string {
    const start = list.attrGet('start');
    const first = start === null ? 1 : Number(start);
    this.counts.set(list.level + 1, { first, items: 0, next: first });
    return `<ol${start === null ? '' : ` start="${first}"`}${direction(list)}>\n`;
  }

  /** Of an item: the attribute of a number that browsers would not count, with a space before it, and a long one's class. */
  next({ info, level }: Token): { readonly value: string; readonly className: string } {
    const count = this.counts.get(level);
    if (info === '' || count === undefined) return { value: '', className: '' };
    const { first, items } = count;
    const number = Number(info);
    // Many number all items alike, or forget one: no more digits than the count has.
    const isCounted = number === first || info.length <= String(items + 1).length;
    const shown = isCounted ? first + items : number;
    const value = shown === count.next ? '' : ` value="${shown}"`;
    count.items++;
    count.next = shown + 1;
    // Numbers stand in the margin, which the style sheet makes as wide as the longest.
    const { length } = String(shown);
    return { value, className: length < leastDigits ? '' : `digits-${length}` };
  }
}
