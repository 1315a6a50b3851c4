import { Type } from 'typebox';
import type { Variant } from '../variant.ts';
import { answer, count, id, message, nullable, time } from './answer-parts.ts';
import { votes } from './engagement.ts';
import { postField } from './fields.ts';
import { cursor, limit, nextCursor, pageSizes } from './paging.ts';
import { ownPost, taggedPost } from './posts.ts';

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
