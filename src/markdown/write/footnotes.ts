import type { Token } from 'markdown-it';
import type { Names } from './names.ts';
import type { Seen } from './seen.ts';

/** What the writer of a document does for its footnotes. */
type Output = {
  readonly add: (html: string) => void;
  readonly blocks: (from: number, to: number) => void;
  /** Ends a note in the plain text. */
  readonly endText: () => void;
};

/** A footnote that is referred to: its number, from 1, and how often. */
type Note = { readonly number: number; references: number };

/** Footnotes of a document: written at its end, in the order of their first reference. */
export class Footnotes {
  private readonly tokens: readonly Token[];
  private readonly definitions = new Map<string, number>();
  /** Where a definition ends, by where it begins. */
  private readonly closes = new Map<number, number>();
  private readonly notes = new Map<string, Note>();

  constructor(tokens: readonly Token[]) {
    this.tokens = tokens;
    const open: number[] = [];
    for (const [at, token] of tokens.entries()) {
      if (token.type === 'footnote_open') {
        open.push(at);
        if (!this.definitions.has(token.info)) this.definitions.set(token.info, at);
      } else if (token.type === 'footnote_close') {
        this.closes.set(open.pop() ?? at, at);
      }
    }
  }

  /** Where the definition ends that begins here. */
  end(at: number): number {
    return this.closes.get(at) ?? at;
  }

  reference(label: string): string {
    const note = this.notes.get(label) ?? { number: this.notes.size + 1, references: 0 };
    this.notes.set(label, note);
    const id = referenceId(note.number, ++note.references);
    return `<sup class="footnote-ref"><a href="#fn-${note.number}" id="${id}" role="doc-noteref" aria-label="Footnote ${note.number}">${note.number}</a></sup>`;
  }

  /** Writes the notes; one that is written may refer to further ones. */
  write({ add, blocks, endText }: Output): void {
    if (this.notes.size === 0) return;
    add('<section class="footnotes" role="doc-endnotes" aria-label="Footnotes">\n<ol>\n');
    for (const [label, note] of this.notes) {
      const open = this.definitions.get(label) ?? 0;
      const close = this.end(open);
      const endsInParagraph = this.tokens[close - 1]?.type === 'paragraph_close';
      add(`<li id="fn-${note.number}" dir="auto">`);
      blocks(open + 1, endsInParagraph ? close - 1 : close);
      add(endsInParagraph ? ' ' : '<p>');
      for (let n = 1; n <= note.references; n++) add(backReference(note.number, n));
      add('</p>\n</li>\n');
      endText();
    }
    add('</ol>\n</section>\n');
  }

  /** Labels that nothing refers to. */
  unused(): string[] {
    return [...this.definitions.keys()].filter((label) => !this.notes.has(label));
  }

  /** Notes what became of each definition: of a note that is referred to, the first was written. */
  place(names: Names, seen: Seen): void {
    for (const at of [...this.closes.keys()].toSorted((a, b) => a - b)) {
      const token = this.tokens[at];
      if (token === undefined) continue;
      if (this.definitions.get(token.info) === at && this.notes.has(token.info)) names.footnote(token);
      else seen.unwritten(token);
    }
  }
}

function backReference(number: number, reference: number): string {
  const name = reference === 1 ? `${number}` : `${number}-${reference}`;
  const sign = reference === 1 ? '↩' : ` ↩<sup>${reference}</sup>`;
  return `<a class="footnote-backref" href="#${referenceId(number, reference)}" role="doc-backlink" aria-label="Back to reference ${name}">${sign}</a>`;
}

function referenceId(number: number, reference: number): string {
  return reference === 1 ? `fnref-${number}` : `fnref-${number}-${reference}`;
}
