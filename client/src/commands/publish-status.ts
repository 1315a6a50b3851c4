import { parseFrontMatter } from '../../../src/rules/front-matter.ts';
import type { Status } from '../index.ts';

/** What the command line asks of the status: `unless-draft` leaves the last word to each file. */
export type Wish = 'published' | 'unless-draft' | 'draft' | 'as-written';

/** A document as it is sent, and the status that is sent with it; undefined: its front matter says it, or nobody. */
export type Sent = {
  readonly source: string;
  readonly status: Status | undefined;
  /** When it is to be public, where the command line says so. */
  readonly publishAt?: string | undefined;
};

/**
 * Front matter wins over what the command line asks, unless that means all. Other programs write `draft: true` (Hugo)
 * or `published: false` (Jekyll), which the service does not know: they are read here, and not sent.
 */
export function toSend(source: string, wish: Wish): Sent {
  const parsed = parseFrontMatter(source);
  const fields = parsed.ok ? parsed.fields : {};
  const elsewhere = saysElsewhere(fields);
  const own = elsewhere === null ? source : withoutDraftFields(source);
  if (wish === 'published' || wish === 'draft') return { source: own, status: wish };
  if (fields['status'] !== undefined) return { source: own, status: undefined };
  return { source: own, status: elsewhere ?? (wish === 'unless-draft' ? 'published' : undefined) };
}

function saysElsewhere(fields: Readonly<Record<string, unknown>>): Status | null {
  const [isDraft, isPublished] = [booleanOf(fields['draft']), booleanOf(fields['published'])];
  if (isDraft === null && isPublished === null) return null;
  return isDraft === true || isPublished === false ? 'draft' : 'published';
}

function booleanOf(field: unknown): boolean | null {
  const [, word] =
    typeof field === 'string' ? (/^(true|yes|on|false|no|off)$/i.exec(field.trim()) ?? []) : [];
  return word === undefined ? null : /^(?:true|yes|on)$/i.test(word);
}

/** The front matter ends at the second line of hyphens; what follows is text. */
function withoutDraftFields(source: string): string {
  const lines = source.split('\n');
  const end = lines.findIndex((line, at) => at > 0 && line.trimEnd() === '---');
  const field = /^(?:draft|published)\s*:\s*["']?(?:true|yes|on|false|no|off)["']?\s*(?:#.*)?$/i;
  return lines.filter((line, at) => at > end || !field.test(line.trimEnd())).join('\n');
}
