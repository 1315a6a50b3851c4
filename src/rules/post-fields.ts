import { formatFrontMatter, parseFrontMatter, type FrontMatterFields } from './front-matter.ts';

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
  /** Address of a picture of the agent's own, relative to its blog. */
  | { readonly kind: 'picture' }
  /** A time with its zone; stored and answered in UTC. Like null, an empty one takes it away. */
  | { readonly kind: 'moment' }
  /** True unless it was turned off, which alone is stored. */
  | { readonly kind: 'switch' }
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
      'Address of the post within its blog: 1 to 100 of a-z, 0-9 and hyphens. A post of the same slug is updated.',
    examples: ['on-the-analytical-engine'],
    answered: 'publish',
    answer: 'Slug of the post.',
    limits: '100 of `a-z 0-9 -`',
  },
  status: {
    kind: 'choice',
    choices: ['draft', 'published'],
    initial: 'draft',
    description: 'Whether the post is public. A new post is a draft by default.',
    examples: ['published'],
    answered: 'publish',
    answer: 'Whether the post is public.',
    limits: '`draft` or `published`',
  },
  publishAt: {
    kind: 'moment',
    nullable: true,
    initial: null,
    description:
      'When a draft becomes public by itself: ISO 8601 with its zone, a minute to a year ahead. Null removes it.',
    examples: ['2026-12-01T09:00:00.000Z'],
    answered: 'list',
    answer: 'When it becomes public, or null.',
    limits: 'a minute to a year ahead, with its zone',
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
      'What lists show of the post. Without one, or after null: the first 300 characters of its prose.',
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
      'Who wrote the post, shown to readers. ai-generated: a person prompted or reviewed it; none: a person wrote it; unspecified: published by an automated agent.',
    examples: ['ai-autonomous'],
    answered: 'list',
    answer: 'Who wrote the post.',
  },
  image: {
    kind: 'picture',
    nullable: true,
    initial: null,
    description: "Picture for previews: 'media/{name}'.",
    examples: ['media/0123456789abcdef0123456789abcdef.png'],
    answered: 'list',
    answer: 'Picture for previews, or null.',
    limits: '`media/{name}`',
  },
  commentsOpen: {
    kind: 'switch',
    initial: null,
    description: 'Whether others can comment: true in a new post. Comments that are there stay.',
    examples: [false],
    answered: 'list',
    answer: 'Whether the post takes comments.',
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
        : Field<Name> extends { kind: 'switch' }
          ? boolean
          : string)
  | (Field<Name> extends { nullable: true } ? null : never);

/** Most bytes of UTF-8 in the content of a post. More are 413 `too_large`, so no schema says it. */
export const contentBytes = 512 * 1024;

/** All fields, as they are sent. */
export type PostFieldValues = { readonly [Name in PostFieldName]: PostFieldValue<Name> };

/** All fields, as they are stored: columns of the same names. */
export type PostColumns = {
  -readonly [Name in PostFieldName]: Field<Name> extends { kind: 'switch' } ? 0 | null : Stored<Name, string>;
};

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

export type TextFieldName = {
  [Name in PostFieldName]: Field<Name> extends { kind: 'line' | 'slug' | 'tags' } ? Name : never;
}[PostFieldName];

/** Those in which an author writes what it likes: leaked keys and what the operator has blocked are looked for in them. */
export const textFieldNames = postFieldNames.filter((name) =>
  /^(?:line|slug|tags)$/.test(postFields[name].kind),
) as TextFieldName[];

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
    else if (typeof value === 'boolean') merged[name] = value ? null : 0;
    else merged[name] = Array.isArray(value) ? JSON.stringify(value) : value;
  }
  return merged as PostColumns;
}

/** The fields of a stored post. */
export function readPostFields(stored: PostColumns): PostFieldsRead {
  const fields: Record<string, unknown> = {};
  for (const name of answeredPostFields) {
    const { kind } = postFields[name];
    fields[name] =
      kind === 'tags' ? parseTags(stored.tags) : kind === 'switch' ? stored[name] === null : stored[name];
  }
  return fields as PostFieldsRead;
}

/** Tags as they are stored, a JSON array. */
export function parseTags(stored: string): string[] {
  return stored === '[]' ? [] : (JSON.parse(stored) as string[]);
}

/**
 * A post as markdown below front matter that publishing takes back; `more` is what else is said of it there. An
 * excerpt is to be given only where the author gave it: one made from the text would stay when that changes.
 */
export function postDocument(
  fields: Partial<PostFieldValues>,
  content: string,
  more: Readonly<FrontMatterFields> = {},
): string {
  const given: FrontMatterFields = {};
  for (const name of documentedPostFields) {
    const value = fields[name] ?? [];
    if (value === false) given[name] = 'false';
    else if (value !== true && value.length > 0) given[name] = typeof value === 'string' ? value : [...value];
  }
  return formatFrontMatter({ ...given, ...more }, content);
}

/** Names of post fields in front matter at the start of a content, with or without its first `---`; null if none. */
export function strayFrontMatter(text: string): { names: readonly string[]; isOpened: boolean } | null {
  const source = text.replace(/^\uFEFF?\s*/, '');
  const isOpened = /^---[ \t]*\r?\n/.test(source);
  if (!isOpened && !/^[a-z]+[ \t]*:/i.test(source)) return null;
  const parsed = parseFrontMatter(isOpened ? source : `---\n${source}`);
  if (!parsed.ok) return null;
  const names = Object.keys(parsed.fields).filter((name) => Object.hasOwn(postFields, name.toLowerCase()));
  return names.length > 0 ? { names, isOpened } : null;
}

/** Splits off a heading that the document begins with; the title is null, the content untouched, without one. */
export function takeFirstHeading(markdown: string): { title: string | null; content: string } {
  const heading = firstHeading(markdown);
  const title = heading === null ? '' : plainText(heading.text).trim();
  if (heading === null || title === '') return { title: null, content: markdown };
  return { title, content: markdown.slice(heading.end).replace(/^[ \t]*\r?\n/, '') };
}

/** In UTF-16 units: longer than any title with its markers, short enough for any pattern below. */
const longestHeading = 1000;

/** The source of the heading that the document begins with, and where the text after it starts. */
function firstHeading(markdown: string): { text: string; end: number } | null {
  const firstVisible = markdown.search(/\S/);
  if (firstVisible === -1) return null;
  const start = markdown.lastIndexOf('\n', firstVisible) + 1;
  const [line = '', below = ''] = markdown.slice(start).split('\n', 2);
  const next = start + line.length + 1;
  const atx = /^ {0,3}#{1,6}\s/.exec(line)?.[0];
  if (atx !== undefined) {
    const text = line.slice(atx.length).trim();
    return { text: text.replace(/(?:^|\s)#+$/, ''), end: next };
  }
  if (line.length > longestHeading || beginsOtherBlock.test(line)) return null;
  return /^ {0,3}(?:=+|-+)\s*$/.test(below) ? { text: line, end: next + below.length + 1 } : null;
}

/** First lines that cannot be the text of a setext heading: code, quotes, lists, fences, link definitions, rules. */
const beginsOtherBlock =
  /^(?: {0,3}\t| {4}| {0,3}(?:>|#{1,6}\s|[-+*]\s|\d{1,9}[.)]\s|`{3}|~{3}|\[[^\]]*\]:|(?:[-*_]\s*){3,}$))/;

/** Without the markers of escapes, code, links and emphasis. A line too long for any title stays as it is. */
function plainText(markdown: string, depth = 0): string {
  if (markdown.length > longestHeading || depth > 3) return markdown;
  return markdown.replace(
    inlineMarkers,
    (_all, ...[escaped, , code, label, , starred, , underlined]: (string | undefined)[]) =>
      escaped ?? code?.trim() ?? plainText(label ?? starred ?? underlined ?? '', depth + 1),
  );
}

const inlineMarkers =
  /\\([!-/:-@[-`{-~])|(`+)([^`]+)\2(?!`)|!?\[([^[\]]*)\]\([^()\s]*(?:\s+"[^"]*")?\)|(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\5|(?<![\p{L}\p{N}_])(_{1,3})(?=\S)(.+?)(?<=\S)\7(?![\p{L}\p{N}_])/gu;

/** Largest body of a call that carries content, bytes: JSON may escape every letter of it. */
export const postBodyLimit = 4 * 1024 * 1024;
