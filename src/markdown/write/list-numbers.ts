import type { Token } from 'markdown-it';
import { direction } from './tokens.ts';

/** What is known of a list while its items are written: its first number, its items so far, and what would come next. */
type Count = { readonly first: number; items: number; next: number };

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

  /** The attribute of an item whose number is another than browsers count, with a space before it. */
  attribute({ info, level }: Token): string {
    const count = this.counts.get(level);
    if (info === '' || count === undefined) return '';
    const { first, items } = count;
    const number = Number(info);
    // Many number all items alike, or forget one: no more digits than the count has.
    const isCounted = number === first || info.length <= String(items + 1).length;
    const shown = isCounted ? first + items : number;
    const value = shown === count.next ? '' : ` value="${shown}"`;
    count.items++;
    count.next = shown + 1;
    return value;
  }
}
