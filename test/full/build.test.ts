import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { layOutPackage } from '../../scripts/build.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { request } from '../support/http.ts';
import { spawnServer } from '../support/processes.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const run = promisify(execFile);

describe('the package as it is published', () => {
  let script = '';
  before(async () => {
    script = join(await layOutPackage(scratchFolder('package')), 'bin/masthead.mjs');
  });
  for (const engine of ['SQLite', 'PostgreSQL'])
    test(`serves, conforms and searches on ${engine}`, (t) => tryPackage(t, script, engine));
});

async function tryPackage(t: TestContext, script: string, engine: string): Promise<void> {
  const folder = scratchFolder('packaged');
  const database =
    engine === 'SQLite'
      ? {}
      : { DATABASE_URL: await (await sharedPostgres()).createDatabase(), SECRET: 's'.repeat(32) };
  // With PostgreSQL nothing else makes the folder in which that of the pictures is made.
  await mkdir(join(folder, 'data'));
  const env = { ...database, DATA_DIR: join(folder, 'data'), NODE_DISABLE_COMPILE_CACHE: '1' };
  const server = await spawnServer({ script, env });
  t.after(() => server.stop());
  const mail = join(folder, 'data/mail');
  const { stdout } = await run(process.execPath, [script, 'conform', server.baseUrl, '--mail-dir', mail]);
  assert.match(stdout, / 0 fail, 0 skipped\.$/m);
  const found = await request(server.baseUrl, { path: '/api/search?q=word' });
  assert.equal(found.status, 200, found.text);
  const page = await request(server.baseUrl, { path: '/docs', headers: { accept: 'text/html' } });
  assert.equal(page.status, 200);
}
