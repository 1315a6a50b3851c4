import type { Kysely } from 'kysely';
import type { SearchQuery } from '../rules/search-terms.ts';
import type { Tables } from './tables.ts';

/** The terms of a post, in their order. A phrase does not reach from one field into the next. */
export type SearchFields = {
  readonly title: readonly string[];
  readonly tags: readonly string[];
  readonly text: readonly string[];
};

/** A post that matches: its number among all that were ever published, and what it is ranked by. */
export type Match = { readonly doc: number; readonly post_id: string; readonly digest: string };

/** The search index as an SQL engine keeps it: the table `post_search`, with a row for each row of `search_docs`. */
export type SearchIndex = {
  /** Makes a document findable by these terms and no others. */
  store(db: Kysely<Tables>, doc: number, fields: SearchFields): Promise<void>;
  /**
   * Does a part of removing the terms of deleted documents from the index's storage, the first part of it or the
   * next. Returns whether that was the last.
   */
  eraseDeleted(db: Kysely<Tables>, part: 'first' | 'next'): Promise<boolean>;
};

/**
 * Finds the newest `most` listed posts that match, newest first, of those numbered `upTo` or less. The work grows
 * with what is found, not with how many match; but a query that finds little of what is common looks through the
 * whole index for it, so it must not hold up anything else. The query must look for something.
 */
export type FindNewest = (
  db: Kysely<Tables>,
  query: SearchQuery,
  most: number,
  upTo: number,
) => Promise<readonly Match[]>;
