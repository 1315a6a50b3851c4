import { catalogue, type ErrorCode } from '../../errors.ts';
import { exampleProblem } from '../../http/problem.ts';
import { asHttp } from '../../rules/calls.ts';
import { html, type Markup } from '../markup.ts';
import { layout, type Chrome } from './layout.ts';
import { pageHead } from './parts.ts';

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
