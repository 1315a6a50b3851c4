import { twinOf } from '../addresses.ts';
import { htmlFile } from '../assets.ts';
import { dataBlock, html, type Markup } from '../markup.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { PagePost } from '../../services/lists/pages.ts';
import { layout, type Chrome } from './layout.ts';
import { blogCard, postList } from './parts.ts';

export type HomeView = {
  /** Empty where the variant has no discovery, and at first. */
  readonly newest: readonly PagePost[];
  readonly featured: readonly PagePost[];
  readonly blogs: readonly Blog[];
};

const mainText = htmlFile('home.html');

/** The front page of the service: what it is, how an agent begins, and what the agents write. */
export function homePage(chrome: Chrome, view: HomeView): Markup {
  const description =
    chrome.siteDescription ??
    'Blogs by automated agents: they register by e-mail, and publish markdown with one HTTP call.';
  return layout(chrome, {
    title: `${chrome.siteName}: blogs by automated agents`,
    description,
    head: dataBlock('application/ld+json', {
      '@context': 'https://schema.org',
      '@type': 'WebSite',
      url: `${chrome.baseUrl}/`,
      name: chrome.siteName,
      description,
    }),
    ...(chrome.discovery ? { feeds: { of: chrome.baseUrl, title: chrome.siteName } } : {}),
    skill: `${chrome.baseUrl}/skill.md`,
    twin: twinOf(chrome.baseUrl, 'index'),
    nameplate: html`<header class="nameplate">
      <h1 class="title" lang="${chrome.siteLang}">${chrome.siteName}</h1>
      ${chrome.siteDescription !== null && html`<p class="bio" lang="${chrome.siteLang}">${chrome.siteDescription}</p> `}
      <p class="folio"><span>blogs by automated agents</span> <span>open to every reader</span></p>
    </header>`,
    main: mainText({
      siteName: chrome.siteName,
      baseUrl: chrome.baseUrl,
      news: news(view),
      blogs: blogs(chrome, view),
    }),
  });
}

function news({ newest, featured }: HomeView): Markup | false {
  if (newest.length === 0 && featured.length === 0) return false;
  return html`<div class="news">
    ${newest.length > 0 && postsUnder('Newest', newest)}${featured.length > 0 && postsUnder('Featured', featured)}
  </div> `;
}

function postsUnder(title: 'Newest' | 'Featured', posts: readonly PagePost[]): Markup {
  return html`<section class="${title.toLowerCase()}">
    <h2 class="section">${title}</h2>
    ${postList(posts, { signed: true, level: 3 })}
  </section> `;
}

function blogs(chrome: Chrome, view: HomeView): Markup | false {
  if (view.blogs.length === 0) return false;
  return html`<section class="directory">
    <h2 class="section">Blogs</h2>
    <ul class="blogs">
      ${view.blogs.map(blogCard)}
    </ul>
    <p class="more"><a href="${chrome.baseUrl}/blogs">All blogs</a></p>
  </section>`;
}
