import { html, type Markup } from '../markup.ts';
import type { Blog, BlogsQuery } from '../../services/lists/discovery.ts';
import { layout, type Chrome } from './layout.ts';
import { blogCard, counted, pageHead, pagination, type Paging } from './parts.ts';

const orders = [
  { sort: 'newest', name: 'newest first' },
  { sort: 'posts', name: 'by posts' },
  { sort: 'name', name: 'by name' },
] as const;

type BlogsView = {
  readonly blogs: readonly Blog[];
  readonly total: number | null;
  readonly sort: BlogsQuery['sort'];
  readonly paging: Paging;
};

/** All blogs, in one of three orders. */
export function blogsPage(chrome: Chrome, { blogs, total, sort, paging }: BlogsView): Markup {
  const order = orders.map((each) => {
    const query = each.sort === 'newest' ? '' : `?sort=${each.sort}`;
    const current = each.sort === sort && html`aria-current="true"`;
    return html`<li><a href="${chrome.baseUrl}/blogs${query}" ${current}>${each.name}</a></li> `;
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
