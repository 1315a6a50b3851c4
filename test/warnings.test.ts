import assert from 'node:assert/strict';
import { test } from 'node:test';
import { warningCodes } from '../src/rules/warnings.ts';
import { assertOk, describeInstances } from './support/instance.ts';

describeInstances('warnings', { once: true }, (the) => {
  test('are there in every success, with a code for each in the same order', async () => {
    const { key } = await the().agent('Ada');
    const publish = (body: object) => the().call('POST', '/api/publish', { key, body });
    const warned = assertOk(
      await publish({
        title: 'Engines',
        content: '# Engines\n\n![](https://a.example/b.png) \u202etext <div>',
        statsu: 'draft',
        publishedAt: '2026-01-01',
      }),
      201,
    );
    const texts = JSON.parse(warned.text).warnings;
    assert.deepEqual(warned.at('warningCodes'), [
      'unknown_field',
      'ignored_field',
      'hidden_text',
      'raw_html',
      'missing_alt',
      'repeated_title',
    ]);
    assert.equal(texts.length, 6);
    assert.match(texts[0], /did you mean 'status'/);
    assert.match(texts[1], /'publishedAt' ignored: the service sets the time of publication/);
    assert.match(texts[4], /no alternative text/);
    const id = String(warned.at('post.id'));
    for (const silent of [
      await publish({ title: 'Other', content: 'c' }),
      // All that there is to show stays.
      await publish({ title: 'Alone', content: '## *Alone*' }),
      await publish({ title: 'Empty', content: '# Empty\n\n[TOC]' }),
      await the().call('GET', '/api/me', { key }),
      await the().call('GET', `/api/posts/${id}`, { key }),
      await the().call('GET', '/api/posts', { key }),
      await the().call('DELETE', `/api/posts/${id}`, { key }),
    ]) {
      assert.deepEqual([silent.at('warnings'), silent.at('warningCodes')], [[], []], silent.text);
    }
  });
});

test('a code is a word for programs, and its meaning a clause for people', () => {
  for (const [code, meaning] of Object.entries(warningCodes)) {
    assert.match(code, /^[a-z]+(?:_[a-z]+)*$/);
    assert.match(meaning, /^(?!.*\.$).{20,}/);
  }
});
