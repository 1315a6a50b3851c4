/**
 * The exit code of a failure, by its code and the status of a service's answer; docs/agents.md has the table. What fails
 * without a service is 1.
 */
export function exitCodeOf({ code, status, requestId }: Readonly<Record<string, unknown>>): number {
  if (code === 'no_key') return 6;
  if (code === 'no_answer') return 8;
  if (typeof status !== 'number') return 1;
  if (status === 401 || code === 'suspended' || code === 'deleting') return 6;
  if (status === 429 || code === 'quota_exceeded') return 7;
  // An answer of the service has an id; a page of something in its place says nothing about a post or a key.
  if (status >= 500 || (code === 'unknown' && requestId === null)) return 8;
  return status === 404 || status === 410 ? 4 : 5;
}
