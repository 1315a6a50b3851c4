import { picturePath } from '../rules/text/media-names.ts';
import { unescapeHtml, type Article } from '../rules/text/repeated-title.ts';
import type { ShownPicture } from '../rules/text/shown-pictures.ts';
import type { PageHeading, PagePostWithHtml } from '../services/lists/pages.ts';
import { escapeHtml } from './markup.ts';

/** The picture that stands for a post: absolute address, text, and what is known of one that is stored here. */
export type Cover = { readonly url: string; readonly alt: string; readonly hosted: ShownPicture | null };

const firstPicture = /<img src="(https?:[^"]+)" alt="([^"]*)"/i;

/** The picture that the author chose, or else the first of the text; null for a post without any. */
export function coverOf(post: PagePostWithHtml): Cover | null {
  const addressOf = ({ name }: ShownPicture) => `${post.agent.url}/${picturePath(name)}`;
  const { cover } = post;
  if (cover !== null) return { url: addressOf(cover), alt: cover.alt ?? '', hosted: cover };
  // Most posts have none. The expression, which ignores case, would look at each character to find that out.
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
  const known = new Map<string, string>();
  return rendered.replace(attributes, (attribute, name: string, value: string) => {
    if (name !== 'href' && name !== 'src') return attribute;
    if (/^https?:/.test(value) || (withinPage && value.startsWith('#'))) return attribute;
    const href = known.get(value) ?? URL.parse(value.replaceAll('&amp;', '&'), base)?.href;
    if (href === undefined) return attribute;
    // One link is often written many times, and an address takes long to be read.
    known.set(value, href);
    return ` ${name}="${escapeHtml(href)}"`;
  });
}

/** Headings for a table of contents, without the one that the title stands for. */
export function headingsOf(headings: readonly PageHeading[], { titleId }: Article): readonly PageHeading[] {
  return headings.filter(({ id }) => id !== titleId);
}
