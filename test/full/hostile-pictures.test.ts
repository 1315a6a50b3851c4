import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { deflateSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import type { PictureType } from '../../client/src/calls/media.ts';
import { startInstance, type Instance } from '../support/instance.ts';
import { open } from '../support/pages.ts';
import { chunk, extension, gif, jpeg, png, riff, segment, vp8, webp } from '../support/pictures.ts';
import { launchChromium, newReader, withoutChromium } from './support/chromium.ts';

const html = '<!doctype html><body onload=alert(1)><script>alert(1)</script></body>';

/** A picture that runs where it is taken for what it is not. */
type Hostile = {
  readonly type: PictureType;
  /** Where the page or program stands in it. */
  readonly where: string;
  readonly bytes: Buffer;
  readonly runsAs: 'text/html' | 'text/javascript';
  /** Whether what is stored of it would run too: it belongs to what the picture shows. */
  readonly stays: boolean;
};

const page = (type: PictureType, where: string, bytes: Buffer, stays = false): Hostile => ({
  type,
  where,
  bytes,
  runsAs: 'text/html',
  stays,
});

const files: readonly Hostile[] = [
  page('image/png', 'a comment', png([chunk('tEXt', `Comment\0${html}`)])),
  page('image/png', 'a chunk of its own', png([chunk('prVt', html)])),
  page('image/png', 'after its end', Buffer.concat([png(), Buffer.from(html)])),
  page('image/png', 'its pixels', pngOf(html), true),
  page('image/jpeg', 'a comment', jpeg([segment(0xfe, html)])),
  page('image/jpeg', 'EXIF', jpeg([segment(0xe1, `Exif\0\0${html}`)])),
  page('image/jpeg', 'its colour profile', jpeg([segment(0xe2, `ICC_PROFILE\0\x01\x01${html}`)]), true),
  page('image/jpeg', 'after its end', Buffer.concat([jpeg(), Buffer.from(html)])),
  page('image/gif', 'a comment', gif(1, [extension(0xfe, html)])),
  page('image/gif', 'after its end', Buffer.concat([gif(), Buffer.from(html)])),
  page('image/gif', 'its colours', gifOf(html), true),
  { type: 'image/gif', where: 'all of it', bytes: scriptGif(), runsAs: 'text/javascript', stays: true },
  page('image/webp', 'metadata', webp(vp8, riff('XMP ', html))),
  page('image/webp', 'a chunk of its own', webp(vp8, riff('EVIL', html))),
  page('image/webp', 'after its end', Buffer.concat([webp(vp8), Buffer.from(html)])),
];

/** How a page may take what is at an address for something that runs. */
const uses: readonly ((url: string) => string)[] = [
  (url) => `<iframe src="${url}"></iframe>`,
  (url) => `<object data="${url}" type="text/html"></object>`,
  (url) => `<embed src="${url}" type="text/html">`,
  (url) => `<script src="${url}"></script>`,
  (url) => `<script type="module" src="${url}"></script>`,
  (url) => `<link rel="stylesheet" href="${url}"><img src="${url}">`,
];

describe('pictures that are also a page or a program', { skip: withoutChromium }, () => {
  let site: Instance;
  let browser: Browser;
  before(async () => {
    site = await startInstance();
    browser = await launchChromium();
  });
  after(async () => {
    await browser.close();
    await site.close();
  });

  /** Shows pages in a window of its own, and counts how often something ran there. */
  async function countRuns(show: (page: Page) => Promise<void>): Promise<number> {
    const context = await newReader(browser, { bypassCSP: true });
    let runs = 0;
    context.on('console', (message) => {
      if (message.text().startsWith('ran in')) runs++;
    });
    await show(await context.newPage());
    await context.close();
    return runs;
  }

  /** What bytes do that are served as something else. */
  const runsAs = (type: Hostile['runsAs'], bytes: Buffer) =>
    countRuns(async (shown) => {
      await shown.route('**/bare', (route) =>
        route.fulfill({ contentType: 'text/html', body: '<script src="/it"></script>' }),
      );
      await shown.route('**/it', (route) => route.fulfill({ contentType: type, body: bytes }));
      await shown.goto(`${site.baseUrl}/${type === 'text/html' ? 'it' : 'bare'}`, { waitUntil: 'load' });
    });

  for (const { type, where, bytes, runsAs: as, stays } of files)
    test(`${type}: ${where}`, async () => {
      const agent = await site.agent(`Agent${String(files.findIndex((file) => file.bytes === bytes))}`);
      assert.ok((await runsAs(as, bytes)) > 0, 'runs as sent, else it proves nothing');
      const { media } = await agent.client.uploadMedia(Buffer.from(bytes), { type });
      const stored = await open(site, media.url);
      assert.equal(stored.headers['content-type'], type);
      assert.equal((await runsAs(as, stored.bytes)) > 0, stays);
      assert.equal(await countRuns(async (shown) => void (await shown.goto(media.url))), 0);
      // On the blog's own host too, where a policy of its page would not help.
      for (const from of [agent.blogUrl, site.baseUrl]) {
        const body = `<!doctype html>${uses.map((use) => use(media.url)).join('')}`;
        const runs = await countRuns(async (shown) => {
          await shown.route('**/uses-it', (route) => route.fulfill({ contentType: 'text/html', body }));
          await shown.goto(`${from}/uses-it`, { waitUntil: 'load' });
        });
        assert.equal(runs, 0, `on ${from}`);
      }
    });
});

/** A PNG of one line whose pixels are a text, uncompressed. */
function pngOf(text: string): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(text.length, 0);
  header.writeUInt32BE(1, 4);
  header.set([8], 8);
  const pixels = deflateSync(Buffer.from(`\0${text}`), { level: 0 });
  return Buffer.concat([png().subarray(0, 8), chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND')]);
}

/** A GIF of one frame whose own 256 colours are a text; `screen`: the seven bytes before the frame. */
function gifOf(text: string, screen = '\x02\0\x02\0\0\0\0'): Buffer {
  return Buffer.concat([
    Buffer.from(`GIF89a${screen},\0\0\0\0\x02\0\x02\0\x87`, 'latin1'),
    Buffer.from(text.padEnd(3 * 256)),
    Buffer.from([2, 3, 0x44, 0x34, 0x05, 0]),
    Buffer.from(';'),
  ]);
}

/** `GIF89a = 1`, a comment, and then a call: the size of the screen is made of tabs and `=`. */
function scriptGif(): Buffer {
  return gifOf('*/;alert(1);//', '\t\t=\t1/*');
}
