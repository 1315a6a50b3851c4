import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { errorMessage } from '../../rules/failure.ts';
import { relevance } from '../relevance.ts';
import type { Search, SearchResult } from './sqlite-search.ts';

// Searches the database that its argument names, one query after another, until its parent lets go of it. It loads
// little, so that it starts fast and is no loss when it is killed.
const database = new DatabaseSync(process.argv[2] ?? '', { readOnly: true, timeout: 500 });
database.exec('pragma temp_store = memory; pragma cache_size = -4000');

// Signals to the whole group, as of Ctrl-C, are for the parent, which ends this one.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
process.on('message', (search: Search) => process.send?.(run(search)));
process.on('disconnect', () => process.exit());
process.send?.('ready');

function run(search: Search): SearchResult {
  try {
    for (const [by, { text, parameters, query }] of search.entries()) {
      const rows = database.prepare(text).all(...(parameters as SQLInputValue[]));
      const matches = rows.map((row) => ({
        doc: Number(row['doc']),
        post_id: String(row['post_id']),
        score: relevance(String(row['digest']), query),
      }));
      if (matches.length > 0) return { matches, by };
    }
    return { matches: [], by: 0 };
  } catch (error) {
    const errcode = error instanceof Error && 'errcode' in error ? Number(error.errcode) : null;
    return { fault: { message: errorMessage(error), errcode } };
  }
}
