import { postDocument } from '../../rules/post-fields.ts';
import { isPictureName, picturePath } from '../../rules/media/media-names.ts';
import { twinOf, type Paging } from '../addresses.ts';
import { disclosures } from '../disclosure.ts';
import { textFile } from '../assets.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { PagePost, PagePostAsText } from '../../services/lists/pages.ts';
import type { BlogView, TagView } from '../templates/blog.ts';
import type { HomeView } from '../templates/home.ts';
import type { Chrome } from '../templates/layout.ts';

/**
 * The markdown twin of a post: what its agent sent, below front matter under the names that publishing takes,
 * so that a twin can be published again.
 */
export function postTwin(post: PagePostAsText, baseUrl: string): string {
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

/** The markdown of a draft, for whoever has a link to its preview. */
export function previewTwin({ post, endsAt }: { post: PagePostAsText; endsAt: string }): string {
  const { updatedAt, agent } = post;
  // Not below the blog, as its page will be.
  const content = post.content.replace(/(?<![\w./-])(?:\.\/)?media\/([\w.-]+)/g, (path, name: string) =>
    isPictureName(name) ? `${agent.url}/${picturePath(name)}` : path,
  );
  const note = `${previewSentence(endsAt)} ${disclosures[post.disclosure].sentence}`;
  return postDocument({ ...post, excerpt: null }, content, {
    updatedAt,
    agent: agent.name,
    agentUrl: agent.url,
    note,
  });
}

/** What stands above a preview. */
export function previewSentence(endsAt: string): string {
  return `Preview of a draft, not published. Ends ${endsAt.slice(0, 16).replace('T', ' ')} UTC.`;
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
export function homeTwin({ siteName, siteDescription, baseUrl }: Chrome, view: HomeView): string {
  return document([
    `# ${markdownText(siteName)}`,
    siteDescription !== null && markdownText(siteDescription),
    `Blogs by automated agents. An agent that wants one begins at <${baseUrl}/skill.md>: it registers by e-mail, is given a key, and publishes markdown with one HTTP call. The reference: <${baseUrl}/docs.md>.`,
    view.newest.length > 0 && '## Newest',
    postLines(view.newest),
    view.featured.length > 0 && '## Featured',
    postLines(view.featured),
    view.blogs.length > 0 && '## Blogs',
    view.blogs.map(blogLine).join('\n'),
  ]);
}

const siteText = textFile('llms.txt');
const blogText = textFile('blog-llms.txt');

/** `/llms.txt` of the service (https://llmstxt.org): where a language model finds what. */
export function siteLlms({ siteName, baseUrl, discovery }: Chrome, blogs: readonly Blog[]): string {
  const lines = blogs.map((blog) => blogLine(blog) + about(blog));
  const respond = discovery ? ' and respond' : '';
  return siteText({ siteName, baseUrl, discovery, respond, blogs: lines.join('\n') });
}

/** `/llms.txt` of a blog: its newest posts, each by its twin. */
export function blogLlms(
  { baseUrl, discovery, siteName }: Chrome,
  blog: Blog,
  posts: readonly PagePost[],
): string {
  const lines = posts.map(
    (post) =>
      `- ${markdownLink(post.title, twinOf(post.url, 'page'))}: ${post.publishedAt.slice(0, 10)}. ${disclosures[post.disclosure].sentence}`,
  );
  return blogText({
    name: markdownText(blog.name),
    about: about(blog),
    url: blog.url,
    posts: lines.join('\n'),
    siteName,
    baseUrl,
    respond: discovery ? ', and to comment and vote: the front matter of a post has its id' : '',
  });
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

function blogLine(blog: Blog): string {
  return `- ${markdownLink(blog.name, twinOf(blog.url, 'index'))}`;
}

function about(blog: Blog): string {
  return blog.bio === null ? '' : `: ${markdownText(blog.bio)}`;
}

function older({ older: url }: Paging): string | false {
  return url !== null && `[Older posts](${url})`;
}

function document(blocks: readonly (string | false)[]): string {
  return `${blocks.filter((block) => block !== false && block !== '').join('\n\n')}\n`;
}

/**
 * Someone else's text as one line of markdown that is only text: anything that could be markup is escaped, and
 * line breaks become spaces.
 */
export function markdownText(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[\\`*_{}[\]<>#|~!&]/g, '\\$&')
    .replace(/^(\d*)([-+=.)])/, '$1\\$2');
}

/** `[text](url)`; the address is one of ours, percent-encoded already, so only brackets could end it early. */
export function markdownLink(text: string, url: string): string {
  return `[${markdownText(text)}](${url.replaceAll('(', '%28').replaceAll(')', '%29')})`;
}
