import assert from 'node:assert/strict';
import cluster, { type Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLog } from '../src/platform/log.ts';
import { superviseWorkers } from '../src/process/cluster.ts';

/** A worker that serves at once, and ends when it is asked to. */
class Member extends EventEmitter {
  readonly orders: unknown[] = [];
  readonly process = { pid: 1, kill: () => true };
  isConnected = () => true;
  send(order: unknown) {
    this.orders.push(order);
  }
}

/** Long enough for all that needs no further message. */
async function settled() {
  for (let turn = 0; turn < 20; turn++) await nextTurn();
}

test('workers are replaced one after the other, each when the one before has ended', async (t) => {
  const signals = new EventEmitter();
  t.mock.method(process, 'on', (name: string, handle: () => void) => void signals.on(name, handle));
  for (const stream of [process.stdin, process.stdout]) {
    const { isTTY } = stream;
    stream.isTTY = false;
    t.after(() => (stream.isTTY = isTTY));
  }
  const members: Member[] = [];
  t.mock.method(cluster, 'fork', () => {
    const member = new Member();
    members.push(member);
    setImmediate(() => member.emit('message', { ready: 'database' }));
    return member as unknown as Worker;
  });
  const ready = Promise.withResolvers<void>();
  const supervised = superviseWorkers({
    workers: 2,
    env: {},
    log: createLog('error'),
    stopWithin: 1_000,
    socket: null,
    internal: null,
    onReady: async () => ready.resolve(),
  });
  await ready.promise;
  const stopped = () => members.map(({ orders }) => orders.includes('stop'));
  signals.emit('SIGHUP');
  await settled();
  assert.deepEqual(stopped(), [true, false, false]);
  members[0]?.emit('exit', 0, null);
  await settled();
  assert.deepEqual(stopped(), [true, true, false, false]);
  members[1]?.emit('exit', 0, null);
  await settled();
  signals.emit('SIGTERM', 'SIGTERM');
  await settled();
  assert.deepEqual(stopped(), [true, true, true, true]);
  for (const member of members.slice(2)) member.emit('exit', 0, null);
  await supervised;
});
