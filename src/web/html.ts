/** Markup that is safe to send. Only the functions of this module make one, so a string cannot pass for it. */
class Markup {
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  toString(): string {
    return this.#source;
  }
}

export type Html = Markup;

/** What a template takes: text is escaped, lists are joined, and null, undefined and false are omitted. */
export type Value = Html | string | number | null | undefined | false | readonly Value[];

/**
 * Tagged template for HTML. Every value is escaped, for text and for quoted attributes alike; an attribute
 * must therefore always stand in quotes. The indentation of the source is left out, so what `<pre>` holds
 * must come as a value.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  const fixed = fixedParts(strings);
  let out = fixed[0] ?? '';
  for (let i = 0; i < values.length; i++) out += text(values[i]) + (fixed[i + 1] ?? '');
  return new Markup(out);
}

/** Passes stored HTML through unescaped. Only for what our own renderer made at publish. */
export function trusted(rendered: string): Html {
  return new Markup(rendered);
}

/** A data block (JSON-LD). No `<` is left in it, so no text can end the element or open a comment. */
export function dataBlock(type: string, data: unknown): Html {
  const json = JSON.stringify(data).replaceAll('<', '\\u003c');
  return new Markup(`<script type="${escapeHtml(type)}">${json}</script>`);
}

/** Text for an element or a quoted attribute, of HTML or XML. */
export function escapeHtml(value: string): string {
  return unsafe.test(value) ? value.replace(eachUnsafe, (character) => entities[character] ?? '') : value;
}

/** Each template in the source has one array of strings, so each is stripped once. */
const stripped = new WeakMap<TemplateStringsArray, readonly string[]>();

function fixedParts(strings: TemplateStringsArray): readonly string[] {
  const known = stripped.get(strings);
  if (known !== undefined) return known;
  const parts = strings.map((part) => part.replace(/\n\s*/g, '\n'));
  stripped.set(strings, parts);
  return parts;
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

function text(value: Value): string {
  if (typeof value === 'string') return escapeHtml(value);
  if (value instanceof Markup) return value.toString();
  if (typeof value === 'number') return String(value);
  if (value === null || value === undefined || value === false) return '';
  let out = '';
  for (const item of value) out += text(item);
  return out;
}
