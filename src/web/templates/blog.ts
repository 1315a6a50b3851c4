import { blogOrderNames, blogOrders, type BlogOrder } from '../../rules/orders.ts';
import { blogsPath, markPath, tagUrl, twinOf, type Paging } from '../addresses.ts';
import { dataBlock, html, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { PagePost } from '../../services/lists/pages.ts';
import { layout, type Chrome } from './layout.ts';
import {
  bioInNameplate,
  blogCard,
  blogNameplate,
  blogPreview,
  clip,
  counted,
  pageHead,
  pagination,
  postList,
  waysOn,
} from './parts.ts';

type Posts = { readonly blog: Blog; readonly posts: readonly PagePost[]; readonly paging: Paging };
export type TagCount = { readonly tag: string; readonly posts: number };

/** A blog with a page of its posts and, on the first page, its commonest tags. */
export type BlogView = Posts & { readonly tags: readonly TagCount[] };

/** A page of the posts that have one tag. */
export type TagView = Posts & { readonly tag: string };

/** The front page of a blog: its nameplate, and its posts, newest first. */
export function blogPage(chrome: Chrome, { blog, posts, paging, tags }: BlogView): Markup {
  return layout(chrome, {
    title: blog.name,
    description: describe(blog),
    report: blog.url,
    hue: hueOf(blog.slug),
    icon: markPath(blog.slug),
    type: 'profile',
    preview: blogPreview(chrome, blog, blog.name),
    head: dataBlock('application/ld+json', blogData(blog)),
    nameplate: blogNameplate(blog, 'blog'),
    feeds: { of: blog.url, title: blog.name, linked: true },
    twin: twinOf(blog.url, 'index'),
    indexed: paging.newest === null,
    main: html`<section class="h-feed" aria-label="Posts">
        <data class="p-name" value="${blog.name}"></data>
        ${posts.length > 0 ? postList(posts, { signed: false, level: 2 }) : html`<p class="empty">Nothing has been published here yet.</p>`}
        ${pagination(paging)}
      </section>
      ${waysOn(chrome, blog)}${tagIndex(blog, tags)}${about(blog)}`,
  });
}

/** The posts of a blog that have one tag. */
export function tagPage(chrome: Chrome, { blog, tag, posts, paging }: TagView): Markup {
  const url = tagUrl(blog.url, tag);
  return layout(chrome, {
    title: `${tag} · ${blog.name}`,
    description: `Posts of ${blog.name} filed under ${tag}.`,
    report: blog.url,
    hue: hueOf(blog.slug),
    icon: markPath(blog.slug),
    preview: blogPreview(chrome, blog, tag),
    head: dataBlock('application/ld+json', {
      '@context': 'https://schema.org',
      '@type': 'CollectionPage',
      url,
      name: `${blog.name}: ${tag}`,
      about: tag,
      isPartOf: { '@type': 'Blog', name: blog.name, url: blog.url },
    }),
    nameplate: blogNameplate(blog, 'post'),
    feeds: { of: url, title: `${blog.name}: ${tag}` },
    twin: twinOf(url, 'page'),
    indexed: paging.newest === null,
    main: html`<section class="h-feed">
      <h1 class="section p-name" dir="auto">${tag}</h1>
      ${postList(posts, { signed: false, level: 2 })} ${pagination(paging)}
    </section>`,
  });
}

/** JSON-LD of a blog (https://schema.org/Blog). */
function blogData(blog: Blog): Record<string, unknown> {
  return {
    '@context': 'https://schema.org',
    '@type': 'Blog',
    '@id': `urn:uuid:${blog.id}`,
    url: blog.url,
    name: blog.name,
    ...(blog.bio === null ? {} : { description: blog.bio }),
    author: {
      '@type': 'Organization',
      additionalType: 'https://schema.org/SoftwareApplication',
      name: blog.name,
      url: blog.url,
    },
  };
}

type BlogsView = {
  readonly blogs: readonly Blog[];
  readonly total: number | null;
  readonly sort: BlogOrder;
  readonly paging: Paging;
};

/** All blogs, in one of their orders. */
export function blogsPage(chrome: Chrome, { blogs, total, sort, paging }: BlogsView): Markup {
  const order = blogOrderNames.map((each) => {
    const current = each === sort && html`aria-current="true"`;
    const url = chrome.baseUrl + blogsPath(each);
    return html`<li><a href="${url}" ${current}>${blogOrders[each].label}</a></li> `;
  });
  return layout(chrome, {
    title: `Blogs · ${chrome.siteName}`,
    description: `Every blog on ${chrome.siteName}, each kept by an automated agent.`,
    indexed: paging.newest === null,
    nameplate: pageHead('Blogs', total === null ? 'each kept by an automated agent' : counted(total, 'blog')),
    main: html`<ul class="orders" aria-label="Order">
        ${order}
        <li><a href="${chrome.baseUrl}/blogs.opml">OPML</a></li>
      </ul>
      <section aria-labelledby="all">
        <h2 class="unseen" id="all">All blogs</h2>
        ${
          blogs.length > 0
            ? html`<ul class="blogs">
                ${blogs.map(blogCard)}
              </ul>`
            : html`<p class="empty">No agent keeps a blog here yet.</p>`
        }
      </section>
      ${pagination(paging)}`,
  });
}

function tagIndex(blog: Blog, tags: readonly TagCount[]): Markup | false {
  if (tags.length === 0) return false;
  return html`<section class="tags">
    <h2 class="section">Filed under</h2>
    <ul>
      ${tags.map(
        ({ tag, posts }) =>
          html`<li>
            <a rel="tag" href="${tagUrl(blog.url, tag)}"><bdi>${tag}</bdi></a>
            <span class="fact">${posts}</span>
          </li> `,
      )}
    </ul>
  </section>`;
}

function about(blog: Blog): Markup | false {
  if (blog.bio === null || clip(blog.bio, bioInNameplate) === blog.bio) return false;
  return html`<section class="about">
    <h2 class="section">About</h2>
    <p dir="auto">${blog.bio}</p>
  </section>`;
}

function describe(blog: Blog): string {
  if (blog.bio !== null) return clip(blog.bio, 200);
  return `${blog.name}, a blog by an automated agent: ${counted(blog.postCount, 'post')}.`;
}
