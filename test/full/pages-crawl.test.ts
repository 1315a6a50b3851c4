import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placesOf, startInstance, type Instance } from '../support/instance.ts';
import { addressesIn, open } from '../support/pages.ts';

/** Addresses that do not answer to GET, by the status that they have instead. */
const notForReading: readonly [pattern: RegExp, status: number][] = [
  [/(?<!\/docs)\/mcp$/, 405],
  [/\/verify$/, 400],
];

/** Breaks out of text, attributes, comments, CDATA, JSON-LD, markdown and XML, if anything lets it. */
const hostile = `"><img src=x onerror=evil()>'</title></script>]]>--><script>evil()</script>`;
const hostileMarkdown = [
  `# ${hostile}`,
  '<script>evil()</script>',
  '<svg onload=evil()><a href="javascript:evil()">x</a></svg>',
  '[x](javascript:evil()) [y](data:text/html,evil) ![z](x" onerror="evil())',
  '<kbd onclick="evil()">k</kbd> <details open ontoggle=evil()>d</details>',
  '```html"><script>evil()</script>\n</code></pre><script>evil()</script>\n```',
  '| <img src=x onerror=evil()> |\n| --- |\n| `<script>evil()</script>` |',
  'Foot[^1].\n\n[^1]: <iframe srcdoc="<script>evil()</script>">',
].join('\n\n');

/** An instance with blogs of several pages, tags, comments, a rename and hostile texts everywhere. */
async function fill(site: Instance, hasDiscovery: boolean): Promise<void> {
  const ada = await site.agent('Ada', { bio: hostile });
  const bea = await site.agent('Beatrix');
  await ada.client.updateMe({ name: hostile.slice(0, 100) });
  for (let i = 0; i < 22; i++) {
    await ada.client.publish({
      title: i % 2 === 0 ? `Post ${i}` : `${hostile} ${i}`,
      slug: `post-${i}`,
      content: `${hostileMarkdown}\n\n[next](./post-${i}) ![](https://example.com/${i}.png)`,
      tags: ['all', 'c/d', '<b>"é', `n${i % 3}`],
      excerpt: hostile,
      lang: 'ar',
      disclosure: 'ai-assisted',
      status: 'published',
    });
  }
  const { post } = await bea.client.publish({ title: 'Other', content: 'x', status: 'published' });
  await bea.client.updatePost(post.id, { slug: 'renamed' });
  if (!hasDiscovery) return;
  await bea.client.addComment(post.id, hostileMarkdown.slice(0, 1_900));
  await ada.client.addComment(post.id, `${hostile} https://example.com`);
  await bea.client.vote(post.id, 1);
}

const title = 'every address that is named answers, and no text of an agent becomes markup';
for (const { suite, variant, engine } of placesOf(title)) {
  test(suite, async () => {
    const site = await startInstance({ variant, engine });
    try {
      await fill(site, variant === 'subdomain');
      const starts = ['/', '/robots.txt', '/.well-known/security.txt'].map((path) => site.baseUrl + path);
      const waiting = [...starts, ...(variant === 'path' ? [`${site.baseUrl}/ada`] : [])];
      const seen = new Set(waiting);
      for (let url = waiting.shift(); url !== undefined; url = waiting.shift()) {
        const answer = await open(site, url);
        const status = notForReading.find(([pattern]) => pattern.test(url ?? ''))?.[1] ?? 200;
        assert.equal(answer.status, status, url);
        if (String(answer.headers['content-type']).startsWith('text/html'))
          assertNoMarkupOfOthers(answer.text, url);
        for (const address of addressesIn(site, answer, url)) {
          if (!seen.has(address)) waiting.push(address);
          seen.add(address);
        }
      }
      const kinds = [
        '/post-21',
        '/post-21.md',
        '/tags/c%2Fd',
        '/tags/c%2Fd.md',
        '/tags/all/rss.xml',
        '/feed.json',
        '/rss.xml?cursor=',
      ];
      kinds.push(
        '/renamed',
        '/index.md',
        '/sitemap.xml',
        '/llms.txt',
        '?cursor=',
        '/-/marks/ada.svg',
        '/skill.md',
      );
      for (const kind of kinds)
        assert.ok(
          [...seen].some((url) => url.includes(kind)),
          `${kind} is named nowhere`,
        );
      assert.ok(seen.size > 100, String(seen.size));
    } finally {
      await site.close();
    }
  });
}

/** Tags and attributes of our own and of the renderer's only. */
function assertNoMarkupOfOthers(page: string, url: string): void {
  for (const tag of page.match(/<[a-z!/][^>]*>/gi) ?? []) {
    const withoutValues = tag.replace(/"[^"]*"/g, '""');
    assert.doesNotMatch(withoutValues, /\son[a-z]+\b|\ssrcdoc\b|\sstyle\b|'|evil/i, `${url}: ${tag}`);
    assert.doesNotMatch(tag, /\s(?:href|src|action)="(?:javascript|data|vbscript):/i, `${url}: ${tag}`);
    assert.doesNotMatch(tag, /^<(?:iframe|object|embed|style|base)\b/i, url);
    if (/^<script/i.test(tag)) assert.equal(tag, '<script type="application/ld+json">', url);
    if (/^<img/i.test(tag)) assert.match(tag, /src="https:\/\/example\.com\//, url);
  }
  for (const [, data = ''] of page.matchAll(/<script type="application\/ld\+json">(.*?)<\/script>/gs))
    assert.doesNotThrow(() => JSON.parse(data), url);
}
