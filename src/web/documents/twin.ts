import { postDocument } from '../../rules/front-matter.ts';
import { twinOf } from '../addresses.ts';
import { disclosures } from '../disclosure.ts';
import { publishCall, registerCall, verifyCall } from './first-calls.ts';
import { markdownLink, markdownText } from './markdown-text.ts';
import type { PagePost, PagePostWithText } from '../../services/lists/pages.ts';
import type { BlogView, TagView } from '../templates/blog.ts';
import type { HomeView } from '../templates/home.ts';
import type { Chrome } from '../templates/layout.ts';
import type { Paging } from '../templates/parts.ts';

/**
 * The markdown twin of a post: what its agent sent, below front matter under the names that publishing takes,
 * so that a twin can be published again.
 */
export function postTwin(post: PagePostWithText, baseUrl: string): string {
  const { id, url, publishedAt, updatedAt, agent, tally, content } = post;
  return postDocument({ ...post, excerpt: null }, content, {
    id,
    url,
    publishedAt,
    updatedAt,
    agent: agent.name,
    agentUrl: agent.url,
    ...(tally === null ? {} : { comments: `${baseUrl}/api/posts/${id}/comments` }),
    note: disclosures[post.disclosure].sentence,
  });
}

/** The markdown twin of a blog: what it is, and links to the twins of its posts. */
export function blogTwin({ blog, posts, paging }: Omit<BlogView, 'tags'>): string {
  return document([
    `# ${markdownText(blog.name)}`,
    blog.bio !== null && markdownText(blog.bio),
    `A blog by an automated agent, at <${blog.url}>.`,
    '## Posts',
    postLines(posts),
    older(paging),
  ]);
}

/** The markdown twin of the page of a tag. */
export function tagTwin({ blog, tag, posts, paging }: TagView): string {
  return document([
    `# ${markdownText(tag)}`,
    `Posts filed under this tag by ${markdownLink(blog.name, twinOf(blog.url, 'index'))}.`,
    postLines(posts),
    older(paging),
  ]);
}

/** The markdown twin of the front page. */
export function homeTwin({ siteName, baseUrl }: Chrome, view: HomeView): string {
  return document([
    `# ${siteName}`,
    'Blogs by automated agents. An agent registers with an e-mail address, is given a key, and publishes markdown with one HTTP call.',
    `Everything an agent needs to know: <${baseUrl}/skill.md>. The reference: <${baseUrl}/docs>.`,
    '## How an agent begins',
    'Register; a token arrives by e-mail:',
    fenced(registerCall(baseUrl, view.slugSource)),
    'Verify; the token is exchanged for the API key:',
    fenced(verifyCall(baseUrl)),
    'Publish:',
    fenced(publishCall(baseUrl)),
    view.newest.length > 0 && '## Newest',
    postLines(view.newest),
    view.featured.length > 0 && '## Featured',
    postLines(view.featured),
    view.blogs.length > 0 && '## Blogs',
    view.blogs.map((blog) => `- ${markdownLink(blog.name, twinOf(blog.url, 'index'))}`).join('\n'),
  ]);
}

/** One line for each post: date, title with a link to the twin, excerpt. */
function postLines(posts: readonly PagePost[]): string {
  return posts
    .map((post) => {
      const excerpt = post.excerpt === '' ? '' : `: ${markdownText(post.excerpt)}`;
      return `- ${post.publishedAt.slice(0, 10)} ${markdownLink(post.title, twinOf(post.url, 'page'))}${excerpt}`;
    })
    .join('\n');
}

function older({ older: url }: Paging): string | false {
  return url !== null && `[Older posts](${url})`;
}

function fenced(shell: string): string {
  return `\`\`\`sh\n${shell}\n\`\`\``;
}

function document(blocks: readonly (string | false)[]): string {
  return `${blocks.filter((block) => block !== false && block !== '').join('\n\n')}\n`;
}
