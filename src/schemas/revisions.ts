import { Type } from 'typebox';
import { answer, choice, count, message, nullable, text, time, id, url } from './answer-parts.ts';
import { text as ruled } from './field-check.ts';
import { cursor, limit, nextCursor, pageSizes } from './paging.ts';
import { answeredFields, postField } from './fields.ts';
import { ownPost, taggedPost } from './posts.ts';
import { type Variant } from '../variant.ts';
import { votes } from './engagement.ts';

/** The number of a revision, as a path has it. */
export const revisionNumber = Type.Integer({
  minimum: 1,
  maximum: 2_147_483_647,
  description:
    'Number of the revision: in the ETag that the post had, the one between hyphen and dot, 4 in "3b7f0a9c-4.1".',
  examples: [4],
});

const entry = {
  revision: revisionNumber,
  at: time('When the post came to be so.'),
  cause: choice(
    ['created', 'changed', 'published', 'unpublished', 'renamed', 'restored'],
    'What made this revision.',
    'changed',
  ),
  title: text('Title at that time; empty where it was erased.', 'On the Analytical Engine'),
  slug: text('Slug at that time.', 'on-the-analytical-engine'),
  status: ownPost.status,
  bytes: count('Bytes of the text.'),
  current: Type.Optional(Type.Literal(true, { description: 'This is what the post is now.' })),
  erased: Type.Optional(Type.Literal(true, { description: 'Its texts were erased.' })),
};

/** What is said of a revision beside the fields that a post has. */
export const revisionFacts = Type.Object({
  revision: entry.revision,
  at: entry.at,
  cause: entry.cause,
  current: entry.current,
});

const lines = (of: string) =>
  nullable(count(`Lines that it ${of}; null beyond 20 entries, and where one of the two texts is not kept.`));

/** `GET /api/posts/{id}/revisions`. */
export const revisionsQuery = Type.Object({ limit: Type.Optional(limit(pageSizes.revisions)), cursor });

/** `GET /api/posts/{id}/revisions`. */
export const revisionsAnswer = answer({
  revisions: Type.Array(
    Type.Object({
      ...entry,
      linesAdded: lines('added to the text before'),
      linesRemoved: lines('took from it'),
    }),
  ),
  total: count('How many there are, the present one included.'),
  nextCursor,
});

/** `GET /api/posts/{id}/revisions/{revision}`. */
export const revisionAnswer = answer({
  revision: Type.Object({
    ...entry,
    content: text('Markdown as it was sent.', 'The engine *weaves algebraic patterns*.'),
    tags: ownPost.tags,
    ...answeredFields('post'),
    excerpt: ownPost.excerpt,
    disclosure: ownPost.disclosure,
  }),
});

/** `POST /api/posts/{id}/preview`. */
export const previewBody = Type.Object(
  {
    expiresIn: Type.Optional(
      Type.Integer({
        description: 'For how many seconds the link is to work.',
        examples: [86_400],
        minimum: 300,
        maximum: 2_592_000,
        'x-unit': 'seconds',
        default: 604_800,
      }),
    ),
  },
  { examples: [{ expiresIn: 86_400 }] },
);

/** `POST /api/posts/{id}/preview`. */
export const previewAnswer = answer({
  previewUrl: url(
    'Address of the preview; of a published post, that of its page.',
    'https://masthead.example/-/preview/AZwfXnt6fD6dVQpPbx4rPGmGEr8nGZQ0U0Ctl8XWbqgR6tQt',
  ),
  expiresAt: nullable(time('Until when it works.'), 'Until when it works; null of a published post.'),
});

/** `GET /api/posts/{id}/revisions/{revision}/diff`. */
export const diffQuery = Type.Object({
  to: Type.Optional(
    ruled(revisionFault, {
      description:
        "The revision to compare with: a number, or 'current', the present text; right after a restore nothing differs from it.",
      examples: ['2', 'current'],
      pattern: '^(?:current|[1-9][0-9]{0,9})$',
      default: 'current',
    }),
  ),
});

function revisionFault(value: string): string | null {
  return /^(?:current|[1-9][0-9]{0,9})$/.test(value)
    ? null
    : "must be the number of a revision, or 'current'";
}

/** `GET /api/posts/{id}/revisions/{revision}/diff`. */
export const diffAnswer = answer({
  diff: text(
    'Unified, of the text, which `patch` applies; empty where nothing changed. Before it a line each, beginning with #, for title and tags that differ.',
    '--- engine revision 3\n+++ engine revision 4\n@@ -1 +1 @@\n-The engine weaves.\n+The engine *weaves*.\n',
  ),
  truncated: Type.Boolean({ description: 'Whether it was cut, at a hunk, to 20 KiB.' }),
});

/** `DELETE /api/posts/{id}/revisions`, of one or all. */
export const erasedAnswer = answer({
  message,
  erased: count('How many revisions were erased by this call.'),
});

const restoreUntil = time('Until when it can be restored.');
const comments = count('Comments that went with it.');

/** `DELETE /api/posts/{id}`. */
export function deleteAnswer({ engagement }: Pick<Variant, 'engagement'>) {
  const withIt = { comments: Type.Optional(comments), votes: Type.Optional(votes) };
  return answer({
    message,
    deleted: Type.Optional(Type.Literal(true, { description: 'The post is deleted; absent in a dry run.' })),
    restoreUntil: Type.Optional(
      nullable(restoreUntil, 'Until when it can be restored; null where it is gone for good.'),
    ),
    ...(engagement ? withIt : ({} as typeof withIt)),
    dryRun: Type.Optional(Type.Literal(true, { description: 'Nothing was deleted.' })),
  });
}

/** `GET /api/me/trash`. */
export const trashQuery = Type.Object({ limit: Type.Optional(limit(pageSizes.trash)), cursor });

/** `GET /api/me/trash`. */
export const trashAnswer = answer({
  posts: Type.Array(
    Type.Object({
      id: id('post'),
      title: ownPost.title,
      slug: ownPost.slug,
      status: ownPost.status,
      deletedAt: time('Deletion.'),
      restoreUntil,
      comments,
    }),
  ),
  total: count('How many there are.'),
  nextCursor,
});

/** `DELETE /api/me/trash`. */
export const emptiedAnswer = answer({ message, erased: count('How many posts were erased.') });

/** `POST /api/posts/{id}/restore`. */
export const restoreBody = Type.Object(
  {
    slug: Type.Optional(postField('slug', 'Another, where its own is taken.')),
    status: Type.Optional(postField('status', 'Another status than it had.')),
  },
  { examples: [{}, { slug: 'on-the-engine' }], description: 'May be empty: the post is then what it was.' },
);

/** `POST /api/posts/{id}/restore`. */
export const restoredAnswer = answer({
  message,
  post: Type.Object(taggedPost),
  changed: Type.Boolean({ description: 'False where the post was not in the trash.' }),
});
