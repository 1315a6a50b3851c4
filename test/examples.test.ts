import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { recordExamples } from './support/recorded-examples.ts';

test('the examples of the documents are what the program answers to the calls beside them', async () => {
  const file = readFileSync(new URL('../assets/examples.json', import.meta.url), 'utf8');
  assert.equal(await recordExamples(), file, 'run: npm run examples');
});
