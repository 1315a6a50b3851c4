import { AppError } from '../errors.ts';
import type { Prose } from '../rules/calls.ts';

/** `If-Match` and `If-None-Match` of a write, as sent; null when absent. */
export type Preconditions = { readonly ifMatch: string | null; readonly ifNoneMatch: string | null };

export const noPreconditions: Preconditions = { ifMatch: null, ifNoneMatch: null };

/**
 * Throws precondition_failed unless the present entity tag is one that the call asks for; null: there is no post, about
 * which `noneHint` says what to do.
 */
export function checkPreconditions(
  { ifMatch, ifNoneMatch }: Preconditions,
  present: string | null,
  noneHint: Prose = '',
): void {
  if (ifMatch !== null && present === null)
    throw new AppError(
      'precondition_failed',
      'If-Match requires an existing post, and there is none with this slug.',
      { hint: noneHint },
    );
  if (ifMatch !== null && present !== null && !matchesTag(ifMatch, present))
    throw failed(`It has changed since you read it: its ETag is now ${present}.`, present);
  if (ifNoneMatch !== null && present !== null && matchesTag(ifNoneMatch, present))
    throw failed(
      'If-None-Match requires that no post has this slug, and there is one.',
      present,
      'To update that post, send the call without If-None-Match. To create another, send another slug.',
    );
}

function failed(detail: string, etag: string, hint?: string): AppError {
  return new AppError('precondition_failed', detail, { etag, ...(hint === undefined ? {} : { hint }) });
}

/** Stands for a tag in quotes; no header can have it. */
const quotedTag = '\u0000';

/**
 * What is wrong with a list of entity tags (RFC 9110, 13.1.1); one of ours may lack its quotes, and members may be empty
 * (5.6.1.2). Null if nothing.
 */
export function entityTagFault(value: string): string | null {
  const members = value
    .replace(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/gi, quotedTag)
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
  const isTag = (member: string) => member === quotedTag || /^[0-9a-f]{8}-\d+(?:\.\d+)?$/.test(member);
  if ((members.length > 0 && members.every(isTag)) || value.trim() === '*') return null;
  return 'must be an ETag as an answer gave it, such as "3b7f0a9c-4.1" with its quotes, or *';
}

/** Compares with every form that clients send back: weak, strong, several, `*`, or with a proxy's suffix. */
export function matchesTag(header: string, present: string): boolean {
  if (header.trim() === '*') return true;
  const wanted = revisionOf(present);
  return header.split(',').some((tag) => revisionOf(tag.trim().replace(/^W\//i, '')) === wanted);
}

/** Of one of our tags its beginning: of a post its own revision, without its author's and what a proxy adds. */
function revisionOf(tag: string): string {
  const bare = tag.replaceAll('"', '');
  return /^[0-9a-f]{8}-\d+/.exec(bare)?.[0] ?? bare;
}
