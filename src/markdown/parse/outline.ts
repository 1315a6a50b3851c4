import type { Token } from 'markdown-it';
import { firstCodePoints } from './text.ts';

/** A heading of a rendered post, for a table of contents. */
export type Heading = {
  /** Its `id` in the HTML, always beginning `h-`, so that none can stand for an element of the page around it. */
  readonly id: string;
  /** Level in the HTML, 2 to 6. */
  readonly level: number;
  /** Plain text, at most 200 code points. */
  readonly text: string;
};

/** Headings by their opening token, and their ids. */
export type Outline = { readonly headings: ReadonlyMap<Token, Heading>; readonly ids: ReadonlySet<string> };

/** Longest slug and longest text of a heading, in code points. */
const longestSlug = 100;
const longestText = 200;

/**
 * Levels, ids and texts of all headings. The highest level used becomes h2, since the page has its title as its
 * one h1, and the others keep their distance to it. Ids are GitHub's slugs behind a prefix.
 */
export function outline(tokens: readonly Token[]): Outline {
  const headings = new Map<Token, Heading>();
  const ids = new Set<string>();
  const next = new Map<string, number>();
  const opens = tokens.flatMap((token, at) => (token.type === 'heading_open' ? [{ token, at }] : []));
  const highest = opens.reduce((least, { token }) => Math.min(least, levelOf(token)), 6);
  for (const { token, at } of opens) {
    const text = plainText(tokens[at + 1]?.children ?? [])
      .replace(/\s+/gu, ' ')
      .trim();
    const id = uniqueId(`h-${slugOf(text) || 'section'}`, ids, next);
    const level = Math.min(6, levelOf(token) - highest + 2);
    headings.set(token, { id, level, text: firstCodePoints(text, longestText) });
  }
  return { headings, ids };
}

/**
 * The `id` that a fragment written for GitHub's ids means here, if the post has it: `Install-it` is `h-install-it`.
 */
export function resolveFragment(fragment: string, ids: ReadonlySet<string>): string | undefined {
  const name = decode(fragment);
  return [name, `h-${slugOf(name)}`].find((id) => ids.has(id));
}

/** The text of inline tokens as it is read aloud: images by their alternative text, no markup. */
export function plainText(tokens: readonly Token[]): string {
  return tokens.map(textOf).join('');
}

function textOf(token: Token): string {
  switch (token.type) {
    case 'text':
    case 'code_inline':
    case 'tag_open':
    case 'tag_close':
      return token.info === 'paired' ? '' : token.content;
    case 'softbreak':
    case 'hardbreak':
    case 'tag_break':
      return '\n';
    case 'image':
      return plainText(token.children ?? []);
    default:
      return '';
  }
}

function levelOf(token: Token): number {
  return Number(token.tag.slice(1));
}

/** GitHub's rule: lower case, letters, digits, hyphens and underscores kept, spaces to hyphens. */
function slugOf(text: string): string {
  const slug = text
    .slice(0, longestSlug * 4)
    .normalize('NFC')
    .toLowerCase()
    .replace(/\p{Default_Ignorable_Code_Point}|[^\p{L}\p{N}\p{M}\s_-]/gu, '')
    .replace(/\s/gu, '-');
  return firstCodePoints(slug, longestSlug).replace(/^-+|-+$/g, '');
}

/** The id, or the first free of `-1`, `-2`, …: each try uses up one taken id, so all together are linear. */
function uniqueId(wanted: string, taken: Set<string>, next: Map<string, number>): string {
  let id = wanted;
  for (let n = next.get(wanted) ?? 1; taken.has(id); n++) {
    id = `${wanted}-${n}`;
    next.set(wanted, n + 1);
  }
  taken.add(id);
  return id;
}

function decode(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}
