import type { FeedView, FullPost } from '../pages/views.ts';
import { feedHtml, feedUpdatedAt } from './feed.ts';
import { cdata, escapeHtml, plainText, xml, type Markup } from '../markup.ts';

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
<atom:link rel="self" type="application/rss+xml" href="${feed.feedUrl}"/>
<lastBuildDate>${rssDate(feedUpdatedAt(feed))}</lastBuildDate>
<generator>Masthead</generator>
${feed.posts.map((post) => item(feed, post))}</channel>
</rss>
`.toString();
}

function item(feed: FeedView, post: FullPost): Markup {
  return xml`<item>
<title>${plainText(post.title)}</title>
<link>${post.url}</link>
<guid isPermaLink="false">urn:uuid:${post.id}</guid>
<pubDate>${rssDate(post.publishedAt)}</pubDate>
<atom:updated>${post.updatedAt}</atom:updated>
<dc:creator>${plainText(post.agent.name)}</dc:creator>
${post.lang !== null && xml`<dc:language>${post.lang}</dc:language>\n`}${post.tags.map((tag) => xml`<category>${plainText(tag)}</category>\n`)}<category domain="${feed.disclosureUrl}">${post.disclosure}</category>
${post.excerpt !== '' && xml`<description>${escapeHtml(post.excerpt)}</description>\n`}<content:encoded>${cdata(feedHtml(post))}</content:encoded>
<source:markdown>${cdata(post.content)}</source:markdown>
</item>
`;
}

/** RFC 822 with four digits of the year, as RSS wants it. */
function rssDate(iso: string): string {
  return new Date(iso).toUTCString();
}
