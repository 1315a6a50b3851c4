import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderOf, listMutants, root } from './mutants/list.ts';

test('each fault to be planted has its place, once, and a reason', () => {
  const mutants = listMutants();
  for (const { file, text, becomes, why } of mutants) {
    const times = readFileSync(join(root, file), 'utf8').split(text).length - 1;
    assert.equal(
      times,
      1,
      `${file} has ${times} times: ${text}\nPut what stands there now into test/mutants/`,
    );
    assert.notEqual(becomes, text, file);
    assert.notEqual(why, '', `${file}: ${text} has no reason`);
  }
  const places = mutants.map(({ file, becomes, text }) => `${file} ${text} ${becomes}`);
  assert.equal(new Set(places).size, places.length, 'one is there twice');
});

test('there is one in every folder', () => {
  const folders = new Set(globSync('{client/,}src/**/*.ts', { cwd: root }).map(folderOf));
  const listed = new Set(listMutants().map(({ file }) => folderOf(file)));
  assert.deepEqual([...folders].filter((folder) => !listed.has(folder)).toSorted(), []);
});
