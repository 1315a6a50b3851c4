import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { leastPostgres } from '../../src/db/postgres/postgres-start.ts';
import { query, startPostgres } from '../support/postgres.ts';
import { passOnPostgres } from './support/suites.ts';

const programs = `/usr/lib/postgresql/${leastPostgres}`;
const missing = existsSync(`${programs}/bin/postgres`)
  ? false
  : `PostgreSQL ${leastPostgres} is not installed: apt-get install postgresql-${leastPostgres}`;
if (missing) console.error(`SKIPPED: ${missing}`);

describe('the least version of PostgreSQL', () => {
  it('is the one that the documents name', () => {
    const text = readFileSync(join(import.meta.dirname, '../../docs/scaling.md'), 'utf8');
    assert.match(text, new RegExp(`PostgreSQL ${leastPostgres} or later`));
  });

  it('passes the tests of the engine, the API, search and query plans', { skip: missing }, async (t) => {
    const cluster = await startPostgres({ programs });
    t.after(() => cluster.stop());
    const [row] = await query(cluster.url(), `select current_setting('server_version_num') as version`);
    assert.equal(Math.floor(Number(row?.['version']) / 10_000), leastPostgres);
    await passOnPostgres(cluster.url(), [
      'test/postgres.test.ts',
      'test/schema-steps.test.ts',
      'test/full/upgrade.test.ts',
      'test/life-*.test.ts',
      'test/api-posts.test.ts',
      'test/api-engagement.test.ts',
      'test/search.test.ts',
      'test/full/query-plans.test.ts',
      'test/full/stored-counts.test.ts',
    ]);
  });
});
