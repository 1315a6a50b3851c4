import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { before, after, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startInstance, type Instance, type TestAgent } from '../support/instance.ts';
import { open } from '../support/pages.ts';
import { scale } from '../support/scale.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { launchChromium, withoutChromium } from './support/chromium.ts';
import {
  examineFiles,
  makePictureFiles,
  personalWords,
  shippedPictures,
  withoutPrograms,
} from './support/picture-files.ts';

const types: Readonly<Record<string, string>> = {
  '.jpg': 'image/jpeg',
  '.png': 'image/png',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
};

/** Run in a page of the blog: how Chromium shows a picture, with all frames of one that moves. */
const shown = `async (address, type) => {
  const hashOf = (source, width, height) => {
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext('2d');
    context.drawImage(source, 0, 0);
    let hash = 0;
    for (const value of new Uint32Array(context.getImageData(0, 0, width, height).data.buffer))
      hash = (Math.imul(hash, 31) + value) | 0;
    return hash;
  };
  const image = new Image();
  image.src = address;
  await image.decode().catch(() => undefined);
  const { naturalWidth: width, naturalHeight: height } = image;
  if (width === 0) return { width, height, pixels: [] };
  const pixels = [hashOf(image, width, height)];
  const [, base64] = address.split(',');
  const data = base64 === undefined ? await (await fetch(address)).arrayBuffer() : Uint8Array.fromBase64(base64);
  const decoder = new ImageDecoder({ data, type });
  await decoder.tracks.ready;
  const { frameCount = 1, repetitionCount = 0 } = decoder.tracks.selectedTrack ?? {};
  for (let frameIndex = 0; frameCount > 1 && frameIndex < frameCount; frameIndex++) {
    const { image: frame } = await decoder.decode({ frameIndex });
    pixels.push(frame.duration, hashOf(frame, width, height));
    frame.close();
  }
  return { width, height, frameCount, repetitionCount, pixels };
}`;

type Shown = { readonly width: number; readonly height: number; readonly pixels: readonly number[] };

/** Names of tags that tell where, when, with what or by whom; those of an orientation alone are in IFD0. */
const telling =
  /^(?:GPS|XMP|IPTC|Photoshop|Maker|MPF|ExifIFD|IFD1|PrintIM|InteropIFD)|:(?:Artist|Make|Model|Comment|Software|Author|Creator|Copyright|ModifyDate|ImageDescription|Thumbnail.*|Warning|Error)$/;

const skip = withoutPrograms || withoutChromium;

describe('pictures that other programs write, once they are uploaded', { skip }, () => {
  const folder = scratchFolder('picture-files');
  let site: Instance;
  let ada: TestAgent;
  let browser: Browser;
  let page: Page;
  before(async () => {
    site = await startInstance({ env: { LIMIT_API: '0', QUOTA_MEDIA_NEW: '1000000000' } });
    ada = await site.agent('Ada');
    browser = await launchChromium();
    page = await browser.newPage();
    // Their own host: else what is drawn cannot be read.
    await page.goto(ada.blogUrl);
  });
  after(async () => {
    await browser.close();
    await site.close();
  });

  const show = (address: string, type: string) =>
    page.evaluate<Shown>(`(${shown})(${JSON.stringify(address)}, ${JSON.stringify(type)})`);

  /** Uploads a file, and has Chromium show both; null where it is refused. */
  async function upload(path: string) {
    const extension = extname(path);
    const type = types[extension] ?? '';
    const bytes = readFileSync(path);
    const sent = await show(`data:${type};base64,${bytes.toString('base64')}`, type);
    const answer = await site.call('POST', '/api/media', {
      key: ada.key,
      body: bytes,
      headers: { 'content-type': type },
    });
    if (answer.status >= 400) {
      assert.equal(answer.at('code'), 'invalid_media', `${path}: ${answer.text}`);
      return { refused: String(answer.at('detail')), sent };
    }
    const { media } = answer.json() as Awaited<ReturnType<TestAgent['client']['uploadMedia']>>;
    const stored = await open(site, media.url);
    assert.equal(stored.headers['content-type'], type);
    assert.deepEqual(await show(media.url, type), sent, path);
    if (sent.width > 0) assert.deepEqual([media.width, media.height], [sent.width, sent.height], path);
    return { media, sent, bytes: stored.bytes };
  }

  /** That the programs find nothing to say against stored files; their tags. `paths` has where each comes from. */
  async function examine(paths: ReadonlyMap<string, string>) {
    const { tags, faults } = await examineFiles([...paths.keys()]);
    assert.equal(tags.size, paths.size);
    for (const [path, found] of tags) {
      const told = Object.keys(found).filter((name) => telling.test(name));
      assert.deepEqual(told, [], `${paths.get(path)}: ${JSON.stringify(found)}`);
    }
    assert.deepEqual(faults, []);
    return tags;
  }

  test('tell neither place nor person nor maker, are valid, and look the same', async (t) => {
    const made = await makePictureFiles(folder);
    const paths = new Map<string, string>();
    const looks = new Map<string, Shown>();
    const counts = new Map<string, number>();
    for (const { name, hasProfile, isPersonal } of made) {
      const done = await upload(join(folder, name));
      assert.ok(done.media, `${name}: ${done.refused}`);
      const { media, bytes, sent } = done;
      for (const word of personalWords) assert.ok(!bytes.includes(word), `${word} in ${name}`);
      assert.equal(media.animated, sent.pixels.length > 1, name);
      if (isPersonal) assert.match(media.digitalSourceType ?? '', /trainedAlgorithmicMedia$/, name);
      if (hasProfile) assert.match(bytes.toString('latin1'), /ICC_PROFILE|iCCP|ICCP/, name);
      const path = join(folder, `stored-${name}`);
      writeFileSync(path, bytes);
      paths.set(path, name);
      looks.set(name, sent);
      counts.set(media.type, (counts.get(media.type) ?? 0) + 1);
    }
    const tags = await examine(paths);
    for (const { name, orientation = 1 } of made) {
      const found = tags.get(join(folder, `stored-${name}`))?.['IFD0:Orientation'];
      assert.equal(found, orientation === 1 ? undefined : orientation, name);
      // Else nobody would see whether a profile or an orientation is lost. Chromium turns no WebP.
      if (/^(?:profile-.*|turned-[2-8]-.*(?:jpg|png))$/.test(name))
        assert.notDeepEqual(looks.get(name), looks.get(name.replace(/^(?:profile|turned-\d)-/, '')), name);
    }
    assert.ok(made.length >= 100, String(made.length));
    t.diagnostic(JSON.stringify(Object.fromEntries(counts)));
  });

  test('of the packages of this machine', async (t) => {
    const paths = new Map<string, string>();
    const refused: string[] = [];
    for (const source of shippedPictures(10 * scale)) {
      const done = await upload(source);
      if (done.media) {
        const path = join(folder, `${done.media.sha256}${extname(source)}`);
        writeFileSync(path, done.bytes);
        paths.set(path, source);
      } else refused.push(`${source}: ${done.refused}`);
    }
    await examine(paths);
    t.diagnostic(`${paths.size} stored, refused: ${JSON.stringify(refused)}`);
  });
});
