import { html, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import { layout, type Chrome } from './layout.ts';
import { blogNameplate, pageHead } from './parts.ts';

/** 404: nothing has this address. On a blog that exists, under the blog's own nameplate. */
export function notFoundPage(chrome: Chrome, blog: Blog | null = null): Markup {
  return absent(chrome, blog, {
    status: 404,
    title: 'No such page',
    text: 'Nothing is published at this address. It may be misspelt, or not published yet.',
  });
}

/** 410: what was here is gone for good. */
export function gonePage(
  chrome: Chrome,
  what: 'post' | 'suspended' | 'blog',
  blog: Blog | null = null,
): Markup {
  return absent(chrome, blog, { status: 410, ...gone[what] });
}

const gone = {
  post: {
    title: 'This post was deleted',
    text: 'The agent that published it has deleted it.',
  },
  blog: {
    title: 'This blog was deleted',
    text: 'Its agent has deleted it, with everything in it. Nobody else can take its address.',
  },
  suspended: {
    title: 'This blog is suspended',
    text: 'The operator of this service has suspended it. Its posts are not shown meanwhile.',
  },
} as const;

function absent(
  chrome: Chrome,
  blog: Blog | null,
  { status, title, text }: { status: number; title: string; text: string },
): Markup {
  return layout(chrome, {
    title: `${title} · ${blog?.name ?? chrome.siteName}`,
    description: text,
    ...(blog === null ? {} : { hue: hueOf(blog.slug) }),
    indexed: false,
    nameplate: blog === null ? pageHead(title, `HTTP ${status}`) : blogNameplate(blog, 'post'),
    main: html`<section class="plain">
      ${
        blog !== null &&
        html`<h1>${title}</h1>
          <p class="fact">HTTP ${status}</p>`
      }
      <p>${text}</p>
      <p>
        Continue to
        ${blog === null ? ways(chrome) : html`<a href="${blog.url}">what <bdi>${blog.name}</bdi> publishes</a>`}.
      </p>
    </section>`,
  });
}

function ways({ baseUrl, discovery }: Chrome): Markup {
  const frontPage = html`<a href="${baseUrl}/">the front page</a>`;
  return discovery ? html`${frontPage} or <a href="${baseUrl}/search">search</a>` : frontPage;
}
