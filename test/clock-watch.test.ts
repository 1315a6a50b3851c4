import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchClock } from '../src/platform/clock-watch.ts';

const hour = 3_600_000;

test('a clock that jumps ahead is not trusted for an hour, or until it is set back', () => {
  let [elapsed, offset] = [0, 1_000_000];
  const jumps: number[] = [];
  const isTrusted = watchClock(
    () => elapsed + offset,
    (by) => jumps.push(by),
    () => elapsed,
  );
  assert.equal(isTrusted(), true);
  elapsed += 30 * 24 * hour;
  offset += hour - 1;
  assert.equal(isTrusted(), true, 'time passes, and clocks are slewed');
  offset += hour;
  assert.equal(isTrusted(), false);
  elapsed += hour - 1;
  assert.equal(isTrusted(), false);
  elapsed += 1;
  assert.equal(isTrusted(), true);
  offset += 30 * 24 * hour;
  assert.equal(isTrusted(), false);
  offset -= 30 * 24 * hour;
  assert.equal(isTrusted(), true);
  offset -= hour;
  assert.equal(isTrusted(), true, 'by a late clock nothing is old too soon');
  assert.deepEqual(jumps, [hour, 30 * 24 * hour]);
});
