/** HTML or XML that is safe to send. Only the functions of this module make one, so a string cannot pass for it. */
export class Markup {
  /** Long texts in it, and what stands between them; null where there is none. */
  readonly #before: readonly string[] | null;
  /** What stands behind them. */
  readonly #rest: string;

  constructor(rest: string, before: readonly string[] | null = null) {
    this.#rest = rest;
    this.#before = before;
  }

  /** Values between the fixed parts of a template. */
  static join(fixed: readonly string[], values: readonly Value[], escape: Escape): Markup {
    let before: readonly string[] | null = null;
    let rest = fixed[0] ?? '';
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (value instanceof Markup && value.#before !== null) {
        const [first = '', ...others]: readonly string[] = value.#before;
        before = [...(before ?? []), rest + first, ...others];
        rest = value.#rest;
      } else rest += textOf(value, escape);
      rest += fixed[i + 1] ?? '';
    }
    return new Markup(rest, before);
  }

  toString(): string {
    return this.#before === null ? this.#rest : this.pieces().join('');
  }

  /** In pieces, of which nobody has to make one text. */
  pieces(): readonly string[] {
    return [...(this.#before ?? []), this.#rest];
  }
}

/** UTF-16 units from which a text is a piece of its own. */
const longText = 2 * 1024;

/** What a template takes: text is escaped, lists are joined, and null, undefined and false are omitted. */
export type Value = Markup | string | number | null | undefined | false | readonly Value[];

/**
 * Tagged template for HTML. Every value is escaped, for text and for quoted attributes alike; an attribute
 * must therefore always stand in quotes. The indentation of the source is left out, so what `<pre>` holds
 * must come as a value.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return Markup.join(withoutIndentation(strings), values, escapeHtml);
}

/** Tagged template for XML: values are escaped, and characters that XML 1.0 cannot hold are left out. */
export function xml(strings: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return Markup.join(strings, values, (text) => escapeHtml(allowedInXml(text)));
}

/** Passes stored HTML through unescaped. Only for what our own renderer made at publish. */
export function trusted(rendered: string): Markup {
  return rendered.length < longText ? new Markup(rendered) : new Markup('', ['', rendered]);
}

/** A data block (JSON-LD). No `<` is left in it, so no text can end the element or open a comment. */
export function dataBlock(type: string, data: unknown): Markup {
  const json = JSON.stringify(data).replaceAll('<', '\\u003c');
  return new Markup(`<script type="${escapeHtml(type)}">${json}</script>`);
}

/** Text between `<![CDATA[` and `]]>`; a `]]>` inside is split over two sections. */
export function cdata(value: string): Markup {
  return new Markup(`<![CDATA[${allowedInXml(value).replaceAll(']]>', ']]]]><![CDATA[>')}]]>`);
}

/**
 * Plain text for an element of a feed, in the spelling that most readers take for it: of `&lt;` some make markup
 * (https://www.rssboard.org/rss-profile#data-types-characterdata).
 */
export function plainText(value: string): Markup {
  const reference = (character: string) => `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`;
  return new Markup(allowedInXml(value).replace(/[&<>]/g, reference));
}

/** Text for an element or a quoted attribute, of HTML or XML. */
export function escapeHtml(value: string): string {
  return unsafe.test(value) ? value.replace(eachUnsafe, (character) => entities[character] ?? '') : value;
}

const unsafe = /[&<>"']/;
const eachUnsafe = /[&<>"']/g;
const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Each template in the source has one array of strings, so each is stripped once. */
const stripped = new WeakMap<TemplateStringsArray, readonly string[]>();

function withoutIndentation(strings: TemplateStringsArray): readonly string[] {
  const known = stripped.get(strings);
  if (known !== undefined) return known;
  const parts = strings.map((part) => part.replace(/\n\s*/g, '\n'));
  stripped.set(strings, parts);
  return parts;
}

type Escape = (text: string) => string;

function textOf(value: Value, escape: Escape): string {
  if (typeof value === 'string') return escape(value);
  if (value instanceof Markup) return value.toString();
  if (typeof value === 'number') return String(value);
  if (value === null || value === undefined || value === false) return '';
  let out = '';
  for (const item of value) out += textOf(item, escape);
  return out;
}

/** XML 1.0, section 2.2: everything but tab, line feed, carriage return and the ranges of `Char`. */
const forbiddenInXml = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;

function allowedInXml(value: string): string {
  return value.replace(forbiddenInXml, '');
}
