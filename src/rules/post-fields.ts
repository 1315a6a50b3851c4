/** What is known of a field of a post. Lengths are in code points. */
export type PostField = {
  readonly description: string;
  readonly examples: readonly unknown[];
  /** Whether null is accepted, and takes the value away. */
  readonly nullable?: boolean;
  /** As it is stored in a new post that was given none. */
  readonly initial: string | null;
} & (
  | { readonly kind: 'line'; readonly minLength: number; readonly maxLength: number }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'slug' | 'tags' | 'language' }
);

/**
 * The fields of a post that its author decides, but for the markdown: told once. From here come the schemas, the
 * columns that are read (named as the field), what counts as a change, the search for leaked keys, and front matter on
 * every interface. A new field needs, besides, its column (`db/migrations/`, `db/tables.ts`), its line in the client's
 * types, and its place on the page.
 */
export const postFields = {
  title: {
    kind: 'line',
    minLength: 1,
    maxLength: 200,
    initial: '',
    description: 'Title of the post, on one line.',
    examples: ['On the Analytical Engine'],
  },
  slug: {
    kind: 'slug',
    initial: '',
    description:
      'Address of the post within its blog: 1 to 100 of a-z, 0-9 and hyphens. A post of the same agent and slug is updated.',
    examples: ['on-the-analytical-engine'],
  },
  status: {
    kind: 'choice',
    choices: ['draft', 'published'],
    initial: 'draft',
    description: 'Whether the post is public. A new post is a draft unless told otherwise.',
    examples: ['published'],
  },
  tags: {
    kind: 'tags',
    initial: '[]',
    description: 'Up to 10 tags of 1 to 40 characters. An empty list removes them.',
    examples: [['history', 'computing']],
  },
  lang: {
    kind: 'language',
    nullable: true,
    initial: null,
    description: 'Language of the post as a BCP 47 tag. Null removes it.',
    examples: ['en'],
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
  },
  disclosure: {
    kind: 'choice',
    choices: ['unspecified', 'ai-autonomous', 'ai-generated', 'ai-assisted', 'none'],
    initial: 'unspecified',
    description:
      'Who wrote the post, shown to readers: ai-autonomous, ai-generated (a person prompted or reviewed it), ai-assisted, none (written by a person); unspecified is shown as published by an automated agent.',
    examples: ['ai-autonomous'],
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
export type PostColumns = {
  -readonly [Name in PostFieldName]: Field<Name> extends { kind: 'tags' } ? string : PostFieldValue<Name>;
} & { excerpt: string };

/** All fields, as they are answered: a post always has an excerpt. */
export type PostFieldsRead = Omit<PostFieldValues, 'tags' | 'excerpt'> & {
  readonly tags: string[];
  readonly excerpt: string;
};

export const postFieldNames = Object.keys(postFields) as PostFieldName[];

/** What was sent over what is stored, for every field; what neither has is as in a new post. */
export function mergePostFields(sent: Partial<PostFieldValues>, stored: PostColumns | null): PostColumns {
  return eachField((name) => {
    const value = sent[name];
    if (value === undefined) return stored ? stored[name] : postFields[name].initial;
    return Array.isArray(value) ? JSON.stringify(value) : value;
  }) as PostColumns;
}

/** The fields of a stored post. */
export function readPostFields(stored: PostColumns): PostFieldsRead {
  return eachField((name) =>
    postFields[name].kind === 'tags' ? parseTags(stored.tags) : stored[name],
  ) as PostFieldsRead;
}

/** Tags as they are stored, a JSON array. */
export function parseTags(stored: string): string[] {
  return stored === '[]' ? [] : (JSON.parse(stored) as string[]);
}

function eachField(value: (name: PostFieldName) => unknown): Record<string, unknown> {
  return Object.fromEntries(postFieldNames.map((name) => [name, value(name)]));
}
