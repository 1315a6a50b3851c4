import { Type } from 'typebox';
import { count, nullable } from './answer-parts.ts';

/** How many entries a page of a list has by default, and at most. */
export const pageSizes = {
  myPosts: { default: 50, max: 100 },
  ownPosts: { default: 1000, max: 1000 },
  discovery: { default: 50, max: 100 },
  blogs: { default: 50, max: 100 },
  featured: { default: 10, max: 50 },
  ownEngagement: { default: 50, max: 100 },
  revisions: { default: 20, max: 100 },
  trash: { default: 50, max: 100 },
  media: { default: 50, max: 100 },
  search: { default: 50, max: 100 },
} as const;

/** Where a page begins. */
export const cursor = Type.Optional(
  Type.String({
    description:
      'Where to continue: nextCursor of the previous page; repeat the other parameters. Opaque, and stable while posts arrive.',
    examples: ['MjAyNi0wMS0zMVQwOTozMDowMC4wMDBafDAxOWMx'],
    minLength: 1,
    maxLength: 1024,
  }),
);

/** A cursor in an answer. What lists are ordered by is short enough, whatever is stored. */
export function cursorText(description: string, example: string) {
  return Type.String({ description, examples: [example], maxLength: 512 });
}

/** Parts of an answer with a page of a list. */
export const total = nullable(count('How many there are in all; null where they are not counted.'));
export const nextCursor = nullable(
  cursorText('The cursor of the next page; null on the last.', 'MjAyNi0wMS0zMVQwOTozMDowMC4wMDBafDAxOWMx'),
);
export const page = {
  total,
  limit: Type.Integer({ minimum: 1, description: 'The most entries that a page has.', examples: [50] }),
  offset: count('How many entries were skipped.'),
  nextCursor,
};

/** Choices as a sentence lists them. */
export function anyOf(choices: readonly string[]): string {
  return `${choices.slice(0, -1).join(', ')}, or ${choices.at(-1)}`;
}

/** The query parameter `sort`. */
export function order<const Name extends string>(names: readonly Name[], description: string, example: Name) {
  const [first = example] = names;
  return Type.Optional(
    Type.Enum([...names], { type: 'string', description, examples: [example], default: first }),
  );
}

/** The query parameters of a list with offsets and cursors. */
export function paging(size: ReturnType<typeof limit>) {
  return {
    limit: Type.Optional(size),
    offset: Type.Optional(
      Type.Integer({
        description: 'How many to skip. Cursors reach further and do not shift.',
        examples: [50],
        minimum: 0,
        maximum: 10_000,
        default: 0,
      }),
    ),
    cursor,
  };
}

/** The query parameter `limit`. */
export function limit(
  size: { readonly default?: number; readonly max: number },
  description = 'How many at most.',
) {
  return Type.Integer({
    description,
    examples: [Math.min(20, size.max)],
    minimum: 1,
    maximum: size.max,
    ...(size.default === undefined ? {} : { default: size.default }),
  });
}
