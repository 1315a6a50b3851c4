import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { listMutants, root } from './mutants/list.ts';

test('faults to be planted have their places, each once, and a reason', (t) => {
  const mutants = listMutants();
  const misplaced = mutants.filter(({ file, text }) => readOrNone(file).split(text).length !== 2);
  // A few may wait for whoever changed their places: npm run mutate names them.
  for (const { file, text } of misplaced) t.diagnostic(`${file} does not have this once: ${text}`);
  assert.ok(misplaced.length <= mutants.length / 10, `${misplaced.length} have no place`);
  for (const { file, text, becomes, why } of mutants) {
    assert.notEqual(becomes, text, file);
    assert.notEqual(why, '', file);
  }
  const places = mutants.map(({ file, becomes, text }) => `${file} ${text} ${becomes}`);
  assert.equal(new Set(places).size, places.length, 'one is there twice');
});

function readOrNone(file: string): string {
  const path = join(root, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}
