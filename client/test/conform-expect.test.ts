import assert from 'node:assert/strict';
import { test } from 'node:test';

import { expectNewestFirst, expectRefusal } from '../src/conform/expect.ts';
import type { Answer } from '../src/conform/wire.ts';

const answered = (status: number): Answer => ({
  status,
  headers: {},
  text: '',
  bytes: Buffer.alloc(0),
  at: () => undefined,
});

test('a refusal is an answer of 400 to 499, and neither a success nor a failure of the service', () => {
  for (const status of [400, 404, 499]) assert.equal(expectRefusal(answered(status)).status, status);
  for (const status of [200, 302, 399, 500, 503])
    assert.throws(() => expectRefusal(answered(status)), new RegExp(`400 to 499.*${status}`, 's'));
});

test('a list is newest first where its times fall, or stay', () => {
  const list = (...times: string[]): Answer => ({
    ...answered(200),
    at: () => times.map((createdAt) => ({ createdAt })),
  });
  for (const times of [[], ['2'], ['2', '1'], ['2', '2', '1']])
    expectNewestFirst(list(...times), 'posts', 'createdAt');
  for (const times of [
    ['1', '2'],
    ['3', '1', '2'],
  ])
    assert.throws(() => expectNewestFirst(list(...times), 'posts', 'createdAt'), /createdAt of all/);
});
