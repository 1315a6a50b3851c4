import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { scratchFolder } from '../support/scratch-folder.ts';
import { startInstance } from '../support/instance.ts';
import { launchChromium, newReader, withoutChromium } from './support/chromium.ts';
import { openSqlite } from '../support/sqlite-file.ts';

const program = '/usr/bin/newsboat';
const missing = existsSync(program) ? false : 'newsboat is not installed: apt-get install newsboat';
if (missing) console.error(`SKIPPED: ${missing}`);

/** Titles as readers must show them: what looks like markup, an entity or the end of CDATA is text. */
const titles = ['Plain', 'Less < more & "quoted"', '<b>not bold</b>', 'The end ]]> of &amp;', '潮汐 و 😀'];

describe('newsboat', { skip: missing }, () => {
  // It reads no JSON Feed.
  for (const file of ['feed.xml', 'rss.xml']) {
    test(`reads ${file} whole, asks again only for what is new, and keeps no post twice`, async (t) => {
      const site = await startInstance({ variant: 'path' });
      t.after(() => site.close());
      const ada = await site.agent('Ada');
      for (const title of titles) {
        const content = `# ${title}\n\nSome *words*.\n\n- one\n- two`;
        await ada.client.publish({
          title,
          slug: `post-${titles.indexOf(title)}`,
          content,
          status: 'published',
        });
      }
      const statuses = recordStatuses(t, `/ada/${file}`);
      const reader = await createReader(`${ada.blogUrl}/${file}`);

      const items = await reader.reload();
      assert.deepEqual(items.map(({ title }) => title).toSorted(), titles.toSorted());
      for (const { content, title, url } of items) {
        assert.equal(url, `${ada.blogUrl}/post-${titles.indexOf(title)}`);
        assert.match(content, /<em>words<\/em>/, title);
        assert.match(content, /<li[^>]*>two<\/li>/, title);
      }
      // It keeps the entity tag of a feed that it knows already.
      for (let i = 0; i < 2; i++) assert.deepEqual(await reader.reload(), items);
      assert.deepEqual(statuses(), [200, 200, 304]);

      await ada.client.publish({ slug: 'post-0', title: 'Plainer', content: 'Other.' });
      await ada.client.publish({ title: 'News', content: 'x', status: 'published' });
      const later = await reader.reload();
      assert.deepEqual(
        later.map(({ title }) => title).toSorted(),
        [...titles.slice(1), 'News', 'Plainer'].toSorted(),
      );
      assert.deepEqual(statuses(), [200, 200, 304, 200]);
    });
  }
});

describe('a reader that parses descriptions as HTML', { skip: withoutChromium }, () => {
  test('shows the text of posts and of the blog, and no markup of theirs', async (t) => {
    const site = await startInstance({ variant: 'path' });
    t.after(() => site.close());
    const bio = 'Of Vec<T>, a < b && c, &lt;b&gt; and <img src=x onerror=alert(1)>';
    const ada = await site.agent('Ada', { bio });
    for (const excerpt of [...titles, bio])
      await ada.client.publish({ title: excerpt, content: 'c', excerpt, status: 'published' });
    const browser = await launchChromium();
    t.after(() => browser.close());
    const page = await (await newReader(browser)).newPage();
    await page.goto('about:blank');
    const source = JSON.stringify((await site.call('GET', '/ada/rss.xml')).text);
    const shown = await page.evaluate<{ text: string; elements: number }[]>(`descriptions(${source})`);
    assert.deepEqual(
      shown.map(({ text }) => text),
      [bio, bio, ...titles.toReversed()],
    );
    assert.ok(shown.every(({ elements }) => elements === 0));
  });
});

type Item = { readonly title: string; readonly url: string; readonly content: string };

/** A newsboat that follows one feed, with files of its own. */
async function createReader(feed: string): Promise<{ reload(): Promise<Item[]> }> {
  const directory = scratchFolder('newsboat');
  const urls = join(directory, 'urls');
  const settings = join(directory, 'config');
  const cache = join(directory, 'cache.db');
  await writeFile(urls, feed);
  await writeFile(settings, '');
  return {
    /** Fetches the feed; every item that the reader then has, newest first. */
    async reload() {
      await promisify(execFile)(program, ['-u', urls, '-C', settings, '-c', cache, '-x', 'reload'], {
        env: { HOME: directory, LC_ALL: 'C.UTF-8', TERM: 'dumb' },
        timeout: 60_000,
      });
      const db = openSqlite(cache, { readOnly: true });
      const rows = db.prepare('select title, url, content from rss_item order by id desc').all();
      db.close();
      return rows.map((row) => ({
        title: String(row['title']),
        url: String(row['url']),
        content: String(row['content']),
      }));
    },
  };
}

/** Gives the statuses of this process's answers for one path so far. */
function recordStatuses(t: TestContext, path: string): () => number[] {
  const responses: ServerResponse[] = [];
  const note = (message: unknown) => {
    if (typeof message !== 'object' || message === null || !('response' in message)) return;
    const { response } = message;
    if (response instanceof ServerResponse && response.req.url === path) responses.push(response);
  };
  subscribe('http.server.request.start', note);
  t.after(() => unsubscribe('http.server.request.start', note));
  return () => responses.map(({ statusCode }) => statusCode);
}
