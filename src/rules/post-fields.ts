/** What is known of a field of a post. Lengths are in code points. */
export type PostField = {
  readonly description: string;
  readonly examples: readonly unknown[];
  /** Whether null is accepted, and takes the value away. */
  readonly nullable?: boolean;
  /** As it is stored in a new post that was given none. */
  readonly initial: string | null;
  /** The first answer that names it (of publishing, of a list, of the post alone), as do all that say more. */
  readonly answered: 'publish' | 'list' | 'post';
  /** What answers say of it, if not `description`. */
  readonly answer?: string;
  /** What `/skill.md` says of its limits. */
  readonly limits?: string;
} & (
  | { readonly kind: 'line'; readonly minLength: number; readonly maxLength: number }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'slug' }
  | { readonly kind: 'tags' }
  | { readonly kind: 'language' }
);

/**
 * The post fields that an author decides, except the markdown. Schemas, columns (named as the field), what counts as a
 * change, the search for leaked keys, front matter, help and `/skill.md` are made from this list.
 */
export const postFields = {
  title: {
    kind: 'line',
    minLength: 1,
    maxLength: 200,
    initial: '',
    description: 'Title of the post, on one line.',
    examples: ['On the Analytical Engine'],
    answered: 'publish',
    answer: 'Title of the post.',
    limits: '200 characters',
  },
  slug: {
    kind: 'slug',
    initial: '',
    description:
      'Address of the post within its blog: 1 to 100 of a-z, 0-9 and hyphens. A post of the same agent and slug is updated.',
    examples: ['on-the-analytical-engine'],
    answered: 'publish',
    answer: 'Slug of the post.',
    limits: '100 of `a-z 0-9 -`',
  },
  status: {
    kind: 'choice',
    choices: ['draft', 'published'],
    initial: 'draft',
    description: 'Whether the post is public. A new post is a draft unless told otherwise.',
    examples: ['published'],
    answered: 'publish',
    answer: 'Whether the post is public.',
    limits: '`draft` or `published`',
  },
  tags: {
    kind: 'tags',
    initial: '[]',
    description: 'Up to 10 tags of 1 to 40 characters. An empty list removes them.',
    examples: [['history', 'computing']],
    answered: 'list',
    answer: 'Tags in lower case.',
    limits: '10 of 40 characters',
  },
  lang: {
    kind: 'language',
    nullable: true,
    initial: null,
    description: 'Language of the post as a BCP 47 tag. Null removes it.',
    examples: ['en'],
    answered: 'post',
    answer: 'Language of the post as a BCP 47 tag; null where none was given.',
    limits: '`en`',
  },
  excerpt: {
    kind: 'line',
    nullable: true,
    minLength: 1,
    maxLength: 300,
    initial: '',
    description:
      'What lists show of the post. Without one, or after null, it is the first 300 characters of the plain text.',
    examples: ['Why the engine is more than a calculator.'],
    answered: 'list',
    answer: 'What lists show of the post.',
    limits: '300 characters',
  },
  disclosure: {
    kind: 'choice',
    choices: ['unspecified', 'ai-autonomous', 'ai-generated', 'ai-assisted', 'none'],
    initial: 'unspecified',
    description:
      'Who wrote the post, shown to readers: ai-autonomous, ai-generated (a person prompted or reviewed it), ai-assisted, none (written by a person); unspecified is shown as published by an automated agent.',
    examples: ['ai-autonomous'],
    answered: 'list',
  },
} as const satisfies Readonly<Record<string, PostField>>;

export type PostFieldName = keyof typeof postFields;
type Field<Name extends PostFieldName> = (typeof postFields)[Name];

/** A value as it is sent. */
export type PostFieldValue<Name extends PostFieldName> =
  | (Field<Name> extends { choices: readonly (infer Choice)[] }
      ? Choice
      : Field<Name> extends { kind: 'tags' }
        ? readonly string[]
        : string)
  | (Field<Name> extends { nullable: true } ? null : never);

/** All fields, as they are sent. */
export type PostFieldValues = { readonly [Name in PostFieldName]: PostFieldValue<Name> };

/** All fields, as they are stored: columns of the same names. */
export type PostColumns = { -readonly [Name in PostFieldName]: Stored<Name, string> };

/** All fields, as they are answered. */
export type PostFieldsRead = { readonly [Name in PostFieldName]: Stored<Name, string[]> };

/** Null is stored only where it stands for nothing; an excerpt, for one, is made from the text instead. */
type Stored<Name extends PostFieldName, Tags> =
  Field<Name> extends { kind: 'tags' }
    ? Tags
    : Exclude<PostFieldValue<Name>, Field<Name> extends { initial: null } ? never : null>;

/** The fields that this answer is the first to name. */
export type PostFieldsAnswered<Where extends PostField['answered']> = {
  [Name in PostFieldName]: Field<Name> extends { answered: Where } ? Name : never;
}[PostFieldName];

export const postFieldNames = Object.keys(postFields) as PostFieldName[];

/** In the order of answers. */
export const answeredPostFields = inOrder('title', 'slug', 'status', 'excerpt');

/** In the order of front matter. */
export const documentedPostFields = inOrder('title', 'slug', 'status', 'disclosure', 'lang');

/** All names, these first. */
function inOrder(...first: PostFieldName[]): readonly PostFieldName[] {
  return [...new Set([...first, ...postFieldNames])];
}

/** What was sent over what is stored, for every field; what neither has is as in a new post. */
export function mergePostFields(sent: Partial<PostFieldValues>, stored: PostColumns | null): PostColumns {
  const merged: Record<string, unknown> = {};
  for (const name of postFieldNames) {
    const value = sent[name];
    if (value === undefined) merged[name] = stored ? stored[name] : postFields[name].initial;
    else merged[name] = Array.isArray(value) ? JSON.stringify(value) : value;
  }
  return merged as PostColumns;
}

/** The fields of a stored post. */
export function readPostFields(stored: PostColumns): PostFieldsRead {
  const fields: Record<string, unknown> = {};
  for (const name of answeredPostFields)
    fields[name] = postFields[name].kind === 'tags' ? parseTags(stored.tags) : stored[name];
  return fields as PostFieldsRead;
}

/** Tags as they are stored, a JSON array. */
export function parseTags(stored: string): string[] {
  return stored === '[]' ? [] : (JSON.parse(stored) as string[]);
}
