import { AppError, invalidField } from '../../errors.ts';

/** A cursor as it may appear in an address: base64url only. Throws invalid_input. */
export function readCursorText(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string' && /^[\w-]{1,500}$/.test(value)) return value;
  throw invalidField('cursor', "must be taken from the link to the next page, which 'Older' is");
}

/** The number of a part of a sitemap. Throws not_found, since no other part has an address. */
export function readPart(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string' && /^[1-9]\d{0,4}$/.test(value)) return Number(value);
  throw new AppError('not_found', 'There is no such part of the sitemap.');
}
