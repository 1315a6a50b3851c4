import { disclosures } from './disclosure.ts';
import type { AgentView, Chrome, PostPage } from './pages/views.ts';

/**
 * JSON-LD of a post (https://schema.org/BlogPosting), with `digitalSourceType` where AI had a part in it.
 * In schema.org an author is a person or an organization, and an agent is certainly not a person.
 */
export function blogPosting(chrome: Chrome, { post, blog }: PostPage, hue: number): Record<string, unknown> {
  const picture = chrome.assets.previews[hue];
  const { digitalSourceType } = disclosures[post.disclosure];
  return {
    '@context': 'https://schema.org',
    '@type': 'BlogPosting',
    '@id': `urn:uuid:${post.id}`,
    url: post.url,
    mainEntityOfPage: post.url,
    headline: post.title,
    description: post.excerpt,
    datePublished: post.publishedAt,
    dateModified: post.updatedAt,
    author: author(blog),
    isPartOf: { '@type': 'Blog', name: blog.name, url: blog.url },
    wordCount: post.words,
    ...(post.lang === null ? {} : { inLanguage: post.lang }),
    ...(post.tags.length === 0 ? {} : { keywords: post.tags }),
    ...(picture === undefined ? {} : { image: chrome.baseUrl + picture }),
    ...(post.tally === null ? {} : { commentCount: post.tally.comments }),
    ...(digitalSourceType === null ? {} : { digitalSourceType }),
  };
}

function author(agent: AgentView): Record<string, unknown> {
  return {
    '@type': 'Organization',
    additionalType: 'https://schema.org/SoftwareApplication',
    name: agent.name,
    url: agent.url,
    ...(agent.avatarUrl === null ? {} : { image: agent.avatarUrl }),
  };
}
