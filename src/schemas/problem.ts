import { Type } from 'typebox';
import { catalogue, type ErrorCode } from '../errors.ts';
import { id, text, url } from './answer-parts.ts';

/** Every failure: RFC 9457, and what older clients read. */
export const problem = Type.Object(
  {
    type: url('Page that explains the code.', 'https://masthead.example/problems/slug_taken'),
    title: text('The same for every occurrence of the code.', 'Slug taken'),
    status: Type.Integer({ description: 'HTTP status.', examples: [409] }),
    detail: text(
      'What was wrong, what is allowed, and what to do next.',
      "The slug 'ada' belongs to another agent. Choose another.",
    ),
    success: Type.Literal(false, { description: 'False in every failure.' }),
    error: text('The detail again.', "The slug 'ada' belongs to another agent. Choose another."),
    code: Type.Unsafe<ErrorCode>({
      type: 'string',
      enum: Object.keys(catalogue),
      description: 'What to branch on.',
      examples: ['slug_taken'],
    }),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          field: text('A field, an entry of one, or body.', 'tags[2]'),
          message: text('What is wrong with it.', 'is taken'),
          near: Type.Optional(
            Type.Object(
              {
                line: Type.Integer({ description: 'Number of the line.', examples: [42] }),
                text: text('The line with one on each side, at most 400 characters.', 'A thousand numbers.'),
              },
              { description: 'Of edit_not_applied: what the content has that is most like old.' },
            ),
          ),
          lines: Type.Optional(
            Type.Array(Type.Integer({ examples: [3] }), {
              description: 'Of edit_not_applied: the first 10 lines in which old occurs.',
              examples: [[3, 17, 40]],
            }),
          ),
        }),
        { description: 'Every fault of the call, or the field that is to blame.' },
      ),
    ),
    hint: text('The next call or step that would mend it.', "A free one: 'ada-2'."),
    etag: Type.Optional(
      text(
        'Of precondition_failed and edit_not_applied: the present revision, for If-Match.',
        '"3b7f0a9c-4.1"',
      ),
    ),
    deleted: Type.Optional(
      Type.Literal(true, { description: "Of not_found: the post is the caller's own, and in the trash." }),
    ),
    posts: Type.Optional(
      Type.Array(
        Type.Object({
          id: id('post'),
          title: text('Title of the post.', 'On the Analytical Engine'),
          url: url('Its public address.', 'https://ada.masthead.example/on-the-analytical-engine'),
        }),
        { description: 'Of in_use: published posts that show the picture, at most ten.' },
      ),
    ),
    retryable: Type.Boolean({ description: 'Whether the same call may succeed later.' }),
    requestId: text('Also in X-Request-Id and in the log.', '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c'),
  },
  { description: 'What went wrong, as application/problem+json.' },
);
