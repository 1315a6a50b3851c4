import assert from 'node:assert/strict';
import { crc32, inflateSync } from 'node:zlib';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { brotliCompressSync, constants } from 'node:zlib';
import { HtmlValidate } from 'html-validate';
import type { PostFieldValue } from '../src/rules/post-fields.ts';
import { catalogue, type ErrorCode } from '../src/errors.ts';
import { asHttp } from '../src/rules/calls.ts';
import { parseFrontMatter } from '../src/rules/front-matter.ts';
import { renderPost } from '../src/markdown/render.ts';
import { avatarSvg, mark } from '../src/web/avatar.ts';
import { disclosures } from '../src/web/disclosure.ts';
import { dataBlock, html, trusted } from '../src/web/markup.ts';
import { cardPng } from '../src/web/card.ts';
import { hueOf, hues } from '../src/web/hue.ts';
import { archivePage } from '../src/web/templates/archive.ts';
import { homePage } from '../src/web/templates/home.ts';
import {
  blogLlms,
  blogTwin,
  homeTwin,
  markdownLink,
  markdownText,
  postTwin,
  siteLlms,
  tagTwin,
} from '../src/web/documents/markdown.ts';
import { stripHiddenText } from '../src/rules/text.ts';
import { postPage } from '../src/web/templates/post.ts';
import { problemPage } from '../src/web/templates/failure.ts';
import { startInstance, variantNames } from './support/instance.ts';
import * as fixtures from './web-fixtures.ts';

const { at, chrome, hostile, hostilePage, longPage, longPost, mallory, posts, tidewatch } = fixtures;
const pages = new Map(fixtures.fixturePages());
const stylesheet = readFileSync(new URL('../assets/style.css', import.meta.url), 'utf8');

test('a template escapes values, joins lists, leaves nothing for nothing, and drops its own indentation', () => {
  const page = html`<p title="${`"'<&>`}">
    ${'a\n  b'} ${['<', html`<b></b>`, 1]} ${null}${undefined}${false}
  </p>`;
  assert.equal(page.toString(), '<p title="&quot;&#39;&lt;&amp;&gt;">\na\n  b &lt;<b></b>1 \n</p>');
  assert.equal(html`${trusted('<b>')}`.toString(), '<b>');
});

test('nothing in a data block can end it', () => {
  const block = dataBlock('application/ld+json', { x: '</script><!--<script>' }).toString();
  assert.equal(block.match(/</g)?.length, 2);
  assert.deepEqual(jsonLd(block), { x: '</script><!--<script>' });
});

test('every page is valid HTML', async (t) => {
  const validator = new HtmlValidate({
    root: true,
    extends: ['html-validate:recommended'],
    rules: {
      'doctype-style': 'off',
      'void-style': 'off',
      'no-trailing-whitespace': 'off',
      'long-title': 'off',
      // Of the renderer: the link beside a heading is named by the heading, and a table's box scrolls.
      'wcag/h30': 'off',
      'prefer-native-element': 'off',
    },
  });
  for (const [name, page] of pages) {
    await t.test(name, async () => {
      const report = await validator.validateString(page);
      const faults = report.results.flatMap((result) => result.messages);
      assert.deepEqual(
        faults.map((fault) => `${fault.line}: ${fault.ruleId}: ${fault.message}`),
        [],
      );
    });
  }
});

test('no page holds a script, a style or a handler, whatever its texts are', () => {
  for (const [name, page] of pages) {
    const tags = page.match(/<[a-z][^>]*>/g) ?? [];
    for (const tag of tags) {
      assert.doesNotMatch(tag, /\s(?:style|on[a-z]+)=|^<(?:style|iframe|object|base)\b/, `${name}: ${tag}`);
      assert.doesNotMatch(tag, /(?:href|src|action)="(?!https:|\/|#)/, `${name}: ${tag}`);
      if (tag.startsWith('<script')) assert.equal(tag, '<script type="application/ld+json">', name);
    }
  }
});

test('every page is one document with one heading of the first level, a main part, and a way to skip to it', () => {
  for (const [name, page] of pages) {
    assert.equal(page.match(/<h1[ >]/g)?.length, 1, name);
    assert.equal(page.match(/<main /g)?.length, 1, name);
    assert.match(page, /^<!doctype html>\n<html lang="en" class="hue-\d+">/, name);
    assert.ok(page.indexOf('href="#main"') < page.indexOf('<nav'), name);
  }
});

const everyDisclosure: readonly PostFieldValue<'disclosure'>[] = [
  'unspecified',
  'ai-autonomous',
  'ai-generated',
  'ai-assisted',
  'none',
];
for (const disclosure of everyDisclosure) {
  test(`a post that is disclosed as ${disclosure} says so before its text, to people and to machines`, () => {
    const page = postPage(at(longPost.url), { ...longPage, post: { ...longPost, disclosure } }).toString();
    const { sentence, digitalSourceType } = disclosures[disclosure];
    assert.match(sentence, /automated agent/);
    assert.ok(page.indexOf(sentence) > 0);
    assert.ok(page.indexOf(sentence) < page.indexOf('e-content'));
    assert.ok(page.includes(`<meta name="ai-disclosure" content="${disclosure}"`));
    assert.equal(jsonLd(page)['digitalSourceType'], digitalSourceType ?? undefined);
  });
}

test('JSON-LD and previews name the post as it is, even by a hostile title', () => {
  const page = postPage(at(hostilePage.post.url), hostilePage).toString();
  const data = jsonLd(page);
  assert.equal(data['headline'], hostile);
  assert.equal(data['@type'], 'BlogPosting');
  assert.ok(page.includes(`<link rel="canonical" href="${hostilePage.post.url}"`));
  assert.ok(
    page.includes('<meta property="og:image" content="https://masthead.example/-/cards/mallory.png"'),
  );
});

test('previews show the first picture of a post, by its own title and the name of its blog', () => {
  const picture =
    '<p><img src="https://p.example/a.png?b=1&amp;c=2" alt="A &quot;gauge&quot;" loading="lazy"></p>';
  const view = { ...longPage, post: { ...longPost, html: picture } };
  const page = postPage(at(longPost.url), view).toString();
  for (const [name, content] of [
    ['og:title', html`${longPost.title}`],
    ['og:site_name', html`${tidewatch.name}`],
    ['og:image', 'https://p.example/a.png?b=1&amp;c=2'],
    ['og:image:alt', 'A &quot;gauge&quot;'],
  ] as const)
    assert.ok(page.includes(`<meta property="${name}" content="${content.toString()}"`), name);
  assert.match(page, /<meta name="twitter:card" content="summary_large_image"/);
  assert.equal(jsonLd(page)['image'], 'https://p.example/a.png?b=1&c=2');
  const without = postPage(at(hostilePage.post.url), hostilePage).toString();
  assert.match(without, /<meta name="twitter:card" content="summary" \/>/);
});

test('the front page has the name and description that the operator gave', () => {
  const named = { ...chrome, siteName: 'Die <Presse>', siteDescription: 'Aus *Daten*.', siteLang: 'de' };
  const view = { newest: [], featured: [], blogs: [] };
  const page = homePage(named, view).toString();
  assert.match(
    page,
    /<h1 class="title" lang="de">Die &lt;Presse&gt;<\/h1>\s*<p class="bio" lang="de">Aus \*Daten\*\.</,
  );
  assert.equal(jsonLd(page)['name'], named.siteName);
  assert.match(homeTwin(named, view), /^# Die \\<Presse\\>\n\nAus \\\*Daten\\\*\.\n/);
});

test('the archive has the titles of posts under their years', () => {
  const [newer, older] = posts;
  assert.ok(newer && older);
  const view = { blog: tidewatch, posts: [newer, { ...older, publishedAt: '2024-02-03T00:00:00.000Z' }] };
  const page = archivePage(chrome, { ...view, paging: { newest: null, older: null } }).toString();
  assert.deepEqual(page.match(/(?<=<h2 class="section">)\d+/g), ['2025', '2024']);
  assert.match(page, /<time class="dt-published" datetime="2024-02-03[^>]*>3 Feb<\/time>/);
});

test('under a post stand its author, how to follow it, and related posts', () => {
  const page = postPage(at(longPost.url), longPage).toString();
  const after = page.slice(page.indexOf('</article>'));
  for (const path of [
    '/feed.xml',
    '/rss.xml',
    '/feed.json',
    '/-/archive',
    '/-/tags',
    '/-/search',
    '/harmonics',
  ])
    assert.ok(after.includes(`href="${tidewatch.url}${path}"`), path);
  assert.ok(after.includes(`<span class="p-note" dir="auto" >${html`${tidewatch.bio}`.toString()}</span>`));
});

test('the slug stands beside the name of an agent, since names can be alike', () => {
  let named = 0;
  for (const [name, page] of pages) {
    for (const [, rest = ''] of page.matchAll(/<a class="p-author h-card"[^>]*>.*?<\/a>(.{0,40})/gs)) {
      assert.match(rest, /^\s*<span class="slug">@[a-z0-9-]+<\/span>/, name);
      named += 1;
    }
  }
  assert.ok(named > 10, String(named));
  assert.match(String(pages.get('blogs')), /<span class="slug">@tidewatch<\/span>/);
  assert.match(String(pages.get('post')), /in answer to[^]{0,120}<span class="slug">@/);
});

test('a long title is set smaller, counted by characters', () => {
  const isLong = (title: string) =>
    postPage(at(longPost.url), { ...longPage, post: { ...longPost, title } })
      .toString()
      .includes('<h1 class="p-name long"');
  assert.deepEqual(['a'.repeat(50), 'a'.repeat(51), '😀'.repeat(50)].map(isLong), [false, true, false]);
});

test('a table of contents stands on long posts only', () => {
  const withWords = (words: number): string =>
    postPage(at(longPost.url), { ...longPage, post: { ...longPost, words } }).toString();
  assert.match(withWords(1000), /<details class="toc">[^]*href="#h-the-harmonic-model"/);
  assert.doesNotMatch(withWords(999), /class="toc"/);
  const few = { ...longPage, headings: longPage.headings.slice(0, 3) };
  assert.doesNotMatch(postPage(at(longPost.url), few).toString(), /class="toc"/);
});

test('an article claims a language, and right-to-left, only where one was given', () => {
  assert.doesNotMatch(article(null), /lang=|dir=/);
  assert.match(article('de'), /lang="de" >$/);
  for (const lang of ['ar', 'he-IL', 'uz-Arab']) assert.match(article(lang), /lang="\S+" dir="rtl">$/);
  for (const lang of ['ur-Latn', 'are', 'en']) assert.doesNotMatch(article(lang), /dir=/);
});

test('votes, comments and the way to comment are there where the variant has them', () => {
  const page = pages.get('post') ?? '';
  assert.ok(page.includes('41 votes up'));
  assert.ok(page.includes('1 more comment'));
  assert.ok(page.includes(`curl https://masthead.example/api/posts/${longPost.id}/comments`));
  const path = pages.get('post-path') ?? '';
  assert.doesNotMatch(path, /votes up|\/comments|\/search|\/blogs/);
});

test('pages that are not for search engines say so, and the verify pages leak their address to nobody', () => {
  const unindexed = ['not-found', 'gone', 'search', 'verify', 'verify-result', 'verify-error', 'blog'];
  for (const [name, page] of pages) {
    const base = name.replace(/-(?:blog|hostile|none|form)$/, '');
    if (unindexed.includes(base) && !['blog-hostile', 'search-form'].includes(name))
      assert.match(page, /name="robots" content="noindex"/, name);
    const isSecret = name.startsWith('verify');
    assert.equal(page.includes('name="referrer" content="no-referrer"'), isSecret, name);
    if (isSecret) assert.doesNotMatch(page, /rel="canonical"|og:url/, name);
  }
});

test('what stands beside a post is in the type of its own script', () => {
  const page = pages.get('post-japanese') ?? '';
  for (const part of [
    /<p class="title" dir="auto"><a href="[^"]+" lang="und-(?:Jpan|Hani)">/,
    /rel="author" href="[^"]+"><bdi lang="und-(?:Jpan|Hani)">/,
    /class="p-note" dir="auto" lang="und-Jpan">/,
    /rel="prev"[^]*<bdi lang="ja">沈黙<[^]*rel="next"[^]*<bdi lang="und-Arab">حاشية</,
    /class="text p-content" dir="auto" lang="und-Jpan"><p><em>同感/,
  ])
    assert.match(page, part);
  assert.match(pages.get('post') ?? '', /rel="author" href="[^"]+"><bdi\s*>Tidewatch</);
});

test('every problem code has a page that explains it', () => {
  for (const code of Object.keys(catalogue).filter(isCode)) {
    const page = problemPage(at(`${chrome.baseUrl}/problems/${code}`), code).toString();
    assert.ok(page.includes(html`<p>${asHttp(catalogue[code].explanation)}</p>`.toString()), code);
  }
});

test('a post page beyond its content, and the stylesheet, are small', () => {
  const page = postPage(at(longPost.url), { ...longPage, post: { ...longPost, html: '' } }).toString();
  assert.ok(compressed(page) <= 8 * 1024, `${compressed(page)} bytes`);
  assert.ok(compressed(stylesheet) <= 10 * 1024, `${compressed(stylesheet)} bytes`);
});

test('every accent of the stylesheet is that of its hue, and reads on paper and on ink', () => {
  const grounds = {
    light: [colour('paper')[0], colour('tint')[0]],
    dark: [colour('paper')[1], colour('tint')[1]],
  };
  for (const [index, hue] of hues.entries()) {
    assert.ok(stylesheet.includes(`.hue-${index} { --l: ${hue.light}; --d: ${hue.dark}; }`), `hue ${index}`);
    for (const scheme of ['light', 'dark'] as const) {
      for (const ground of grounds[scheme]) {
        assert.ok(contrast(hue[scheme], ground ?? '') >= 4.5, `hue ${index}, ${scheme}, on ${ground}`);
      }
    }
  }
  for (const name of ['soft', 'leaf', 'clay']) {
    assert.ok(contrast(colour(name)[0] ?? '', grounds.light[1] ?? '') >= 4.5, name);
    assert.ok(contrast(colour(name)[1] ?? '', grounds.dark[1] ?? '') >= 4.5, name);
  }
});

/** Classes that say what something is to programs (https://microformats.org/wiki/microformats2), or to no one yet. */
const withoutStyle =
  'dt-published dt-updated e-content h-card h-cite h-entry p-category p-content p-name p-note ' +
  'u-comment u-in-reply-to u-photo u-uid u-url directory prev tag';

test('the style sheet has every class of every page, but for those that are listed as without style', async (t) => {
  const shown = [...pages.values()];
  for (const variant of variantNames) {
    const site = await startInstance({ variant });
    t.after(() => site.close());
    // The fixtures' reference has no calls: the routes are what adds them.
    shown.push((await site.call('GET', '/docs', { headers: { accept: 'text/html' } })).text);
  }
  const rules = stylesheet.replace(/\/\*[^]*?\*\//g, '').replace(/\{[^{}]*\}/g, ' ');
  const styled = new Set(rules.match(/(?<=\.)[a-z][\w-]*/gi));
  const used = shown.flatMap((page) =>
    [...page.matchAll(/<[a-z][^>]*?\sclass="([^"]*)"/g)].flatMap(
      ([, names = '']) => names.match(/\S+/g) ?? [],
    ),
  );
  // The highlighter's: the language of a block, and tokens that have the colour of the text.
  const own = used.filter((name) => !/^(?:language|hljs)-|_$/.test(name));
  assert.ok(['call', 'comment', 'key', 'mark', 'search'].every((name) => own.includes(name)));
  const unstyled = new Set(own.filter((name) => !styled.has(name)));
  assert.deepEqual([...unstyled].toSorted(), withoutStyle.split(' ').toSorted());
});

test('a blog keeps its hue and its mark, and two blogs have two marks', () => {
  assert.deepEqual(['tidewatch', 'kiln', 'quorum'].map(hueOf), [5, 1, 6]);
  assert.match(mark('tidewatch').toString(), /^<svg\s+class="mark hue-5"[^>]*>\s*<path d="[-Mhvaz0-9 ]+"/);
  const slugs = Array.from({ length: 500 }, (_, i) => `agent-${i}`);
  assert.ok(new Set(slugs.map(avatarSvg)).size >= 499);
  assert.equal(new Set(slugs.map(hueOf)).size, hues.length);
});

test('the card of a blog is a whole PNG of its mark on its hue', async () => {
  const png = await cardPng('tidewatch');
  const chunks = new Map<string, Buffer>();
  assert.equal(png.toString('latin1', 0, 8), '\x89PNG\r\n\x1a\n');
  for (let begin = 8; begin < png.length;) {
    const end = begin + 8 + png.readUInt32BE(begin);
    assert.equal(png.readUInt32BE(end), crc32(png.subarray(begin + 4, end)));
    chunks.set(png.toString('latin1', begin + 4, begin + 8), png.subarray(begin + 8, end));
    begin = end + 4;
  }
  assert.deepEqual([...chunks.keys()], ['IHDR', 'PLTE', 'IDAT', 'IEND']);
  const header = chunks.get('IHDR');
  assert.deepEqual([header?.readUInt32BE(0), header?.readUInt32BE(4)], [1200, 630]);
  assert.equal(`#${chunks.get('PLTE')?.toString('hex', 0, 3)}`, hues[hueOf('tidewatch')]?.light);
  const rows = inflateSync(chunks.get('IDAT') ?? '');
  assert.equal(rows.length, 630 * 601);
  const middle = rows.toString('hex', 601 * 200 + 1, 601 * 201);
  assert.match(middle, /^0+[0-9a-f]*f[0-9a-f]*0+$/);
  assert.equal(middle, Array.from(middle).toReversed().join(''));
});

test('a twin is what was sent, below front matter that publishing takes', () => {
  const twin = parseFrontMatter(
    postTwin({ ...longPost, title: hostile, tags: ['a, b', 'c'] }, 'https://masthead.example'),
  );
  assert.ok(twin.ok);
  assert.equal(twin.content, longPost.content);
  const { title, slug, disclosure, tags, url } = twin.fields;
  assert.deepEqual(
    { title, slug, disclosure, tags, url },
    {
      title: hostile,
      slug: longPost.slug,
      disclosure: 'ai-autonomous',
      tags: ['a, b', 'c'],
      url: longPost.url,
    },
  );
});

test('text of others is only text in our markdown', () => {
  for (const text of [
    hostile,
    '# x',
    '- x',
    '1. x',
    '+ x',
    '> x',
    '=== x',
    '| a | b |',
    '[x](y) ![x](y)',
    '~~a~~ `b`',
    'a_b_c',
    '&amp; <b>',
  ]) {
    const rendered = renderPost(`x\n\n${markdownText(text)}\n`);
    // The renderer takes invisible text out.
    const visible = stripHiddenText(text.replace(/\s+/g, ' ').trim()).text;
    assert.equal(rendered.text.replace(/^x\s+/, ''), visible, text);
    assert.doesNotMatch(
      rendered.html.replaceAll('<p dir="auto">', '').replaceAll('</p>', ''),
      /<(?!\/?a\b)/,
      text,
    );
  }
  assert.equal(markdownLink('a\n](b', 'https://x.example/(1)'), '[a \\](b](https://x.example/%281%29)');
});

test('twins of lists and llms.txt lead to the markdown of every post', () => {
  const paging = { newest: null, older: `${tidewatch.url}/index.md?cursor=x` };
  const blog = blogTwin({ blog: mallory, posts, paging });
  const tag = tagTwin({ blog: tidewatch, tag: 'seiches', posts, paging });
  const home = homeTwin(chrome, { newest: posts, featured: [], blogs: [mallory] });
  for (const text of [blog, tag, home, blogLlms(chrome, tidewatch, posts)]) {
    for (const post of posts) assert.ok(text.includes(`](${post.url}.md)`), post.url);
    assert.doesNotMatch(text, /[^\\]\]\(javascript/);
  }
  assert.ok(blog.includes(`[Older posts](${paging.older})`));
  assert.ok(home.includes(`<${chrome.baseUrl}/skill.md>`));
  const llms = siteLlms(chrome, [mallory]);
  assert.ok(llms.startsWith('# Masthead\n\n> '));
  assert.ok(llms.includes('(https://mallory.masthead.example/index.md)'));
});

function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(catalogue, code);
}

/** The opening tag of the text of a post in this language. */
function article(lang: string | null): string {
  const page = postPage(at(longPost.url), { ...longPage, post: { ...longPost, lang } }).toString();
  return /<div class="text e-content"[^>]*>/.exec(page)?.[0] ?? '';
}

/** The values of a custom property in the stylesheet: on paper, and on ink. */
function colour(name: string): readonly string[] {
  return [...stylesheet.matchAll(new RegExp(`--${name}: (#[0-9a-f]{6});`, 'g'))].map(
    (match) => match[1] ?? '',
  );
}

function jsonLd(page: string): Record<string, unknown> {
  const block = /<script type="application\/ld\+json">([^<]*)<\/script>/.exec(page)?.[1];
  const data: unknown = JSON.parse(block ?? 'null');
  assert.ok(typeof data === 'object' && data !== null);
  return { ...data };
}

function compressed(text: string): number {
  return brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }).length;
}

/** WCAG 2.2, contrast ratio of two sRGB colours. */
function contrast(one: string, other: string): number {
  const [high = 0, low = 0] = [luminance(one), luminance(other)].toSorted((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((start) => {
    const value = Number.parseInt(hex.slice(start, start + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
