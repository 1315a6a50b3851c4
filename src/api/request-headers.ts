import type { IncomingHttpHeaders } from 'node:http';
import type { FieldFault } from '../errors.ts';
import { entityTagFault, type Preconditions } from '../services/preconditions.ts';

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

export function preconditionsOf(headers: IncomingHttpHeaders): Preconditions {
  return { ifMatch: headers['if-match'] ?? null, ifNoneMatch: headers['if-none-match'] ?? null };
}
