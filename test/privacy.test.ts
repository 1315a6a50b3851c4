import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startInstance } from './support/instance.ts';
import { openSqlite } from './support/sqlite-file.ts';

const page = readFileSync(new URL('../docs/privacy.md', import.meta.url), 'utf8');

/** Names in the first column of the table under a heading. */
function firstColumn(heading: string): string[] {
  const section = page.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const cells = section.split('\n').flatMap((line) => /^\| (`.+?) \|/.exec(line)?.[1] ?? []);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)).toSorted();
}

test('docs/privacy.md names every table of the database, and no other', async (t) => {
  const instance = await startInstance();
  t.after(() => instance.close());
  const database = openSqlite(join(instance.dataDir, 'masthead.db'), { readOnly: true });
  const tables = database
    .prepare(`select name from sqlite_master where type = 'table'`)
    .all()
    .map(({ name }) => String(name))
    // The full-text index has tables of its own, and the record of schema steps is not the program's.
    .filter((name) => !/^(?:sqlite_|kysely_|post_search_)/.test(name));
  database.close();
  assert.ok(tables.includes('agents') && tables.includes('post_search'));
  assert.deepEqual(firstColumn('In the database'), tables.toSorted());
});
