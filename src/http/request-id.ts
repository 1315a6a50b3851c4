import { randomUUID } from 'node:crypto';

const counted = 2 ** 24;

let start = '';
let count = counted;

/**
 * A new id of a request: a UUID v8 (RFC 9562, 5.8), of 24 random hex digits and a count. Not a random one for each,
 * since writing that out would be a fiftieth of the cost of a cached page; so it is unique, but can be guessed.
 */
export function newRequestId(): string {
  if (count === counted) {
    const random = randomUUID();
    start = `${random.slice(0, 14)}8${random.slice(15, 29)}`;
    count = 0;
  }
  // Seven digits, the first of which is always 1.
  return start + (counted + count++).toString(16);
}
