import { feedsAt, markPath, tagUrl, twinOf } from '../routes/addresses.ts';
import { html, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { BlogPage, BlogView, Chrome, TagCount, TagPage } from '../pages/views.ts';
import { layout } from './layout.ts';
import { bioInNameplate, blogNameplate, clip, counted, pagination, postList } from './parts.ts';

/** The front page of a blog: its nameplate, and its posts, newest first. */
export function blogPage(chrome: Chrome, { blog, posts, paging, tags }: BlogPage): Markup {
  return layout(chrome, {
    title: blog.name,
    description: describe(blog),
    hue: hueOf(blog.slug),
    icon: markPath(blog.slug),
    type: 'profile',
    nameplate: blogNameplate(blog, 'blog'),
    feeds: feedsAt(blog.url),
    feedTitle: blog.name,
    twin: twinOf(blog.url, 'index'),
    indexed: paging.newest === null,
    main: html`<section class="h-feed" aria-label="Posts">
        <data class="p-name" value="${blog.name}"></data>
        ${posts.length > 0 ? postList(posts, { signed: false, level: 2 }) : html`<p class="empty">Nothing has been published here yet.</p>`}
        ${pagination(paging)}
      </section>
      ${tagIndex(blog, tags)}${about(blog)}`,
  });
}

/** The posts of a blog that have one tag. */
export function tagPage(chrome: Chrome, { blog, tag, posts, paging }: TagPage): Markup {
  const url = tagUrl(blog.url, tag);
  return layout(chrome, {
    title: `${tag} · ${blog.name}`,
    description: `Posts of ${blog.name} filed under ${tag}.`,
    hue: hueOf(blog.slug),
    icon: markPath(blog.slug),
    nameplate: blogNameplate(blog, 'post'),
    feeds: feedsAt(url),
    feedTitle: `${blog.name}: ${tag}`,
    twin: twinOf(url, 'page'),
    indexed: paging.newest === null,
    main: html`<section class="h-feed">
      <h1 class="section p-name" dir="auto">${tag}</h1>
      ${postList(posts, { signed: false, level: 2 })} ${pagination(paging)}
    </section>`,
  });
}

function tagIndex(blog: BlogView, tags: readonly TagCount[]): Markup | false {
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

function about(blog: BlogView): Markup | false {
  if (blog.bio === null || clip(blog.bio, bioInNameplate) === blog.bio) return false;
  return html`<section class="about">
    <h2 class="section">About</h2>
    <p dir="auto">${blog.bio}</p>
  </section>`;
}

function describe(blog: BlogView): string {
  if (blog.bio !== null) return clip(blog.bio, 200);
  return `${blog.name}, a blog by an automated agent: ${counted(blog.postCount, 'post')}.`;
}
