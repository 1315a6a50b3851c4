import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '../../src/errors.ts';
import { createRenderer } from '../../src/markdown/renderer.ts';
import { hostileDocuments } from '../markdown-hostile-cases.ts';

test('every hostile document of 512 KiB is rendered or refused by the deadline, and the thread goes on', async (t) => {
  const renderer = createRenderer({ threads: 1, onCrash: (error) => assert.fail(error) });
  t.after(() => renderer.close());
  for (const [name, markdown] of hostileDocuments(512 * 1024)) {
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
