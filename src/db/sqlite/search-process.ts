import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { errorMessage } from '../../rules/failure.ts';
import { relevance } from '../relevance.ts';
import type { Search, SearchResult } from './sqlite-search.ts';

// Searches the database that its argument names, one query after another, until its parent lets go of it. It loads
// little, so that it starts fast and is no loss when it is killed.
const database = new DatabaseSync(process.argv[2] ?? '', { readOnly: true, timeout: 500 });
database.exec('pragma temp_store = memory; pragma cache_size = -4000');

process.on('message', (search: Search) => process.send?.(run(search)));
process.on('disconnect', () => process.exit());
process.send?.('ready');

function run({ text, parameters, query }: Search): SearchResult {
  try {
    const rows = database.prepare(text).iterate(...(parameters as SQLInputValue[]));
    const matches = Array.from(rows, (row) => ({
      doc: Number(row['doc']),
      post_id: String(row['post_id']),
      score: relevance(String(row['digest']), query),
    }));
    return { matches };
  } catch (error) {
    const errcode = error instanceof Error && 'errcode' in error ? Number(error.errcode) : null;
    return { fault: { message: errorMessage(error), errcode } };
  }
}
