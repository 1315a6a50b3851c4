import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createRenderer } from '../src/markdown/pool/renderer.ts';
import { diffTexts } from '../src/rules/edits/text-diff.ts';
import { randomFrom } from './support/random.ts';

/** The program that applies diffs. */
const patch = 'patch';
const names = ['essay revision 1', 'essay revision 2'] as const;
const diffOf = (before: string, after: string) => diffTexts(before, after, { names, longest: Infinity });

test('shows what changed with three lines of context', () => {
  const lines = Array.from({ length: 12 }, (_, i) => `line ${i + 1}\n`);
  const after = lines.with(5, 'another\n');
  assert.deepEqual(diffOf(lines.join(''), after.join('')), {
    diff: [
      '--- essay revision 1',
      '+++ essay revision 2',
      '@@ -3,7 +3,7 @@',
      ' line 3',
      ' line 4',
      ' line 5',
      '-line 6',
      '+another',
      ' line 7',
      ' line 8',
      ' line 9',
      '',
    ].join('\n'),
    truncated: false,
    added: 1,
    removed: 1,
  });
});

test('is empty where nothing changed', () => {
  for (const text of ['', 'a', 'a\n\n'])
    assert.deepEqual(diffOf(text, text), { diff: '', truncated: false, added: 0, removed: 0 });
});

test('joins changes whose contexts touch, and parts those that do not', () => {
  const lines = Array.from({ length: 30 }, (_, i) => `line ${i + 1}\n`);
  const hunks = (...places: number[]) =>
    diffOf(lines.join(''), lines.map((line, i) => (places.includes(i) ? 'x\n' : line)).join('')).diff.match(
      /^@@/gm,
    )?.length;
  assert.equal(hunks(5, 12), 1);
  assert.equal(hunks(5, 13), 2);
});

test('finds a moved paragraph by the lines that occur once', () => {
  const [a, b, c] = ['one\n\ntwo\n', 'three\n\nfour\n', 'five\n\nsix\n'];
  const { added, removed } = diffOf(`${a}\n${b}\n${c}`, `${b}\n${c}\n${a}`);
  assert.deepEqual([added, removed], [4, 4]);
});

test('is cut at a hunk', () => {
  const lines = Array.from({ length: 300 }, (_, i) => `line ${i + 1}\n`);
  const after = lines.map((line, i) => (i % 20 === 10 ? `${'x'.repeat(100)}\n` : line)).join('');
  const whole = diffOf(lines.join(''), after);
  const { diff, truncated, added } = diffTexts(lines.join(''), after, { names, longest: 1000 });
  assert.ok(truncated && diff.length > 500 && diff.length <= 1000);
  assert.ok(whole.diff.startsWith(`${diff}@@ `));
  assert.equal(added, whole.added);
  assert.equal(diffTexts('', 'x'.repeat(30_000), { names }).diff, '', 'not half of the only hunk');
});

test('replaces what is longer than 20,000 lines, or has no line in common, as a whole', () => {
  const long = (word: string) => Array.from({ length: 20_002 }, (_, i) => `${word} ${i}\n`).join('');
  assert.deepEqual(diffOf(`${long('a')}same\n${long('b')}`, `${long('c')}same\n${long('d')}`).added, 40_005);
  assert.deepEqual(diffOf(`${long('a')}same\n`, `${long('c')}same\n`).added, 20_002);
});

test('GNU patch makes the new text of the old one', { skip: skipWithoutPatch() }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'masthead-diff-'));
  const random = randomFrom(7);
  for (let round = 0; round < 50; round++) {
    const before = someText(random, random(40));
    const after = random(5) === 0 ? someText(random, random(40)) : changed(random, before);
    const { diff } = diffOf(before, after);
    assert.equal(await patched(folder, before, diff), after, JSON.stringify({ before, after }));
  }
  await rm(folder, { recursive: true });
});

test('runs in the render threads', async () => {
  const renderer = createRenderer({ threads: 1 });
  const read = async () => ({ before: 'a\nb\n', after: 'a\nc\n', names });
  assert.deepEqual(await renderer.diff({ bytes: 8, read }, 'ada'), diffOf('a\nb\n', 'a\nc\n'));
  await renderer.close();
});

test('takes little for the worst of texts', async () => {
  // Each look for anchors finds one line and leaves the rest.
  const nested = (turn: 0 | 1) => {
    const lines: string[] = [];
    for (let i = 0; i < 20_000; i++) lines[turn === 0 ? 'push' : 'unshift'](`${i % 9_999}\n`);
    return lines.join('');
  };
  const renderer = createRenderer({ threads: 1, deadlineMs: 2000, longestMs: 600_000 });
  const read = async () => ({ before: nested(0), after: nested(1), names });
  const { added, removed } = await renderer.diff({ bytes: 200_000, read });
  assert.equal(added, removed);
  await renderer.close();
});

function skipWithoutPatch(): string | false {
  return spawnSync(patch, ['--version']).error ? 'needs GNU patch (apt-get install patch)' : false;
}

async function patched(folder: string, before: string, diff: string): Promise<string> {
  const file = join(folder, 'essay.md');
  await writeFile(file, before);
  if (diff === '') return before;
  const { status, stdout, stderr } = spawnSync(patch, ['--quiet', '--fuzz=0', file], {
    input: diff,
    encoding: 'utf8',
  });
  assert.equal(status, 0, `${stdout}${stderr}\n${diff}`);
  // What becomes empty is removed.
  return readFile(file, 'utf8').catch(() => '');
}

const words = [
  '',
  '',
  'a',
  'b',
  'c',
  '- x',
  '\\ No newline',
  '@@ -1,1 +1,1 @@',
  '--- y',
  '+++ z',
  'ä\r',
  '\u2028',
];

function someText(random: (below: number) => number, lines: number): string {
  const text = Array.from(
    { length: lines },
    () => `${words[random(words.length)]}${random(3) ? '' : random(30)}\n`,
  );
  return random(2) ? text.join('') : text.join('').slice(0, -1);
}

function changed(random: (below: number) => number, text: string): string {
  const lines = text.split(/(?<=\n)/);
  for (let n = random(6); n > 0; n--)
    lines.splice(random(lines.length + 1), random(3), ...(random(2) ? [`new ${random(50)}\n`] : []));
  return lines.join('');
}
