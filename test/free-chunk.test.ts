import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeChunk } from '../src/platform/memory.ts';

test('a chunk with memory of its own is freed, and one that shares it is left', () => {
  const own = Buffer.alloc(100_000, 'x');
  freeChunk(own);
  assert.equal(own.length, 0);
  const shared = Buffer.from('pooled');
  const slice = Buffer.alloc(100, 'y').subarray(10, 20);
  freeChunk(shared);
  freeChunk(slice);
  const empty = Buffer.alloc(0);
  freeChunk(empty);
  assert.equal(empty.copy(Buffer.alloc(1)), 0);
  assert.equal(shared.toString(), 'pooled');
  assert.equal(slice.toString(), 'y'.repeat(10));
});
