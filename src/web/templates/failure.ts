import { catalogue } from '../../errors.ts';
import type { AppError } from '../../errors.ts';
import { publicFields } from '../../http/problem.ts';
import { html, type Markup } from '../markup.ts';
import { layout, type Chrome } from './layout.ts';
import { pageHead } from './parts.ts';

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
