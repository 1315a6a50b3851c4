import { test } from 'node:test';
import { scratchFolder } from '../support/scratch-folder.ts';
import { freePort, spawnServer } from '../support/processes.ts';
import { scale } from '../support/scale.ts';
import { assertStored, newAgent, startWriters, unlimited } from '../support/writers.ts';

const clients = 50;
const kills = 5 * scale;
/** Posts acknowledged between two kills. */
const between = scale > 1 ? 1_000 : 100;

test(`kill -9 under ${clients} publishing clients loses no acknowledged post and doubles none`, async (t) => {
  const dataDir = scratchFolder('crash');
  const env = { PORT: String(await freePort()), DATA_DIR: dataDir, ...unlimited };
  let server = await spawnServer({ env });
  t.after(() => server.kill('SIGKILL'));
  const baseUrl = `http://localhost:${server.port}`;
  const ada = await newAgent(baseUrl, dataDir);
  const writers = startWriters(baseUrl, ada.apiKey ?? '', { clients });
  for (let kill = 0; kill < kills; kill++) {
    await writers.more(between);
    server.kill('SIGKILL');
    await server.exited;
    server = await spawnServer({ env, args: ['serve', '--existing'] });
  }
  await writers.stop();
  const stored = await assertStored(ada, writers.acknowledged);
  t.diagnostic(`${kills} kills, ${writers.acknowledged.size} acknowledged, ${stored} stored`);
  await server.stop();
});
