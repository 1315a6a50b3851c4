import assert from 'node:assert/strict';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createClient } from '../../client/src/index.ts';
import { loadConfig } from '../../src/config/config.ts';
import { readMarker } from '../../src/db/sqlite/instance-marker.ts';
import { createLog } from '../../src/platform/log.ts';
import { startServer } from '../../src/server.ts';
import { masthead } from '../support/command-line.ts';
import { startInstance, type Instance, type TestAgent } from '../support/instance.ts';
import { freePort } from '../support/processes.ts';
import { openSqlite } from '../support/sqlite-file.ts';

const posts = 30;

describe('a database file', () => {
  let dir = '';
  let instance: Instance;
  let ada: TestAgent;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'masthead-incomplete-'));
    instance = await startInstance();
    ada = await instance.agent('Ada');
    for (let n = 0; n < posts; n++)
      await ada.client.publish({ title: `Post ${n}`, content: 'Text.', status: 'published' });
  });
  after(async () => {
    await instance.close();
    await rm(dir, { recursive: true });
  });

  const mark = () => readMarker(join(instance.dataDir, 'instance'))?.mark ?? 0;

  /** Resolves when the marker names all that is committed by now. */
  async function marked(): Promise<void> {
    const earlier = mark();
    await ada.client.publish({ title: 'Last', content: `Text ${earlier}.`, status: 'published' });
    while (mark() === earlier) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  /** A folder with copies of these files of the running service. */
  async function copyOf(names: readonly string[]): Promise<{ DATA_DIR: string }> {
    const copy = await mkdtemp(join(dir, 'copy-'));
    for (const name of names) await copyFile(join(instance.dataDir, name), join(copy, name));
    return { DATA_DIR: copy };
  }

  const start = async (env: Readonly<Record<string, string>>) =>
    startServer(loadConfig({ ...env, PORT: String(await freePort()) }), { log: createLog('silent') });

  test('copied without its log is refused in one line, by serve and by doctor, until the operator decides', async () => {
    await marked();
    const env = await copyOf(['masthead.db', 'instance', 'secret']);
    const lacks =
      /^The database \S+ lacks its newest changes \(it has those up to \S+(?: \S+)?, and \S+ names \S+Z\): .*masthead\.db-wal.*or remove \S+\/instance/;
    await assert.rejects(start(env), ({ message }: Error) => lacks.test(message) && !message.includes('\n'));
    const { code, stdout, stderr } = await masthead(['doctor', '--json'], env);
    assert.deepEqual([code, stderr], [1, '']);
    const findings: { state: string; detail: string }[] = JSON.parse(stdout).data;
    assert.ok(
      findings.some(({ state, detail }) => state === 'wrong' && lacks.test(detail)),
      stdout,
    );

    await rm(join(env.DATA_DIR, 'instance'));
    const server = await start(env);
    await server.close();
  });

  test('copied with its log has all that was committed', async () => {
    await marked();
    const env = await copyOf(['masthead.db', 'masthead.db-wal', 'instance', 'secret']);
    const server = await start(env);
    const { total } = await server.ctx.db
      .selectFrom('posts')
      .select((row) => row.fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow();
    await server.close();
    assert.equal(total, posts + 1);
  });

  test('that is older than its marker is refused, even with a log of its own', async () => {
    const backup = join(dir, 'older.db');
    assert.equal((await masthead(['backup', backup], { DATA_DIR: instance.dataDir })).code, 0);
    // Twice: the first may be of a mark that was set before the backup.
    await marked();
    await marked();
    const env = await copyOf(['instance', 'secret']);
    await copyFile(backup, join(env.DATA_DIR, 'masthead.db'));
    await writeFile(join(env.DATA_DIR, 'masthead.db-wal'), 'of another file');
    await assert.rejects(start(env), /lacks its newest changes/);
    // The same backup, put back as it should be.
    const DATA_DIR = join(dir, 'restored');
    assert.equal((await masthead(['restore', backup], { DATA_DIR })).code, 0);
    await copyFile(join(env.DATA_DIR, 'secret'), join(DATA_DIR, 'secret'));
    await (await start({ DATA_DIR })).close();
  });

  test('is complete after a clean stop: one file, with all that was acknowledged', async () => {
    const env = await copyOf(['masthead.db', 'masthead.db-wal', 'secret']);
    const server = await start(env);
    const client = createClient({ baseUrl: server.config.site.baseUrl, apiKey: ada.key });
    for (let n = 0; n < posts; n++) await client.publish({ title: `More ${n}`, content: 'Text.' });
    // The search has a connection of its own.
    await client.search('text');
    await server.close();
    assert.deepEqual((await readdir(env.DATA_DIR)).toSorted(), [
      'instance',
      'masthead.db',
      'media',
      'secret',
    ]);
    const database = openSqlite(join(env.DATA_DIR, 'masthead.db'), { readOnly: true });
    const row = database.prepare(`select count(*) as n from posts where title like 'More %'`).get();
    database.close();
    assert.equal(row?.['n'], posts);
  });
});
