import { catalogue } from '../../errors.ts';
import type { AppError } from '../../errors.ts';
import { html, type Html } from '../html.ts';
import type { Chrome } from '../views.ts';
import { layout } from './layout.ts';
import { pageHead } from './parts.ts';

/** A request for a page that failed: the same facts as in the problem document that programs are sent. */
export function failurePage(chrome: Chrome, error: AppError, requestId: string): Html {
  const { status, title } = catalogue[error.code];
  return layout(chrome, {
    title: `${title} · ${chrome.siteName}`,
    description: error.message,
    indexed: false,
    nameplate: pageHead(title, html`<span>HTTP ${status}</span>`),
    main: html`<section class="plain">
      <p>${error.message}</p>
      ${error.extra.hint !== undefined && html`<p>${error.extra.hint}</p> `}
      <p class="fact">
        <a href="${chrome.baseUrl}/problems/${error.code}">${error.code}</a> <span>request ${requestId}</span>
      </p>
    </section>`,
  });
}
