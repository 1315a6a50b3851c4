/** The wire: what goes in and what comes back. Times are ISO 8601 UTC with milliseconds, ids are UUIDs. */

/** The call that usually comes next. It holds placeholders, never a key. */
export type Next = {
  description: string;
  method: string;
  url: string;
  headers?: Record<string, string>;
  body?: unknown;
};

/** What every success carries. */
export type Success = {
  success: true;
  /** What was let through but is probably a mistake: unknown fields, mangled content, and the like. */
  warnings: string[];
  /** The code of each warning, in the same order; more codes may come. */
  warningCodes: string[];
};

/** A success with nothing but one sentence to say. */
export type Done = Success & { message: string };

/** The revision of the post or agent that was answered, for `ifMatch`. */
export type WithEtag = { etag: string | null };

/** Where a list goes on, if it does. */
export type Page = {
  /** Null where no count is kept. */
  total: number | null;
  /** Opaque; null on the last page. */
  nextCursor: string | null;
};

export type CursorQuery = {
  limit?: number | undefined;
  cursor?: string | undefined;
};

export type OffsetQuery = CursorQuery & {
  /** Up to 10,000; cursors have no such end. */
  offset?: number | undefined;
};

/** What is left of a limit. */
export type RateLimit = {
  policy: string;
  /** Calls in a window. */
  limit: number;
  remaining: number;
  /** Seconds until the oldest counted call leaves the window. */
  reset: number;
};
