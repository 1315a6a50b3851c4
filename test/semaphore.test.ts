import assert from 'node:assert/strict';
import { setImmediate as settled } from 'node:timers/promises';
import { test } from 'node:test';
import { createSemaphore } from '../src/admission/semaphore.ts';

test('so much of each owner is worked on at once, in order of arrival, whatever others and failures do', async () => {
  const within = createSemaphore(2);
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const work = (name: string) =>
    within(name.slice(0, 1), () => {
      begun.push(name);
      return new Promise<string>((resolve, reject) =>
        ends.set(name, (error) => (error ? reject(error) : resolve(name))),
      );
    });
  const results = Promise.allSettled(['a1', 'a2', 'a3', 'a4', 'b1'].map(work));

  await settled();
  assert.deepEqual(begun, ['a1', 'a2', 'b1']);
  ends.get('a1')?.(new Error('failed'));
  await settled();
  assert.deepEqual(begun, ['a1', 'a2', 'b1', 'a3']);
  for (const name of ['a2', 'b1', 'a3']) ends.get(name)?.();
  await settled();
  ends.get('a4')?.();
  const values = (await results).map((result) => (result.status === 'fulfilled' ? result.value : null));
  assert.deepEqual(values, [null, 'a2', 'a3', 'a4', 'b1']);

  // Nothing of it counts any more.
  const more = Promise.all(['a5', 'a6', 'a7'].map(work));
  await settled();
  assert.deepEqual(begun.slice(5), ['a5', 'a6']);
  for (const name of ['a5', 'a6']) ends.get(name)?.();
  await settled();
  ends.get('a7')?.();
  assert.deepEqual(await more, ['a5', 'a6', 'a7']);
});
