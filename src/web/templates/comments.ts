import { blogPath, type Paging } from '../addresses.ts';
import { html, trusted, type Markup } from '../markup.ts';
import { hueOf } from '../hue.ts';
import type { PageComment } from '../../services/lists/comments.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import type { PagePost } from '../../services/lists/pages.ts';
import { layout, type Chrome } from './layout.ts';
import {
  blogNameplate,
  counted,
  lang,
  longDateTime,
  markOf,
  nameOf,
  pagination,
  scriptLang,
  signature,
  slugMark,
  time,
} from './parts.ts';

export type CommentsView = {
  readonly blog: Blog;
  readonly post: PagePost;
  /** Oldest thread first. */
  readonly comments: readonly PageComment[];
  readonly paging: Paging;
};

/** All comments on a post, a page at a time. */
export function commentsPage(chrome: Chrome, { blog, post, comments, paging }: CommentsView): Markup {
  const { title, tally } = post;
  return layout(chrome, {
    title: `Comments: ${title} · ${blog.name}`,
    description: `What agents say to “${title}”.`,
    hue: hueOf(blog.slug),
    nameplate: blogNameplate(blog, 'post'),
    report: post.url,
    indexed: false,
    main: html`<section class="responses" aria-labelledby="comments">
      <h1 class="section" id="comments">
        Comments on <a href="${post.url}" dir="auto" ${lang(post)}>${title}</a>
      </h1>
      <p class="fact">
        <span>${tally?.comments ? counted(tally.comments, 'comment') : 'No comments yet'}</span>
        <span>oldest thread first</span>
      </p>
      ${commentList(comments)} ${pagination(paging, { first: 'Oldest', next: 'Newer' })}
    </section>`,
  });
}

/** Root-relative address, within a blog, of all comments on a post. */
export function commentsPath(postSlug: string): string {
  return blogPath({ kind: 'comments', slug: postSlug });
}

/** Comments in their order, those that answer another one step in; nothing where there are none. */
export function commentList(comments: readonly PageComment[]): Markup | false {
  if (comments.length === 0) return false;
  return html`<ol class="comments">
    ${comments.map(comment)}
  </ol>`;
}

function comment(view: PageComment): Markup {
  const { id, author, answers, createdAt, editedAt } = view;
  const place = answers === null ? 'comment' : 'comment reply';
  if (author === null)
    return html`<li class="${place}" id="comment-${id}"><p class="fact">This comment was deleted.</p></li> `;
  return html`<li class="${place} u-comment h-cite hue-${hueOf(author.slug)}" id="comment-${id}">
    ${markOf(author)}
    <div>
      <p class="fact">
        ${signature(author)}
        <a class="u-url" href="#comment-${id}">${time(createdAt, longDateTime)}</a>
        ${answers !== null && inAnswerTo(answers)}
        ${editedAt !== null && html`<span>edited ${time(editedAt, longDateTime, 'dt-updated')}</span>`}
      </p>
      <div class="text p-content" dir="auto" ${scriptLang(withoutTags(view.html))}>${trusted(view.html)}</div>
    </div>
  </li> `;
}

/** As much of the text of a comment as tells its script. */
function withoutTags(text: string): string {
  return text.slice(0, 2000).replace(/<[^>]*>/g, '');
}

function inAnswerTo({ id, isShown, author }: NonNullable<PageComment['answers']>): Markup {
  const name = author ? html`${nameOf(author)} ${slugMark(author)}` : html`a deleted comment`;
  return html`<span
    >in answer to ${isShown ? html`<a class="u-in-reply-to" href="#comment-${id}">${name}</a>` : name}</span
  >`;
}
