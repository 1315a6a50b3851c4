import assert from 'node:assert/strict';
import { cpSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { comparePictures, examinePictures } from '../src/services/upkeep/picture-files.ts';
import { masthead } from './support/command-line.ts';
import { startInstance, type Instance } from './support/instance.ts';
import { makePng } from './support/made-pictures.ts';
import { scratchFolder } from './support/scratch-folder.ts';

describe('the files of pictures', () => {
  const dir = scratchFolder('picture-backup');
  let last = 0;
  let instance: Instance;
  let backup = '';
  const made: string[] = [];
  const media = () => instance.ctx().config.media.dir;
  const pathOf = (folder: string, hash: string) => join(folder, hash.slice(0, 2), hash.slice(2, 4), hash);
  before(async () => {
    instance = await startInstance({ engine: 'sqlite' });
    assert.deepEqual(await comparePictures(instance.ctx(), { bytes: true }), {
      pictures: 0,
      lacking: 0,
      faults: [],
    });
    const without = await masthead(['backup', join(dir, 'none.db')], { DATA_DIR: instance.dataDir });
    assert.doesNotMatch(without.stdout, /MEDIA_DIR/);
    const ada = await instance.agent('Ada');
    for (let n = 0; n < 3; n++)
      made.push((await ada.client.uploadMedia(makePng(), { type: 'image/png' })).media.sha256);
    backup = join(dir, 'one.db');
    const copied = await masthead(['backup', backup], { DATA_DIR: instance.dataDir });
    assert.equal(copied.code, 0, copied.stderr);
    assert.ok(
      copied.stdout.includes(`knows 3 pictures, whose files are not in it: copy MEDIA_DIR (${media()})`),
    );
  });
  after(() => instance.close());

  /** A copy of the folder that something was done to. */
  function copy(change: (path: string) => void = () => undefined): string {
    const path = join(dir, String(++last));
    cpSync(media(), path, { recursive: true });
    change(path);
    return path;
  }
  const verify = (MEDIA_DIR: string) =>
    masthead(['verify-backup', backup], { DATA_DIR: instance.dataDir, MEDIA_DIR });
  const looked = (at: string) => {
    const ctx = instance.ctx();
    return examinePictures({ ...ctx, config: { ...ctx.config, media: { ...ctx.config.media, dir: at } } });
  };
  const [first, second, third] = [0, 1, 2].map((n) => () => made[n] ?? '') as [
    () => string,
    () => string,
    () => string,
  ];

  test('are held against a backup, and named where they are not whole', async () => {
    const whole = await verify(copy());
    assert.deepEqual([whole.code, whole.stderr], [0, ''], whole.stdout);
    assert.match(whole.stdout, /is whole: .* 3 pictures have their files in /);
    const { code, stdout } = await verify(
      copy((path) => {
        rmSync(pathOf(path, first()));
        truncateSync(pathOf(path, second()), 7);
        const bytes = makePng();
        writeFileSync(pathOf(path, third()), bytes);
      }),
    );
    assert.equal(code, 1);
    assert.match(
      stdout,
      new RegExp(`^picture ${first().slice(0, 32)}\\.png of 'ada' .*: its file is missing$`, 'm'),
    );
    assert.match(stdout, new RegExp(`${second()}\\): its file has 7 bytes instead of `));
    assert.match(stdout, new RegExp(`${third()}\\): its file has other bytes$`, 'm'));
  });

  test('are missed where the folder is not there, empty or not given', async () => {
    for (const [folder, message] of [
      [join(dir, 'gone'), /3 pictures are stored, and MEDIA_DIR cannot be read \(ENOENT/],
      [
        scratchFolder('no-pictures'),
        /3 pictures are stored, and MEDIA_DIR \(.*\) is empty: set it to the folder/,
      ],
    ] as const) {
      const { code, stdout } = await verify(folder);
      assert.equal(code, 1);
      assert.match(stdout, message);
      const { state, detail } = await looked(folder);
      assert.equal(state, 'wrong');
      assert.match(detail, message);
    }
    const { state, detail } = await looked('');
    assert.equal(state, 'wrong');
    assert.match(detail, /3 of 3 lack their file: .*MEDIA_DIR is not set/);
  });

  test('are counted by doctor, with those that no picture needs and the room of the disk', async () => {
    const inOrder = await looked(media());
    assert.match(inOrder.detail, /^3 have their files in .*, where \d+ MiB are free$/);
    assert.ok(inOrder.state !== 'wrong');
    const unknown = 'ab'.repeat(32);
    const missing = await looked(copy((path) => rmSync(pathOf(path, second()))));
    assert.equal(missing.state, 'wrong');
    assert.ok(missing.detail.startsWith('1 of 3 lack their file: picture '));
    assert.match(missing.mend ?? '', /^cp --archive \/backup\/media\/COPY\/\. /);
    const more = await looked(
      copy((path) => {
        cpSync(pathOf(path, first()), pathOf(path, unknown), { recursive: true });
      }),
    );
    assert.equal(more.state, 'look');
    // Little room on the disk of the test comes first.
    if (!more.mend?.startsWith('du')) assert.match(more.detail, /; 1 files belong to no picture/);
  });
});
