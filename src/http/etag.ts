/** Whether an `If-None-Match` header holds this entity tag, by weak comparison (RFC 9110, 13.1.2). */
export function matchesEtag(header: string, etag: string): boolean {
  if (header === etag || header.trim() === '*') return true;
  return header.split(',').some((member) => member.trim().replace(/^W\//, '') === etag);
}
