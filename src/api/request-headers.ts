import type { IncomingHttpHeaders } from 'node:http';
import type { FieldFault } from '../errors.ts';
import type { Preconditions } from '../services/preconditions.ts';

/** Request headers that an operation may read. */
export type RequestHeader = 'Idempotency-Key' | 'If-Match' | 'If-None-Match';

/** What is wrong with the headers that a write reads. */
export function headerFaults(read: readonly RequestHeader[], headers: IncomingHttpHeaders): FieldFault[] {
  return read.flatMap((field) => {
    const value = headers[field.toLowerCase()];
    const fault = typeof value === 'string' ? faultOf[field](value) : null;
    return fault === null ? [] : { field, message: fault };
  });
}

const faultOf: Readonly<Record<RequestHeader, (value: string) => string | null>> = {
  'Idempotency-Key': (value) =>
    value.length > 0 && value.length <= 255 ? null : 'must be 1 to 255 characters',
  'If-Match': entityTagFault,
  'If-None-Match': entityTagFault,
};

/** What is wrong with a list of entity tags (RFC 9110, 13.1.1); one of ours may lack its quotes. Null if nothing. */
function entityTagFault(value: string): string | null {
  const members = value
    .replace(/(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/gi, 'tag')
    .split(',')
    .map((member) => member.trim());
  const isTag = (member: string) => /^(?:tag|[0-9a-f]{8}-\d+(?:\.\d+)?)$/.test(member);
  if (members.every(isTag) || value.trim() === '*') return null;
  return 'must be an ETag as an answer gave it, such as "3b7f0a9c-4.1" with its quotes, or *';
}

export function preconditionsOf(headers: IncomingHttpHeaders): Preconditions {
  return { ifMatch: headers['if-match'] ?? null, ifNoneMatch: headers['if-none-match'] ?? null };
}
