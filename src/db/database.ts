import type { Kysely, RawBuilder } from 'kysely';
import { AppError } from '../errors.ts';
import type { SearchFields, SearchQuery } from '../rules/search/search-terms.ts';
import type { Tables } from './tables.ts';
import type { Ticket, Write } from './write.ts';

/** All that the SQL engines do differently. Everything above it is written once. */
export type Engine = {
  /** Which database, without credentials. */
  readonly description: string;
  /** Read-only connection that sees every commit. */
  readonly reads: Kysely<Tables>;
  /**
   * Read-only connection for what everyone may see, possibly to a replica. It sees every commit of this process, and
   * every commit made before the last {@link Engine.catchUp}; otherwise it lags by seconds at most.
   */
  readonly publicReads: Kysely<Tables>;
  /** Call after seeing another process's change: `publicReads` then reflects it. */
  catchUp(): void;
  /**
   * Whether, since the last call, public reads may have been stale beyond the usual lag: there was a failover, or a
   * standby answered while there was no primary. False while there is none.
   */
  primaryChanged(): boolean;
  /** Full-text search of what everyone may see, as {@link Engine.publicReads} does. */
  readonly findNewest: FindNewest;
  /** Searches that it may be given at once. */
  readonly searchesAtOnce: number;
  /**
   * Runs a write in a transaction of its own and resolves when it is durable. A {@link Ticket} without a `rate` is
   * counted in the same transaction, and stays counted when the write itself fails. Throws the write's AppError, or `rate_limited`, `read_only`, `storage_full`, `unavailable`.
   */
  write<I, O>(write: Write<I, O>, input: I, ticket?: Ticket): Promise<O>;
  /** A number that differs whenever anything may have been committed by anyone since the last call. */
  version(): number;
  /**
   * A number that differs whenever this process has committed a visible change since the last call, or anyone has, more
   * than a second ago. Null while it cannot tell.
   */
  contentVersion(): number | null;
  /**
   * A number that differs whenever this process has learnt of a visible change since the last call: of its own at once,
   * of others' within a second.
   */
  publicVersion(): number;
  /**
   * Tells the engine that this process has seen every visible change committed before `since` (of `performance.now()`).
   * Changes that it had not seen are told by {@link Engine.catchUp}, in the same turn.
   */
  followed(since: number): void;
  /** Of a row: differs from what it was before its last change. Empty where {@link Engine.version} tells more. */
  readonly rowVersion: RawBuilder<string>;
  /** Why writes are refused, or null. */
  readOnly(): string | null;
  /** Called after each visible change that this process commits. */
  onCommit(listener: (commit: Commit) => void): void;
  /** Called after each commit of this process that leaves mail to send. */
  onMailQueued(listener: () => void): void;
  /** Resolves if the database can be read. */
  probe(): Promise<void>;
  /** Finishes pending writes, then closes all connections. */
  close(): Promise<void>;
};

/** What a commit changed, as tags of cached answers. */
export type Commit = { readonly changed: readonly string[] };

/** A post that matches: its number among all that were ever published, and how well it fits. */
export type Match = { readonly doc: number; readonly post_id: string; readonly score: number };

/** What stands for a post in the search index. */
export type SearchEntry = { readonly postId: string; readonly digest: string };

/** The terms of a document, by its number in `search_docs`. */
export type NumberedFields = { readonly doc: number; readonly fields: SearchFields };

/** The search index of an SQL engine: the table `post_search`, with a row for each row of `search_docs`. */
export type SearchIndex = {
  /** Makes a post findable by these terms and no others, and numbers it, if it has no number yet. */
  store(db: Kysely<Tables>, entry: SearchEntry, fields: SearchFields): Promise<void>;
  /** The same for documents that have their numbers; of one that comes more than once, the last counts. */
  storeNumbered(db: Kysely<Tables>, documents: readonly NumberedFields[]): void;
  /** Records that a document was stored anew: its former terms are to be erased like those of a deleted one. */
  noteReplaced(db: Kysely<Tables>): Promise<void>;
  /**
   * Removes some terms of deleted documents from the index's storage, in the first or the next of several steps.
   * Returns whether it was the last.
   */
  eraseDeleted(db: Kysely<Tables>, part: 'first' | 'next'): Promise<boolean>;
};

/** What the first of some queries found that found anything, and which one that is; of none, the first. */
export type FoundNewest = { readonly matches: readonly Match[]; readonly by: number };

/**
 * Finds the newest `most` listed posts that match, newest first, of those numbered `upTo` or less, by the first of the
 * queries that finds any. The work grows
 * with what is found, not with how many match; but a query that finds little of what is common looks through the
 * whole index for it, so it ends after {@link searchTime}, or when its client leaves, with {@link SearchCutOff}. Each
 * query must look for something.
 */
export type FindNewest = (
  queries: readonly SearchQuery[],
  most: number,
  upTo: number,
  signal: AbortSignal,
) => Promise<FoundNewest>;

/** The transaction may be stored, or not, or not on every standby it must be: repeating the call finds out. */
export class Unconfirmed extends AppError {
  constructor() {
    super('unavailable', 'The database did not confirm that the change is stored safely: it may be or not.', {
      retryAfter: 2,
      hint: 'Publishing, votes and calls with an Idempotency-Key can be repeated and are not done twice; before others, look whether they were done.',
    });
  }
}

/** How long a search may take, ms: of processor time where that is known. */
export const searchTime = 500;

/** A search was ended before it was done. */
export class SearchCutOff extends AppError {
  constructor() {
    super('unavailable', `The search was ended: it took longer than ${searchTime} ms.`, {
      retryAfter: 1,
      budget: 'search_time',
      hint: 'Search for rarer words or more of them, with fewer beginnings of words (word*) and exclusions (-word).',
    });
  }
}

/** The refusal of a search where others are ended too fast for those that wait. */
export function tooManySearches(): AppError {
  return new AppError('unavailable', 'Too many searches are under way. Repeat the call in a moment.', {
    retryAfter: 1,
    uncounted: true,
    budget: 'searches',
  });
}

/** The failure of a search that stopped by itself. */
export function searchStopped(): AppError {
  return new AppError('unavailable', 'The search stopped before it answered. Repeat the call in a moment.', {
    retryAfter: 2,
  });
}
