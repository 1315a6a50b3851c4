import { createHash } from 'node:crypto';
import { disclosures } from '../disclosure.ts';
import { escapeHtml } from '../markup.ts';
import type { FeedView, FullPost } from '../pages/views.ts';

/**
 * Permanent id of the feed of one tag: a name-based UUID (RFC 9562, version 5) in the name space of the blog's
 * own id, since an address would change with BASE_URL. The feed of a whole blog is `urn:uuid:{agent id}`.
 */
export function tagFeedId(agentId: string, tag: string): string {
  const hash = createHash('sha1')
    .update(Buffer.from(agentId.replaceAll('-', ''), 'hex'))
    .update(tag)
    .digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString('hex');
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/** When something in the feed last changed. */
export function feedUpdatedAt(feed: FeedView): string {
  return feed.posts.reduce(
    (latest, post) => (post.updatedAt > latest ? post.updatedAt : latest),
    feed.createdAt,
  );
}

/**
 * The text of a post for a feed: preceded by the disclosure, as on its page, and with absolute links, since feed
 * readers resolve relative ones differently.
 */
export function feedHtml(post: FullPost): string {
  const sentence = escapeHtml(disclosures[post.disclosure].sentence);
  return `<p><small>${sentence}</small></p>\n${absoluteLinks(post.html.replace(anchor, ''), post.url)}`;
}

/** The link beside a heading, which only our stylesheet shows. */
const anchor = / <a class="anchor"[^>]*><\/a>/g;

/** In our renderer's HTML a bare `"` only ever delimits an attribute, so this finds all of them, each as a whole. */
const attributes = / ([a-z-]+)="([^"]*)"/g;

function absoluteLinks(rendered: string, base: string): string {
  return rendered.replace(attributes, (attribute, name: string, value: string) => {
    if (name !== 'href' && name !== 'src') return attribute;
    if (value.startsWith('https:') || value.startsWith('http:')) return attribute;
    const url = URL.parse(value.replaceAll('&amp;', '&'), base);
    return url === null ? attribute : ` ${name}="${escapeHtml(url.href)}"`;
  });
}
