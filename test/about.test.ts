import assert from 'node:assert/strict';
import { test } from 'node:test';
import { programVersion } from '../src/platform/version.ts';
import { documentOf } from './support/api-document.ts';
import { assertOk, describeInstances } from './support/instance.ts';

describeInstances('GET /api', {}, (the, variant) => {
  test('says what the service is and can do, to everyone', async () => {
    for (const path of ['/api', '/api/', '//api']) {
      const answer = assertOk(await the().call('GET', path));
      assert.equal(answer.at('version'), programVersion());
      assert.deepEqual([answer.at('variant'), answer.at('baseUrl')], [variant, the().baseUrl]);
      const words = answer.at('capabilities') as string[];
      assert.deepEqual(words, words.toSorted());
      const ofDiscovery = variant === 'subdomain' ? ['replies', 'search'] : [];
      for (const word of ['edits', 'inbox', 'revisions', 'trash', ...ofDiscovery])
        assert.ok(words.includes(word), word);
      assert.equal(words.includes('search'), variant === 'subdomain');
      assert.equal(answer.headers['cache-control'], 'public, max-age=60');
    }
    assert.equal((await documentOf(the())).info.version, programVersion());
  });

  test('has links that lead somewhere', async () => {
    const { links } = JSON.parse((await the().call('GET', '/api')).text) as { links: Record<string, string> };
    for (const [name, link] of Object.entries(links)) {
      const answer = await the().call(name === 'mcp' ? 'OPTIONS' : 'GET', link.slice(the().baseUrl.length));
      assert.ok(answer.status < 300, `${name}: ${answer.status}`);
    }
  });
});
