/** The HTML of a post as its page shows it, and the heading that its title stands for, if there is one. */
export type Article = { readonly html: string; readonly titleId: string | null };

type Titled = { readonly html: string; readonly title: string };

const firstHeading = /^<h[2-6] id="([^"]*)"[^>]*>(.*?) <a class="anchor"[^>]*><\/a><\/h[2-6]>\n/;
/** Tags without which a heading still says and leads to the same. */
const marks = /<\/?(?:em|strong|code|del|s|u|ins|mark|small|kbd|sub|sup)>/g;
const emptyContents = /<nav class="toc"[^>]*>\n<ul>\n<\/ul>\n<\/nav>\n/;
/** Of headings, and of their entries in a table of contents. */
const levels = /(<\/?h|<li class="level-)([3-6])(?=[ >"])/g;

/**
 * Leaves a first heading out that repeats the title, which stands above it already, where something follows it; from
 * `[TOC]` as well. Headings that were all below it come one level higher, since it has the level of the title now.
 */
export function withoutRepeatedTitle({ html, title }: Titled): Article {
  const [heading, titleId = '', text = ''] = firstHeading.exec(html) ?? [];
  if (heading === undefined || plain(text.replace(marks, '')) !== plain(title))
    return { html, titleId: null };
  const entry = new RegExp(`<li class="level-[2-6]"><a href="#${titleId}">.*\\n`);
  const rest = html.slice(heading.length).replace(entry, '').replace(emptyContents, '');
  if (rest.trim() === '') return { html, titleId: null };
  if (rest.includes('<h2 id="')) return { html: rest, titleId };
  const raise = (_: string, start: string, level: string) => `${start}${Number(level) - 1}`;
  return { html: rest.replace(levels, raise), titleId };
}

function plain(text: string): string {
  return unescapeHtml(text).replace(/\s+/gu, ' ').trim();
}

/** Text from our renderer's HTML, as it was before it was escaped. */
export function unescapeHtml(text: string): string {
  const unescaped = text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"');
  return unescaped.replaceAll('&amp;', '&');
}
