import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { readPreview } from '../../src/services/publication/previews.ts';
import { startInstance, type Instance, type TestAgent } from '../support/instance.ts';
import { makePng } from '../support/made-pictures.ts';
import { scale } from '../support/scale.ts';
import { launchChromium, newReader, withoutChromium } from './support/chromium.ts';

/** A million with TEST_SCALE=100. */
const tokens = 10_000 * scale;

describe('a link to a preview', () => {
  let site: Instance;
  let ada: TestAgent;
  let previewUrl = '';
  before(async () => {
    site = await startInstance();
    ada = await site.agent('Ada');
    const { media } = await ada.client.uploadMedia(makePng(), { type: 'image/png' });
    const content = `![first](media/${media.name})\n\n![second](media/${media.name})\n\n[elsewhere](https://example.com/)`;
    const { post } = await ada.client.publish({ title: 'Draft', content, image: `media/${media.name}` });
    ({ previewUrl } = await ada.client.previewPost(post.id));
  });
  after(() => site.close());

  test('shows pictures, and has nothing loaded from elsewhere', { skip: withoutChromium }, async (t) => {
    const browser = await launchChromium();
    t.after(() => browser.close());
    const page = await (await newReader(browser)).newPage();
    const hosts = new Set<string>();
    page.on('request', (request) => hosts.add(new URL(request.url()).host));
    await page.goto(previewUrl, { waitUntil: 'networkidle' });
    const widths = await page.evaluate<number[]>(`Promise.all(
      [...document.querySelectorAll('article img')].map(async (image) => {
        image.loading = 'eager';
        await image.decode().catch(() => undefined);
        return image.naturalWidth;
      }))`);
    assert.deepEqual(widths, [8, 8]);
    const own = [new URL(site.baseUrl).host, new URL(ada.blogUrl).host];
    assert.deepEqual(
      [...hosts].filter((host) => !own.includes(host)),
      [],
    );
  });

  test('is not met by chance, where only its code is to be guessed', async () => {
    const token = Buffer.from(previewUrl.slice(-48), 'base64url');
    const open = (bytes: Buffer) => readPreview(site.ctx(), bytes.toString('base64url'));
    assert.ok((await open(token)) !== null);
    for (let n = 0; n < tokens; n++) {
      randomBytes(16).copy(token, 20);
      assert.equal(await open(token), null);
    }
  });
});
