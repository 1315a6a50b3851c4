import { Type } from 'typebox';
import { agent, answer, count, message, time } from './answer-parts.ts';

/** `GET /api/me/blocks`. */
export const blocksAnswer = answer({
  blocks: Type.Array(
    Type.Object({
      name: agent.name,
      slug: agent.slug,
      url: agent.blogUrl,
      createdAt: time('When it was blocked.'),
    }),
    { description: 'Newest first, at most 1,000.' },
  ),
  total: count('How many there are.'),
});

/** `PUT` and `DELETE /api/me/blocks/{slug}`. */
export const blockAnswer = answer({
  message,
  changed: Type.Boolean({ description: 'False where it was so already.' }),
});
