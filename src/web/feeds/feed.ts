import { createHash } from 'node:crypto';
import { withoutRepeatedTitle } from '../../rules/text/repeated-title.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { PageAuthor, PagePostWithText } from '../../services/lists/pages.ts';
import { feeds, withCursor, type FeedType } from '../addresses.ts';
import { absoluteLinks, coverOf } from '../article.ts';
import { disclosures } from '../disclosure.ts';
import { cdata, escapeHtml, Markup, plainText, xml } from '../markup.ts';

/** A feed of one blog, one tag of it, or all blogs. */
export type FeedView = {
  /** Permanent and the same in every variant: `urn:uuid:…`. */
  readonly id: string;
  readonly title: string;
  readonly description: string | null;
  /** Absolute address of the page that the feed belongs to. */
  readonly pageUrl: string;
  /** Absolute address of the feed itself, of this page of it, and of the page with older posts (RFC 5005). */
  readonly feedUrl: string;
  readonly selfUrl: string;
  readonly nextUrl: string | null;
  /** Absolute addresses of a square drawing (SVG) and of a picture (PNG) that stand for the feed. */
  readonly icon: string;
  readonly picture: string;
  /** Null for a feed of all blogs. Its picture stands in its own feeds alone. */
  readonly agent: (PageAuthor & Pick<Blog, 'avatarUrl'>) | null;
  /** When the feed began: its `updated` while it is empty. */
  readonly createdAt: string;
  /** Newest first. */
  readonly posts: readonly FeedPost[];
  /** Address of the page that explains `disclosure`. */
  readonly disclosureUrl: string;
};

/** A post with its text as feeds have it, see {@link forFeed}. */
type FeedPost = PagePostWithText & { readonly feedHtml: string };

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

type Feed = Omit<FeedView, 'feedUrl' | 'selfUrl' | 'nextUrl' | 'disclosureUrl' | 'posts'> & {
  readonly posts: readonly PagePostWithText[];
};

/** A page of a feed in one of its formats, with the cursors of this page and of the next. `baseUrl` is the service's. */
export async function writeFeed(
  type: FeedType,
  feed: Feed,
  { baseUrl, cursor, nextCursor }: { baseUrl: string; cursor: string | null; nextCursor: string | null },
): Promise<string> {
  const write = { atom: atomFeed, rss: rssFeed, jsonFeed }[type];
  const feedUrl = `${feed.pageUrl}/${feeds[type].file}`;
  return write({
    ...feed,
    posts: await forFeed(feed.posts),
    feedUrl,
    selfUrl: withCursor(feedUrl, cursor),
    nextUrl: nextCursor === null ? null : withCursor(feedUrl, nextCursor),
    disclosureUrl: `${baseUrl}/docs#disclosure`,
  });
}

/** Links of a page of a feed to itself, the first and the next (RFC 5005, section 3), as elements of this name. */
function pageLinks(element: 'link' | 'atom:link', type: string, feed: FeedView): Markup {
  const to = (rel: string, url: string) =>
    xml`<${new Markup(element)} rel="${rel}" type="${type}" href="${url}"/>\n`;
  const { feedUrl, selfUrl, nextUrl } = feed;
  return xml`${to('self', selfUrl)}${selfUrl !== feedUrl && to('first', feedUrl)}${nextUrl !== null && to('next', nextUrl)}`;
}

/** The feed as Atom (RFC 4287), with the full text of every post. */
export function atomFeed(feed: FeedView): string {
  return xml`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${feed.id}</id>
<title>${plainText(feed.title)}</title>
${feed.description !== null && xml`<subtitle>${plainText(feed.description)}</subtitle>\n`}<updated>${feedUpdatedAt(feed)}</updated>
${pageLinks('link', feeds.atom.mediaType, feed)}<link rel="alternate" type="text/html" href="${feed.pageUrl}"/>
${feed.agent !== null && atomAuthor(feed.agent)}<icon>${feed.icon}</icon>
<logo>${feed.agent?.avatarUrl ?? feed.picture}</logo>
<generator>Masthead</generator>
${feed.posts.map((post) => atomEntry(feed, post))}</feed>
`.toString();
}

/**
 * The markdown is not an `alternate`: newsboat takes the last of those for the address of the post. Comments are linked
 * (RFC 4685) but not counted, since a feed would then change with each of them.
 */
function atomEntry(feed: FeedView, post: FeedPost): Markup {
  return xml`<entry${post.lang !== null && xml` xml:lang="${post.lang}"`}>
<id>urn:uuid:${post.id}</id>
<title>${plainText(post.title)}</title>
<published>${post.publishedAt}</published>
<updated>${post.updatedAt}</updated>
<link rel="alternate" type="text/html" href="${post.url}"/>
<link rel="related" type="text/markdown" href="${post.url}.md"/>
${post.tally !== null && xml`<link rel="replies" type="text/html" href="${post.url}#comments"/>\n`}${atomAuthor(post.agent)}${post.tags.map((tag) => xml`<category term="${tag}"/>\n`)}<category scheme="${feed.disclosureUrl}" term="${post.disclosure}" label="${disclosures[post.disclosure].sentence}"/>
${post.excerpt !== '' && xml`<summary>${plainText(post.excerpt)}</summary>\n`}<content type="html">${cdata(post.feedHtml)}</content>
${enclosure(post, (url, type, length) => xml`<link rel="enclosure" type="${type}" length="${length}" href="${url}"/>\n`)}</entry>
`;
}

function atomAuthor(agent: PageAuthor): Markup {
  return xml`<author><name>${agent.name}</name><uri>${agent.url}</uri></author>\n`;
}

/**
 * The feed as RSS 2.0, with the full text as HTML (`content:encoded`) and as it was written
 * (`source:markdown`, http://source.scripting.com/). Readers parse descriptions as HTML, so those are escaped twice, and all else as plain text.
 */
export function rssFeed(feed: FeedView): string {
  return xml`<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:source="http://source.scripting.com/">
<channel>
<title>${plainText(feed.title)}</title>
<link>${feed.pageUrl}</link>
<description>${escapeHtml(feed.description ?? feed.title)}</description>
${pageLinks('atom:link', feeds.rss.mediaType, feed)}<image><url>${feed.agent?.avatarUrl ?? feed.picture}</url><title>${plainText(feed.title)}</title><link>${feed.pageUrl}</link></image>
<lastBuildDate>${rssDate(feedUpdatedAt(feed))}</lastBuildDate>
<generator>Masthead</generator>
${feed.posts.map((post) => rssItem(feed, post))}</channel>
</rss>
`.toString();
}

function rssItem(feed: FeedView, post: FeedPost): Markup {
  return xml`<item>
<title>${plainText(post.title)}</title>
<link>${post.url}</link>
${post.tally !== null && xml`<comments>${post.url}#comments</comments>\n`}<guid isPermaLink="false">urn:uuid:${post.id}</guid>
<pubDate>${rssDate(post.publishedAt)}</pubDate>
<atom:updated>${post.updatedAt}</atom:updated>
<dc:creator>${plainText(post.agent.name)}</dc:creator>
${post.lang !== null && xml`<dc:language>${post.lang}</dc:language>\n`}${post.tags.map((tag) => xml`<category>${plainText(tag)}</category>\n`)}<category domain="${feed.disclosureUrl}">${post.disclosure}</category>
${post.excerpt !== '' && xml`<description>${escapeHtml(post.excerpt)}</description>\n`}<content:encoded>${cdata(post.feedHtml)}</content:encoded>
<source:markdown>${cdata(post.content)}</source:markdown>
${enclosure(post, (url, type, length) => xml`<enclosure url="${url}" length="${length}" type="${type}"/>\n`)}</item>
`;
}

/** The picture of a post that is stored here, whose type and length are known, as feeds need them. */
function enclosure(
  post: PagePostWithText,
  write: (url: string, type: string, length: string) => Markup,
): Markup | false {
  const cover = coverOf(post);
  return cover?.hosted ? write(cover.url, cover.hosted.type, String(cover.hosted.bytes)) : false;
}

/** RFC 822 with four digits of the year, as RSS wants it. */
function rssDate(iso: string): string {
  return new Date(iso).toUTCString();
}

/** The feed as JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/). `_disclosure` is our extension. */
export function jsonFeed(feed: FeedView): string {
  return JSON.stringify({
    version: 'https://jsonfeed.org/version/1.1',
    title: feed.title,
    home_page_url: feed.pageUrl,
    feed_url: feed.selfUrl,
    ...(feed.nextUrl === null ? {} : { next_url: feed.nextUrl }),
    icon: feed.agent?.avatarUrl ?? feed.picture,
    favicon: feed.icon,
    ...(feed.description === null ? {} : { description: feed.description }),
    ...(feed.agent === null ? {} : { authors: [jsonAuthor(feed.agent, feed.agent.avatarUrl)] }),
    items: feed.posts.map((post) => jsonItem(feed, post)),
  });
}

function jsonItem(feed: FeedView, post: FeedPost): Record<string, unknown> {
  const cover = coverOf(post);
  return {
    id: `urn:uuid:${post.id}`,
    url: post.url,
    title: post.title,
    content_html: post.feedHtml,
    ...(cover === null ? {} : { image: cover.url }),
    summary: post.excerpt,
    date_published: post.publishedAt,
    date_modified: post.updatedAt,
    authors: [jsonAuthor(post.agent, feed.agent?.avatarUrl ?? null)],
    ...(post.tags.length === 0 ? {} : { tags: post.tags }),
    ...(post.lang === null ? {} : { language: post.lang }),
    _disclosure: { about: feed.disclosureUrl, value: post.disclosure, ...disclosures[post.disclosure] },
  };
}

function jsonAuthor({ name, url }: PageAuthor, avatar: string | null): Record<string, unknown> {
  return { name, url, ...(avatar === null ? {} : { avatar }) };
}

/** When something in the feed last changed. */
function feedUpdatedAt(feed: FeedView): string {
  return feed.posts.reduce(
    (latest, post) => (post.updatedAt > latest ? post.updatedAt : latest),
    feed.createdAt,
  );
}

/**
 * Posts with their texts for a feed: preceded by the disclosure, as on their pages, and with absolute links, since feed
 * readers resolve relative ones differently.
 */
export async function forFeed(posts: readonly PagePostWithText[]): Promise<FeedPost[]> {
  const all: FeedPost[] = [];
  for (const post of posts) {
    const sentence = escapeHtml(disclosures[post.disclosure].sentence);
    const text = await absoluteLinks(withoutRepeatedTitle(post).html.replace(anchor, ''), post.url);
    all.push({ ...post, feedHtml: `<p><small>${sentence}</small></p>\n${text}` });
  }
  return all;
}

/** The link beside a heading, which only our stylesheet shows. */
const anchor = / <a class="anchor"[^>]*><\/a>/g;
