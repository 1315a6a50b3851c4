import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { AppError } from '../src/errors.ts';
import { createLog } from '../src/platform/log.ts';
import { startHousekeeping } from '../src/workers/housekeeping.ts';
import { startInstance } from './support/instance.ts';

const { setTimeout: real } = globalThis;

/** Makes all timers run within 20 ms. */
function hasten(t: TestContext): void {
  t.mock.method(globalThis, 'setTimeout', (what: () => void, ms = 0, ...rest: never[]) =>
    (real as (...all: unknown[]) => NodeJS.Timeout)(what, Math.min(ms, 20), ...rest),
  );
}

async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo() && tries < 3_000; tries++) await new Promise((resolve) => real(resolve, 10));
  assert.ok(isSo());
}

test('what is deleted by its age stays where the clock jumps ahead while it is looked for', async (t) => {
  const site = await startInstance();
  const { client } = await site.agent('Keeper');
  const { post } = await client.publish({ title: 'Kept', content: 'one' });
  await client.deletePost(post.id);
  const ctx = site.ctx();
  const written: string[] = [];
  const write: typeof ctx.engine.write = async (of, ...rest) => {
    // The first look for what is old.
    if (of.name === 'revisions.age-out' && !written.includes(of.name))
      site.clock.advance(40 * 24 * 3_600_000);
    written.push(of.name);
    return ctx.engine.write(of, ...rest);
  };
  const engine = new Proxy(ctx.engine, {
    get: (target, name) => (name === 'write' ? write : Reflect.get(target, name)),
  });
  hasten(t);
  const lines: string[] = [];
  const log = createLog('debug', (line) => void lines.push(line));
  const housekeeping = await startHousekeeping({ ...ctx, engine, log });
  try {
    await until(() => lines.some((line) => line.includes('the clock jumped ahead')));
    written.length = 0;
    await until(() => written.filter((name) => name === 'maintenance.heartbeat').length > 5);
    assert.deepEqual(
      written.filter((name) => name === 'trash.purge' || name === 'maintenance.sweep'),
      [],
    );
    const posts = ctx.db.selectFrom('posts').select('id').where('id', '=', post.id);
    assert.equal((await posts.execute()).length, 1);
  } finally {
    await housekeeping.close();
    await site.close();
  }
});

test('upkeep that fails is a warning once, until it is done again, and none where the database is down', async (t) => {
  const site = await startInstance();
  hasten(t);
  const lines: string[] = [];
  const count = (level: string, text: string) =>
    lines.filter((line) => line.includes(`"level":"${level}"`) && line.includes(text)).length;
  const ctx = site.ctx();
  let fault: Error | null = new AppError('unavailable', 'It is down.');
  const db = new Proxy(ctx.db, {
    get(target, name) {
      if (fault !== null && name === 'selectFrom') throw fault;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const log = createLog('debug', (line) => void lines.push(line));
  const housekeeping = await startHousekeeping({ ...ctx, db, log });
  try {
    const due = 'posts that are due were not published; the next check tries again';
    const counted = 'votes and comments were not counted; the next check tries again';
    await until(() => count('debug', due) > 3 && count('debug', counted) > 3);
    assert.equal(count('warn', ''), 0);

    fault = new Error('a row is broken');
    const before = [count('debug', due), count('debug', counted)];
    await until(
      () => count('debug', due) > Number(before[0]) + 3 && count('debug', counted) > Number(before[1]) + 3,
    );
    assert.deepEqual([count('warn', due), count('warn', counted)], [1, 1]);
    assert.match(lines.find((line) => line.includes('"warn"')) ?? '', /a row is broken/);

    fault = null;
    const again = 'upkeep that had failed is done again';
    await until(() => lines.some((line) => line.includes(again) && line.includes('that are due')));
    fault = new Error('a row is broken');
    await until(() => count('warn', due) === 2);
  } finally {
    await housekeeping.close();
    await site.close();
  }
});
