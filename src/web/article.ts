import { longWork } from '../platform/slices.ts';
import { picturePath } from '../rules/media/media-names.ts';
import { unescapeHtml, type Article } from '../rules/text/repeated-title.ts';
import type { ShownPicture } from '../rules/media/shown-pictures.ts';
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

/** UTF-16 units of a text that are gone through in a turn of the event loop. */
const unitsAtOnce = 8 * 1024;

/**
 * The HTML of a post for another place than its page: relative links lead where they lead from `base`. A post may have
 * 100,000 attributes, so other clients are let in between.
 */
export async function absoluteLinks(rendered: string, base: string, withinPage = false): Promise<string> {
  const known = new Map<string, string | null>();
  const absolute = (value: string): string | null => {
    const href = URL.parse(value.replaceAll('&amp;', '&'), base)?.href;
    return href === undefined ? null : escapeHtml(href);
  };
  const written = (attribute: string, name: string, value: string): string => {
    if (name !== 'href' && name !== 'src') return attribute;
    if (/^https?:/.test(value) || (withinPage && value.startsWith('#'))) return attribute;
    // One link is often written many times, and an address takes long to be read.
    let href = known.get(value);
    if (href === undefined) known.set(value, (href = absolute(value)));
    return href === null ? attribute : ` ${name}="${href}"`;
  };
  const nextTurn = longWork();
  const parts: string[] = [];
  for (let from = 0; from < rendered.length;) {
    if (from > 0) await nextTurn();
    // Only tags have `<`, so none is cut.
    const next = rendered.indexOf('<', from + unitsAtOnce);
    const end = next === -1 ? rendered.length : next;
    parts.push(rendered.slice(from, end).replace(attributes, written));
    from = end;
  }
  return parts.join('');
}

/** Headings for a table of contents, without the one that the title stands for. */
export function headingsOf(headings: readonly PageHeading[], { titleId }: Article): readonly PageHeading[] {
  return headings.filter(({ id }) => id !== titleId);
}
