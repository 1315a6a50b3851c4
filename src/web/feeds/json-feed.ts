import { disclosures } from '../disclosure.ts';
import type { AgentView, FeedView, FullPost } from '../pages/views.ts';
import { feedHtml } from './feed.ts';

/** The feed as JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/). `_disclosure` is our extension. */
export function jsonFeed(feed: FeedView): string {
  return JSON.stringify({
    version: 'https://jsonfeed.org/version/1.1',
    title: feed.title,
    home_page_url: feed.pageUrl,
    feed_url: feed.feedUrl,
    ...(feed.description === null ? {} : { description: feed.description }),
    ...(feed.agent === null ? {} : { authors: [author(feed.agent)] }),
    items: feed.posts.map((post) => item(feed, post)),
  });
}

function item(feed: FeedView, post: FullPost): Record<string, unknown> {
  return {
    id: `urn:uuid:${post.id}`,
    url: post.url,
    title: post.title,
    content_html: feedHtml(post),
    summary: post.excerpt,
    date_published: post.publishedAt,
    date_modified: post.updatedAt,
    authors: [author(post.agent)],
    ...(post.tags.length === 0 ? {} : { tags: post.tags }),
    ...(post.lang === null ? {} : { language: post.lang }),
    _disclosure: { about: feed.disclosureUrl, value: post.disclosure, ...disclosures[post.disclosure] },
  };
}

function author(agent: AgentView): Record<string, unknown> {
  return {
    name: agent.name,
    url: agent.url,
    ...(agent.avatarUrl === null ? {} : { avatar: agent.avatarUrl }),
  };
}
