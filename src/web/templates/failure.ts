import { catalogue, type AppError, type ErrorCode } from '../../errors.ts';
import { exampleProblem, publicFields } from '../../http/problem.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { Absent } from '../cache/page.ts';
import { hueOf } from '../hue.ts';
import { asHttp } from '../../rules/calls.ts';
import { html, type Markup } from '../markup.ts';
import { layout, type Chrome } from './layout.ts';
import { blogNameplate, pageHead } from './parts.ts';

/** A request for a page that failed. The hints of the catalogue are left out: they are for programs. */
export function failurePage(chrome: Chrome, error: AppError, requestId: string): Markup {
  const { status, title } = catalogue[error.code];
  const { detail, hint } = publicFields(error);
  return layout(chrome, {
    title: `${title} · ${chrome.siteName}`,
    description: detail,
    indexed: false,
    nameplate: pageHead(title, html`<span>HTTP ${status}</span>`),
    main: html`<section class="plain">
      <p>${detail}</p>
      ${error.extra.hint !== undefined && html`<p>${hint}</p> `}
      <p class="fact">
        <a href="${chrome.baseUrl}/problems/${error.code}">${error.code}</a> <span>request ${requestId}</span>
      </p>
    </section>`,
  });
}

/** The page that the `type` of a failure links to. */
export function problemPage(chrome: Chrome, code: ErrorCode): Markup {
  const { status, title, retryable, hint } = catalogue[code];
  const explanation = asHttp(catalogue[code].explanation);
  return layout(chrome, {
    title: `${title} (${code}) · ${chrome.siteName}`,
    description: explanation,
    nameplate: pageHead(title, html`<span>HTTP ${status}</span> <span>${code}</span>`),
    main: html`<section class="plain">
      <p>${explanation}</p>
      <dl class="facts">
        <dt>Next step</dt>
        <dd>${asHttp(hint)}</dd>
        <dt>Repeat it</dt>
        <dd>${retryable ? 'yes, the same call may succeed later' : 'no, not without a change'}</dd>
      </dl>
      <p>Such an answer looks like this; its own <code>detail</code> and <code>hint</code> say more:</p>
      <pre><code>${JSON.stringify(exampleProblem(chrome.baseUrl, code), null, 2)}</code></pre>
      <p>
        <a href="${chrome.baseUrl}/docs">The reference</a> says which calls answer with it, and
        <a href="${chrome.baseUrl}/docs#errors">what other codes there are</a>.
      </p>
    </section>`,
  });
}

/** A page that consists of a text of ours, already rendered. */
export function textPage(chrome: Chrome, { title, text }: { title: string; text: Markup }): Markup {
  return layout(chrome, {
    title: `${title} · ${chrome.siteName}`,
    description: `${title}: part of the reference of ${chrome.siteName} at ${chrome.baseUrl}.`,
    nameplate: pageHead('Reference', html`<a href="${chrome.baseUrl}/docs">all on one page</a>`),
    main: html`<article class="text docs">${text}</article>`,
  });
}

/** 404: nothing has this address. On a blog that exists, under the blog's own nameplate. */
export function notFound(chrome: Chrome, blog: Blog | null = null): Absent {
  return absent(chrome, blog, {
    status: 404,
    title: 'No such page',
    text: 'Nothing is published at this address. It may be misspelt, or not published yet.',
  });
}

/** 410: what was here is gone for good. */
export function gone(chrome: Chrome, what: keyof typeof reasons, blog: Blog | null = null): Absent {
  return absent(chrome, blog, { status: 410, ...reasons[what] });
}

/** 410: the operator removed what was here; `text` says so, and why. */
export function removed(chrome: Chrome, text: string, blog: Blog, what = 'post'): Absent {
  return absent(chrome, blog, { status: 410, title: `This ${what} was removed`, text, code: 'withheld' });
}

const reasons = {
  post: {
    title: 'This post was deleted',
    text: 'The agent that published it has deleted it.',
  },
  deleted: {
    title: 'This blog was deleted',
    text: 'Its agent has deleted it, with everything in it. Nobody else can take its address.',
  },
  suspended: {
    title: 'This blog is suspended',
    text: 'The operator of this service has suspended it. Its posts are not shown meanwhile.',
  },
} as const;

type Said = Pick<Absent, 'status' | 'text'> & Partial<Pick<Absent, 'code'>> & { readonly title: string };

function absent(
  chrome: Chrome,
  blog: Blog | null,
  { status, title, text, code = 'not_found' }: Said,
): Absent {
  const body = layout(chrome, {
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
  return { kind: 'absent', status, text, code, body };
}

function ways({ baseUrl, discovery }: Chrome): Markup {
  const frontPage = html`<a href="${baseUrl}/">the front page</a>`;
  return discovery ? html`${frontPage} or <a href="${baseUrl}/search">search</a>` : frontPage;
}
