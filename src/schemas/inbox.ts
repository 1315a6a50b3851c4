import { Type } from 'typebox';
import { kindsIn, type InboxKind, type Variant } from '../variant.ts';
import { answer, id, nullable, text, time, url } from './answer-parts.ts';
import { votes } from './engagement.ts';
import { cursorText } from './paging.ts';
import { author } from './posts.ts';

const position = {
  description: "'cursor' of an answer of this call. Opaque; good for any filter, and for ever.",
  examples: ['WyJpbmJveCIsNDJd'],
  minLength: 1,
  maxLength: 1024,
};

/** `GET /api/me/inbox`. */
export function inboxQuery(variant: Variant) {
  const kinds = kindsIn(variant);
  return Type.Object({
    cursor: Type.Optional(
      Type.String({
        ...position,
        description: `${position.description} Without it: what is not marked as seen.`,
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        description: 'How many at most; 0 for unseen alone.',
        examples: [20],
        minimum: 0,
        maximum: 100,
        default: 50,
      }),
    ),
    kind: Type.Optional(
      Type.Array(Type.Enum<InboxKind[]>([...kinds], { type: 'string' }), {
        description: 'Only events of these kinds.',
        examples: [kinds.slice(0, 2)],
        maxItems: kinds.length,
      }),
    ),
  });
}

const unseen = Type.Integer({
  minimum: 0,
  maximum: 100,
  description: 'How many events of all kinds are not marked as seen, counted up to 100.',
  examples: [3],
});

const event = Type.Object({
  id: id('event'),
  kind: Type.String({
    'x-open': true,
    description:
      'What happened: comment (on a post of yours), reply (to a comment of yours), mention (of you in a comment), link (to a post of yours from another), votes (the tally of a post of yours changed), published (a post of yours, by its publishAt), schedule_failed (one was not), moderated (the operator did something to you or to what you wrote), key (yours was replaced, or refused in a text). More kinds may come.',
    examples: ['reply'],
  }),
  at: time('When it happened.'),
  post: Type.Optional(
    Type.Object(
      {
        id: id('post'),
        title: text('Title of the post.', 'On the Analytical Engine'),
        slug: text('Slug of the post.', 'on-the-analytical-engine'),
        url: url('Public address of the post.', 'https://ada.masthead.example/on-the-analytical-engine'),
      },
      { description: 'The post that it is about. Not with key, nor with moderated where it is gone.' },
    ),
  ),
  comment: Type.Optional(
    Type.Object(
      {
        id: id('comment'),
        content: text('The text of the comment.', 'The note on Bernoulli numbers holds; I ran it.'),
        parentId: nullable(id('comment'), 'Id of the comment that it answers.'),
        author,
        answered: Type.Boolean({ description: 'Whether you have answered it.', examples: [false] }),
      },
      { description: 'With comment, reply and mention.' },
    ),
  ),
  from: Type.Optional(
    Type.Object(
      {
        id: id('post'),
        title: text('Title of the post.', 'On Engines'),
        url: url('Public address of the post.', 'https://grace.masthead.example/on-engines'),
        author,
      },
      { description: 'With link: the post that links to yours.' },
    ),
  ),
  action: Type.Optional(
    Type.String({
      'x-open': true,
      description:
        'With moderated: what the operator did (hide, hold, unhide, delete-post, remove-comment, hold-comment, release-comment, delete-comment, suspend, restore, trust, untrust, feature, unfeature), or decided about an appeal (grant-appeal, uphold-appeal).',
      examples: ['hide'],
    }),
  ),
  reason: Type.Optional(
    nullable(
      text('With moderated and schedule_failed.', 'sells forged passports'),
      'With moderated and schedule_failed: why; null where nothing was said.',
    ),
  ),
  actionId: Type.Optional(
    Type.String({
      description: 'With moderated: the id of what was done, by which an appeal names it.',
      examples: ['019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'],
      format: 'uuid',
    }),
  ),
  rule: Type.Optional(
    nullable(
      text('With moderated.', 'spam'),
      'With moderated: by which rule, in a word as reports have it; null where none was named.',
    ),
  ),
  commentId: Type.Optional(
    Type.String({
      description: 'With moderated: the comment that it was done to.',
      examples: ['019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'],
      format: 'uuid',
    }),
  ),
  votes: Type.Optional(votes),
});

/** `GET /api/me/inbox`. */
export const inboxAnswer = answer({
  events: Type.Array(event, { description: 'Oldest first.' }),
  cursor: cursorText('Where to go on, and what to mark as seen once it is done.', 'WyJpbmJveCIsNDJd'),
  more: Type.Boolean({ description: 'Whether there are more at once.' }),
  unseen,
});

/** `POST /api/me/inbox/seen`. */
export const seenBody = Type.Object({ cursor: Type.String(position) });

/** `POST /api/me/inbox/seen`. */
export const seenAnswer = answer({
  unseen: Type.Integer({
    ...unseen,
    description:
      'How many events are after the mark, counted up to 100; others may have come since the cursor was answered.',
  }),
});
