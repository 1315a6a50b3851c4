import type { Token } from 'markdown-it';
import { warning, type WarningCode } from '../../rules/warnings.ts';
import { highlight } from './highlight.ts';
import { captionedImage, codeBlock, figure, imageElement, tableOfContents } from './elements.ts';
import { Footnotes } from './footnotes.ts';
import { ListNumbers } from './list-numbers.ts';
import { mathml } from './maths.ts';
import { nameToShow } from './hidden-names.ts';
import { Names } from './names.ts';
import { originOf, type Origin } from './origin.ts';
import { Seen } from './seen.ts';
import { codeScrolls, formulaScrolls, preformatted, scrollingBlock, tableScrolls } from './tab-stops.ts';
import { alternativeText, commentsIn, direction, escape, htmlOf, outline, paired } from './tokens.ts';
import { resolveFragment, separatorOf, titleOf, type Heading, type Outline } from './tokens.ts';
import type { Places } from '../parse/places.ts';
import { isAllowedImage, isRelativeLink } from '../parse/syntax.ts';
import { shrinkOf } from '../parse/tags.ts';
import { picturePath } from '../../rules/media/media-names.ts';
import { hostedName } from '../../rules/media/shown-pictures.ts';
import { isBlank } from '../../rules/text.ts';
import { unrenderable, type RenderedPost } from '../rendered.ts';
import type { Stretch } from '../unseen.ts';

/** Largest HTML of one document, in bytes of UTF-8. */
const largestHtml = 4 * 1024 * 1024;
/** Most code highlighted in one document, in UTF-16 units. */
const mostHighlighted = 64 * 1024;
const mostHeadings = 200;
/** Length of prose from which on no excerpt needs more, in UTF-16 units. */
const mostLeading = 3000;
/** Most TeX set in one document, in UTF-16 units. */
const mostMaths = 32 * 1024;
const mostWarnings = 20;
/** Most pictures of one's own that are looked for; a document of 512 KiB could name 13,000. */
const mostPictures = 1000;

/** What a document may contain: a post everything, a comment no images and no headings. */
export type Kind = 'post' | 'comment';

type Written = Pick<RenderedPost, 'html' | 'text' | 'headings' | 'pictures' | 'warnings'> & {
  /** The text of outermost paragraphs alone, or else of lists and quotations, as far as an excerpt could need it. */
  readonly prose: string;
  /** What of the source shows nothing, in order. */
  readonly unseen: readonly Stretch[];
};

/**
 * Writes tokens as HTML. All tags and attributes are spelled here and in `tokens.ts`, and authors' text is escaped, so
 * nothing needs sanitizing. Throws `unrenderable` when the HTML grows too large.
 */
export function write(tokens: readonly Token[], kind: Kind, places: Places): Written {
  return new Writer(tokens, kind, places).write();
}

class Writer {
  private readonly tokens: readonly Token[];
  private readonly kind: Kind;
  private readonly places: Places;
  private readonly seen: Seen;
  private readonly names: Names;
  private readonly outline: Outline;
  private readonly footnotes: Footnotes;
  private readonly listNumbers = new ListNumbers();
  private readonly headings: Heading[] = [];
  /** Whether each is described wherever it is shown, by name. */
  private readonly pictures = new Map<string, boolean>();
  /** By their text, since one mistake is often repeated. */
  private readonly warnings = new Map<string, WarningCode>();
  private html = '';
  private text = '';
  /** The text of outermost paragraphs, and of those in lists and quotations; which of them is being written. */
  private readonly leading = { outer: '', inner: '' };
  private leads: 'outer' | 'inner' | null = null;
  /** Whether what is written says how the word before it is read. */
  private isReading = false;
  private isBehindNote = false;
  private tables = 0;
  private formulas = 0;
  private highlighted = 0;
  private maths = 0;
  /** The checkbox of a task, until the text that it belongs to begins. */
  private checkbox = '';
  private isWithinLink = false;
  /** How often what is being written is made smaller. */
  private shrunk = 0;

  constructor(tokens: readonly Token[], kind: Kind, places: Places) {
    this.tokens = tokens;
    this.kind = kind;
    this.places = places;
    this.seen = new Seen(places);
    this.names = new Names(places, this.seen);
    this.outline = outline(kind === 'post' ? tokens : []);
    this.footnotes = new Footnotes(tokens);
  }

  write(): Written {
    this.blocks(0, this.tokens.length);
    const prose = this.leading.outer.trim() || this.leading.inner;
    this.writeFootnotes();
    refuseSize(Buffer.byteLength(this.html));
    const warnings = Array.from(this.warnings, ([text, code]) => warning(code, text));
    this.names.shorten();
    const unseen = this.seen.stretches();
    const { html, headings } = this;
    const pictures = Array.from(this.pictures, ([name, hasAlt]) => ({ name, hasAlt }));
    return { html, text: this.text.trim(), prose, headings, pictures, warnings, unseen };
  }

  private blocks(from: number, to: number): void {
    for (let at = from; at < to; at++) {
      const token = this.tokens[at];
      if (token === undefined) return;
      if (token.type === 'footnote_open') {
        at = this.footnotes.end(at);
        continue;
      }
      const before = this.html.length;
      if (!token.hidden) this.html += this.captioned(token, at) ?? htmlOf(token) ?? this.block(token, at);
      this.text += separatorOf(token);
      if (token.type === 'inline') {
        this.checkbox = '';
        const holder = this.tokens[at - 1];
        this.beginLeading(holder);
        const { shrunk } = this;
        // As footnotes are.
        if (/^t[hd]_open$/.test(holder?.type ?? '')) this.shrunk = 1;
        this.inline(token.children ?? [], at);
        this.shrunk = shrunk;
        this.lead(holder?.type === 'dt_open' ? ':\n' : '\n');
        this.leads = null;
      }
      // Whatever becomes of the source: what nothing is written for is unseen.
      if (this.html.length > before) this.seen.block(token);
      refuseSize(this.html.length);
    }
  }

  private block(token: Token, at: number): string {
    switch (token.type) {
      case 'inline':
        return this.checkbox;
      case 'ordered_list_open':
        return this.listNumbers.open(token);
      case 'list_item_open':
        return this.item(token, at);
      case 'heading_open':
      case 'heading_close':
        return this.heading(token, this.tokens[token.nesting === 1 ? at : at - 2]);
      case 'code_block':
      case 'fence':
        return this.code(token);
      case 'table_open':
        this.seen.table(this.tokens, at);
        return `${scrollingBlock('table', `Table ${++this.tables}`, tableScrolls(this.tokens, at))}\n<table${direction(token)}>\n`;
      case 'formula_block':
        return this.formulaBlock(token);
      case 'contents':
        return tableOfContents(this.outline.headings.values());
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

  private item(token: Token, at: number): string {
    const { value, className } = this.listNumbers.next(token);
    const isParagraph = this.tokens[at + 1]?.type === 'paragraph_open';
    const first = isParagraph && this.kind === 'post' ? this.tokens[at + 2]?.children?.[0] : undefined;
    const mark = first?.type === 'text' ? /^\[([ xX])\]\s/.exec(first.content)?.[1] : undefined;
    if (first === undefined || mark === undefined)
      return `<li${className && ` class="${className}"`}${value}>`;
    first.content = first.content.slice(4);
    const state = mark === ' ' ? 'aria-label="To do"' : 'checked aria-label="Done"';
    this.checkbox = `<input type="checkbox" disabled ${state}> `;
    return `<li class="task${className && ` ${className}`}"${value}>`;
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

  private code(token: Token): string {
    const { map, meta } = token;
    // The last line of a fence that nothing closes is a line too.
    const content = token.content.replace(/[^\n]$/, '$&\n');
    const language = token.type === 'fence' ? token.info.trim() : '';
    const end = this.places.ends[map?.[0] ?? 0] ?? 0;
    for (const [from, to] of (meta?.['unseen'] as Stretch[] | undefined) ?? [])
      this.seen.hide(end + from, end + to);
    const title = String(token.attrGet('title') ?? '');
    if (language === 'math' && title === '' && this.kind === 'post') return this.formulaBlock(token);
    this.text += title === '' ? content : `${title}\n${content}`;
    const isWithin = this.highlighted + content.length <= mostHighlighted;
    const html = isWithin ? highlight(content, language) : undefined;
    if (html !== undefined) this.highlighted += content.length;
    return codeBlock(content, html, language, title, codeScrolls(content, this.isOutermost(token)));
  }

  /** A formula as MathML; one that cannot be shown whole as the code that it is. */
  private formula(tex: string, isDisplayed: boolean): string {
    this.prose(tex, /[\\{}]/.test(tex) ? '…' : tex);
    this.maths += tex.length;
    const html = this.maths <= mostMaths ? mathml(tex, isDisplayed, this.shrunk) : undefined;
    if (html !== undefined) return html;
    const why = 'it is not TeX that can be set whole, or would be too small to read where it stands';
    this.warn('unset_formula', `the formula '${shorten(tex)}' is shown as code: ${why}`);
    return `<code class="language-tex">${escape(tex)}</code>`;
  }

  private formulaBlock(token: Token): string {
    const tex = this.seen.formula(token);
    const html = this.formula(tex, true);
    this.text += '\n';
    const isOutermost = this.isOutermost(token);
    if (!html.startsWith('<math')) return preformatted(html, codeScrolls(tex, isOutermost));
    const name = `Formula ${++this.formulas}`;
    return `${scrollingBlock('formula', name, formulaScrolls(tex, isOutermost))}${html}</div>\n`;
  }

  /** Whether a block has the whole column of a page. */
  private isOutermost({ level }: Token): boolean {
    return level === 0 && this.kind === 'post';
  }

  /** A paragraph of one image with a title, as a figure. */
  private captioned(token: Token, at: number): string | undefined {
    const image = captionedImage(this.tokens, at);
    if (image === undefined || !this.isShown(image)) return undefined;
    if (token.nesting === -1) this.text += `\n${String(image.attrGet('title'))}`;
    return figure(token, image);
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

  private inline(tokens: readonly Token[], at: number): void {
    let origin: Origin | undefined;
    for (const [place, token] of tokens.entries()) {
      const before = this.html.length;
      this.html += htmlOf(token) ?? this.mark(token);
      this.html += this.prose(nameToShow(tokens, place));
      if (token.tag === 'a') this.isWithinLink = token.type === 'link_open';
      const separator = separatorOf(token);
      this.text += separator;
      this.lead(separator);
      if (token.map !== null) {
        const [from, to] = token.map;
        origin ??= originOf(this.tokens, at, this.places);
        if (this.html.length === before) this.seen.hide(origin(from), origin(to));
        else this.names.reference(token, this.tokens[at]?.content ?? '', origin);
        for (const [start, end] of token.type === 'image' ? commentsIn(token) : [])
          this.seen.hide(origin(from + 2 + start), origin(from + 2 + end));
      }
      refuseSize(this.html.length);
    }
  }

  private mark(token: Token): string {
    switch (token.type) {
      case 'text':
        return this.prose(token.content);
      case 'softbreak':
        // A line of the plain text is a block or ends where readers see it end.
        this.prose(' ');
        return '\n';
      case 'code_inline':
        return `<code>${this.prose(token.content)}</code>`;
      case 'link_open':
        return this.link(String(token.attrGet('href') ?? ''), token);
      case 'image':
        return this.image(token);
      case 'tag_open':
      case 'tag_close':
        if (token.info !== paired) return this.prose(token.content);
        if (token.tag === 'rt') this.isReading = token.type === 'tag_open';
        this.shrunk += token.type === 'tag_open' ? shrinkOf([token]) : -shrinkOf([token]);
        return token.type === 'tag_open' ? `<${token.tag}${titleOf(token)}>` : `</${token.tag}>`;
      case 'formula':
        return this.formula(token.content, token.info === 'display');
      case 'footnote_reference':
        this.isBehindNote = true;
        return this.footnotes.reference(token.info);
      default:
        throw new Error(`no HTML for the inline token ${token.type}`);
    }
  }

  private link(href: string, token: Token): string {
    if (!/^#./.test(href)) {
      const rel = isRelativeLink(href) ? '' : ' rel="ugc nofollow noopener"';
      return `<a href="${escape(href)}"${titleOf(token)}${rel}>`;
    }
    const id = resolveFragment(href.slice(1), this.outline.names);
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
    const alt = alternativeText(token);
    if (!this.isShown(token)) {
      const why =
        this.kind === 'comment'
          ? 'comments have no images'
          : 'an image needs an https address, or is uploaded and shown as media/{name}';
      this.warn('refused_link', `the image '${shorten(src)}' is shown as a link: ${why}`);
      return this.imageAddress(src, isBlank(alt) ? '' : alt, token);
    }
    const name = hostedName(src);
    if (name !== null) {
      if (this.pictures.has(name) || this.pictures.size < mostPictures)
        this.pictures.set(name, (this.pictures.get(name) ?? true) && !isBlank(alt));
    } else if (alt.trim() === '')
      this.warn(
        'missing_alt',
        `the image '${shorten(src)}' has no alternative text; write ![what it shows](…)`,
      );
    this.text += alt;
    return imageElement(token, name === null ? src : picturePath(name), alt);
  }

  private isShown(image: Token): boolean {
    const src = String(image.attrGet('src') ?? '');
    return this.kind === 'post' && (hostedName(src) !== null || isAllowedImage(src));
  }

  /** An image that is not shown, as a link; within a link, where there can be none, as text. */
  private imageAddress(src: string, alt: string, token: Token): string {
    const title = String(token.attrGet('title') ?? '');
    const text = alt || src || title || '![]()';
    if (!this.isWithinLink) return `${this.link(src, token)}${this.prose(text)}</a>`;
    return this.prose(
      [text, src, title].filter((part, at, parts) => part && parts.indexOf(part) === at).join(' '),
    );
  }

  private writeFootnotes(): void {
    this.shrunk = 1;
    this.footnotes.write({
      add: (html) => {
        this.html += html;
        refuseSize(this.html.length);
      },
      blocks: (from, to) => this.blocks(from, to),
      endText: () => {
        this.text += '\n';
      },
    });
    this.footnotes.place(this.names, this.seen);
    for (const label of this.footnotes.unused())
      this.warn(
        'unused_footnote',
        `the footnote '[^${shorten(label.toLowerCase())}]' is not shown: nothing refers to it`,
      );
  }

  /** Text, and what an excerpt says in its place. */
  private prose(text: string, inExcerpt = text): string {
    this.text += text;
    this.lead(inExcerpt);
    return escape(text);
  }

  /** What follows is of these paragraphs, if an excerpt could need it; items that end without a sign are parted by one. */
  private beginLeading(holder: Token | undefined): void {
    const { leading } = this;
    if (holder === undefined || !/^(?:paragraph|dt)_open$/.test(holder.type)) return;
    const leads = holder.level === 0 ? 'outer' : 'inner';
    if (leading[leads].length >= mostLeading) return;
    if (leads === 'inner') leading.inner = leading.inner.trimEnd().replace(/[^\p{P}]$/u, '$&;') + '\n';
    this.leads = leads;
  }

  private lead(text: string): void {
    if (this.leads === null || this.isReading || text === '') return;
    const before = this.leading[this.leads];
    // Without the number between them, "so ¹." is "so."
    const isParted = this.isBehindNote && /^[.,;:!?)]/.test(text);
    this.isBehindNote = false;
    if (before.length >= mostLeading) return;
    this.leading[this.leads] = (isParted ? before.trimEnd() : before) + text;
  }

  private warn(code: WarningCode, text: string): void {
    if (this.warnings.size < mostWarnings) this.warnings.set(text, code);
  }
}

function refuseSize(size: number): void {
  if (size > largestHtml) throw unrenderable('makes more than 4 MiB of HTML', 'Split it into several.');
}

function shorten(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}
