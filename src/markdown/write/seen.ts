import type { Token } from 'markdown-it';
import type { Places } from '../parse/places.ts';
import { cellRange } from './origin.ts';
import { joined, type Stretch } from '../unseen.ts';

/** Blocks that only hold others: what they hold decides whether a line is seen. */
const holders =
  /^(?:blockquote|callout|bullet_list|ordered_list|list_item|dl|dd|paragraph|table|thead|tbody)_open$/;
/** A name of a formula, behind no other backslash: `\label{eq:1}`. */
const labels = /\\label(?<=(?<!\\)(?:\\\\)*\\label) *\{[^{}]*\}/g;
/** The mark of a footnote, at its place. */
const footnoteMark = /\[\^[^\s[\]]+\]:[ \t]*/y;
/** The mark of a list item without content, which shows as its bullet. */
const item = /^[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]+\S/;
const emptyItem = /^(?:[-+*]|\d{1,9}[.)])[ \t]*$/;

/**
 * What of a document's source the writer has shown. Every line that is not marked is unseen, whatever it is; within a
 * line that is marked, the writer names the stretches that it shows nothing of.
 */
export class Seen {
  private readonly places: Places;
  private readonly lines: Uint8Array;
  /** Where lines of unwritten footnotes begin, their own marks included. */
  private readonly outerStarts = new Map<number, number>();
  /** Marks of unwritten footnotes, by their lines. */
  private readonly unwrittenMarks: (readonly [line: number, ...mark: Stretch])[] = [];
  /** Lines that begin with the mark of a written footnote, which is seen whatever becomes of the rest. */
  private readonly marked = new Set<number>();
  private readonly hidden: Stretch[] = [];

  constructor(places: Places) {
    this.places = places;
    this.lines = new Uint8Array(places.ends.length);
  }

  /** Notes the lines of a block that something was written for. */
  block({ type, map }: Token): void {
    if (map === null || holders.test(type)) return;
    this.lines.fill(1, map[0], map[1]);
  }

  /** Notes a line that no token stands for. */
  line(line: number): void {
    this.lines[line] = 1;
  }

  /** Notes the line of the mark of a footnote that is written. */
  mark(line: number): void {
    this.marked.add(line);
  }

  /** A footnote that is not written: its lines go with the indentation that makes them its own. */
  unwritten({ map, meta }: Token): void {
    const starts = meta?.['starts'] as readonly number[] | undefined;
    footnoteMark.lastIndex = starts?.[0] ?? 0;
    const [mark = ''] = footnoteMark.exec(this.places.source) ?? [];
    const from = starts?.[0] ?? 0;
    this.unwrittenMarks.push([map?.[0] ?? 0, from, from + mark.length]);
    starts?.forEach((start, at) => {
      const line = (map?.[0] ?? 0) + at;
      if (!this.outerStarts.has(line)) this.outerStarts.set(line, start);
    });
  }

  /** Notes a stretch of the source that nothing was written for. */
  hide(from: number, to: number): void {
    if (from < to) this.hidden.push([from, to]);
  }

  /** Rows of the table that opens here are shown up to the last column of its head. */
  table(tokens: readonly Token[], at: number): void {
    const [head, end] = tokens[at]?.map ?? [0, 0];
    // No token stands for the delimiter row.
    this.line(head + 1);
    let columns = 0;
    for (let next = at; tokens[next]?.type !== 'thead_close'; next++)
      if (tokens[next]?.type === 'th_open') columns++;
    for (let line = head + 2; line < end; line++) {
      const { start, text } = this.textOf(line);
      const [, beyond] = cellRange(text, columns - 1);
      if (/[^|\s]/.test(text.slice(beyond))) this.hide(start + beyond, start + text.length);
    }
  }

  /** A formula without its labels, which show nothing. */
  formula({ map, content }: Token): string {
    const shown = content.replace(labels, '').trim();
    if (shown === '') return content.trim();
    for (let line = map?.[0] ?? 0; line < (map?.[1] ?? 0); line++) {
      const { start, text } = this.textOf(line);
      // A line of its own goes whole, since a blank one would end the formula.
      if (text.trim() !== '' && text.replace(labels, '').trim() === '')
        this.hide(start, this.textOf(line + 1).start);
      else
        for (const { index, 0: label } of text.matchAll(labels))
          this.hide(start + index, start + index + label.length);
    }
    return shown;
  }

  /** The text of a line, and where it begins. */
  private textOf(line: number): { start: number; text: string } {
    const start = this.places.starts[line] ?? this.places.ends[line] ?? 0;
    return { start, text: this.places.source.slice(start, this.places.ends[line]) };
  }

  /** All that is unseen, in order. */
  stretches(): Stretch[] {
    const { source, ends } = this.places;
    // A footnote that is written can begin on the line of one that is not.
    for (const [line, from, to] of this.unwrittenMarks) if (this.lines[line] === 1) this.hide(from, to);
    let isAfterBlank = true;
    for (const [line, end] of ends.entries()) {
      const start = this.outerStarts.get(line) ?? this.places.starts[line] ?? end;
      const isBlank = start >= end;
      if (this.lines[line] === 1 || isBlank || this.isEmptyItem(line)) {
        isAfterBlank = isBlank;
        continue;
      }
      if (this.marked.has(line)) {
        this.hide(start, end);
        isAfterBlank = false;
        continue;
      }
      const before = (ends[line - 1] ?? -1) + 1;
      if (this.isBetweenItems(line) && source.slice(before, start).trim() === '') {
        this.hide(before, end + 1);
        continue;
      }
      // Of several blank lines one is enough, but a first one can part two blocks.
      const fillsLine = start === before;
      this.hide(start, fillsLine && isAfterBlank ? Math.min(end + 1, source.length) : end);
      isAfterBlank = fillsLine;
    }
    return joined(this.hidden);
  }

  /** Whether the lines around this one are items of a list, which a blank line would make a loose one. */
  private isBetweenItems(line: number): boolean {
    const { source, ends } = this.places;
    const around = [ends[line - 2], ends[line]].map((end = -1) => source.slice(end + 1, end + 80));
    return line > 0 && around.every((text) => item.test(text));
  }

  private isEmptyItem(line: number): boolean {
    return !this.outerStarts.has(line) && emptyItem.test(this.textOf(line).text);
  }
}
