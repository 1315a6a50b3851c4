import { escapeHtml } from '../html.ts';

/** XML that is well formed. Only this module makes one, so a string cannot pass for it. */
class Markup {
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  toString(): string {
    return this.#source;
  }
}

export type Xml = Markup;

type Value = Xml | string | number | null | false | readonly Value[];

/** Tagged template for XML: values are escaped, and characters that XML 1.0 cannot hold are left out. */
export function xml(strings: TemplateStringsArray, ...values: readonly Value[]): Xml {
  let out = strings[0] ?? '';
  for (let i = 0; i < values.length; i++) out += text(values[i] ?? null) + (strings[i + 1] ?? '');
  return new Markup(out);
}

/** Text between `<![CDATA[` and `]]>`; a `]]>` inside is split over two sections. */
export function cdata(value: string): Xml {
  return new Markup(`<![CDATA[${allowed(value).replaceAll(']]>', ']]]]><![CDATA[>')}]]>`);
}

/** Text as HTML for an element whose readers parse what it holds: markup in the text stays text. */
export function asHtml(value: string): Xml {
  return xml`${escapeHtml(value)}`;
}

/**
 * Plain text for an element of a feed, in the spelling that most readers take for it: of `&lt;` some make markup
 * (https://www.rssboard.org/rss-profile#data-types-characterdata).
 */
export function plainText(value: string): Xml {
  return new Markup(
    allowed(value).replace(
      /[&<>]/g,
      (character) => `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`,
    ),
  );
}

/** XML 1.0, section 2.2: everything but tab, line feed, carriage return and the ranges of `Char`. */
const forbidden = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;

function allowed(value: string): string {
  return value.replace(forbidden, '');
}

function text(value: Value): string {
  if (typeof value === 'string') return escapeHtml(allowed(value));
  if (value instanceof Markup) return value.toString();
  if (typeof value === 'number') return String(value);
  if (value === null || value === false) return '';
  return value.map(text).join('');
}
