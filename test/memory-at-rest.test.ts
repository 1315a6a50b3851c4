import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';

const mebibyte = 1024 * 1024;

test('a thread that has come to rest gives back the memory that it took', async (t) => {
  // V8's own attempt, which begins only after some collections.
  setFlagsFromString('--no-memory-reducer');
  t.after(() => setFlagsFromString('--memory-reducer'));
  const module = new URL('../src/platform/memory.ts', import.meta.url).href;
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
    import('${module}').then(({ giveMemoryBackAtRest, heapSize }) => {
      giveMemoryBackAtRest();
      const texts = Array.from({ length: 500_000 }, (_, n) => ({ n, text: 'text ' + n }));
      parentPort.postMessage(texts.length === 0 ? 0 : heapSize());
      parentPort.on('message', () => parentPort.postMessage(heapSize()));
    });`,
    { eval: true },
  );
  t.after(() => worker.terminate());
  const [busy] = (await once(worker, 'message')) as [number];
  assert.ok(busy > 40 * mebibyte, `${busy} bytes`);
  let left = busy;
  for (let looks = 0; looks < 40 && left > busy / 3; looks++) {
    await delay(500);
    worker.postMessage('look');
    [left] = (await once(worker, 'message')) as [number];
  }
  assert.ok(left <= busy / 3, `${left} of ${busy} bytes are left`);
});
