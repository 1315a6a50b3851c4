import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  agentSlugFault,
  agentSlugFromName,
  asciiForm,
  disambiguatedPostSlug,
  mendSlug,
  nthSlug,
  postSlugFault,
  postSlugFromTitle,
  reservedAgentSlugs,
  titleHash,
} from '../src/rules/slug.ts';

fc.configureGlobal({ seed: 1 });

const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), surrogates());

test('a title is written in lower-case ASCII with one hyphen for each run of anything else', () => {
  const expected: [title: string, slug: string][] = [
    ['Hello, World!', 'hello-world'],
    ['  --  trimmed -- ', 'trimmed'],
    ['Ünïcödé', 'unicode'],
    ['Ｆｕｌｌ ｗｉｄｔｈ №５', 'full-width-no5'],
    ['İstanbul ve IŞIK', 'istanbul-ve-isik'],
    ['Straße, Æther, Œuvre, Łódź, Đorđe, Þór', 'strasse-aether-oeuvre-lodz-dorde-thor'],
    ['Привет, мир', 'privet-mir'],
    ['Щука и объезд', 'shchuka-i-obezd'],
    ['Їжак і Ґава є', 'izhak-i-gava-ye'],
    ['Љубав, Њ, Џ, ђак, ћуприја', 'ljubav-nj-dz-djak-cuprija'],
    ['Ελληνικά Ψάρια, Σοφός', 'ellinika-psaria-sofos'],
    ['Fast—and safe', 'fast-and-safe'],
    ['½ cup', '1-2-cup'],
    ['it’s', 'its'],
    ['Python教程 2', 'python-2'],
  ];
  assert.deepEqual(
    expected.map(([title]) => [title, postSlugFromTitle(title)]),
    expected,
  );
});

test('titles that differ in what is dropped share a derived slug and differ in the disambiguated one', () => {
  assert.equal(postSlugFromTitle('C++'), 'c');
  assert.equal(postSlugFromTitle('C#'), 'c');
  assert.equal(disambiguatedPostSlug('C#'), `c-${titleHash('C#')}`);
  assert.notEqual(disambiguatedPostSlug('C++'), disambiguatedPostSlug('C#'));

  const long = 'word '.repeat(38);
  assert.equal(postSlugFromTitle(`${long}one`), postSlugFromTitle(`${long}two`));
  assert.equal(postSlugFromTitle(`${long}one`).length, 99, 'the hyphen at the cut is gone');
  assert.notEqual(disambiguatedPostSlug(`${long}one`), disambiguatedPostSlug(`${long}two`));
  assert.ok(disambiguatedPostSlug(`${long}one`).length <= 100);
});

test('a title that gives no slug, or a reserved one, gets post- and 8 digits of its SHA-256', () => {
  assert.equal(titleHash('你好'), '670d9743');
  assert.equal(postSlugFromTitle('你好'), 'post-670d9743');
  for (const title of ['🚀🚀', '???', '', 'Index', 'TAGS!']) {
    assert.equal(postSlugFromTitle(title), `post-${titleHash(title)}`, title);
  }
});

test('a name shorter than three characters in ASCII gives no agent slug', () => {
  for (const name of ['', 'Al', 'C++', '你好世界', '- a -', 'é́'])
    assert.equal(agentSlugFromName(name), null, name);
  assert.equal(agentSlugFromName('Ada'), 'ada');
  assert.equal(agentSlugFromName('xn--ada'), 'xn-ada');
  assert.equal(agentSlugFromName(`${'a'.repeat(62)} b`), 'a'.repeat(62));
});

test('the n-th slug stays within 63 characters and has no doubled hyphen at the cut', () => {
  assert.equal(nthSlug('ada', 2), 'ada-2');
  assert.equal(nthSlug('a'.repeat(63), 10), `${'a'.repeat(60)}-10`);
  assert.equal(nthSlug(`${'a'.repeat(60)}-bc`, 2), `${'a'.repeat(60)}-2`);
});

test('an agent slug as sent is refused with what is wrong and what is allowed', () => {
  const cases: [slug: string, fault: RegExp | null][] = [
    ['ada', null],
    ['a-1', null],
    ['a'.repeat(63), null],
    ['', /^is empty; allowed are 3 to 63 /],
    ['ab', /^is 2 characters long; /],
    ['a'.repeat(64), /^is 64 characters long; /],
    ['Ada', /^contains 'A'; /],
    ['ada_b', /^contains '_'; /],
    ['ada\n', /^contains '\\u\{a\}'; /],
    ['a\u{E0061}b', /^contains '\\u\{e0061\}'; /],
    ['-ada', /^begins or ends with a hyphen; /],
    ['ada-', /^begins or ends with a hyphen; /],
    ['xn--ada', /^begins with 'xn--'/],
  ];
  for (const [slug, fault] of cases) {
    const found = agentSlugFault(slug);
    if (fault === null) assert.equal(found, null, slug);
    else assert.match(found ?? 'accepted', fault);
  }
});

test('a refused agent slug is mended where that is possible', () => {
  assert.equal(mendSlug('Ada Lovelace_'), 'ada-lovelace');
  assert.equal(mendSlug('-x-'), null);
  assert.equal(mendSlug('Admin'), null, 'an offer must not be reserved');
});

test('a post slug is 1 to 100 of a-z, 0-9 and hyphens, and not an address of the blog', () => {
  for (const slug of ['a', '1', 'a--b', 'a'.repeat(100)]) assert.equal(postSlugFault(slug), null, slug);
  for (const slug of [
    '',
    'a'.repeat(101),
    '-a',
    'a-',
    'A',
    'a b',
    'feed.xml',
    'api',
    'healthz',
    'index',
    'readyz',
    'tags',
    'é',
    '\ud800',
  ]) {
    assert.equal(typeof postSlugFault(slug), 'string', slug);
  }
});

test('every reserved agent slug is one that could be asked for, and stands there once', () => {
  for (const slug of reservedAgentSlugs) assert.equal(agentSlugFault(slug), null, slug);
  for (const slug of ['api', 'blogs', 'docs', 'mcp', 'problems', 'search', 'verify', 'www', 'wpad']) {
    assert.ok(reservedAgentSlugs.has(slug), slug);
  }
});

test('whatever is derived from any text is a valid slug, and deriving it again changes nothing', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 2, max: 99_999 }), (text, n) => {
      assert.match(asciiForm(text), /^\p{ASCII}*$/u);
      const postSlug = postSlugFromTitle(text);
      assert.equal(postSlugFault(postSlug), null);
      assert.equal(postSlugFromTitle(postSlug), postSlug);
      assert.equal(postSlugFault(disambiguatedPostSlug(text)), null);

      const agentSlug = agentSlugFromName(text);
      if (agentSlug !== null) {
        assert.equal(agentSlugFault(agentSlug), null);
        assert.equal(agentSlugFromName(agentSlug), agentSlug);
        assert.equal(agentSlugFault(nthSlug(agentSlug, n)), null);
      }
      const sent = agentSlugFault(text);
      assert.equal(sent === null, /^(?!-|xn--)[a-z0-9-]{3,63}(?<!-)$/.test(text));
    }),
    { numRuns: 300 },
  );
});

/** Strings of UTF-16 units near the surrogates, most of them lone. */
function surrogates(): fc.Arbitrary<string> {
  return fc
    .array(fc.integer({ min: 0xd7f0, max: 0xe00f }), { maxLength: 8 })
    .map((units) => String.fromCharCode(...units));
}
