import { picturePath } from '../rules/text/media-names.ts';
import type { ShownPicture } from '../rules/text/shown-pictures.ts';
import type { PageHeading, PagePostWithText } from '../services/lists/pages.ts';
import { escapeHtml } from './markup.ts';

/** A post as it is read: its HTML, and the heading that its title stands for, if there is one. */
export type Article = { readonly html: string; readonly titleId: string | null };

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
export function articleOf({ html, title }: Pick<PagePostWithText, 'html' | 'title'>): Article {
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

/** The picture that stands for a post: absolute address, text, and what is known of one that is stored here. */
export type Cover = { readonly url: string; readonly alt: string; readonly hosted: ShownPicture | null };

const firstPicture = /<img src="(https?:[^"]+)" alt="([^"]*)"/i;

/** The picture that the author chose, or else the first of the text; null for a post without any. */
export function coverOf(post: Omit<PagePostWithText, 'content'>): Cover | null {
  const addressOf = ({ name }: ShownPicture) => `${post.agent.url}/${picturePath(name)}`;
  const { cover } = post;
  if (cover !== null) return { url: addressOf(cover), alt: cover.alt ?? '', hosted: cover };
  // Most posts have none, which is found out ten times as fast without the expression.
  const [, src, alt = ''] = (post.html.includes('<img ') && firstPicture.exec(post.html)) || [];
  if (src === undefined) return null;
  const url = unescapeHtml(src);
  const hosted = post.pictures.find((picture) => addressOf(picture) === url) ?? null;
  return { url, alt: unescapeHtml(alt), hosted };
}

/** In our renderer's HTML a bare `"` only ever delimits an attribute, so this finds all of them, each as a whole. */
const attributes = / ([a-z-]+)="([^"]*)"/g;

/** The HTML of a post for another place than its page: relative links lead where they lead from `base`. */
export function absoluteLinks(rendered: string, base: string, withinPage = false): string {
  return rendered.replace(attributes, (attribute, name: string, value: string) => {
    if (name !== 'href' && name !== 'src') return attribute;
    if (/^https?:/.test(value) || (withinPage && value.startsWith('#'))) return attribute;
    const url = URL.parse(value.replaceAll('&amp;', '&'), base);
    return url === null ? attribute : ` ${name}="${escapeHtml(url.href)}"`;
  });
}

/** Headings for a table of contents, without the one that the title stands for. */
export function headingsOf(headings: readonly PageHeading[], { titleId }: Article): readonly PageHeading[] {
  return headings.filter(({ id }) => id !== titleId);
}

function plain(text: string): string {
  return unescapeHtml(text).replace(/\s+/gu, ' ').trim();
}

/** Text from our renderer's HTML, as it was before it was escaped. */
function unescapeHtml(text: string): string {
  const unescaped = text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"');
  return unescaped.replaceAll('&amp;', '&');
}
