import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extractFromJson, extractFromXml } from '@extractus/feed-extractor';
import { parseAtomFeed, parseJsonFeed, parseOpml, parseRssFeed } from 'feedsmith';
import { renderPost } from '../src/markdown/render.ts';
import { absoluteLinks } from '../src/web/article.ts';
import { atomFeed, forFeed, jsonFeed, rssFeed, tagFeedId } from '../src/web/feeds/feed.ts';
import { opml, sitemap, sitemapIndex, sitemapLength } from '../src/web/feeds/site-files.ts';
import { cdata, xml } from '../src/web/markup.ts';
import { feed, hostile, kiln, longPost, mallory, post, posts, tidewatch } from './web-fixtures.ts';

const entries = [longPost, ...posts.slice(1)];
const view = await feed(null, entries);
const ids = entries.map((entry) => `urn:uuid:${entry.id}`);
const titles = entries.map((entry) => entry.title);

test('what XML cannot hold is left out, and the rest is escaped', () => {
  assert.equal(
    xml`<a b="${`"<&>'`}">${'a\u0000\u000b\ud800b\ufffe\t😀'}</a>`.toString(),
    '<a b="&quot;&lt;&amp;&gt;&#39;">ab\t😀</a>',
  );
  assert.equal(cdata('a]]>b\u0008').toString(), '<![CDATA[a]]]]><![CDATA[>b]]>');
});

test('the Atom feed parses to what was published', () => {
  const parsed = parseAtomFeed(atomFeed(view));
  assert.deepEqual(
    parsed.entries?.map((entry) => entry.id),
    ids,
  );
  assert.deepEqual(
    parsed.entries?.map((entry) => plain(entry.title)),
    titles,
  );
  assert.equal(parsed.updated, '2025-11-21T09:30:00.000Z');
  const [first] = parsed.entries ?? [];
  assert.equal(first?.published, longPost.publishedAt);
  assert.equal(first?.updated, longPost.updatedAt);
  assert.equal(plain(first?.content), view.posts[0]?.feedHtml.trim());
  assert.deepEqual(first?.authors, [{ name: 'Tidewatch', uri: tidewatch.url }]);
  assert.deepEqual(
    first?.categories?.map((category) => category.term),
    [...longPost.tags, 'ai-autonomous'],
  );
  assert.equal(first?.categories?.at(-1)?.scheme, 'https://masthead.example/docs#disclosure');
});

test('the RSS feed parses to what was published, with the markdown beside the HTML', async () => {
  const parsed = parseRssFeed(rssFeed(await feed(tidewatch, entries)));
  assert.deepEqual(
    parsed.items?.map((item) => item.guid?.value),
    ids,
  );
  assert.deepEqual(
    parsed.items?.map((item) => item.title),
    titles,
  );
  assert.equal(readAsHtml(parsed.description), hostile);
  const [first] = parsed.items ?? [];
  assert.equal(first?.guid?.isPermaLink, false);
  assert.equal(first?.link, longPost.url);
  assert.equal(first?.pubDate, 'Thu, 20 Nov 2025 06:12:44 GMT');
  assert.equal(first?.content?.encoded, view.posts[0]?.feedHtml.trim());
  assert.equal(first?.sourceNs?.markdown, longPost.content.trim());
  assert.deepEqual(first?.categories?.at(-1), {
    name: 'ai-autonomous',
    domain: 'https://masthead.example/docs#disclosure',
  });
});

/** Texts that are not markup, however much some of them look like it. */
const plainTexts = [
  'Vec<T>, &T and Option<&mut T>',
  'a < b && c > d',
  '<img src=x onerror=alert(1)>',
  '<script>alert(1)</script>',
  '&lt;b&gt; and &amp;amp; and &#60;i&#62;',
  'The end ]]> of <![CDATA[ it',
  `"quoted" & 'quoted'`,
  '<!-- not seen -->',
];

for (const text of plainTexts) {
  test(`'${text}' is that text in every feed, whichever way its readers take it`, async () => {
    const named = { ...tidewatch, name: text, bio: text };
    const entry = post(named, { title: text, slug: 'x', excerpt: text, tags: [text] });
    const mine = { ...(await feed(named, [entry])), title: text, description: text };
    const rss = parseRssFeed(rssFeed(mine));
    const [item] = rss.items ?? [];
    for (const description of [rss.description, item?.description])
      assert.equal(readAsHtml(description), text);
    for (const plainly of [rss.title, item?.title, item?.dc?.creators?.[0], item?.categories?.[0]?.name])
      assert.equal(plainly, text);
    assert.equal(readAsHtml(parseRssFeed(rssFeed({ ...mine, description: null })).description), text);

    const atom = parseAtomFeed(atomFeed(mine));
    const [atomEntry] = atom.entries ?? [];
    for (const plainly of [atom.title, atom.subtitle, atomEntry?.title, atomEntry?.summary])
      assert.equal(plain(plainly), text);
    // Without a type they are plain text (RFC 4287, section 3.1.1).
    assert.doesNotMatch(atomFeed(mine), /<(?:title|subtitle|summary) type/);
    const json = parseJsonFeed(jsonFeed(mine));
    for (const plainly of [json.title, json.description, json.items?.[0]?.title, json.items?.[0]?.summary])
      assert.equal(plainly, text);
    assert.equal(parseOpml(await opml(text, [[named]])).body?.outlines?.[0]?.text, text);
  });
}

test('the JSON feed parses to what was published', () => {
  const text = jsonFeed(view);
  const parsed = parseJsonFeed(text);
  assert.deepEqual(
    parsed.items?.map((item) => item.id),
    ids,
  );
  assert.deepEqual(
    parsed.items?.map((item) => item.title),
    titles,
  );
  assert.equal(parsed.items?.[0]?.content_html, view.posts[0]?.feedHtml.trim());
  assert.equal(parsed.items?.[2]?.language, 'ja');
  assert.ok(text.includes('"value":"ai-assisted"'));
});

test('another parser reads the same from all three', async () => {
  const shown = [...entries, ...plainTexts.map((title, at) => post(kiln, { title, slug: `plain${at}` }))];
  const mine = await feed(null, shown);
  const parsed = [
    extractFromXml(atomFeed(mine)),
    extractFromXml(rssFeed(mine)),
    extractFromJson(jsonFeed(mine)),
  ];
  for (const { entries: read = [] } of parsed) {
    assert.deepEqual(
      read.map(({ id, title, link }) => ({ id, title, link })),
      shown.map(({ id, title, url }) => ({ id: `urn:uuid:${id}`, title, link: url })),
    );
  }
});

test('a page of a feed names itself, the first and the next in every format, and comments where there are any', async () => {
  const url = `${tidewatch.url}/feed.xml`;
  const mine = {
    ...(await feed(tidewatch, entries)),
    selfUrl: `${url}?cursor=b`,
    nextUrl: `${url}?cursor=c`,
  };
  const relations = (links: readonly { rel?: string; href?: string }[] | undefined) =>
    links?.filter(({ rel }) => rel !== 'alternate').map(({ rel, href }) => [rel, href]);
  const paging = [
    ['self', mine.selfUrl],
    ['first', url],
    ['next', mine.nextUrl],
  ];
  const atom = parseAtomFeed(atomFeed(mine));
  const rss = parseRssFeed(rssFeed(mine));
  assert.deepEqual(relations(atom.links), paging);
  assert.deepEqual(relations(rss.atom?.links), paging);
  const json = parseJsonFeed(jsonFeed(mine));
  assert.deepEqual([json.feed_url, json.next_url], [mine.selfUrl, mine.nextUrl]);
  assert.deepEqual(relations(parseAtomFeed(atomFeed(await feed(tidewatch, entries))).links), [['self', url]]);

  assert.deepEqual([atom.icon, json.favicon], [mine.icon, mine.icon]);
  assert.deepEqual([atom.logo, rss.image?.url, json.icon], [mine.picture, mine.picture, mine.picture]);
  const pictured = { ...mine, agent: { ...tidewatch, avatarUrl: 'https://example.org/a.png' } };
  assert.equal(parseRssFeed(rssFeed(pictured)).image?.url, 'https://example.org/a.png');

  const talk = `${longPost.url}#comments`;
  assert.ok(relations(atom.entries?.[0]?.links)?.some(([rel, href]) => rel === 'replies' && href === talk));
  assert.equal(rss.items?.[0]?.comments, talk);
  const silent = await feed(tidewatch, [{ ...longPost, tally: null }]);
  for (const text of [atomFeed(silent), rssFeed(silent)]) assert.ok(!text.includes('#comments'));
});

test('a feed without posts is valid, and dates from its beginning', async () => {
  assert.equal(parseAtomFeed(atomFeed(await feed(tidewatch, []))).updated, '2025-02-03T08:00:00.000Z');
  assert.equal(parseRssFeed(rssFeed(await feed(tidewatch, []))).title, 'Tidewatch');
  assert.deepEqual(JSON.parse(jsonFeed(await feed(tidewatch, []))).items, []);
});

test('control characters and the end of a CDATA section in a post break no feed', async () => {
  const odd = post(tidewatch, {
    title: 'a\u0001]]>b',
    slug: 'odd',
    content: 'x ]]> \u000c y',
    html: '<p>x ]]&gt; ]]> \u000c y</p>',
  });
  const parsed = parseRssFeed(rssFeed(await feed(tidewatch, [odd]))).items?.[0];
  assert.equal(parsed?.title, 'a]]>b');
  assert.equal(parsed?.sourceNs?.markdown, 'x ]]>  y');
  assert.ok(parsed?.content?.encoded?.endsWith('<p>x ]]&gt; ]]>  y</p>'));
  const atom = atomFeed(await feed(tidewatch, [odd]));
  for (const control of ['\u0001', '\u000c']) assert.ok(!atom.includes(control));
});

test('links of a post are whole in its feeds, and the disclosure stands before it', async () => {
  const base = tidewatch.url;
  const cases: readonly (readonly [string, string])[] = [
    ['<a href="/a?b=1&amp;c=2">', `<a href="${base}/a?b=1&amp;c=2">`],
    ['<a href="b">', `<a href="${base}/b">`],
    ['<a href="#fn-1">', `<a href="${base}/p#fn-1">`],
    ['<a href="//other.example/">', '<a href="https://other.example/">'],
    ['<a href="https://other.example/?a=&quot;">', '<a href="https://other.example/?a=&quot;">'],
    ['<a href="mailto:a@b.example">', '<a href="mailto:a@b.example">'],
    [
      '<img src="https://i.example/x.png" alt=" href=&quot;/x&quot;">',
      '<img src="https://i.example/x.png" alt=" href=&quot;/x&quot;">',
    ],
    ['<p> href=&quot;/x&quot;</p>', '<p> href=&quot;/x&quot;</p>'],
    ['<h2 id="h-x">X <a class="anchor" href="#h-x" aria-labelledby="h-x"></a></h2>', '<h2 id="h-x">X</h2>'],
  ];
  for (const [stored, sent] of cases) {
    const entry = post(tidewatch, { title: 'x', slug: 'p', html: stored, disclosure: 'none' });
    const [shown] = await forFeed([entry]);
    assert.equal(
      shown?.feedHtml,
      `<p><small>Written by a person, and published by an automated agent.</small></p>\n${sent}`,
    );
  }
});

test('only links are made whole, not what looks like one within another attribute', async () => {
  const { html } = renderPost('[a](/b "see href=") ![alt src=](https://x.example/c.png)');
  const [shown] = await forFeed([{ ...longPost, html }]);
  const text = shown?.feedHtml ?? '';
  assert.match(text, / title="see href="/);
  assert.match(text, / alt="alt src="/);
  assert.match(text, / href="https?:[^"]*\/b"/);
});

test('links of a long text are made whole in many turns of the event loop, each as in a short one', async () => {
  let turns = 0;
  let counting = setImmediate(function count() {
    turns++;
    counting = setImmediate(count);
  });
  const link = (href: string) => `<a href="${href}" title="a > b" rel="nofollow">a</a> `;
  const text = await absoluteLinks(`<p>${link('b').repeat(20_000)}${link('//')}</p>`, 'https://a.example/');
  clearImmediate(counting);
  assert.equal(text, `<p>${link('https://a.example/b').repeat(20_000)}${link('//')}</p>`);
  assert.ok(turns >= 20, `${turns} turns`);
});

test('the id of the feed of a tag is a UUID that depends on blog and tag alone', () => {
  // The name space and name of RFC 9562, appendix A.4.
  assert.equal(
    tagFeedId('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com'),
    'urn:uuid:2ed6657d-e927-568b-95e1-2665a8aea6a2',
  );
  assert.notEqual(tagFeedId(tidewatch.id, 'a'), tagFeedId(mallory.id, 'a'));
});

test('a sitemap lists addresses and when they changed, and refuses more than it may hold', async () => {
  const page = { url: 'https://a.example/?b=1&c=2', changedAt: '2025-11-20T06:12:44.120Z' };
  assert.equal(
    await sitemap([[page], [{ url: 'https://a.example/x', changedAt: null }]]),
    `<?xml version="1.0" encoding="utf-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://a.example/?b=1&amp;c=2</loc><lastmod>2025-11-20T06:12:44.120Z</lastmod></url>
<url><loc>https://a.example/x</loc></url>
</urlset>
`,
  );
  assert.match(await sitemapIndex([[{ ...page, changedAt: null }]]), /<sitemapindex [^>]*>\n<sitemap><loc>/);
  await assert.rejects(sitemap([Array.from({ length: sitemapLength + 1 }, () => page)]), RangeError);
});

test('the OPML parses to all blogs', async () => {
  const parsed = parseOpml(await opml('Masthead', [[tidewatch], [mallory]]));
  assert.deepEqual(
    parsed.body?.outlines?.map((outline) => [outline.text, outline.xmlUrl]),
    [
      ['Tidewatch', `${tidewatch.url}/feed.xml`],
      [hostile, `${mallory.url}/feed.xml`],
    ],
  );
});

/** What a reader shows who parses a text as HTML; fails where that would be anything but text. */
function readAsHtml(source: string | undefined): string {
  const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  assert.doesNotMatch(source ?? '', /[<>]|&(?!(?:amp|lt|gt|quot|#39);)/);
  return (source ?? '').replaceAll(/&([^;]+);/g, (_, name: string) => named[name] ?? '');
}

function plain(text: unknown): unknown {
  return typeof text === 'object' && text !== null && 'value' in text ? text.value : text;
}
