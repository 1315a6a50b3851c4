import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test, type TestContext } from 'node:test';
import { AxeBuilder } from '@axe-core/playwright';
import type { Browser, Page } from 'playwright-core';
import { renderPost } from '../../src/markdown/render.ts';
import { packageRoot } from '../../src/platform/package-root.ts';
import { listAppeals } from '../../src/services/operators/appeal-lists.ts';
import { moderatePost } from '../../src/services/operators/post-moderation.ts';
import { listReports } from '../../src/services/operators/report-lists.ts';
import { postPage } from '../../src/web/templates/post.ts';
import { startInstance, variantNames, type VariantName } from '../support/instance.ts';
import { scale } from '../support/scale.ts';
import { at as withChrome, longPage } from '../web-fixtures.ts';
import { launchChromium, newReader, withoutChromium } from './support/chromium.ts';
import { fillWithEveryKind, visit, type PageKind } from './support/page-kinds.ts';

const widths = [360, 768, 1440];
const schemes = ['light', 'dark'] as const;

/**
 * Where axe looks at a page, each look taking longer than all else: once, and in the dark, which changes nothing but
 * colours, once. The path variant has the same templates with other addresses. With TEST_SCALE, wide too and in both.
 */
const axeOf: Record<VariantName, readonly string[]> = {
  subdomain: scale > 1 ? ['light 360', 'light 1440', 'dark 360'] : ['light 360', 'dark 360'],
  path: scale > 1 ? ['light 360'] : [],
};

describe('every kind of page, as a reader sees it', { skip: withoutChromium }, () => {
  for (const variant of variantNames) {
    test(`fits, passes axe, is reached by keyboard, and asks nothing of others, variant ${variant}`, async (t) => {
      const site = await startInstance({ variant });
      t.after(() => site.close());
      const browser = await launchChromium();
      t.after(() => browser.close());
      for (const kind of await fillWithEveryKind(site)) {
        await t.test(kind.name, (each) => look(each, browser, kind, axeOf[variant]));
      }
    });
  }
});

const wide = [
  'Words of a paragraph that is long enough to have several lines in its column. '.repeat(5),
  `| name | path |${' n |'.repeat(6)}\n|---|---|${'--:|'.repeat(6)}\n| \`session_token_refresher\` | \`POST /v1/invoices/recalculate\` |${' 480 ms |'.repeat(6)}`,
  `\`\`\`\n${'x'.repeat(80)}\n\`\`\``,
].join('\n\n');

test(
  'on a wide screen letters are large enough, lines short enough, and what is wide has room',
  { skip: withoutChromium },
  async (t) => {
    const browser = await launchChromium();
    t.after(() => browser.close());
    const page = await (await newReader(browser)).newPage();
    await page.setViewportSize({ width: 1280, height: 900 });
    const title =
      'Why our nightly reconciliation of two ledgers disagreed by one cent, and what we changed in a queue';
    assert.equal(title.length, 99);
    const post = { ...longPage.post, title: `${title}s`, html: renderPost(wide).html };
    const text = postPage(withChrome(post.url), { ...longPage, post, headings: [] }).toString();
    const style = readFileSync(new URL('assets/style.css', packageRoot), 'utf8');
    await page.setContent(text.replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`));
    const seen = await page.evaluate<Typography>('typography()');
    assert.deepEqual([seen.size, seen.leading], [18, 28.8]);
    assert.ok(seen.measure >= 60 && seen.measure <= 75, `${seen.measure} letters a line`);
    assert.ok(seen.facts >= 15, `${seen.facts} px`);
    assert.ok(seen.titleLines <= 3, `${seen.titleLines} lines`);
    assert.equal(seen.brokenCells, 0);
    assert.equal(seen.cutCode, 0);
  },
);

test(
  'somebody reports a post, and its owner appeals, by keyboard alone and without script',
  { skip: withoutChromium },
  async (t) => {
    const site = await startInstance({ variant: 'subdomain' });
    t.after(() => site.close());
    const ada = await site.agent('Ada');
    const { post } = await ada.client.publish({ title: 'Copied', content: 'c', status: 'published' });
    const browser = await launchChromium();
    t.after(() => browser.close());
    const page = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
    const { keyboard } = page;
    const tabTo = async (selector: string) => {
      for (let n = 0; n < 50; n++) {
        if ((await page.locator(`${selector}:focus`).count()) > 0) return;
        await keyboard.press('Tab');
      }
      assert.fail(`Tab does not lead to ${selector}`);
    };
    const write = async (selector: string, text: string) => {
      await tabTo(selector);
      await keyboard.type(text);
    };
    const send = async () => {
      await tabTo('button');
      const sent = page.waitForResponse((answer) => answer.request().method() === 'POST');
      await keyboard.press('Enter');
      assert.equal((await sent).status(), 201);
      return page.locator('main').innerText();
    };

    await page.goto(post.url);
    await tabTo('a[href*="/-/report?"]');
    await keyboard.press('Enter');
    await page.waitForURL('**/-/report?*');
    assert.equal(await page.inputValue('#url'), post.url);
    await write('#reason', 'Copyr');
    await write('#explanation', 'It is chapter two of my book.');
    await write('#name', 'Eve Carter');
    await write('#email', 'eve@example.com');
    await tabTo('[name=goodFaith]');
    await keyboard.press('Space');
    const answer = await send();
    const [found] = await listReports(site.ctx(), { limit: 1, state: 'open' });
    const [report] = found?.reports ?? [];
    assert.deepEqual([found?.target.id, report?.reason, report?.name], [post.id, 'copyright', 'Eve Carter']);
    assert.ok(answer.includes(report?.id ?? '-'), answer);
    assert.equal((await site.mails('eve@example.com')).length, 1);

    const by = { actor: 'cli:test', reason: 'copied', batch: null, mails: true } as const;
    const to = { state: 'hidden', reason: 'copied' } as const;
    await site.ctx().engine.write(moderatePost, { postId: post.id, to, by });
    const text = (await site.mails(ada.email)).at(-1)?.email.text ?? '';
    await page.goto(/https?:\S+\/verify\/appeal\S+/.exec(text)?.[0] ?? '');
    await write('#text', 'The author of the book is my owner.');
    await send();
    const appeals = await listAppeals(site.ctx(), { limit: 9, state: 'open' });
    assert.deepEqual(
      appeals.map((each) => [each.target.id, each.text]),
      [[post.id, 'The author of the book is my owner.']],
    );
  },
);

/** What `typography()` measures: in px, letters and lines; parts that are broken or cut off. */
type Typography = Record<
  'size' | 'leading' | 'measure' | 'facts' | 'titleLines' | 'brokenCells' | 'cutCode',
  number
>;

async function look(
  t: TestContext,
  browser: Browser,
  kind: PageKind,
  withAxe: readonly string[],
): Promise<void> {
  const context = await newReader(browser);
  t.after(() => context.close());
  const page = await context.newPage();
  const said: string[] = [];
  const asked: string[] = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(String(error)));
  context.on('request', (request) => asked.push(request.url()));

  // Without the legacy mode it opens a page of its own, whose requests would count as ours.
  const newAxe = () => new AxeBuilder({ page }).setLegacyMode(true);

  const answer = await visit(page, kind);
  assert.equal(answer?.status(), kind.status ?? 200);
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme });
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 });
      const at = `${kind.name} at ${width} px, ${colorScheme}`;
      assert.deepEqual(await page.evaluate<string[]>('overflowing()'), [], at);
      assert.deepEqual(await page.evaluate<string[]>('misplaced()'), [], at);
      assert.deepEqual(await page.evaluate<string[]>('wrongStops()'), [], at);
      if (!withAxe.includes(`${colorScheme} ${width}`)) continue;
      await assertPasses(colorScheme === 'dark' ? newAxe().withRules('color-contrast') : newAxe(), at);
    }
  }
  await page.emulateMedia({ colorScheme: 'dark', forcedColors: 'active' });
  // Of buttons, which have the system's colours then, axe reads others than are painted.
  const contrast = newAxe().withRules('color-contrast').exclude('button');
  await assertPasses(contrast, `${kind.name} with forced colours`);
  // Text of the system's colour for marked words, without its ground, can be that of the page: axe does not see that.
  const bare = String.raw`/^rgba.*, 0\)$/.test(getComputedStyle(mark).backgroundColor)`;
  const unseen = `[...document.querySelectorAll('mark')].filter((mark) => ${bare}).map((mark) => mark.outerHTML)`;
  assert.deepEqual(await page.evaluate<string[]>(unseen), []);
  await page.emulateMedia({ forcedColors: 'none' });
  await assertReachedByKeyboard(page);

  for (const url of asked) {
    const { hostname, protocol } = new URL(url);
    assert.ok(protocol === 'data:' || /^(?:.+\.)?localhost$/.test(hostname), url);
  }
  // Chromium itself reports a page whose own status is an error.
  const expected = (kind.status ?? 200) < 400 ? 0 : 1;
  assert.deepEqual(said.slice(expected), []);
  if (expected === 1) assert.match(said[0] ?? '', /^Failed to load resource: .* status of 4\d\d/);
  assert.deepEqual(await context.cookies(), []);
}

async function assertPasses(axe: AxeBuilder, at: string): Promise<void> {
  const { violations } = await axe.analyze();
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  assert.deepEqual(found, [], at);
}

/** Stops of a walk: more than any page has but the reference of the API, whose stops are alike. */
const stops = scale > 1 ? Infinity : 100;

/** Walks the page by Tab: all that can be acted on is reached, in the order of the document, and seen to be. */
async function assertReachedByKeyboard(page: Page): Promise<void> {
  const targets = Math.min(stops, await page.evaluate<number>('watchFocus()'));
  const walked = () => page.evaluate<string[]>('walked');
  for (let rounds = 0; rounds < 20 && (await walked()).length < targets; rounds++) {
    for (let i = 0; i < Math.max(5, targets / 4); i++) await page.keyboard.press('Tab');
  }
  const expected = Array.from({ length: targets }, (_, index) => String(index));
  assert.deepEqual((await walked()).slice(0, targets), expected);
}
