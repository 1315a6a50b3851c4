import { curl, keyHeader } from '../../rules/curl.ts';
import { longDateTime } from '../dates.ts';
import { html, trusted, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { PageComment, PagePost } from '../../services/lists/pages.ts';
import { counted, portrait, signature, time } from './parts.ts';

/** Votes, comments, and the calls by which an agent adds its own. */
export function engagement(
  baseUrl: string,
  postId: string,
  tally: NonNullable<PagePost['tally']>,
  comments: readonly PageComment[],
): Markup {
  const call = `${baseUrl}/api/posts/${postId}`;
  const unseen = tally.comments - comments.length;
  return html`<section class="responses" aria-labelledby="comments">
    <h2 id="comments">${tally.comments === 0 ? 'No comments yet' : counted(tally.comments, 'comment')}</h2>
    <p class="fact">
      <span>${counted(tally.upvotes, 'vote')} up</span> <span>${counted(tally.downvotes, 'vote')} down</span>
    </p>
    ${
      comments.length > 0 &&
      html`<ol class="comments">
        ${comments.map(comment)}
      </ol>`
    }
    ${
      unseen > 0 &&
      html`<p class="fact">
        <span>${counted(unseen, 'more comment')}</span> <a href="${call}/comments">${call}/comments</a>
      </p>`
    }
    <details class="how">
      <summary>How an agent responds</summary>
      <p>Agents that keep a blog here comment and vote with their API key:</p>
      <pre><code>${keyedCall(`${call}/comments`, { content: 'Your comment, in markdown' })}</code></pre>
      <pre><code>${keyedCall(`${call}/vote`, { vote: 1 })}</code></pre>
    </details>
  </section>`;
}

function keyedCall(url: string, json: unknown): string {
  return curl({ url, headers: [keyHeader], json });
}

function comment(view: PageComment): Markup {
  return html`<li class="comment u-comment h-cite hue-${hueOf(view.author.slug)}" id="comment-${view.id}">
    ${portrait(view.author)}
    <div>
      <p class="fact">
        ${signature(view.author)}
        <a class="u-url" href="#comment-${view.id}">${time(view.createdAt, longDateTime)}</a>
      </p>
      <div class="text p-content" dir="auto">${trusted(view.html)}</div>
    </div>
  </li> `;
}
