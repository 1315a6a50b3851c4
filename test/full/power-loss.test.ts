import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { cannotMount, makeDisk } from '../support/mounts.ts';
import { freePort, type ServerProcess, spawnServer } from '../support/processes.ts';
import { scale } from '../support/scale.ts';
import { assertStored, newAgent, startWriters, unlimited } from '../support/writers.ts';

const skip = cannotMount();
if (skip) console.error(`SKIPPED: ${skip}`);

const clients = 8;
const cuts = 3 * scale;

/** Loaded before the program: makes its database acknowledge a commit before that is on disk. */
const careless = `import { DatabaseSync } from 'node:sqlite';
const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (sql) {
  if (sql.startsWith('begin')) exec.call(this, 'pragma synchronous = normal');
  return exec.call(this, sql);
};`;

describe('the power of the disk fails under publishing clients', { skip }, () => {
  test(`${cuts} times, and no acknowledged post is lost, doubled or half there`, async (t) => {
    await cutAgainAndAgain(t, cuts, {});
  });

  test('and a database that does not wait for the disk loses posts, so this would show', async (t) => {
    const preload = `data:text/javascript,${encodeURIComponent(careless)}`;
    await assert.rejects(
      cutAgainAndAgain(t, 5, { NODE_OPTIONS: `--import=${preload}` }),
      // Posts, the agent with all of them, or so much that the program itself refuses to start.
      /acknowledged and lost|API key is unknown|lacks its newest changes/,
    );
  });
});

async function cutAgainAndAgain(t: TestContext, times: number, more: Record<string, string>): Promise<void> {
  const disk = makeDisk(512);
  const env = { PORT: String(await freePort()), DATA_DIR: disk.folder, ...unlimited, ...more };
  let server: ServerProcess | null = null;
  t.after(async () => {
    server?.kill('SIGKILL');
    await server?.exited;
    disk.remove();
  });
  server = await spawnServer({ env });
  const baseUrl = `http://localhost:${server.port}`;
  const ada = await newAgent(baseUrl, disk.folder);
  const acknowledged = new Map<string, string>();
  for (let cut = 1; cut <= times; cut++) {
    const writers = startWriters(baseUrl, ada.apiKey ?? '', { clients, first: acknowledged.size });
    await writers.more(100);
    // Not what is answered from here on: an fdatasync that the cut of an ext4 meets may succeed, and its data be lost.
    for (const [id, title] of writers.acknowledged) acknowledged.set(id, title);
    disk.cut();
    server.kill('SIGKILL');
    await server.exited;
    await writers.stop();
    disk.replug();
    server = await spawnServer({ env, args: ['serve', '--existing'] });
    await assertStored(ada, acknowledged);
  }
  t.diagnostic(`${times} cuts, ${acknowledged.size} posts acknowledged`);
}
