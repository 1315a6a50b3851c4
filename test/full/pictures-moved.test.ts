import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { masthead } from '../support/command-line.ts';
import { startInstance, type Instance, type TestAgent } from '../support/instance.ts';
import { makePng } from '../support/made-pictures.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { launchChromium, newReader, withoutChromium } from './support/chromium.ts';

const posts = 30;
const slugs = Array.from({ length: posts }, (_, n) => `walk-${n}`);

/** What Chromium loaded with the pages of all posts, and which pictures they showed. */
type Shown = { readonly pictures: readonly string[]; readonly hosts: ReadonlySet<string> };

describe('posts with pictures of their own', { skip: withoutChromium }, () => {
  const folder = scratchFolder('pictures-moved');
  let site: Instance;
  let ada: TestAgent;
  let browser: Browser;
  let first: Shown;
  before(async () => {
    site = await startInstance();
    ada = await site.agent('Ada');
    browser = await launchChromium();
    mkdirSync(join(folder, 'notes', 'img'), { recursive: true });
    for (const slug of slugs) {
      for (const name of [`${slug}.png`, `img/${slug} b.png`])
        writeFileSync(join(folder, 'notes', name), makePng());
      const text = `---\ntitle: ${slug}\nslug: ${slug}\n---\n\n![a](${slug}.png)\n\n![b](<img/${slug} b.png> "B")\n`;
      writeFileSync(join(folder, 'notes', `${slug}.md`), text);
    }
    await publish(site, ada, 'notes');
    first = await showAll(site, ada.blogUrl);
  });
  after(async () => {
    await browser.close();
    await site.close();
  });

  /** Publishes a folder by the command line of agents. */
  async function publish(at: Instance, { key }: TestAgent, name: string): Promise<void> {
    const env = { HOME: folder, MASTHEAD_URL: at.baseUrl, MASTHEAD_API_KEY: key };
    const { code, stderr } = await masthead(['post', 'publish', '--publish', join(folder, name)], env);
    assert.equal(code, 0, stderr);
  }

  async function showAll(at: Instance, blogUrl: string): Promise<Shown> {
    const context = await newReader(browser);
    const page = await context.newPage();
    const hosts = new Set<string>();
    page.on('request', (request) => hosts.add(new URL(request.url()).host));
    const pictures: string[] = [];
    for (const slug of slugs) {
      const answer = await page.goto(`${blogUrl}/${slug}`);
      assert.equal(answer?.status(), 200, `${blogUrl}/${slug}`);
      const shown = await page.evaluate<{ name: string; width: number }[]>(`Promise.all(
        [...document.querySelectorAll('article img')].map(async (image) => {
          image.loading = 'eager';
          await image.decode().catch(() => undefined);
          return { name: image.src.split('/').at(-1), width: image.naturalWidth };
        }))`);
      assert.deepEqual(
        shown.map(({ width }) => width),
        [8, 8],
        slug,
      );
      pictures.push(...shown.map(({ name }) => name));
    }
    await context.close();
    const { host } = new URL(at.baseUrl);
    for (const one of hosts) assert.ok(one === host || one.endsWith(`.${host}`), one);
    return { pictures, hosts };
  }

  test('show all of them, each its own, and load nothing from elsewhere', () => {
    assert.equal(new Set(first.pictures).size, 2 * posts);
    assert.deepEqual([...first.hosts], [new URL(ada.blogUrl).host]);
  });

  test('show them where blogs are paths, after a move', async () => {
    await site.restart({ VARIANT: 'path' });
    assert.deepEqual((await showAll(site, `${site.baseUrl}/ada`)).pictures, first.pictures);
    await site.restart({ VARIANT: 'subdomain' });
  });

  test('show them in another service that their export is published to', async (t) => {
    const archive = join(folder, 'export.tar.gz');
    // A former text beside it, which is not a post.
    const { post } = await ada.client.lookupPost({ agent: 'ada', slug: slugs[0] ?? '' });
    await ada.client.updatePost(post.id, { append: 'Seen again.' });
    const { status, bytes } = await site.call('GET', '/api/me/export', { key: ada.key });
    assert.equal(status, 200);
    writeFileSync(archive, bytes);
    mkdirSync(join(folder, 'export'));
    await promisify(execFile)('tar', ['-xzf', archive, '-C', join(folder, 'export')]);
    assert.equal(readdirSync(join(folder, 'export/media')).length, 2 * posts);
    const other = await startInstance({ variant: 'path' });
    t.after(() => other.close());
    const bob = await other.agent('Bob');
    await publish(other, bob, 'export/posts');
    assert.equal((await bob.client.myPosts()).total, posts);
    assert.deepEqual((await showAll(other, bob.blogUrl)).pictures, first.pictures);
  });

  test('show them once a backup is restored, with a copy of the folder of pictures', async (t) => {
    const [backup, dataDir] = [join(folder, 'backup.db'), join(folder, 'restored')];
    const made = await masthead(['backup', backup], { DATA_DIR: site.dataDir });
    assert.equal(made.code, 0, made.stderr);
    const back = await masthead(['restore', backup], { DATA_DIR: dataDir });
    assert.equal(back.code, 0, back.stderr);
    cpSync(join(site.dataDir, 'media'), join(dataDir, 'media'), { recursive: true });
    cpSync(join(site.dataDir, 'secret'), join(dataDir, 'secret'));
    const restored = await startInstance({ env: { DATA_DIR: dataDir } });
    t.after(() => restored.close());
    const { host } = new URL(restored.baseUrl);
    assert.deepEqual((await showAll(restored, `http://ada.${host}`)).pictures, first.pictures);
  });
});
