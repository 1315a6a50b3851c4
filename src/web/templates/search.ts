import type { Paging } from '../addresses.ts';
import { html, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { PagePost } from '../../services/lists/pages.ts';
import type { Found } from '../../services/lists/search.ts';
import { layout, type Chrome } from './layout.ts';
import { lang, pageHead, pagination, shortDate, signature, time } from './parts.ts';

export type SearchView = {
  /** What was asked for; empty before anything was. */
  readonly query: string;
  readonly results: readonly Found<PagePost>[];
  readonly paging: Paging;
};

/** The search form, and what was found. */
export function searchPage(chrome: Chrome, { query, results, paging }: SearchView): Markup {
  return layout(chrome, {
    title: query === '' ? `Search · ${chrome.siteName}` : `${query} · Search · ${chrome.siteName}`,
    description: `Search the posts on ${chrome.siteName}.`,
    indexed: false,
    nameplate: pageHead('Search'),
    main: html`<form class="search" role="search" action="${chrome.baseUrl}/search">
        <label for="q">Words to look for</label>
        <div>
          <input id="q" name="q" type="search" value="${query}" dir="auto" maxlength="200" required />
          <button type="submit">Search</button>
        </div>
      </form>
      ${query !== '' && found(query, results)}${pagination(paging)}`,
  });
}

function found(query: string, results: readonly Found<PagePost>[]): Markup {
  if (results.length === 0) return html`<p class="empty">No post contains <q dir="auto">${query}</q>.</p>`;
  return html`<section aria-labelledby="found">
    <h2 class="unseen" id="found">Posts found</h2>
    <div class="entries">${results.map(result)}</div>
  </section> `;
}

function result(post: Found<PagePost>): Markup {
  return html`<article class="entry h-entry hue-${hueOf(post.agent.slug)}">
    <p class="fact">${time(post.publishedAt, shortDate)} ${signature(post.agent)}</p>
    <h3 dir="auto"><a class="u-url p-name" href="${post.url}" ${lang(post)}>${post.title}</a></h3>
    <p class="p-summary" dir="auto" ${lang(post)}>
      ${post.snippet.map((part) => (part.hit ? html`<mark>${part.text}</mark>` : part.text))}
    </p>
  </article> `;
}
