import type { Token } from 'markdown-it';
import { preformatted, type Scrolls } from './tab-stops.ts';
import { direction, escape, spelled, titleOf, type Heading } from './tokens.ts';

/** Most entries of a table of contents within a text. */
const mostEntries = 200;

/** Links to headings, in place of `[TOC]`; nothing where there are none. */
export function tableOfContents(headings: Iterable<Heading>): string {
  const items = Array.from(
    headings,
    ({ id, level, text }) => `<li class="level-${level}"><a href="#${id}">${escape(text)}</a></li>\n`,
  );
  if (items.length === 0) return '';
  return `<nav class="toc" aria-label="Contents">\n<ul>\n${items.slice(0, mostEntries).join('')}</ul>\n</nav>\n`;
}

/** A block of code, highlighted HTML or else plain text, under its title and the name of its language. */
export function codeBlock(
  content: string,
  highlighted: string | undefined,
  language: string,
  title: string,
  scrolls: Scrolls,
): string {
  const className = language === '' ? '' : ` class="language-${escape(language)}"`;
  const pre = preformatted(`<code${className}>${highlighted ?? escape(content)}</code>`, scrolls);
  if (language === '' && title === '') return pre;
  const label = language === 'mermaid' ? 'mermaid, shown as source' : language;
  const caption = [spelled(title), label].filter(Boolean).map((part) => `<span>${escape(part)}</span>`);
  return `<figure class="code">\n<figcaption>${caption.join(' ')}</figcaption>\n${pre}</figure>\n`;
}

/** An image that may be loaded; its alternative text is said by `alt`. */
export function imageElement(token: Token, src: string, alt: string): string {
  const size = ['width', 'height'].map((name) => {
    const pixels = Number(token.attrGet(name));
    return pixels > 0 ? ` ${name}="${pixels}"` : '';
  });
  return `<img src="${escape(src)}" alt="${escape(alt)}"${titleOf(token)}${size.join('')} loading="lazy" decoding="async" referrerpolicy="no-referrer">`;
}

/** The image of a paragraph that holds nothing else, if it has a title: that becomes its caption. */
export function captionedImage(tokens: readonly Token[], at: number): Token | undefined {
  const text = { paragraph_open: tokens[at + 1], paragraph_close: tokens[at - 1] }[tokens[at]?.type ?? ''];
  const [image, more] = text?.children ?? [];
  return image?.type === 'image' && more === undefined && image.attrGet('title') ? image : undefined;
}

/** Begins a figure, or ends it by its caption. */
export function figure(token: Token, image: Token): string {
  if (token.nesting === 1) return `<figure${direction(token)}>\n`;
  return `\n<figcaption>${escape(spelled(String(image.attrGet('title'))))}</figcaption>\n</figure>\n`;
}
