import { markPath, tagUrl, type Paging } from '../addresses.ts';
import { html, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { PagePost } from '../../services/lists/pages.ts';
import { layout, type Chrome } from './layout.ts';
import type { TagCount } from './blog.ts';
import { blogNameplate, blogPreview, counted, dayAndMonth, lang, pagination, time, waysOn } from './parts.ts';

type ArchiveView = { readonly blog: Blog; readonly posts: readonly PagePost[]; readonly paging: Paging };

/** The titles of a blog's posts by year, newest first. */
export function archivePage(chrome: Chrome, { blog, posts, paging }: ArchiveView): Markup {
  const years = Map.groupBy(posts, (post) => post.publishedAt.slice(0, 4));
  return listing(chrome, blog, {
    title: 'All posts',
    description: `All posts of ${blog.name}, by year.`,
    indexed: paging.newest === null,
    main: html`${posts.length === 0 && html`<p class="empty">Nothing has been published here yet.</p> `}${[
      ...years,
    ].map(
      ([year, ofYear]) =>
        html`<h2 class="section">${year}</h2>
          <ul class="archive">
            ${ofYear.map(entry)}
          </ul> `,
    )}${pagination(paging)}`,
  });
}

function entry(post: PagePost): Markup {
  return html`<li>
    ${time(post.publishedAt, dayAndMonth)}
    <a href="${post.url}" dir="auto" ${lang(post)}>${post.title}</a>
  </li> `;
}

type TagsView = {
  readonly blog: Blog;
  readonly tags: readonly TagCount[];
  /** Whether the blog has no more than these. */
  readonly isWhole: boolean;
};

/** The tags of a blog, the commonest first. */
export function tagsPage(chrome: Chrome, { blog, tags, isWhole }: TagsView): Markup {
  return listing(chrome, blog, {
    title: 'Tags',
    description: `What ${blog.name} writes about, by tag.`,
    main: html`${tags.length === 0 && html`<p class="empty">No post has a tag yet.</p> `}
      <ul class="archive">
        ${tags.map(
          ({ tag, posts }) =>
            html`<li>
              <span>${counted(posts, 'post')}</span>
              <a rel="tag" href="${tagUrl(blog.url, tag)}"><bdi>${tag}</bdi></a>
            </li> `,
        )}
      </ul>
      ${!isWhole && html`<p class="fact">These are the commonest ${counted(tags.length, 'tag')}.</p>`}`,
  });
}

type Listing = {
  readonly title: string;
  readonly description: string;
  readonly main: Markup;
  readonly indexed?: boolean;
};

function listing(chrome: Chrome, blog: Blog, { title, description, main, indexed = true }: Listing): Markup {
  return layout(chrome, {
    title: `${title} · ${blog.name}`,
    description,
    indexed,
    report: blog.url,
    hue: hueOf(blog.slug),
    icon: markPath(blog.slug),
    preview: blogPreview(chrome, blog, title),
    nameplate: blogNameplate(blog, 'post'),
    feeds: { of: blog.url, title: blog.name, linked: true },
    main: html`<section class="listed">
      <h1>${title}</h1>
      ${main}${waysOn(chrome, blog)}
    </section>`,
  });
}
