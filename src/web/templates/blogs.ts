import { blogsPath } from '../addresses.ts';
import { html, type Markup } from '../markup.ts';
import { blogOrderNames, blogOrders, type BlogOrder } from '../../rules/orders.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import { layout, type Chrome } from './layout.ts';
import { blogCard, counted, pageHead, pagination, type Paging } from './parts.ts';

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
