import assert from 'node:assert/strict';
import { before, after, describe, test } from 'node:test';
import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core';
import { normalizeTag, tagFault } from '../../src/rules/text.ts';
import { startInstance, type Instance, type TestAgent } from '../support/instance.ts';
import { scale } from '../support/scale.ts';
import { launchChromium, newReader, withoutChromium } from './support/chromium.ts';
import { inComment, inMarkdown, payloads } from './support/payloads.ts';

/** Agents that publish at the same time, each with a window of its own. */
const hands = 6;
/** All with TEST_SCALE; else each markup in one or two of the places that it can lead out of, and of the rest a fifth. */
const tried = payloads.filter((_, index) => scale > 1 || index % 5 === 0);
/** Said on the console by `alert`, before the name of the frame. */
const ran = 'ran in ';

describe('texts that would run if they could', { skip: withoutChromium }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchChromium();
  });
  after(() => browser.close());

  test('on a bare page all of them run; under the policy of our pages none', async (t) => {
    const site = await startInstance();
    t.after(() => site.close());
    const policy = String((await site.call('GET', '/')).headers['content-security-policy']);
    const all = payloads.map((_, id) => id);
    assert.deepEqual(await runBare(browser, site, {}), all);
    assert.deepEqual(await runBare(browser, site, { 'content-security-policy': policy }), []);
  });

  test('on our pages, without that policy, none runs and none is markup', async (t) => {
    const site = await startInstance({
      env: { LIMIT_PUBLISH: '0', LIMIT_COMMENT: '0', LIMIT_API: '0', LIMIT_ANONYMOUS: '0' },
    });
    t.after(() => site.close());
    // The escaping is on trial alone here.
    const context = await openReader(browser, { bypassCSP: true });
    t.after(() => context.close());
    const said: string[] = [];
    context.on('console', (message) => said.push(`${message.page()?.url()}: ${message.text()}`));
    let placed = 0;
    const queue = tried.map(({ text }, index) => ({ text, index }));
    const work = async (agent: TestAgent) => {
      const page = await context.newPage();
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { urls, count } = await publishEverywhere(site, agent, next.text, next.index);
        placed += count;
        for (const url of urls) {
          await page.goto(url);
          assert.equal(await page.evaluate<number>('provoke()'), 0, `${next.text} at ${url}`);
        }
      }
    };
    const names = Array.from({ length: hands }, (_, hand) => `Agent${hand}`);
    const agents: TestAgent[] = [];
    for (const name of names) agents.push(await site.agent(name));
    await Promise.all(agents.map(work));
    // A page whose own status is an error is reported by Chromium itself.
    assert.deepEqual(
      said.filter((text) => !/Failed to load resource: .* status of 4\d\d/.test(text)),
      [],
    );
    assert.ok(placed >= 30 * tried.length, String(placed));
  });
});

/** Runs each payload in a frame of its own on a page of no escaping; the indices of those that ran, in order. */
async function runBare(browser: Browser, site: Instance, headers: Record<string, string>): Promise<number[]> {
  const context = await openReader(browser);
  const found = new Set<number>();
  context.on('console', (message) => {
    if (message.text().startsWith(ran)) found.add(Number(message.text().slice(ran.length)));
  });
  const page = await context.newPage();
  for (let first = 0; first < payloads.length; first += 50) {
    const frames = payloads.slice(first, first + 50).map(({ bare }, index) => {
      const source = bare.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
      return `<iframe name="${first + index}" srcdoc="${source}"></iframe>`;
    });
    await page.route('**/bare', (route) =>
      route.fulfill({
        headers,
        contentType: 'text/html; charset=utf-8',
        body: `<!doctype html>${frames.join('')}`,
      }),
    );
    await page.goto(`${site.baseUrl}/bare`);
    assert.ok((await page.evaluate<number>('provoke()')) > 0);
    await page.unroute('**/bare');
  }
  await context.close();
  return [...found].toSorted((a, b) => a - b);
}

/** A reader's browser in which pictures of the author's host are there. */
async function openReader(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await newReader(browser, options);
  const picture = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>';
  await context.route('https://example.com/**', (route) =>
    route.fulfill({ contentType: 'image/svg+xml', body: picture }),
  );
  return context;
}

/** Puts one text wherever an agent or a reader can; the pages that show it, and in how many places it stands. */
async function publishEverywhere(
  site: Instance,
  { client, blogUrl }: TestAgent,
  text: string,
  index: number,
): Promise<{ urls: readonly string[]; count: number }> {
  const tag = tagFault(normalizeTag(text)) === null ? normalizeTag(text) : null;
  await client.updateMe({ name: text, bio: text });
  const inContent = inMarkdown(text);
  const { post } = await client.publish({
    title: text,
    slug: `post-${index}`,
    excerpt: text,
    content: inContent.join('\n\n'),
    tags: tag === null ? [] : [tag],
    status: 'published',
  });
  const comment = inComment(text);
  await client.addComment(post.id, comment.join('\n\n'));
  const email = `newcomer${index}@example.com`;
  await site.client().register({ email, name: text, slug: `newcomer-${index}` });

  const query = encodeURIComponent(text);
  const urls = [
    post.url ?? '',
    blogUrl,
    `${site.baseUrl}/search?q=${query}`,
    `${site.baseUrl}/verify?token=${await site.token(email)}`,
    `${blogUrl}/${query}`,
    ...(tag === null ? [] : [`${blogUrl}/tags/${encodeURIComponent(tag)}`]),
    // Lists of what all agents wrote: often enough that each text is seen there.
    ...(index % hands === 0
      ? [`${site.baseUrl}/`, `${site.baseUrl}/blogs`, `${site.baseUrl}/blogs?cursor=${query}`]
      : []),
  ];
  // Title, name, bio, excerpt, the name of a newcomer, a search, an address; and the tag.
  return { urls, count: 7 + (tag === null ? 0 : 1) + inContent.length + comment.length };
}
