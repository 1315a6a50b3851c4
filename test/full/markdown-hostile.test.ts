import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../src/errors.ts';
import { createRenderer } from '../../src/markdown/pool/renderer.ts';
import { hostileDocuments } from '../markdown-hostile-cases.ts';
import { scale } from '../support/scale.ts';

/** As much as a post may have takes minutes; a tenth of it is enough for some to be refused. */
const kibibytes = scale > 1 ? 512 : 64;

test(`every hostile document of ${kibibytes} KiB is rendered or refused by the deadline, and the thread goes on`, async (t) => {
  const renderer = createRenderer({ threads: 1, longestMs: 120_000, onCrash: (error) => assert.fail(error) });
  t.after(() => renderer.close());
  for (const [name, markdown] of hostileDocuments(kibibytes * 1024)) {
    const began = performance.now();
    const outcome = await renderer.renderPost(markdown).then(
      ({ html }) => `${html.length} characters of HTML`,
      (error: unknown) => {
        assert.ok(error instanceof AppError && error.code === 'unrenderable', name);
        return error.message;
      },
    );
    t.diagnostic(`${Math.round(performance.now() - began)} ms: ${name}: ${outcome}`);
    assert.match((await renderer.renderPost('a')).html, /<p dir="auto">a<\/p>/, name);
  }
});

test('a thread that was started beside a slow document ends half a minute later', async (t) => {
  const real = setTimeout;
  const halfAMinuteLater: (() => void)[] = [];
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => {
    if (ms !== 30_000) return real(run, ms);
    halfAMinuteLater.push(run);
    return real(() => {}, ms);
  });
  const renderer = createRenderer({ threads: 1, deadlineMs: 60_000 });
  t.after(() => renderer.close());
  const threads = () => readdirSync('/proc/self/task').length;
  await renderer.renderPost('a');
  const before = threads();
  const slowly = renderer.renderPost('- a\n* b\n'.repeat(20_000), 'mallory').catch(() => null);
  await renderer.renderPost('a');
  assert.ok(threads() > before);
  await slowly;
  await renderer.renderPost('a');
  assert.equal(halfAMinuteLater.length, 1);
  assert.ok(threads() > before);
  halfAMinuteLater[0]?.();
  while (threads() > before) await delay(20);
});
