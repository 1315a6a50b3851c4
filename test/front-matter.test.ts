import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { formatFrontMatter, parseFrontMatter } from '../src/rules/front-matter.ts';
import { strayFrontMatter, takeFirstHeading } from '../src/rules/post-fields.ts';

fc.configureGlobal({ seed: 1 });

test('front matter gives strings and lists of strings, and leaves the content', () => {
  const document = [
    '\uFEFF---',
    'title: Rust: a #1 story  ',
    '# a comment',
    '',
    'status : published',
    `tags: [ai, "a, b", 'it''s',  two words ,]`,
    'empty:',
    'none: []',
    'list:',
    '  - one',
    '- "t\\"w\\\\o\\n\\u00e9"',
    "excerpt: '# no comment'",
    'views: 12',
    '---',
    '',
    '# Heading',
    '---',
    '',
  ];
  for (const lineEnd of ['\n', '\r\n']) {
    assert.deepEqual(parseFrontMatter(document.join(lineEnd)), {
      ok: true,
      fields: {
        title: 'Rust: a #1 story',
        status: 'published',
        tags: ['ai', 'a, b', "it's", 'two words'],
        empty: '',
        none: [],
        list: ['one', 't"w\\o\né'],
        excerpt: '# no comment',
        views: '12',
      },
      content: ['# Heading', '---', ''].join(lineEnd),
    });
  }
});

test('a text without front matter is content as it is', () => {
  for (const text of [
    '',
    '# Title\n---\n',
    '---',
    '----\na: b\n---\n',
    ' ---\na: b\n---\n',
    '\n---\na: b\n---',
  ]) {
    assert.deepEqual(parseFrontMatter(text), { ok: true, fields: {}, content: text });
  }
  assert.deepEqual(parseFrontMatter('\uFEFFtext'), { ok: true, fields: {}, content: 'text' });
  assert.deepEqual(parseFrontMatter('---\n---'), { ok: true, fields: {}, content: '' });
});

test('what cannot be read names its line', () => {
  const cases: [lines: string[], fault: RegExp][] = [
    [['title: x', 'no colon'], /^line 3: expected 'key: value'/],
    [['title:x'], /^line 2: expected/],
    [['title: x', '  continued'], /^line 3: expected/],
    [['a: {b: c}'], /^line 2: a value that begins with '\{' must be quoted/],
    [['a: |', '  text'], /^line 2: .*'\|'/],
    [['a: *b'], /^line 2: .*'\*'/],
    [['a: "open'], /^line 2: a quoted value must be closed/],
    [['a: "x" y'], /^line 2: a quoted value/],
    [['a: "\\x41"'], /^line 2: a quoted value/],
    [["a: 'it's'"], /^line 2: a quoted value/],
    [['a: [b'], /^line 2: expected a list on one line/],
    [['a: [b] c'], /^line 2: something follows/],
    [['a: [b,,c]'], /^line 2: expected a list/],
    [['a: [[b]]'], /^line 2: expected a list/],
    [[`a: [b${' '.repeat(60_000)}[`], /^line 2: expected a list/],
    [['- a'], /^line 2: '- item' can only follow/],
    [['a: b', '- c'], /^line 3: '- item' can only follow/],
    [['a: b', '', 'a: c'], /^line 4: 'a' is there twice/],
  ];
  for (const [lines, fault] of cases) {
    const parsed = parseFrontMatter(['---', ...lines, '---', 'content'].join('\n'));
    assert.match(parsed.ok ? 'accepted' : parsed.message, fault, lines.join('\n'));
  }
});

test('front matter that is never closed, or longer than it can be, is a fault', () => {
  for (const text of ['---\ntitle: x\n\nText', `---\ntitle: ${'x'.repeat(70_000)}\n---\n`]) {
    const parsed = parseFrontMatter(text);
    assert.match(
      parsed.ok ? 'accepted' : parsed.message,
      /^line 1: .* no line '---' closes it within 65536 /,
    );
  }
});

test('a field called __proto__ is a field like any other', () => {
  const parsed = parseFrontMatter('---\n__proto__: [polluted]\nconstructor: x\n---\n');
  assert.ok(parsed.ok);
  assert.equal(Object.getPrototypeOf(parsed.fields), Object.prototype);
  assert.deepEqual(Object.entries(parsed.fields), [
    ['__proto__', ['polluted']],
    ['constructor', 'x'],
  ]);
});

test('front matter is written so that YAML too reads every value as a string', () => {
  const fields = {
    title: 'A: b',
    status: 'published',
    date: '2026-01-02',
    lang: 'no',
    tags: ['two words', 'c#'],
    none: [],
  };
  assert.equal(
    formatFrontMatter(fields, 'Text\n'),
    [
      '---',
      'title: "A: b"',
      'status: published',
      'date: "2026-01-02"',
      'lang: "no"',
      'tags: [two words, "c#"]',
      'none: []',
      '---',
      '',
      'Text\n',
    ].join('\n'),
  );
});

test('no line break of another standard is written as it is', () => {
  const text = formatFrontMatter({ title: 'a\u2028b\u2029c\u0085d' }, '');
  assert.equal(text, '---\ntitle: "a\\u2028b\\u2029c\\u0085d"\n---\n\n');
});

test('what was formatted is parsed back, whatever it holds', () => {
  const tricky = fc.string({
    unit: fc.constantFrom(...Array.from('ab "\'\\\n\r\t#:-[],{}\u2028\u0085\ufeff\ud800é')),
  });
  const text = fc.oneof(tricky, fc.string({ unit: 'binary' }));
  const key = fc.oneof(fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_-]{0,8}$/), fc.constant('__proto__'));
  const fields = fc
    .array(fc.tuple(key, fc.oneof(text, fc.array(text))))
    .map((entries) => Object.fromEntries(entries));
  fc.assert(
    fc.property(fields, text, (given, content) => {
      assert.deepEqual(parseFrontMatter(formatFrontMatter(given, content)), {
        ok: true,
        fields: given,
        content,
      });
    }),
    { numRuns: 500 },
  );
});

test('no document is too strange to be parsed or refused', () => {
  const unit = fc.constantFrom(
    '---',
    '\n',
    '\r\n',
    'key:',
    ' ',
    '- ',
    '[',
    ']',
    ',',
    '"',
    "'",
    '\\',
    '#',
    'a',
    '=',
    '\ud800',
  );
  fc.assert(
    fc.property(
      fc.array(unit).map((units) => `---\n${units.join('')}`),
      (document) => {
        const parsed = parseFrontMatter(document);
        if (!parsed.ok) assert.match(parsed.message, /^line \d+: /);
        const { title, content } = takeFirstHeading(document.slice(4));
        if (title === null) assert.equal(content, document.slice(4));
        else assert.notEqual(title, '');
      },
    ),
    { numRuns: 500 },
  );
});

test('a document that begins with a heading gives it up as its title, in plain text', () => {
  const cases: [markdown: string, title: string, content: string][] = [
    ['# Title\n\nText\n', 'Title', 'Text\n'],
    ['\r\n # Title ##\r\nText', 'Title', 'Text'],
    ['## Second level', 'Second level', ''],
    ['Title\n===\n\n\nText', 'Title', '\nText'],
    ['  Title\n---', 'Title', ''],
    ['# **Bold** and *it*, ~~gone~~, ***both***', 'Bold and it, gone, both', ''],
    ['# `a*b*c` and `` x ``', 'a*b*c and x', ''],
    ['# A [link](https://a.example "t") ![alt](x.png)', 'A link alt', ''],
    ['# snake_case_name and _it_ 2 * 3 * 4', 'snake_case_name and it 2 * 3 * 4', ''],
    ['# \\*not\\* C# \\#', '*not* C# #', ''],
    ['# 🚀 **`code`**', '🚀 code', ''],
  ];
  for (const [markdown, title, content] of cases) {
    assert.deepEqual(takeFirstHeading(markdown), { title, content }, markdown);
  }
});

test('a document that begins with anything else has no title and stays whole', () => {
  const others = [
    '',
    ' \n\n',
    'Text\n\n# Later',
    '#hashtag',
    '####### seven',
    '#',
    '# ![](x.png)',
    '    # code',
    '- item\n---',
    '1. item\n===',
    '> quote\n===',
    '```\n===',
    '***\n---',
    '[a]: b\n===',
    `${'x'.repeat(2000)}\n===`,
  ];
  for (const content of others)
    assert.deepEqual(takeFirstHeading(content), { title: null, content }, content);
});

test('front matter where none is read is known by a field of a post', () => {
  for (const [text, expected] of [
    ['---\ntitle: T\nauthor: A\ntags: [a]\n---\nText', { names: ['title', 'tags'], isOpened: true }],
    ['\n\n---\r\nStatus: draft\r\n---\r\n', { names: ['Status'], isOpened: true }],
    ['\uFEFFtitle: T\nslug: t\n---\n\nText', { names: ['title', 'slug'], isOpened: false }],
    ['---\n\nTitle above\n---\n', null],
    ['Note: this is a heading\n---\nText', null],
    ['title: T\n\nand no end', null],
    ['# title: T\n---\n', null],
    ['', null],
  ] as const)
    assert.deepEqual(strayFrontMatter(text), expected, text);
});
