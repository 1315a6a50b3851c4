import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  apiKeyCandidates,
  codePoints,
  controlFault,
  hiddenText,
  hiddenTextFault,
  keysToBeSeen,
  looksMangled,
  nameKey,
  normalizeNewlines,
  normalizeTag,
  printable,
  quoted,
  stripHiddenText,
  tagFault,
  withoutKeys,
  sliceCodePoints,
} from '../src/rules/text.ts';
import { asciiForm } from '../src/rules/slug.ts';
import { canonicalLanguage, languageTagFault } from '../src/rules/text/language-tags.ts';
import { blockOfText } from '../src/rules/source-blocks.ts';
import { parseBlogPath } from '../src/web/addresses.ts';

fc.configureGlobal({ seed: 1 });

const england = '\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}';
const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }));

test('characters are counted as code points, a lone surrogate as one', () => {
  assert.equal(codePoints(''), 0);
  assert.equal(codePoints('añ🚀'), 3);
  assert.equal(codePoints('\ud800a\udc00'), 3);
  fc.assert(fc.property(anyText, (text) => assert.equal(codePoints(text), Array.from(text).length)));
});

test('a piece of a text is counted in code points', () => {
  fc.assert(
    fc.property(anyText, fc.nat(12), fc.nat(12), (text, from, more) => {
      const piece = Array.from(text).slice(from, from + more);
      assert.equal(sliceCodePoints(text, from, from + more), piece.join(''));
    }),
  );
});

test('CR LF and CR become LF', () => {
  assert.equal(normalizeNewlines('a\r\nb\rc\n\r\nd'), 'a\nb\nc\n\nd');
});

test('what is quoted from outside is cut, and shows what is invisible', () => {
  assert.equal(printable('plain', 5), 'plain');
  assert.equal(printable('🚀🚀🚀', 2), '🚀🚀…');
  assert.equal(quoted(`it's\n${'x'.repeat(64)}`), `'it's\\u{a}${'x'.repeat(59)}…'`);
  assert.equal(
    printable("a'\n\u202e\u{E0061}\ud800\u2028", 9),
    "a'\\u{a}\\u{202e}\\u{e0061}\\u{d800}\\u{2028}",
  );
});

test('what is part of an emoji or joins letters is quoted as it is', () => {
  for (const text of ['❤️ 1️⃣', '❤️‍🔥 👩🏽‍🚀 👨‍👩‍👧', 'می‌شود']) assert.equal(printable(text, 99), text);
  assert.equal(
    printable('a\u200db ❤\uFE0F\uFE0F 🚀\u200D\u200D🚀 🚀\u200D', 99),
    'a\\u{200d}b ❤\uFE0F\\u{fe0f} 🚀\\u{200d}\\u{200d}🚀 🚀\\u{200d}',
  );
});

test('control characters, lone surrogates and noncharacters are refused, line ends and tabs only in one line', () => {
  const cases: [text: string, oneLine: RegExp | null, multiline: RegExp | null][] = [
    ['plain é 🚀', null, null],
    ['a\nb\r\n\tc', /^contains a line break or tab \(U\+000A\) at character 2; /, null],
    ['a\u2028b', /^contains a line break or tab \(U\+2028\) at character 2; /, null],
    ['a\u2029b', /^contains a line break or tab \(U\+2029\)/, null],
    ['🚀\0', /^contains a control character \(U\+0000\) at character 2; /, /U\+0000/],
    ['\u001b[31m', /U\+001B/, /U\+001B/],
    ['a\u007f', /U\+007F/, /U\+007F/],
    ['a\n\u0085', /U\+000A/, /^contains a control character \(U\+0085\) at character 3; /],
    ['a\ud800b', /^contains half of a surrogate pair \(U\+D800\)/, /U\+D800/],
    ['a\uffff', /^contains a code point that is no character \(U\+FFFF\)/, /U\+FFFF/],
  ];
  for (const [text, oneLine, multiline] of cases) {
    expectFault(controlFault(text, { multiline: false }), oneLine, text);
    expectFault(controlFault(text, { multiline: true }), multiline, text);
  }
});

test('of all code points a content may have those that are characters, line ends and tabs', () => {
  const refused = /[[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]--[\t\n\r]]/v;
  for (let code = 0; code <= 0x10ffff; code++) {
    const character = String.fromCodePoint(code);
    if ((controlFault(character) !== null) !== refused.test(character)) assert.fail(`U+${code.toString(16)}`);
  }
});

test('invisible characters that belong to a script, an emoji or a name are left alone', () => {
  const legitimate = [
    england,
    `x${england}y`,
    '👩‍👩‍👧 🏳️‍🌈 👩🏽‍💻 🏴‍☠️ ❤️ ☎︎ 1️⃣ ™️ →️',
    'می‌خواهم',
    'ක්‍ෂ র‍্য ന്‍',
    '葛\u{E0100}城 邉\u{E011F}',
    'soft\u00adhyphen, one/\u200bspace, (\u2060-\u2060)',
    'ภาษา\u200bไทย 今日\u200bは ខ្មែរ\u200bភាសា မြန်မာ\u200bစာ',
    'C++\u200e, a\u200fב',
    'x\u200e-y',
    '\u200dه ه\u200d',
    '\u200fעברית\u200e (LRM)',
    'from \u2068Ada\u2069\u2068Eve\u2069 \u2066a \u2067b\u2069\u2069',
    '\u2067two\u2069\nlines \u2067each\u2069',
  ];
  for (const text of legitimate) {
    assert.deepEqual(hiddenText(text), [], text);
    assert.deepEqual(stripHiddenText(text), { text, warnings: [] });
    assert.equal(hiddenTextFault(text), null);
  }
});

test('invisible text is found by kind and taken out, and what is visible stays', () => {
  const cases: [text: string, clean: string, kind: string, count: number][] = [
    ['hi\u{E0001}\u{E0069}\u{E0067}', 'hi', 'tag characters', 3],
    [`${england}\u{E0061}`, england, 'tag characters', 1],
    ['\u{1F3F4}\u{E0061}\u{E007F}', '\u{1F3F4}', 'tag characters', 2],
    ['\u{1F3F4}\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}', '\u{1F3F4}', 'tag characters', 5],
    ['a\u202Ecba\u202C', 'acba', 'direction overrides', 2],
    ['\u202Aa\u202Bb\u202Dc', 'abc', 'direction overrides', 3],
    ['a\u2067b', 'ab', 'unbalanced direction isolates', 1],
    ['a\u2069b', 'ab', 'unbalanced direction isolates', 1],
    ['\u2066a\nb\u2069', 'a\nb', 'unbalanced direction isolates', 2],
    ['a\u2066\u2067\u2069\u2069b', 'ab', 'unbalanced direction isolates', 4],
    ['❤\uFE0F\uFE0F\uFE00', '❤\uFE0F', 'variation selectors', 2],
    ['😀\u{E0150}\u{E0151}', '😀', 'variation selectors', 2],
    ['a\u{E0150}b\u{E0151}', 'ab', 'variation selectors', 2],
    ['漢\u{E0161}字\u{E0162}', '漢字', 'variation selectors', 2],
    ['a\uFE00b', 'ab', 'variation selectors', 1],
    ['\uFE0Fa', 'a', 'variation selectors', 1],
    ['1\uFE03.\uFE09', '1.', 'variation selectors', 2],
    ['a\u200b\u200cb', 'ab', 'zero-width characters', 2],
    ['-\u{E00E1}-\u{E0FFF}-\u{E01F0}-\u206A-\uFFF0-', '------', 'zero-width characters', 5],
    ['=\u034F=\u3164=\u17B4=\u180E=\u{1D173}=\u{1BCA0}=', '=======', 'zero-width characters', 6],
    ['a\u2060\u2063\uFEFF\u00ad\u180e\u3164\uffa0b', 'ab', 'zero-width characters', 7],
    ['a\u200bb\u200cc\u200dd\u2060e\uFEFFf\u2062g\u200eh', 'abcdefgh', 'zero-width characters', 7],
    ['б\u200bγ\u200b1\u200b2\u200b é\u200be\u0301\u200bx', 'бγ12 ée\u0301x', 'zero-width characters', 6],
    ['\uFEFFa b\u200b', 'a b', 'zero-width characters', 2],
    ['a\uFFF9b\uFFFA!\uFFFB', 'ab!', 'annotation characters', 3],
    ['今\uFFF9日\uFFFAきょう\uFFFB', '今日きょう', 'annotation characters', 3],
    ['👩\u200d\u200d👧', '👩\u200d👧', 'zero-width characters', 1],
    ['می\u200c\u200cخواهم', 'می\u200cخواهم', 'zero-width characters', 1],
    ['a\u2066\u200b\u2066b\u200b\u2069\u2069', 'a\u2066\u2066b\u2069\u2069', 'zero-width characters', 2],
    ['!\u2066\u200b\u2066b\u2069\u2069', '!\u2066\u200b\u2066b\u2069\u2069', '', 0],
  ];
  for (const [text, clean, kind, count] of cases) {
    assert.deepEqual(hiddenText(text), kind === '' ? [] : [{ kind, count }], printable(text, 20));
    assert.equal(stripHiddenText(text).text, clean, printable(text, 20));
  }
});

test('removing one hidden character does not leave another unseen', () => {
  const cases: [text: string, clean: string][] = [
    ['a\u200b\u{E0061}\u200bb', 'ab'],
    ['a\u200b\u2069\u200bb', 'ab'],
    ['❤\u200b\u200b\uFE0F', '❤'],
    ['\u{1F3F4}\u200b\u200b\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}', '\u{1F3F4}'],
  ];
  for (const [text, clean] of cases) assert.equal(stripHiddenText(text).text, clean);
});

test('each kind taken out is a warning, and in a name a fault', () => {
  const text = 'a\u{E0061}\u202E\u202Cb';
  assert.deepEqual(stripHiddenText(text).warnings, [
    { code: 'hidden_text', text: 'removed invisible text: 1 tag character' },
    { code: 'hidden_text', text: 'removed invisible text: 2 direction overrides' },
  ]);
  assert.equal(
    hiddenTextFault(text),
    'contains invisible text (1 tag character, 2 direction overrides); remove it',
  );
});

test('a name of which nothing can be seen is refused', () => {
  for (const name of ['\u200b', '\u3164', ' \u2800 ', '\u{E0100}'])
    assert.notEqual(hiddenTextFault(name), null);
  assert.equal(hiddenTextFault(''), null, 'an empty bio hides nothing');
});

test('a text without its hidden text has none, and loses nothing that is visible', () => {
  const invisible = fc.constantFrom(
    ...Array.from('\u200b\u200c\u200d\u2060\u202e\u2066\u2067\u2069\ufe0f\ufe00\u{e0100}\u{e0067}\u{e0062}'),
    ...Array.from('\u{e007f}\u180b\u00ad\ufff9\u3164\u{1F3F4}\u{1F468}\u2764aم7葛 \n\u2029'),
    england,
  );
  const hostile = fc.oneof(
    fc.array(invisible, { maxLength: 24 }).map((units) => units.join('')),
    anyText,
  );
  fc.assert(
    fc.property(hostile, (text) => {
      const { text: clean, warnings } = stripHiddenText(text);
      assert.deepEqual(stripHiddenText(clean), { text: clean, warnings: [] });
      assert.equal(warnings.length, hiddenText(text).length);
      assert.equal(warnings.length === 0, clean === text);
      const visible = /[^\p{DI}\uFFF9-\uFFFB]/gu;
      assert.deepEqual(clean.match(visible), text.match(visible));
      const removed = hiddenText(text).reduce((sum, { count }) => sum + count, 0);
      assert.equal(codePoints(text) - codePoints(clean), removed);
    }),
    { numRuns: 1000 },
  );
});

test('content whose line breaks arrived as two characters is probably mangled', () => {
  assert.match(looksMangled('# Title\\n\\nText')?.text ?? '', /not one line break/);
  assert.equal(looksMangled('print("a\\n")\nprint("b")'), null);
  assert.equal(looksMangled('one line'), null);
});

test('every distinct UUID v4 in a text may be an API key, wherever it stands', () => {
  const key = '11111111-2222-4333-8444-555555555555';
  assert.deepEqual(apiKeyCandidates(`Bearer ${key}, again ${key.toUpperCase()}`), [key]);
  assert.deepEqual(apiKeyCandidates(`aaaaaaaa-bbbb-4ccc-8ddd-0000${key}f`), [
    'aaaaaaaa-bbbb-4ccc-8ddd-000011111111',
    key,
  ]);
  assert.deepEqual(apiKeyCandidates('11111111-2222-7333-8444-555555555555 and 1111-2222'), []);
});

test('a key with invisible characters in it is one that readers can see', () => {
  const key = '11111111-2222-4333-8444-555555555555';
  assert.deepEqual(keysToBeSeen(['nothing', `see ${key}`, key.replaceAll('', '\u200b')]), [key]);
  assert.deepEqual(keysToBeSeen([`${key.slice(0, 20)}\u2066\ufe0f\u00ad${key.slice(20)}`]), [key]);
  assert.deepEqual(keysToBeSeen([`${key.slice(0, 20)} ${key.slice(20)}`]), []);
});

test('a key that was broken into lines, escaped or set with other hyphens is one all the same', () => {
  const key = '11111111-2222-4333-8444-555555abcdef';
  for (const hyphen of ['\u2010', '\u2011', '\u2212', '\uff0d', '%2d', '%2D'])
    assert.deepEqual(keysToBeSeen([`see ${key.replaceAll('-', hyphen)}`]), [key], hyphen);
  for (const hyphen of ['-', '\u2011', '%2D', '\u200b-', '-\n> '])
    assert.equal(withoutKeys(`see ${key.replaceAll('-', hyphen)}.`), 'see (a key or token).', hyphen);
  for (const some of [/./g, /1/g, /^./])
    assert.deepEqual(keysToBeSeen([key.replace(some, (sign) => `%${sign.charCodeAt(0).toString(16)}`)]), [
      key,
    ]);
  for (const at of [2, 9, 14, 30])
    for (const end of ['\n', ' \n    ', '\n> '])
      assert.deepEqual(keysToBeSeen([`a\n${key.slice(0, at)}${end}${key.slice(at)}\nb`]), [key]);
});

test('language tags are well-formed BCP 47 of at most 35 characters', () => {
  for (const tag of [
    'en',
    'EN-us',
    'pt-BR',
    'zh-Hant-TW',
    'sr-Latn',
    'gsw',
    'x-private',
    'X-a-1',
    'i-Klingon',
    'zh-min-nan',
  ])
    assert.equal(languageTagFault(tag), null);
  for (const tag of [
    '',
    'e',
    'en_US',
    'en-',
    'english',
    'en US',
    'x',
    'x-',
    'x-ninechars',
    'i-unknown',
    'zh-yue-',
    'de-1996-1996',
    `en-x-${'a'.repeat(40)}`,
    '\ud800',
  ]) {
    assert.match(languageTagFault(tag) ?? 'accepted', /^is not a BCP 47 language tag/);
  }
  const spelled = [
    ['EN-us', 'en-US'],
    ['X-Private', 'x-private'],
    ['I-KLINGON', 'i-klingon'],
    ['ZH-yue-hant-hk', 'zh-yue-Hant-HK'],
  ] as const;
  for (const [tag, usual] of spelled) assert.equal(canonicalLanguage(tag), usual);
});

test('tags are compared in lower case, composed, with single spaces', () => {
  assert.equal(normalizeTag('  Machine \t  Learning '), 'machine learning');
  assert.equal(normalizeTag('CAFE\u0301'), 'café');
  fc.assert(
    fc.property(fc.oneof(anyText, fc.string()), (tag) =>
      assert.equal(normalizeTag(normalizeTag(tag)), normalizeTag(tag)),
    ),
  );
});

test('a tag must be readable and work as one segment of an address', () => {
  const accepted = [
    'ai',
    'c++',
    'c#',
    '.net',
    '100%',
    'ci/cd',
    '日本語',
    '🚀',
    'machine learning',
    'a'.repeat(40),
  ];
  for (const tag of accepted) assert.equal(tagFault(tag), null, tag);
  const refused: [tag: string, fault: RegExp][] = [
    ['', /empty/],
    ['a'.repeat(41), /41 characters long; allowed are 1 to 40/],
    ['a\nb', /line break/],
    ['a\u{E0061}', /invisible text/],
    ['\ud800', /surrogate/],
    ['..', /no letter/],
    ['/', /no letter/],
    ['a\\b', /does not work/],
    ['a/', /only between words/],
    ['../a', /only between words/],
    ['a/ .. /b', /only between words/],
    ['readme.md', /markdown/],
  ];
  for (const [tag, fault] of refused) expectFault(tagFault(tag), fault, tag);
});

test('an accepted tag survives its way through an address', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }), (text) => {
      const tag = normalizeTag(text);
      fc.pre(tagFault(tag) === null);
      const { pathname } = new URL(`https://masthead.example/tags/${encodeURIComponent(tag)}`);
      assert.equal(decodeURIComponent(pathname), `/tags/${tag}`);
    }),
  );
});

function expectFault(found: string | null, expected: RegExp | null, text: string): void {
  if (expected === null) assert.equal(found, null, printable(text, 20));
  else assert.match(found ?? 'accepted', expected);
}

test('a long run of marks takes no longer than any text of its length', () => {
  // In an order that normalization has to change: it would take a minute or more.
  const marks = `a${'\u0301\u0323'.repeat(131_071)}`;
  assert.equal(nameKey(`${marks}B`), 'ab');
  assert.equal(asciiForm(`${marks}\u00df`), 'ass');
  assert.match(tagFault(normalizeTag(marks)) ?? '', /262143 characters long/);
  assert.deepEqual(blockOfText([{ kind: 'phrase', value: 'ab' }], { texts: [`${marks}b`], html: '' }), {
    kind: 'phrase',
    value: 'ab',
  });
  assert.equal(parseBlogPath(`/tags/${encodeURIComponent(marks)}`), null);
});

test('a tag is compared in one form, however it was written', () => {
  for (const [sent, tag] of [
    ['  Caf\u0065\u0301  Noir ', 'caf\u00e9 noir'],
    [`${' '.repeat(2_000)}A\u030a`, '\u00e5'],
    ['\u1112\u1161\u11ab'.repeat(40), '\ud55c'.repeat(40)],
    ['\u03b1\u0313\u0301\u0345'.repeat(40), '\u1f84'.repeat(40)],
  ] as const)
    assert.equal(normalizeTag(sent), tag);
});
