import assert from 'node:assert/strict';
import { test } from 'node:test';
import { longestLook, markedSnippet, snippetOf } from '../src/rules/search/search-snippet.ts';
import { parseSearch } from '../src/rules/search/search-terms.ts';

const hitsIn = (text: string, q: string) =>
  snippetOf(text, parseSearch(q))
    .filter(({ hit }) => hit)
    .map(({ text: marked }) => marked);

test('hits are marked as they stand in the text, and only where a word ends', () => {
  for (const [text, q, expected] of [
    ['Gauge, gauged, ungauge', 'gauge', ['Gauge']],
    ['Gauge, gauged, ungauge', 'gaug*', ['Gauge', 'gauged']],
    ['naïve Cafe\u0301 ΟΔΟΣ', 'cafe οδοσ', ['Café', 'ΟΔΟΣ']],
    ['東京タワーの猫', '京タ 猫', ['京タ', '猫']],
    ['🚀launch🚀 launches', 'launch', ['launch']],
    ['İstanbul and ISTANBUL', 'istanbul', ['İstanbul', 'ISTANBUL']],
    ['one two three', 'two "one two"', ['one two']],
    ['One, then two', '"one two"', ['One', 'two']],
    ['a ab abc', 'abc ab', ['ab', 'abc']],
    ['nothing', 'else', []],
    ['The state of the art and the artist', 'the art and', ['art']],
    ['The state of the art and the state', '"state of the art"', ['state of the art']],
    ['3.11 and 3.12, not 3 or 12', '3.12', ['3.12']],
    ['GPT-4, GPT4 and 4', 'gpt4', ['GPT-4', 'GPT4']],
    ['Die Straßen und Maße, Strasse', 'strasse maße', ['Maße', 'Strasse']],
    ['What it is and what it was', 'what it was', ['What', 'it', 'what', 'it', 'was']],
  ] as const) {
    assert.deepEqual(hitsIn(text, q), expected, `${q} in ${text}`);
  }
});

test('the place is shown where most different words stand together', () => {
  const text = `one ${'filler '.repeat(60)}one three ${'filler '.repeat(60)}two`;
  assert.deepEqual(hitsIn(text, 'one two three'), ['one', 'three']);
});

test('blocks that end without a sign are parted', () => {
  const text = 'First point\nSecond point\ncode\n\nA sentence.\n\nAnother\tcell\nlast';
  const shown = markedSnippet(snippetOf(text, parseSearch('second code')));
  assert.equal(shown, 'First point · **Second** point · **code** · A sentence. Another cell · last');
});

test('a text is looked through to a bound, and so are the places that turn out to be no hit', () => {
  assert.deepEqual(hitsIn(`${'x '.repeat(longestLook / 2 - 2)}word`, 'word'), ['word']);
  assert.deepEqual(hitsIn(`${'x '.repeat(longestLook / 2)}word`, 'word'), []);
  assert.deepEqual(hitsIn(`${'ба '.repeat(900)}а`, 'а'), ['а']);
  assert.deepEqual(hitsIn(`${'ба '.repeat(2000)}а`, 'а'), []);
});

test('marks are put in order in short pieces only', (t) => {
  const { mock } = t.mock.method(String.prototype, 'normalize');
  snippetOf('\u0316\u0301'.repeat(20_000), parseSearch('word'));
  assert.ok(mock.calls.length > 0);
  for (const call of mock.calls) assert.ok(String(call.this).length <= 64);
});
