import assert from 'node:assert/strict';
import { test } from 'node:test';

import { expectRefusal } from '../src/conform/expect.ts';
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
