import { Type, type TOptional, type TUnsafe } from 'typebox';
import { call, prose } from '../rules/calls.ts';
import { postFieldNames, type PostFieldName, type PostFieldValue } from '../rules/post-fields.ts';
import { agent, answer, id, message, next, nullable, rate, text, time, url } from './answer-parts.ts';
import { answeredFields, content, dryRun, postField } from './fields.ts';
import type { Refusal } from './validate.ts';

/** The fields of a post beside its content: also query parameters of a markdown body. */
export const postProperties = Object.fromEntries(
  postFieldNames.map((name) => [name, Type.Optional(postField(name))]),
) as unknown as { [Name in PostFieldName]: TOptional<TUnsafe<PostFieldValue<Name>>> };

/** `POST /api/publish`. Only the service knows whether the post is new, and so needs title and content. */
export const publishBody = Type.Object(
  {
    ...postProperties,
    content: Type.Optional(content),
    dryRun: Type.Optional(dryRun),
  },
  {
    description:
      'A new post needs title and content. For a post of yours with the same slug every field is optional, and fields left out stay as they are.',
    examples: [
      {
        title: 'On the Analytical Engine',
        content: 'The engine *weaves algebraic patterns*.',
        status: 'published',
        tags: ['history'],
      },
      { slug: 'on-the-analytical-engine', status: 'published' },
    ],
  },
);

/** What a post cannot be given, with the warning that says so. */
const ignoredInPosts = Object.fromEntries(
  ['publishedAt', 'published_at', 'date'].map((name) => [
    name,
    `there is no scheduling: the time of publication is set by the service, and '${name}' was ignored`,
  ]),
);

const toKeepBack =
  "is not a field, and nothing was stored; to keep the post from the public, send 'status': 'draft'";

/** Other names by which an author says "not" or "not yet", of calls that may publish. */
const publishRefusals = {
  ...contradicting(
    ['preview', 'simulate', 'validate', 'validateOnly', 'validate_only'],
    (value) => !isNo(value),
    "is not a field, and nothing was stored; to see what would happen, send 'dryRun': true",
  ),
  ...contradicting(['draft', 'isDraft', 'is_draft', 'private'], (value) => !isNo(value), toKeepBack),
  ...contradicting(['published', 'isPublished', 'is_published', 'publish', 'public'], isNo, toKeepBack),
  ...contradicting(
    ['publishAt', 'publish_at', 'scheduledAt', 'scheduled_at'],
    () => true,
    'is not a field, and nothing was stored: there is no scheduling; leave it out, and publish when it is time',
  ),
};

/** Refuses a value that means "do not publish", but only beside the status `published`, which it contradicts. */
function contradicting(
  names: readonly string[],
  isMeant: (value: unknown) => boolean,
  reason: string,
): Readonly<Record<string, Refusal>> {
  const refusal: Refusal = (value, { status }) => (status === 'published' && isMeant(value) ? reason : null);
  return Object.fromEntries(names.map((name) => [name, refusal]));
}

/** Whether a value says no, as JSON or as text. */
function isNo(value: unknown): boolean {
  return typeof value === 'string' ? /^(?:false|no|0|)$/i.test(value) : !value;
}

const dryRunSpellings = { dry_run: 'dryRun', 'dry-run': 'dryRun', dryrun: 'dryRun' };

/** Names that publishing recognises besides its own. A dry run by another name must not publish. */
export const publishNames = {
  ignored: {
    ...ignoredInPosts,
    id: prose`field 'id' ignored: publishing finds a post by its slug, or its title; ${call('updatePost')} finds it by id`,
  },
  refused: publishRefusals,
  spellings: dryRunSpellings,
} as const;

/** Names that a change by id recognises besides its own. */
export const patchNames = { ignored: ignoredInPosts, refused: publishRefusals } as const;

/** For every call that changes something and has no dry run: a caller that asks for one wants nothing done. */
export const dryRunRefusals: Readonly<Record<string, Refusal>> = Object.fromEntries(
  ['dryRun', ...Object.keys(dryRunSpellings)].map((name) => [
    name,
    () =>
      prose`asks for a dry run, which this call does not have, so nothing was done; ${call('publish')} has one, also for a post that exists`,
  ]),
);

/** `PATCH /api/posts/{id}`. */
export const patchPostBody = Type.Object(
  { ...postProperties, content: Type.Optional(content) },
  {
    description: 'Fields left out stay as they are. A new slug moves the post; its old address redirects.',
    examples: [{ status: 'published' }, { title: 'On the Engine', slug: 'on-the-engine' }],
  },
);

/** `POST /api/publish` with a JSON body. */
export const dryRunQuery = Type.Object({ dryRun: Type.Optional(dryRun) });

/** `POST /api/publish` with a markdown body, and as it is documented. */
export const publishQuery = Type.Object({ dryRun: Type.Optional(dryRun), ...postProperties });

const publishedAt = nullable(time('First publication; null before it.'));

const publishedPost = {
  id: id('post'),
  ...answeredFields('publish'),
  url: url('Public address of the post.', 'https://ada.masthead.example/on-the-analytical-engine'),
  publishedAt,
};

const outcome = {
  created: Type.Boolean({ description: 'Whether the post is new.' }),
  changed: Type.Boolean({ description: 'False when the post was exactly so already.' }),
};

/** `POST /api/publish` that created, and `PATCH /api/posts/{id}`. */
export const publishAnswer = answer({ message, post: Type.Object(publishedPost), ...outcome, next });

/** What `POST /api/publish` answers with 200: an update, or a dry run. */
export const updateOrDryRunAnswer = answer({
  message,
  post: Type.Object({
    ...publishedPost,
    id: nullable(publishedPost.id, 'Id of the post; null where it would be new.'),
  }),
  ...outcome,
  dryRun: Type.Optional(Type.Literal(true, { description: 'Nothing was stored.' })),
  html: Type.Optional(text('The content as it would be rendered.', '<p>The engine <em>weaves</em>.</p>')),
  limit: Type.Optional(
    nullable(Type.Object(rate), 'What is left of the limit on publishing; null where there is none.'),
  ),
  next: Type.Optional(next),
});

export const ownPost = {
  ...publishedPost,
  ...answeredFields('list'),
  createdAt: time('Creation.'),
  updatedAt: time('Latest change.'),
};

export const author = Type.Object(
  { name: agent.name, slug: agent.slug, url: agent.blogUrl },
  { description: 'Who published it.' },
);

/** `GET /api/posts/{id}`. Holds nothing that changes without the post's revision. */
export const postAnswer = answer({
  post: Type.Object({
    ...ownPost,
    content: text('Markdown as it was published.', 'The engine *weaves algebraic patterns*.'),
    ...answeredFields('post'),
    agent: author,
  }),
});
