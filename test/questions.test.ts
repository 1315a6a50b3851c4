import assert from 'node:assert/strict';
import type { Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PrivateCall } from '../src/process/private-listener.ts';
import { answerQuestions, createAsk } from '../src/process/questions.ts';

type Sent = { readonly message: unknown; readonly done: (error: Error | null) => void };

/** One end of the connection between a supervisor and a worker. */
class End extends EventEmitter {
  readonly sent: Sent[] = [];
  connected = true;
  isConnected = () => this.connected;
  send(message: unknown, done: (error: Error | null) => void = () => {}) {
    this.sent.push({ message, done });
  }
}

const asWorker = (end: End) => end as unknown as Worker;
const call = { path: '/metrics' } as unknown as PrivateCall;

/** What a promise has come to by now. */
const byNow = async (promise: Promise<unknown>) => Promise.race([promise, nextTurn('waits')]);

test('a worker answers each question with what came of it', async () => {
  const [supervisor, worker] = [new End(), new End()];
  answerQuestions(asWorker(worker), async (asked) => ({ status: 200, body: JSON.stringify(asked) }) as never);
  const ask = createAsk(asWorker(supervisor));
  const [first, second] = [ask(call), ask(call)];
  for (const { message } of supervisor.sent.toReversed()) worker.emit('message', message);
  await nextTurn();
  for (const { message } of worker.sent) supervisor.emit('message', message);
  for (const answered of [first, second])
    assert.deepEqual(await byNow(answered), { status: 200, body: JSON.stringify(call) });
});

test('who asks a worker that ends, or cannot be reached, is told at once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const supervisor = new End();
  const ask = createAsk(asWorker(supervisor));
  const asked = [ask(call), ask(call)];
  supervisor.sent[0]?.done(new Error('closed'));
  assert.deepEqual([await byNow(asked[0]!), await byNow(asked[1]!)], [null, 'waits']);
  supervisor.emit('exit');
  assert.equal(await byNow(asked[1]!), null);
  supervisor.connected = false;
  assert.equal(await ask(call), null);
  assert.equal(supervisor.sent.length, 2);
});

test('a worker that does not answer is given up after its time', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked = createAsk(asWorker(new End()))(call);
  t.mock.timers.tick(4_999);
  assert.equal(await byNow(asked), 'waits');
  t.mock.timers.tick(1);
  assert.equal(await byNow(asked), null);
});
