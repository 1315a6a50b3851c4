import { hash } from 'node:crypto';

/** Whether an `If-None-Match` header holds this entity tag, by weak comparison (RFC 9110, 13.1.2). */
export function matchesEtag(header: string, etag: string): boolean {
  if (header === etag || header.trim() === '*') return true;
  const strong = etag.replace(/^W\//, '');
  return header.split(',').some((member) => member.trim().replace(/^W\//, '') === strong);
}

/** Weak entity tag of a body: the same content, whatever it is compressed with. */
export function weakEtag(body: Buffer): string {
  return `W/"${hash('sha256', body, 'base64url').slice(0, 16)}"`;
}
