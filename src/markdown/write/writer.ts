import type { Token } from 'markdown-it';
import { warning, type WarningCode } from '../../rules/warnings.ts';
import { highlight } from './highlight.ts';
import { direction, escape, htmlOf, outline, paired, plainText, resolveFragment } from './tokens.ts';
import { separatorOf, titleOf, type Heading, type Outline } from './tokens.ts';
import { isAllowedImage } from '../parse/syntax.ts';
import { unrenderable, type RenderedPost } from '../rendered.ts';

/** Largest HTML of one document, in bytes of UTF-8. */
const largestHtml = 4 * 1024 * 1024;
/** Most code highlighted in one document, in UTF-16 units. */
const mostHighlighted = 64 * 1024;
const mostHeadings = 200;
const mostWarnings = 20;

/** What a document may contain: a post everything, a comment no images and no headings. */
export type Kind = 'post' | 'comment';

type Written = Pick<RenderedPost, 'html' | 'text' | 'headings' | 'warnings'>;

/** A footnote that is referred to: its number, from 1, and how often. */
type Note = { readonly number: number; references: number };

/**
 * Writes tokens as HTML. All tags and attributes are spelled here and in `tokens.ts`, and authors' text is escaped, so
 * nothing needs sanitizing. Throws `unrenderable` when the HTML grows too large.
 */
export function write(tokens: readonly Token[], kind: Kind): Written {
  return new Writer(tokens, kind).write();
}

class Writer {
  private readonly tokens: readonly Token[];
  private readonly kind: Kind;
  private readonly outline: Outline;
  private readonly definitions = new Map<string, number>();
  /** Where a footnote definition ends, by where it begins. */
  private readonly closes = new Map<number, number>();
  private readonly notes = new Map<string, Note>();
  private readonly headings: Heading[] = [];
  /** By their text, since one mistake is often repeated. */
  private readonly warnings = new Map<string, WarningCode>();
  private html = '';
  private text = '';
  private tables = 0;
  private highlighted = 0;
  /** The checkbox of a task, until the text that it belongs to begins. */
  private checkbox = '';

  constructor(tokens: readonly Token[], kind: Kind) {
    this.tokens = tokens;
    this.kind = kind;
    this.outline = outline(kind === 'post' ? tokens : []);
    this.findFootnotes();
  }

  write(): Written {
    this.blocks(0, this.tokens.length);
    this.footnotes();
    refuseSize(Buffer.byteLength(this.html));
    const warnings = Array.from(this.warnings, ([text, code]) => warning(code, text));
    return { html: this.html, text: this.text.trim(), headings: this.headings, warnings };
  }

  private findFootnotes(): void {
    const open: number[] = [];
    for (const [at, token] of this.tokens.entries()) {
      if (token.type === 'footnote_open') {
        open.push(at);
        if (!this.definitions.has(token.info)) this.definitions.set(token.info, at);
      } else if (token.type === 'footnote_close') {
        this.closes.set(open.pop() ?? at, at);
      }
    }
  }

  private blocks(from: number, to: number): void {
    for (let at = from; at < to; at++) {
      const token = this.tokens[at];
      if (token === undefined) return;
      if (token.type === 'footnote_open') {
        at = this.closes.get(at) ?? at;
        continue;
      }
      if (!token.hidden) this.html += htmlOf(token) ?? this.block(token, at);
      this.text += separatorOf(token);
      if (token.type === 'inline') {
        this.checkbox = '';
        this.inline(token.children ?? []);
      }
      refuseSize(this.html.length);
    }
  }

  private block(token: Token, at: number): string {
    switch (token.type) {
      case 'inline':
        return this.checkbox;
      case 'list_item_open':
        return this.item(at);
      case 'heading_open':
      case 'heading_close':
        return this.heading(token, this.tokens[token.nesting === 1 ? at : at - 2]);
      case 'code_block':
      case 'fence':
        return this.code(token.content, token.type === 'fence' ? (/\S+/.exec(token.info)?.[0] ?? '') : '');
      case 'table_open':
        // A wide table scrolls by itself; the keyboard can reach it, and its name tells it from other regions.
        return `<div class="table" role="region" aria-label="Table ${++this.tables}" tabindex="0">\n<table${direction(token)}>\n`;
      case 'details_open':
      case 'details_close':
        return this.details(token, this.tokens[at + 1]);
      case 'summary_open':
        return this.tokens[at - 1]?.info === paired
          ? `<summary${direction(token)}>`
          : `<p${direction(token)}>&lt;summary&gt;`;
      case 'summary_close':
        return this.tokens[at - 3]?.info === paired ? '</summary>\n' : '&lt;/summary&gt;</p>\n';
      default:
        throw new Error(`no HTML for the block token ${token.type}`);
    }
  }

  private item(at: number): string {
    const isParagraph = this.tokens[at + 1]?.type === 'paragraph_open';
    const first = isParagraph && this.kind === 'post' ? this.tokens[at + 2]?.children?.[0] : undefined;
    const mark = first?.type === 'text' ? /^\[([ xX])\]\s/.exec(first.content)?.[1] : undefined;
    if (first === undefined || mark === undefined) return '<li>';
    first.content = first.content.slice(4);
    const state = mark === ' ' ? 'aria-label="To do"' : 'checked aria-label="Done"';
    this.checkbox = `<input type="checkbox" disabled ${state}> `;
    return '<li class="task">';
  }

  private heading(token: Token, opening: Token | undefined): string {
    const isOpen = token.nesting === 1;
    const heading = opening && this.outline.headings.get(opening);
    if (heading === undefined) return isOpen ? `<p${direction(token)}><strong>` : '</strong></p>\n';
    const { id, level } = heading;
    if (!isOpen) return ` <a class="anchor" href="#${id}" aria-labelledby="${id}"></a></h${level}>\n`;
    if (this.headings.length < mostHeadings) this.headings.push(heading);
    return `<h${level} id="${id}"${direction(token)}>`;
  }

  private code(content: string, language: string): string {
    const name = language.slice(0, 50);
    this.text += content;
    const isWithin = this.highlighted + content.length <= mostHighlighted;
    const html = isWithin ? highlight(content, name) : undefined;
    if (html !== undefined) this.highlighted += content.length;
    const className = name === '' ? '' : ` class="language-${escape(name)}"`;
    // Code scrolls sideways, which the keyboard can only do in a focusable element.
    return `<pre tabindex="0"><code${className}>${html ?? escape(content)}</code></pre>\n`;
  }

  private details(token: Token, next: Token | undefined): string {
    if (token.info !== paired) {
      this.text += `${token.content}\n`;
      return `<p${direction(token)}>${escape(token.content)}</p>\n`;
    }
    if (token.type === 'details_close') return '</details>\n';
    const open = token.attrs === null ? '<details>\n' : '<details open>\n';
    return next?.type === 'summary_open' ? open : `${open}<summary>Details</summary>\n`;
  }

  private inline(tokens: readonly Token[]): void {
    for (const token of tokens) {
      this.html += htmlOf(token) ?? this.mark(token);
      this.text += separatorOf(token);
      refuseSize(this.html.length);
    }
  }

  private mark(token: Token): string {
    switch (token.type) {
      case 'text':
        return this.prose(token.content);
      case 'softbreak':
        return this.prose('\n');
      case 'code_inline':
        return `<code>${this.prose(token.content)}</code>`;
      case 'link_open':
        return this.link(token);
      case 'image':
        return this.image(token);
      case 'tag_open':
      case 'tag_close':
        if (token.info !== paired) return this.prose(token.content);
        return token.type === 'tag_open' ? `<${token.tag}>` : `</${token.tag}>`;
      case 'footnote_reference':
        return this.footnoteReference(token.info);
      default:
        throw new Error(`no HTML for the inline token ${token.type}`);
    }
  }

  private link(token: Token): string {
    const href = String(token.attrGet('href') ?? '');
    if (!/^#./.test(href)) return `<a href="${escape(href)}"${titleOf(token)} rel="ugc nofollow noopener">`;
    const id = resolveFragment(href.slice(1), this.outline.ids);
    if (id === undefined && this.kind === 'post') {
      this.warn(
        'dead_link',
        `the link '${shorten(href)}' leads nowhere: no heading of the post has that name`,
      );
    }
    return `<a href="${id === undefined ? escape(href) : `#${id}`}"${titleOf(token)}>`;
  }

  private image(token: Token): string {
    const src = String(token.attrGet('src') ?? '');
    const alt = plainText(token.children ?? []);
    if (this.kind === 'comment' || !isAllowedImage(src)) {
      const why = this.kind === 'comment' ? 'comments have no images' : 'an image needs an https address';
      this.warn('refused_link', `the image '${shorten(src)}' is shown as its alternative text: ${why}`);
      return this.prose(alt.trim() === '' ? src : alt);
    }
    if (alt.trim() === '')
      this.warn(
        'missing_alt',
        `the image '${shorten(src)}' has no alternative text; write ![what it shows](…)`,
      );
    this.text += alt;
    return `<img src="${escape(src)}" alt="${escape(alt)}"${titleOf(token)} loading="lazy" decoding="async" referrerpolicy="no-referrer">`;
  }

  private footnoteReference(label: string): string {
    const note = this.notes.get(label) ?? { number: this.notes.size + 1, references: 0 };
    this.notes.set(label, note);
    const id = referenceId(note.number, ++note.references);
    return `<sup class="footnote-ref"><a href="#fn-${note.number}" id="${id}" role="doc-noteref" aria-label="Footnote ${note.number}">${note.number}</a></sup>`;
  }

  /** The notes in the order of their first reference; one that is written may refer to further ones. */
  private footnotes(): void {
    if (this.notes.size > 0)
      this.html += '<section class="footnotes" role="doc-endnotes" aria-label="Footnotes">\n<ol>\n';
    for (const [label, note] of this.notes) {
      const open = this.definitions.get(label) ?? 0;
      const close = this.closes.get(open) ?? open;
      const endsInParagraph = this.tokens[close - 1]?.type === 'paragraph_close';
      this.html += `<li id="fn-${note.number}" dir="auto">`;
      this.blocks(open + 1, endsInParagraph ? close - 1 : close);
      this.html += endsInParagraph ? ' ' : '<p>';
      this.backReferences(note);
      this.html += '</p>\n</li>\n';
      this.text += '\n';
    }
    if (this.notes.size > 0) this.html += '</ol>\n</section>\n';
    for (const label of this.definitions.keys()) {
      if (!this.notes.has(label))
        this.warn(
          'unused_footnote',
          `the footnote '[^${shorten(label.toLowerCase())}]' is not shown: nothing refers to it`,
        );
    }
  }

  private backReferences({ number, references }: Note): void {
    for (let n = 1; n <= references; n++) {
      const name = n === 1 ? `${number}` : `${number}-${n}`;
      const sign = n === 1 ? '↩' : ` ↩<sup>${n}</sup>`;
      this.html += `<a class="footnote-backref" href="#${referenceId(number, n)}" role="doc-backlink" aria-label="Back to reference ${name}">${sign}</a>`;
      refuseSize(this.html.length);
    }
  }

  private prose(text: string): string {
    this.text += text;
    return escape(text);
  }

  private warn(code: WarningCode, text: string): void {
    if (this.warnings.size < mostWarnings) this.warnings.set(text, code);
  }
}

function refuseSize(size: number): void {
  if (size > largestHtml) throw unrenderable('makes more than 4 MiB of HTML', 'Split it into several.');
}

function referenceId(number: number, reference: number): string {
  return reference === 1 ? `fnref-${number}` : `fnref-${number}-${reference}`;
}

function shorten(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}
