import { AppError } from '../../errors.ts';
import { call, prose, type Prose } from '../../rules/calls.ts';

/** `If-Match` and `If-None-Match` of a write, as sent; null when absent. */
export type Preconditions = { readonly ifMatch: string | null; readonly ifNoneMatch: string | null };

export const noPreconditions: Preconditions = { ifMatch: null, ifNoneMatch: null };

/** Throws precondition_failed unless the present entity tag (null: there is no post) is one that the call asks for. */
export function checkPreconditions({ ifMatch, ifNoneMatch }: Preconditions, etag: string | null): void {
  if (ifMatch !== null && etag === null)
    throw failed(
      'If-Match requires an existing post, and there is none with this slug.',
      prose`To create it, send the call without If-Match. ${call('listPosts')} with your key lists your posts.`,
    );
  if (ifMatch !== null && etag !== null && !matches(ifMatch, etag))
    throw failed(
      `The post has changed since you read it: its ETag is now ${etag}.`,
      'GET the post, take its ETag, and send the call again with it.',
    );
  if (ifNoneMatch !== null && etag !== null && matches(ifNoneMatch, etag))
    throw failed(
      'If-None-Match requires that no post has this slug, and there is one.',
      'To update that post, send the call without If-None-Match. To create another, send another slug.',
    );
}

function failed(detail: string, hint: Prose): AppError {
  return new AppError('precondition_failed', detail, { hint });
}

/** Compares with every form that clients send back: weak, strong, several, `*`, or with a proxy's suffix. */
function matches(header: string, etag: string): boolean {
  if (header.trim() === '*') return true;
  const present = postPart(etag);
  return header.split(',').some((tag) => postPart(tag.trim().replace(/^W\//i, '')) === present);
}

function postPart(etag: string): string | undefined {
  return etag.replaceAll('"', '').split('.')[0];
}
