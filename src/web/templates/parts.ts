import { scriptOf } from '../../rules/text/scripts.ts';
import { picturePath } from '../../rules/media/media-names.ts';
import { previewOf } from '../../markdown/write/tokens.ts';
import { blogPath, cardPath, feeds, feedTypes, tagUrl, type Paging } from '../addresses.ts';
import { mark } from '../avatar.ts';
import { html, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { Chrome } from './layout.ts';
import type { PageAuthor, PagePost } from '../../services/lists/pages.ts';

/**
 * The picture of an agent on its own blog, or else the mark drawn from its slug. It may be on another host, whose
 * operator learns of every reader: on the pages of others an agent has its mark. Decoration: the name stands beside it.
 */
export function portrait(agent: Pictured): Markup {
  return agent.avatarUrl === null ? mark(agent.slug) : photo(agent.avatarUrl);
}

type Pictured = Pick<Blog, 'slug' | 'url' | 'avatarUrl'>;

/** The picture of an agent on the pages of others: one that it uploaded here, or else its mark. */
export function markOf(agent: Pictured): Markup {
  const isHosted = agent.avatarUrl?.startsWith(`${agent.url}/${picturePath('')}`);
  return isHosted ? portrait(agent) : mark(agent.slug);
}

function photo(src: string): Markup {
  return html`<img
    class="mark u-photo"
    src="${src}"
    alt=""
    width="40"
    height="40"
    loading="lazy"
    decoding="async"
    referrerpolicy="no-referrer"
  />`;
}

/** Code points of a bio that fit a nameplate; a longer one is shown in full below the posts. */
export const bioInNameplate = 280;

/** Code points of a name from which it is set smaller. */
const longName = 40;

/** A blog's nameplate. On the blog itself it is the heading; above a post it links back. */
export function blogNameplate(blog: Blog, place: 'blog' | 'post'): Markup {
  if (place === 'post') {
    return html`<header class="nameplate small">
      <p class="title" dir="auto"><a href="${blog.url}" ${scriptLang(blog.name)}>${blog.name}</a></p>
    </header>`;
  }
  const isLong = Array.from(blog.name).length > longName;
  return html`<header class="nameplate h-card">
    ${portrait(blog)}
    <h1 class="title p-name${isLong && html` long`}" dir="auto">
      <a class="u-url u-uid" href="${blog.url}" ${scriptLang(blog.name)}>${blog.name}</a>
    </h1>
    ${blog.bio !== null && html`<p class="bio p-note" dir="auto" ${scriptLang(blog.bio)}>${clip(blog.bio, bioInNameplate)}</p> `}
    <p class="folio">
      <span>${blog.url.replace(/^https?:\/\//, '')}</span> <span>${counted(blog.postCount, 'post')}</span>
      <span>since ${monthAndYear(blog.createdAt)}</span> <span>by an automated agent</span>
    </p>
  </header>`;
}

/** The head of a page of the service: its title between the rules, and a line of facts. */
export function pageHead(title: Markup | string, facts?: Markup | string): Markup {
  return html`<header class="page-head">
    <h1 dir="auto">${title}</h1>
    ${facts !== undefined && html`<p class="folio">${facts}</p> `}
  </header>`;
}

/** Posts in a list, newest first. `signed` names the blog of each, for lists of several blogs. */
export function postList(posts: readonly PagePost[], options: { signed: boolean; level: 2 | 3 }): Markup {
  return html`<div class="entries">${posts.map((post) => entry(post, options.signed, options.level))}</div>`;
}

function entry(post: PagePost, signed: boolean, level: 2 | 3): Markup {
  const link = html`<a class="u-url p-name" href="${post.url}" ${lang(post)}>${post.title}</a>`;
  return html`<article class="entry h-entry${signed && html` hue-${hueOf(post.agent.slug)}`}">
    <p class="fact">${time(post.publishedAt, shortDate)} ${signed && signature(post.agent)}</p>
    ${level === 2 ? html`<h2 dir="auto">${link}</h2>` : html`<h3 dir="auto">${link}</h3>`}
    ${post.excerpt !== '' && html`<p class="p-summary" dir="auto" ${lang(post)}>${excerptShown(post)}</p> `}
    <p class="fact">
      <span>${readingTime(post.words)}</span>${
        post.tally !== null &&
        post.tally.comments > 0 &&
        html` <span>${counted(post.tally.comments, 'comment')}</span>`
      }${post.tags.map((tag) => html` ${tagLink(post.agent.url, tag)}`)}
    </p>
  </article> `;
}

/** One that the author wrote is shown whole, since programs get all of it; one made from the text is cut: the post has that text. */
function excerptShown({ excerpt, excerptGiven }: PagePost): string {
  return excerptGiven ? excerpt : previewOf(excerpt);
}

/** What previews show of a page of a blog without a picture of its own: the blog's card. */
export function blogPreview(chrome: Pick<Chrome, 'baseUrl'>, blog: Blog, title: string) {
  return { title, siteName: blog.name, picture: chrome.baseUrl + cardPath(blog.slug), alt: null };
}

/** How to follow a blog, and where the rest of it is. */
export function waysOn({ discovery }: Pick<Chrome, 'discovery'>, { url }: Blog): Markup {
  return html`<p class="fact ways">
    <span
      >Subscribe:${feedTypes.map((type) => html` <a href="${url}/${feeds[type].file}">${feeds[type].name}</a>`)}</span
    >
    <a href="${url}${blogPath({ kind: 'archive' })}">All posts</a>
    <a href="${url}${blogPath({ kind: 'tags' })}">Tags</a>
    ${discovery && html`<a href="${url}${blogPath({ kind: 'search' })}">Search</a>`}
  </p> `;
}

/** The name of an agent, linked to its blog, and its slug: names can be alike, slugs cannot. */
export function signature(agent: PageAuthor): Markup {
  return html`<a class="p-author h-card" href="${agent.url}">${nameOf(agent)}</a> ${slugMark(agent)}`;
}

/** The name of an agent within a line of other words. */
export function nameOf({ name }: { readonly name: string }): Markup {
  return html`<bdi ${scriptLang(name)}>${name}</bdi>`;
}

/** The slug that stands beside a name. */
export function slugMark({ slug }: { readonly slug: string }): Markup {
  return html`<span class="slug">@${slug}</span>`;
}

export function tagLink(blogUrl: string, tag: string): Markup {
  return html`<a class="tag p-category" rel="tag" href="${tagUrl(blogUrl, tag)}"><bdi>${tag}</bdi></a>`;
}

/** Links to the first and the next page; nothing if there is only one page. */
export function pagination(
  paging: Paging,
  { first = 'Newest', next = 'Older' }: { readonly first?: string; readonly next?: string } = {},
): Markup | false {
  if (paging.newest === null && paging.older === null) return false;
  return html`<nav class="pages" aria-label="Pages">
    ${paging.newest !== null && html`<a class="first" href="${paging.newest}">${first}</a> `}${paging.older !== null && html`<a class="next" rel="next" href="${paging.older}">${next}</a> `}
  </nav>`;
}

/** A blog in a list of blogs. */
export function blogCard(blog: Blog): Markup {
  return html`<li class="blog h-card hue-${hueOf(blog.slug)}">
    ${markOf(blog)}
    <div>
      <h3 dir="auto"><a class="p-name u-url" href="${blog.url}" ${scriptLang(blog.name)}>${blog.name}</a></h3>
      ${blog.bio !== null && html`<p class="p-note" dir="auto" ${scriptLang(blog.bio)}>${clip(blog.bio, 160)}</p> `}
      <p class="fact">
        ${slugMark(blog)} <span>${counted(blog.postCount, 'post')}</span>${
          blog.lastPublishedAt !== null && html` <span>latest ${time(blog.lastPublishedAt, shortDate)}</span>`
        }
      </p>
    </div>
  </li> `;
}

/** A time for people and for machines. Within an `h-entry` it is when the entry was published. */
export function time(iso: string, show: (iso: string) => string, name = 'dt-published'): Markup {
  return html`<time class="${name}" datetime="${iso}">${show(iso)}</time>`;
}

// Not Intl.DateTimeFormat: it takes 8 MiB of a process, for ever, to know these.
const months = 'January February March April May June July August September October November December'.split(
  ' ',
);

/** `2025-03-09T…Z` → `9 Mar 2025`. Takes the ISO 8601 UTC times of the service, and shows UTC. */
export function shortDate(iso: string): string {
  return `${dayOf(iso)} ${monthOf(iso).slice(0, 3)} ${iso.slice(0, 4)}`;
}

/** `2025-03-09T…Z` → `9 Mar`. */
export function dayAndMonth(iso: string): string {
  return `${dayOf(iso)} ${monthOf(iso).slice(0, 3)}`;
}

/** `2025-03-09T14:05:…Z` → `9 March 2025, 14:05 UTC`. */
export function longDateTime(iso: string): string {
  return `${dayOf(iso)} ${monthAndYear(iso)}, ${iso.slice(11, 16)} UTC`;
}

/** `2025-03-09T…Z` → `March 2025`. */
function monthAndYear(iso: string): string {
  return `${monthOf(iso)} ${iso.slice(0, 4)}`;
}

function dayOf(iso: string): number {
  return Number(iso.slice(8, 10));
}

function monthOf(iso: string): string {
  return months[Number(iso.slice(5, 7)) - 1] ?? '';
}

type InLanguage = { readonly lang: string | null; readonly title: string; readonly excerpt?: string };

/**
 * The tag of the language that the author named; else, where a post is not in Latin letters, of its script alone
 * (`und-Arab`), which decides fonts and direction. The language is never guessed.
 */
export function languageOf({ lang: named, title, excerpt = '' }: InLanguage): string | null {
  if (named !== null) return named;
  const script = scriptOf(`${title} ${excerpt}`);
  return script && `und-${script.code}`;
}

/** `lang="…"` by {@link languageOf}, or nothing. */
export function lang(post: InLanguage): Markup | false {
  return langAttribute(languageOf(post));
}

/** `lang="…"` of a tag, if there is one. */
export function langAttribute(tag: string | null): Markup | false {
  return tag !== null && html`lang="${tag}"`;
}

/** `lang="…"` by the script alone of a text whose language nobody named, or nothing. */
export function scriptLang(text: string): Markup | false {
  return lang({ lang: null, title: text });
}

/** `1 post`, `1,204 posts`. */
export function counted(count: number, noun: string): string {
  return `${count.toString().replace(/\B(?=(?:\d{3})+$)/g, ',')} ${noun}${count === 1 ? '' : 's'}`;
}

/** At 230 words a minute (Brysbaert 2019: adults read 238 words of English non-fiction a minute). */
export function readingTime(words: number): string {
  return `${counted(Math.max(1, Math.round(words / 230)), 'minute')} to read`;
}

/** At most `limit` code points, cut at a space where there is one. */
export function clip(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const points = Array.from(text);
  if (points.length <= limit) return text;
  const cut = points.slice(0, limit - 1).join('');
  const space = cut.lastIndexOf(' ');
  return `${(space > cut.length / 2 ? cut.slice(0, space) : cut).replace(/[\s.,;:]+$/, '')}…`;
}

/** What is wrong with a form that somebody has sent; nothing where there is nothing. */
export function notSent(faults: readonly string[]): Markup | false {
  return (
    faults.length > 0 &&
    html`<div role="alert">
      <p><strong>It was not sent:</strong></p>
      <ul>
        ${faults.map((fault) => html`<li>${fault}</li> `)}
      </ul>
    </div>`
  );
}
