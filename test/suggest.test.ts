import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Type } from 'typebox';
import { nearest, unknownFieldWarning } from '../src/rules/suggest.ts';
import { createCheck } from '../src/schemas/validate.ts';

fc.configureGlobal({ seed: 1 });

const known = ['title', 'content', 'status', 'slug', 'tags', 'lang', 'publishedAt', 'id'];

const check = createCheck(
  Type.Object(Object.fromEntries(known.map((name) => [name, Type.Optional(Type.String())]))),
);
const warningsAbout = (sent: Readonly<Record<string, string>>) =>
  check(sent).warnings.map(({ text }) => text);

test('the nearest known word is one or two slips away, or differs in spelling conventions only', () => {
  const cases: [word: string, expected: string | null][] = [
    ['statsu', 'status'],
    ['sttaus', 'status'],
    ['contnet', 'content'],
    ['tag', 'tags'],
    ['TITLE', 'title'],
    ['published_at', 'publishedAt'],
    ['published-at', 'publishedAt'],
    ['publishdAt', 'publishedAt'],
    ['ti', null],
    ['ip', null],
    ['body', null],
    ['', null],
    ['status'.repeat(50_000), null],
  ];
  for (const [word, expected] of cases) assert.equal(nearest(word, known), expected, word.slice(0, 20));
});

test('the nearest of several is chosen, the first of equals', () => {
  assert.equal(nearest('sluggs', ['plugs', 'slugs']), 'slugs');
  assert.equal(nearest('bxt', ['bat', 'bit']), 'bat');
});

test('each unknown name is one warning that names the nearest known one', () => {
  assert.deepEqual(warningsAbout({ title: '', statsu: '', mood: '' }), [
    "unknown field 'statsu' ignored; did you mean 'status'?",
    "unknown field 'mood' ignored",
  ]);
  assert.equal(
    unknownFieldWarning('query parameter', 'Limit', ['limit']),
    "unknown query parameter 'Limit' ignored; did you mean 'limit'?",
  );
  assert.deepEqual(warningsAbout(Object.fromEntries(known.map((name) => [name, '']))), []);
});

test('a name that other services use leads to ours where there is one', () => {
  const cases: [name: string, known: readonly string[], expected: string][] = [
    ['body', known, 'content'],
    ['Markdown', known, 'content'],
    ['is_draft', known, 'status'],
    ['subject', known, 'title'],
    ['query', ['q', 'limit'], 'q'],
    ['value', ['vote'], 'vote'],
    ['avatar_url', ['avatarUrl'], 'avatarUrl'],
    ['avatar', ['avatarUrl'], 'avatarUrl'],
    ['username', ['email', 'slug', 'name'], 'slug'],
  ];
  for (const [name, names, expected] of cases)
    assert.match(unknownFieldWarning('field', name, names), new RegExp(`'${expected}'\\?$`));
});

test('hostile names are cut and escaped, and there are at most 20 warnings', () => {
  assert.equal(
    unknownFieldWarning('field', `\n\u{E0061}${'🚀'.repeat(100)}`, known),
    `unknown field '\\u{a}\\u{e0061}${'🚀'.repeat(62)}…' ignored`,
  );
  const many = Array.from({ length: 30 }, (_, n) => [`unheard-of-${n}`, '']);
  assert.equal(warningsAbout(Object.fromEntries(many)).length, 20);
});

test('a swap, an insertion, a deletion or a substitution in a long word is always mended', () => {
  const word = 'publishedAt';
  const slip = fc.record({
    at: fc.integer({ min: 0, max: word.length - 2 }),
    kind: fc.constantFrom('swap', 'insert', 'delete', 'substitute'),
    letter: fc.string({ minLength: 1, maxLength: 1 }),
  });
  fc.assert(
    fc.property(slip, ({ at, kind, letter }) => {
      const [before, here, next, after] = [word.slice(0, at), word[at], word[at + 1], word.slice(at + 2)];
      const slips: Record<string, string> = {
        swap: `${before}${next}${here}${after}`,
        insert: `${before}${letter}${here}${next}${after}`,
        delete: `${before}${next}${after}`,
        substitute: `${before}${letter}${next}${after}`,
      };
      assert.equal(nearest(slips[kind] ?? '', known), word);
    }),
  );
});

test('no name is too strange', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      assert.match(unknownFieldWarning('field', name, known), /^unknown field '\P{C}*$/u);
    }),
  );
});
