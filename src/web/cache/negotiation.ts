import { weighted } from '../../http/encoding.ts';

/**
 * Whether an `Accept` header prefers markdown to HTML: it must name `text/markdown`, with a higher weight than
 * HTML has by its most specific range, or an equal one and earlier (RFC 9110, 12.5.1).
 */
export function prefersMarkdown(header: string | undefined): boolean {
  if (header === undefined || !/text\/markdown/i.test(header)) return false;
  const ranges = weighted(header);
  const markdown = ranges.find(({ name }) => name === 'text/markdown');
  if (markdown === undefined || markdown.q === 0) return false;
  const html = ['text/html', 'text/*', '*/*']
    .map((name) => ranges.find((range) => range.name === name))
    .find((range) => range !== undefined);
  if (html === undefined || markdown.q > html.q) return true;
  return markdown.q === html.q && markdown.place < html.place;
}

/** Whether an `Accept` header names JSON, and HTML not. */
export function prefersJson(header = ''): boolean {
  return /application\/(?:problem\+)?json/.test(header) && !header.includes('text/html');
}
