import { html, type Markup } from '../markup.ts';
import { layout, type Chrome } from './layout.ts';
import { pageHead } from './parts.ts';

/** A document of the service itself. `body` begins below the heading, with `h2`; `contents` stands beside it. */
export function docsPage(
  chrome: Chrome,
  doc: { title: string; description: string; body: Markup; contents?: Markup; twin?: string },
): Markup {
  const article = html`<article class="text docs">${doc.body}</article>`;
  return layout(chrome, {
    title: `${doc.title} · ${chrome.siteName}`,
    description: doc.description,
    ...(doc.twin === undefined ? {} : { twin: doc.twin }),
    nameplate: pageHead(doc.title),
    main: doc.contents ? html`<div class="reference">${doc.contents}${article}</div>` : article,
  });
}
