import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { MastheadConnectionError, MastheadError, type MastheadClient } from '../../client/src/index.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createPictureStore } from '../../src/media/picture-store.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { removeOrphaned, sweepFiles } from '../../src/services/media/picture-sweep.ts';
import { comparePictures } from '../../src/services/upkeep/picture-files.ts';
import { engines } from '../support/instance.ts';
import { makePng } from '../support/made-pictures.ts';
import { freePort, spawnServer } from '../support/processes.ts';
import { scale } from '../support/scale.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { newAgent, unlimited } from '../support/writers.ts';

const day = 24 * 3_600_000;
const kills = 2 * scale;
/** Uploads of one agent that are taken at once. */
const hands = 2;
/** Uploads and deletions acknowledged between two kills. */
const between = 10;

for (const engine of engines)
  test(`kill -9 while pictures come and go leaves no row without its file, and no file for long (${engine})`, async (t) => {
    const dataDir = scratchFolder('picture-crash');
    const env = {
      PORT: String(await freePort()),
      DATA_DIR: dataDir,
      MAIL_DIR: join(dataDir, 'mail'),
      MEDIA_DIR: join(dataDir, 'media'),
      ...unlimited,
      ...(engine === 'postgres'
        ? { DATABASE_URL: await (await sharedPostgres()).createDatabase(), SECRET: 's'.repeat(32) }
        : {}),
    };
    let server = await spawnServer({ env });
    t.after(() => server.kill('SIGKILL'));
    const ada = await newAgent(`http://localhost:${server.port}`, dataDir);
    const writers = startUploads(ada);
    for (let kill = 0; kill < kills; kill++) {
      await writers.more(between);
      // At another moment of an upload each time.
      await delay(kill % 7);
      server.kill('SIGKILL');
      await server.exited;
      server = await spawnServer({ env, args: ['serve', '--existing'] });
    }
    const stored = await writers.stop();
    await server.stop();

    let offset = 0;
    const log = createLog('silent');
    const ctx = await openContext(loadConfig(env), { existing: true, log, now: () => Date.now() + offset });
    t.after(() => ctx.close());
    const files = async () => {
      const found: string[] = [];
      for await (const hashes of createPictureStore(ctx.config.media.dir).all()) found.push(...hashes);
      return found;
    };
    const rows = async () =>
      new Set((await ctx.db.selectFrom('media').select('sha256').execute()).map((row) => row.sha256));
    const lost = (await files()).length - (await rows()).size;
    offset = 2 * day;
    await sweepFiles(ctx, async () => true);
    offset += day;
    while ((await ctx.engine.write(removeOrphaned, null)).more);
    const { pictures, faults } = await comparePictures(ctx, { bytes: true });
    assert.deepEqual(faults, []);
    const kept = await rows();
    assert.deepEqual(
      [...stored].filter((sha256) => !kept.has(sha256)),
      [],
    );
    assert.deepEqual((await files()).toSorted(), [...kept].toSorted());
    assert.equal((await ctx.db.selectFrom('media_blobs').select('sha256').execute()).length, kept.size);
    t.diagnostic(`${kills} kills, ${pictures} pictures, ${lost} files without a row before the sweep`);
  });

/** Uploads pictures and deletes every third, until it is stopped; that gives the hashes of those that are there. */
function startUploads(client: MastheadClient) {
  const stored = new Set<string>();
  const done: string[] = [];
  const stop = new AbortController();
  async function work(): Promise<void> {
    for (let n = 0; !stop.signal.aborted; n++) {
      try {
        const { media } = await client.uploadMedia(makePng({ width: 64, height: 64 }), { type: 'image/png' });
        stored.add(media.sha256);
        done.push('upload');
        if (n % 3 > 0) continue;
        // Whether it is there is not known once that has begun.
        stored.delete(media.sha256);
        await client.deleteMedia(media.id);
        done.push('deletion');
      } catch (error) {
        if (!(error instanceof MastheadError || error instanceof MastheadConnectionError)) throw error;
        await delay(20);
      }
    }
  }
  const running = Promise.all(Array.from({ length: hands }, work));
  return {
    async more(count: number): Promise<void> {
      const wanted = done.length + count;
      while (done.length < wanted) await Promise.race([delay(5), running]);
    },
    async stop(): Promise<ReadonlySet<string>> {
      stop.abort();
      await running;
      return stored;
    },
  };
}
