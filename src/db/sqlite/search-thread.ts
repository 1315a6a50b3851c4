import { parentPort, workerData } from 'node:worker_threads';
import type { SearchQuery } from '../../rules/search-terms.ts';
import type { Match } from '../database.ts';
import { plainError, type PlainError } from '../write.ts';
import { openSqlite } from './sqlite.ts';
import { newestMatches } from './sqlite-full-text.ts';
import type { Answers } from './sqlite-engine.ts';

export type Search = { readonly query: SearchQuery; readonly most: number; readonly upTo: number };
/** Its matches, or why it failed. */
export type SearchResult = { readonly matches: readonly Match[]; readonly error?: PlainError };

// Searches on a connection of its own: a query of common words that never meet looks through the whole index.
const { db } = openSqlite(String(workerData), { readOnly: true });

parentPort?.on('message', (envelope: Envelope) => void search(envelope));

type Envelope = { readonly id: number; readonly request: Search };

async function search({ id, request: { query, most, upTo } }: Envelope): Promise<void> {
  const result: SearchResult = await newestMatches(query, most, upTo)
    .execute(db)
    .then(
      ({ rows: matches }) => ({ matches }),
      (error: unknown) => ({ matches: [], error: plainError(error) }),
    );
  parentPort?.postMessage([[id, result]] satisfies Answers<SearchResult>);
}
