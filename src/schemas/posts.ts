import { Type, type Static, type TOptional, type TUnsafe } from 'typebox';
import type { FieldFault } from '../errors.ts';
import { call, prose } from '../rules/calls.ts';
import { isRecord } from '../rules/records.ts';
import { editShapeFaults } from '../rules/edits/edit-shapes.ts';
import {
  contentBytes,
  postFieldNames,
  type PostFieldName,
  type PostFieldValue,
} from '../rules/post-fields.ts';
import { agent, answer, id, message, next, nullable, rate, text, time, url } from './answer-parts.ts';
import { answeredFields, content, contentChanges, dryRun, postField } from './fields.ts';
import { respelt, type Refusal } from './validate.ts';

/** The fields of a post beside its content: also query parameters of a markdown body. */
export const postProperties = Object.fromEntries(
  postFieldNames.map((name) => [name, Type.Optional(postField(name))]),
) as unknown as { [Name in PostFieldName]: TOptional<TUnsafe<PostFieldValue<Name>>> };

/** The same of a post that exists. */
const changeProperties = {
  ...postProperties,
  slug: Type.Optional(
    postField(
      'slug',
      'Address of the post within its blog: 1 to 100 of a-z, 0-9 and hyphens. Another one moves it.',
    ),
  ),
  status: Type.Optional(postField('status', 'Whether the post is public.')),
};

/** What a JSON body says of the content. */
const contentProperties = {
  content: Type.Optional(content),
  edits: Type.Optional(contentChanges.edits),
  append: Type.Optional(contentChanges.append),
};

/** `POST /api/publish`. Only the service knows whether the post is new, and so needs title and content. */
export const publishBody = Type.Object(
  {
    ...postProperties,
    ...contentProperties,
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

/** What a post cannot be given. */
const ignoredInPosts = Object.fromEntries(
  ['publishedAt', 'published_at', 'date'].map((name) => [
    name,
    'the service sets the time of publication; to choose one ahead, send publishAt',
  ]),
);

const toKeepBack =
  "is not a field, and nothing was stored; to keep the post from the public, send 'status': 'draft'";

/** Other names by which an author says "not" or "not yet", of calls that may publish, in plain form as all below. */
const publishRefusals = {
  ...contradicting(
    ['preview', 'simulate', 'validate', 'validateonly'],
    (value) => !isNo(value),
    "is not a field, and nothing was stored; to see what would happen, send 'dryRun': true",
  ),
  ...contradicting(['draft', 'isdraft', 'private'], (value) => !isNo(value), toKeepBack),
  ...contradicting(['published', 'ispublished', 'publish', 'public'], isNo, toKeepBack),
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

/** Other names of a dry run, which must not be done in earnest. */
export const dryRunSpellings = { dryrun: 'dryRun' };

/** What is sent for a dry run, in whatever spelling; undefined if nothing. */
export function sentDryRun(sent: unknown): unknown {
  if (!isRecord(sent)) return undefined;
  return sent[respelt(sent, dryRunSpellings, ['dryRun']).get('dryRun') ?? 'dryRun'];
}

/** Other names of the time of publication, of which none may publish at once. */
export const publishAtSpellings = Object.fromEntries(
  ['publishat', 'publishon', 'schedule', 'scheduleat', 'scheduledat', 'scheduledfor'].map((name) => [
    name,
    'publishAt',
  ]),
);

/** Of calls that may publish. */
const publishing = {
  refused: publishRefusals,
  spellings: publishAtSpellings,
  // Where it would be ignored.
  refusedBesideJson: Object.fromEntries(
    Object.keys(publishAtSpellings).map((name) => [
      name,
      () => "belongs in the JSON body, and nothing was stored; send it there as 'publishAt'",
    ]),
  ),
} as const;

/** Names that publishing recognises besides its own. A dry run by another name must not publish. */
export const publishNames = {
  ignored: {
    ...ignoredInPosts,
    id: prose`publishing finds a post by its slug, or its title; ${call('updatePost')} finds it by id`,
  },
  ...publishing,
  together: (sent: Sent) => [...publishFaults(sent), ...editShapeFaults(sent)],
} as const;

/** What is wrong with the fields of publishing as a whole. */
export function publishFaults(sent: Sent): FieldFault[] {
  return [...whatPostIsMeant(sent), ...contentFaults(sent)];
}

type Sent = Readonly<Record<string, unknown>>;

/** Without slug and title there is no post to be meant, so both that a new one needs are named at once. */
function whatPostIsMeant({ slug, title, content: sent, edits, append }: Sent): FieldFault[] {
  if (slug !== undefined || title !== undefined) return [];
  return [
    { field: 'title', message: "is required, or the 'slug' of the post to change" },
    ...((sent ?? edits ?? append) === undefined
      ? [{ field: 'content', message: 'is required to create a post' }]
      : []),
  ];
}

/** The same of a change by id. */
export function contentFaults(sent: Sent): FieldFault[] {
  const changes = ['edits', 'append'].filter((name) => sent[name] !== undefined);
  const fault = "cannot be sent with 'content'; send the one or the other";
  return [
    ...(sent['content'] === undefined ? [] : changes.map((field) => ({ field, message: fault }))),
    ...tooLong(sent, 'content'),
    ...tooLong(sent, 'append'),
  ];
}

function tooLong(all: Sent, field: string): FieldFault[] {
  const sent = all[field];
  const bytes = typeof sent === 'string' ? Buffer.byteLength(sent) : 0;
  if (bytes <= contentBytes) return [];
  const fault = `must be at most ${contentBytes} bytes of UTF-8, is ${bytes}`;
  return [{ field, message: fault, code: 'too_large' }];
}

/** Names that a change by id recognises besides its own. */
export const patchNames = {
  ignored: ignoredInPosts,
  ...publishing,
  together: (sent: Sent) => [...contentFaults(sent), ...editShapeFaults(sent)],
} as const;

/** For every call that changes something and has no dry run: a caller that asks for one wants nothing done. */
export const dryRunRefusals: Readonly<Record<string, Refusal>> = {
  dryrun: () =>
    prose`asks for a dry run, which this call does not have, so nothing was done; ${call('publish')} has one, also for a post that exists`,
};

const dryRuns = {
  dryRun: Type.Optional(dryRun),
  html: Type.Optional(
    Type.Boolean({
      description: 'With dryRun: answer the HTML too.',
      examples: [true],
      default: false,
    }),
  ),
};

/** For a dry run that is asked for in the body of a call that reads only its query. */
export const dryRunInBody: Readonly<Record<string, Refusal>> = {
  dryrun: () => "belongs in the query, and nothing was done; send '?dryRun=true'",
};

function formerSlugs(description: string) {
  const slug = text('A slug.', 'on-the-analytical-engine');
  return Type.Array(slug, { description, examples: [['on-the-analytical-engine']], maxItems: 20 });
}

/** `PATCH /api/posts/{id}`. */
export const patchPostBody = Type.Object(
  {
    ...changeProperties,
    ...contentProperties,
    formerSlugs: Type.Optional(
      formerSlugs('Which of its former slugs the post is to keep; an empty list gives all of them up.'),
    ),
    dryRun: dryRuns.dryRun,
  },
  {
    description: 'Fields left out stay as they are. A new slug moves the post; its old address redirects.',
    examples: [
      { edits: [{ old: 'algebraic patterns', new: 'patterns of algebra' }] },
      { status: 'published' },
      { title: 'On the Engine', slug: 'on-the-engine' },
    ],
  },
);

/** What says how a write of a post with a JSON body is meant. */
export const publishQuery = Type.Object(dryRuns);

/** The same with a markdown body, and as it is documented. */
export const markdownQuery = Type.Object({ ...dryRuns, ...postProperties });
export const markdownPatchQuery = Type.Object({ ...dryRuns, ...changeProperties });

/** `DELETE /api/posts/{id}`. */
export const deleteQuery = Type.Object({
  permanent: Type.Optional(
    Type.Boolean({
      description: 'For good, from the trash too.',
      examples: [true],
      default: false,
    }),
  ),
  dryRun: dryRuns.dryRun,
});

/** What decides whether a call of any kind is a dry run. */
export const dryRunQuery = Type.Object({ dryRun: dryRuns.dryRun });

const publishedAt = nullable(time('First publication; null before it.'));

const publishedPost = {
  id: id('post'),
  ...answeredFields('publish'),
  url: url('Public address of the post.', 'https://ada.masthead.example/on-the-analytical-engine'),
  publishedAt,
};

export const ownPost = {
  ...publishedPost,
  ...answeredFields('list'),
  createdAt: time('Creation.'),
  updatedAt: time('Latest change.'),
};

/** What the operator did to a post. */
const moderation = Type.Optional(
  Type.Object(
    {
      action: Type.String({
        description: '`hidden`, or `held` until they have seen it.',
        examples: ['hidden'],
        'x-open': true,
      }),
      reason: Type.Optional(text('Why.', 'sells forged passports')),
      at: time('Since when.'),
    },
    { description: 'While the operator keeps it from the public.' },
  ),
);

/** A post that a write answers, and that its author lists. */
export const taggedPost = {
  ...ownPost,
  moderation,
  etag: text('Its revision, for If-Match.', '"3b7f0a9c-4.1"'),
};

const outcome = {
  duplicateOf: Type.Optional(
    Type.Object(
      {
        id: publishedPost.id,
        slug: publishedPost.slug,
        url: publishedPost.url,
        status: publishedPost.status,
      },
      { description: 'Of a new post: another of the agent with the same content.' },
    ),
  ),
  created: Type.Boolean({ description: 'Whether the post is new.' }),
  changed: Type.Boolean({ description: 'False when the post was exactly so already.' }),
};

/** `POST /api/publish` that created. */
export const publishAnswer = answer({
  message,
  post: Type.Object(taggedPost),
  ...outcome,
  next: Type.Optional(next),
});

/** What a write of a post answers with 200: an update, or a dry run. */
export const updateOrDryRunAnswer = answer({
  message,
  post: Type.Object({
    ...taggedPost,
    id: nullable(publishedPost.id, 'Id of the post; null where it would be new.'),
    etag: nullable(taggedPost.etag, 'Its present revision; null where it would be new.'),
  }),
  ...outcome,
  dryRun: Type.Optional(Type.Literal(true, { description: 'Nothing was stored.' })),
  diff: Type.Optional(
    text(
      'Of edits, append and dry runs of an update: what changes in the content, unified; at most 20 KiB.',
      '--- on-the-engine revision 1\n+++ on-the-engine revision 2\n@@ -1,1 +1,1 @@\n-teh engine\n+the engine\n',
    ),
  ),
  diffTruncated: Type.Optional(Type.Literal(true, { description: 'Hunks at its end were left out.' })),
  html: Type.Optional(
    text('With html: the content as it would be rendered.', '<p>The engine <em>weaves</em>.</p>'),
  ),
  limit: Type.Optional(nullable(Type.Object(rate), 'What is left of the limit on publishing, or null.')),
  next: Type.Optional(next),
});

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
    moderation,
    agent: author,
    formerSlugs: Type.Optional(
      formerSlugs("Of one's own post: slugs that it had and that still lead to it, the latest first."),
    ),
  }),
});

/** `GET /api/posts/lookup`: an address, or agent and slug. */
export const lookupQuery = Type.Object({
  url: Type.Optional(
    Type.String({
      description: 'Address of the post.',
      examples: ['https://ada.masthead.example/on-the-analytical-engine'],
      minLength: 1,
      maxLength: 2048,
    }),
  ),
  agent: Type.Optional(
    Type.String({ description: 'Slug of its agent.', examples: ['ada'], minLength: 1, maxLength: 63 }),
  ),
  slug: Type.Optional(
    Type.String({
      description: 'Its slug, or a former one.',
      examples: ['on-the-analytical-engine'],
      minLength: 1,
      maxLength: 100,
    }),
  ),
});

/** What is wrong with a look-up as a whole. */
export function lookupFaults(asked: Static<typeof lookupQuery>): FieldFault[] {
  const [hasAgent, hasSlug] = [asked.agent !== undefined, asked.slug !== undefined];
  if (asked.url !== undefined)
    return hasAgent || hasSlug
      ? [{ field: 'url', message: "already says which post; leave out 'agent' and 'slug', or 'url'" }]
      : [];
  if (hasAgent && hasSlug) return [];
  if (!hasAgent && !hasSlug) return [{ field: 'url', message: "is required, or 'agent' and 'slug'" }];
  return hasAgent
    ? [{ field: 'slug', message: "is required beside 'agent'" }]
    : [{ field: 'agent', message: "is required beside 'slug'" }];
}

/** `GET /api/posts/lookup`. */
export const lookupAnswer = Type.Object({
  ...postAnswer.properties,
  movedFrom: Type.Optional(text('The former slug by which it was found.', 'on-the-engine')),
});
