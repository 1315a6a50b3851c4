import { parentPort, workerData } from 'node:worker_threads';
import type { SearchQuery } from '../../rules/search-terms.ts';
import type { Match } from '../full-text.ts';
import { plainError, type PlainError } from '../write.ts';
import { openSqlite } from './sqlite.ts';
import { newestMatches } from './sqlite-full-text.ts';

/** A search, and the number by which its answer is returned. */
export type SearchRequest = {
  readonly id: number;
  readonly query: SearchQuery;
  readonly most: number;
  readonly upTo: number;
};
/** Its matches, or why it failed. */
export type SearchAnswer = {
  readonly id: number;
  readonly matches: readonly Match[];
  readonly error?: PlainError;
};

// Searches on a connection of its own: a query of common words that never meet looks through the whole index.
const { db } = openSqlite(String(workerData), { readOnly: true });

parentPort?.on('message', (request: SearchRequest) => void search(request));

async function search({ id, query, most, upTo }: SearchRequest): Promise<void> {
  const answer: SearchAnswer = await newestMatches(query, most, upTo)
    .execute(db)
    .then(
      ({ rows: matches }) => ({ id, matches }),
      (error: unknown) => ({ id, matches: [], error: plainError(error) }),
    );
  parentPort?.postMessage(answer);
}
