import { searchOrders, type SearchOrder } from '../../rules/orders.ts';
import { markPath, type Paging } from '../addresses.ts';
import { html, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { PagePost } from '../../services/lists/pages.ts';
import type { Found } from '../../services/lists/search.ts';
import { layout, type Chrome } from './layout.ts';
import { blogNameplate, counted, lang, pageHead, pagination, shortDate, signature, time } from './parts.ts';

export type SearchView = {
  /** Where the form leads. */
  readonly action: string;
  /** What was asked for; empty before anything was. */
  readonly query: string;
  readonly sort: SearchOrder;
  /** Null before anything was asked for. */
  readonly found: SearchFound | null;
  readonly paging: Paging;
  /** The blog that alone is searched, on its own host. */
  readonly blog?: Blog;
};

type SearchFound = {
  readonly results: readonly Found<PagePost>[];
  /** Null if there are more than are ranked. */
  readonly total: number | null;
  readonly instead: string | null;
  readonly suggestion: string | null;
  /** Why nothing was looked for. */
  readonly refusal?: string;
};

/** The search form, and what was found. */
export function searchPage(chrome: Chrome, view: SearchView): Markup {
  const { query, found, blog, paging } = view;
  const name = blog?.name ?? chrome.siteName;
  return layout(chrome, {
    title: query === '' ? `Search · ${name}` : `${query} · Search · ${name}`,
    description: `Search the posts on ${name}.`,
    indexed: query === '',
    ...(blog ? { hue: hueOf(blog.slug), icon: markPath(blog.slug) } : {}),
    nameplate: blog ? blogNameplate(blog, 'post') : pageHead('Search'),
    main: html`${blog && html`<h1 class="listing">Search <bdi>${blog.name}</bdi></h1> `}${form(view)}${
      found !== null && outcome(chrome, view, found)
    }${pagination(paging)}`,
  });
}

function form({ action, query, sort, found }: SearchView): Markup {
  return html`<form class="search" role="search" action="${action}">
    <label for="q">Words to look for</label>
    <div>
      <input id="q" name="q" type="search" value="${query}" dir="auto" maxlength="200" required />
      ${sort !== searchOrders[0] && html`<input type="hidden" name="sort" value="${sort}" /> `}
      <button type="submit">Search</button>
    </div>
    <p class="fact">
      All words must occur. <code>"in this order"</code> <code>-without</code> <code>begin*</code>
      <code>tag:name</code>
    </p>
    ${found?.refusal !== undefined && html`<p role="alert">${found.refusal}</p> `}
  </form>`;
}

function outcome({ baseUrl }: Chrome, view: SearchView, found: SearchFound): Markup | false {
  const { query, blog } = view;
  const { results, total, instead, refusal } = found;
  if (refusal !== undefined) return false;
  if (results.length === 0)
    return html`<p class="empty">
      No post contains <q dir="auto">${query}</q>. ${meant(view, found)}
      ${/\s/.test(query) && 'Fewer words may find more. '}${
        blog
          ? html`<a href="${searchUrl({ ...view, action: `${baseUrl}/search` })}">Search all blogs</a>.`
          : html`See the <a href="${baseUrl}">newest posts</a> or <a href="${baseUrl}/blogs">all blogs</a>.`
      }
    </p>`;
  return html`<section aria-labelledby="found">
    <h2 class="unseen" id="found">Posts found</h2>
    <p class="fact">
      <span>${total === null ? 'More than 1,000 posts' : counted(total, 'post')}</span> ${orders(view)}
    </p>
    ${
      instead !== null &&
      html`<p class="instead">
        No post contains all of <q dir="auto">${query}</q>; these have ${instead}. ${meant(view, found)}
      </p> `
    }
    <div class="entries">${results.map((post) => result(post, blog))}</div>
  </section> `;
}

function meant(view: SearchView, { suggestion }: SearchFound): Markup | false {
  if (suggestion === null) return false;
  return html`Did you mean <a href="${searchUrl({ ...view, query: suggestion })}">${suggestion}</a>? `;
}

const orderLabels: Record<SearchOrder, string> = { relevance: 'best first', newest: 'newest first' };

function orders(view: SearchView): readonly Markup[] {
  return searchOrders.map((sort) =>
    sort === view.sort
      ? html`<span aria-current="true">${orderLabels[sort]}</span> `
      : html`<a href="${searchUrl({ ...view, sort })}">${orderLabels[sort]}</a> `,
  );
}

/** Address of what is found for a query, in an order. */
export function searchUrl({ action, query, sort }: Pick<SearchView, 'action' | 'query' | 'sort'>): string {
  const asked = { q: query, ...(sort === searchOrders[0] ? {} : { sort }) };
  return `${action}?${new URLSearchParams(asked).toString()}`;
}

function result(post: Found<PagePost>, blog: Blog | undefined): Markup {
  return html`<article class="entry h-entry hue-${hueOf(post.agent.slug)}">
    <p class="fact">${time(post.publishedAt, shortDate)} ${!blog && signature(post.agent)}</p>
    <h3 dir="auto"><a class="u-url p-name" href="${post.url}" ${lang(post)}>${post.title}</a></h3>
    <p class="p-summary" dir="auto" ${lang(post)}>
      ${post.snippet.map((part) => (part.hit ? html`<mark>${part.text}</mark>` : part.text))}
    </p>
  </article> `;
}
