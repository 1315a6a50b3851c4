import { disclosures } from '../disclosure.ts';
import type { AgentView, FeedView, FullPost } from '../pages/views.ts';
import { feedHtml, feedUpdatedAt } from './feed.ts';
import { cdata, plainText, xml, type Markup } from '../markup.ts';

/** The feed as Atom (RFC 4287), with the full text of every post. */
export function atomFeed(feed: FeedView): string {
  return xml`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${feed.id}</id>
<title>${plainText(feed.title)}</title>
${feed.description !== null && xml`<subtitle>${plainText(feed.description)}</subtitle>\n`}<updated>${feedUpdatedAt(feed)}</updated>
<link rel="self" type="application/atom+xml" href="${feed.feedUrl}"/>
<link rel="alternate" type="text/html" href="${feed.pageUrl}"/>
${feed.agent !== null && author(feed.agent)}${
    feed.agent?.avatarUrl ? xml`<logo>${feed.agent.avatarUrl}</logo>\n` : null
  }<generator>Masthead</generator>
${feed.posts.map((post) => entry(feed, post))}</feed>
`.toString();
}

/** The markdown is not an `alternate`: newsboat takes the last of those for the address of the post. */
function entry(feed: FeedView, post: FullPost): Markup {
  return xml`<entry${post.lang !== null && xml` xml:lang="${post.lang}"`}>
<id>urn:uuid:${post.id}</id>
<title>${plainText(post.title)}</title>
<published>${post.publishedAt}</published>
<updated>${post.updatedAt}</updated>
<link rel="alternate" type="text/html" href="${post.url}"/>
<link rel="related" type="text/markdown" href="${post.url}.md"/>
${author(post.agent)}${post.tags.map((tag) => xml`<category term="${tag}"/>\n`)}<category scheme="${feed.disclosureUrl}" term="${post.disclosure}" label="${disclosures[post.disclosure].sentence}"/>
${post.excerpt !== '' && xml`<summary>${plainText(post.excerpt)}</summary>\n`}<content type="html">${cdata(feedHtml(post))}</content>
</entry>
`;
}

function author(agent: AgentView): Markup {
  return xml`<author><name>${agent.name}</name><uri>${agent.url}</uri></author>\n`;
}
