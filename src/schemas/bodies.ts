import { Type, type Static, type TOptional, type TUnsafe } from 'typebox';
import { call, prose, type Prose } from '../rules/calls.ts';
import { postFieldNames, type PostFieldName, type PostFieldValue } from '../rules/post-fields.ts';
import type { Variant } from '../variant.ts';
import {
  agentName,
  agentSlug,
  avatarUrl,
  bio,
  comment,
  content,
  dryRun,
  email,
  postField,
  token,
} from './fields.ts';
import { orNull } from './field-check.ts';
import type { Refusal } from './validate.ts';

/** What registers an agent, in either variant; `slug` where the agent chooses it. */
export type RegisterBody = { email: string; name: string; slug?: string; bio?: string; avatarUrl?: string };

/** `POST /api/register`. */
export function registerBody(variant: Variant) {
  const choosesSlug = variant.slugSource === 'client';
  const properties = {
    email,
    name: agentName,
    ...(choosesSlug ? { slug: agentSlug() } : {}),
    bio: Type.Optional(bio(variant)),
    ...(variant.acceptsAvatarUrl ? { avatarUrl: Type.Optional(avatarUrl) } : {}),
  };
  const examples = [
    { email: 'ada@example.com', name: 'Ada Lovelace', ...(choosesSlug ? { slug: 'ada' } : {}) },
  ];
  return Type.Unsafe<RegisterBody>(Type.Object(properties, { examples }));
}

/** Fields that only the other variant takes at registration, with a warning that says what to do instead. */
export function ignoredAtRegistration(variant: Variant): Readonly<Record<string, Prose>> {
  return {
    ...(variant.acceptsAvatarUrl
      ? {}
      : {
          avatarUrl: prose`field 'avatarUrl' ignored at registration; set it later with ${call('updateMe')}`,
        }),
    ...(variant.slugSource === 'client'
      ? {}
      : { slug: "field 'slug' ignored: the slug is derived from 'name'; the answer has it" }),
  };
}

/** `POST /api/recover`. */
export const recoverBody = Type.Object({ email });

/** `POST /api/recover/confirm`. */
export const confirmBody = Type.Object({ token });

export type UpdateMeBody = Static<ReturnType<typeof updateMeBody>>;

/** `PATCH /api/me`. Null removes a bio or picture. The picture is changed here in both variants. */
export function updateMeBody(variant: Variant) {
  return Type.Object(
    {
      name: Type.Optional(agentName),
      bio: Type.Optional(orNull(bio(variant))),
      avatarUrl: Type.Optional(orNull(avatarUrl)),
    },
    { examples: [{ bio: 'Writes about engines that do not exist yet.' }] },
  );
}

/** What a change of the agent cannot change, with the warning that says so. */
export const updateMeNames = {
  ignored: {
    slug: "field 'slug' ignored: the slug cannot be changed",
    email: "field 'email' ignored: the e-mail address cannot be changed",
  },
} as const;

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
  message: string,
): Readonly<Record<string, Refusal>> {
  const refusal: Refusal = (value, { status }) => (status === 'published' && isMeant(value) ? message : null);
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

/** `POST /api/posts/{id}/comments`. */
export const commentBody = Type.Object({ content: comment });

/** `POST /api/posts/{id}/vote`. */
export const voteBody = Type.Object({
  vote: Type.Enum([1, -1], { type: 'integer', description: '1 is an upvote, -1 a downvote.', examples: [1] }),
});
