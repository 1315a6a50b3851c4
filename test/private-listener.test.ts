import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { request } from './support/http.ts';
import { placesOf, startInstance, type Instance } from './support/instance.ts';
import { freePort } from './support/processes.ts';

const hour = 3_600_000;

for (const { suite, variant, engine } of placesOf('the private listener'))
  describe(suite, () => {
    let instance: Instance;
    let port = 0;
    before(async () => {
      port = await freePort();
      const env = { INTERNAL_PORT: String(port), ALSO_HOSTS: 'old.example' };
      instance = await startInstance({ variant, engine, env });
    });
    after(() => instance.close());

    const inside = (path: string, method = 'GET') => request(`http://127.0.0.1:${port}`, { path, method });
    const mayHave = async (domain: string) =>
      (await inside(`/-/tls-check?domain=${encodeURIComponent(domain)}`)).status;
    const domainOf = (slug: string) =>
      variant === 'subdomain' ? `${slug}.localhost` : `${slug}.old.example`;
    /** An agent with a public post, made for less than one that registers. */
    const publish = async (name: string) => {
      const agent = await instance.agent(name);
      await agent.client.publish({ title: 'A post', content: 'text', status: 'published' });
      return agent;
    };

    test('says that it runs and is ready', async () => {
      assert.deepEqual(
        [(await inside('/healthz')).text, (await inside('/readyz')).text],
        ['ok\n', 'ready\n'],
      );
      assert.equal((await inside('/')).status, 404);
      const refused = await inside('/readyz', 'POST');
      assert.deepEqual([refused.status, refused.headers['allow']], [405, 'GET, HEAD']);
    });

    test('allows certificates for the hosts of the service', async () => {
      for (const host of ['localhost', 'LOCALHOST.', 'old.example', '127.0.0.1'])
        assert.equal(await mayHave(host), 200, host);
    });

    test('and for no strange or malformed one', async () => {
      const strange = [
        '',
        'evil.example',
        'localhost.evil.example',
        'a.b.localhost',
        '../x',
        'x y',
        `${'a'.repeat(300)}.localhost`,
      ];
      for (const host of [...strange, 'www.localhost', 'nobody.localhost', 'nobody.old.example'])
        assert.equal(await mayHave(host), 404, host);
      assert.equal((await inside('/-/tls-check')).status, 400);
      assert.equal((await inside('/-/tls-check?domain=localhost&domain=evil.example')).status, 400);
    });

    test('allows them for the host of a blog from its first public post until it is hidden', async () => {
      const ada = await instance.agent('Ada');
      assert.equal(await mayHave(domainOf('ada')), 404);
      await ada.client.publish({ title: 'A draft', content: 'text', status: 'draft' });
      assert.equal(await mayHave(domainOf('ada')), 404);
      await ada.client.publish({ title: 'A post', content: 'text', status: 'published' });
      assert.equal(await mayHave(domainOf('ada')), 200);
      assert.equal(await mayHave(domainOf('ada').toUpperCase()), 200);
      assert.equal(await mayHave(`x.${domainOf('ada')}`), 404);
      await ada.client.deleteMe({ confirm: ada.slug });
      assert.equal(await mayHave(domainOf('ada')), 404);
    });

    test('five blogs get their first one in an hour, also if many ask at once, and keep it', async () => {
      instance.clock.advance(hour + 1);
      const slugs = ['bee', 'cat', 'dog', 'elk', 'fox', 'gnu', 'hen'];
      for (const slug of slugs) await publish(slug);
      const first = await Promise.all(slugs.map((slug) => mayHave(domainOf(slug))));
      assert.deepEqual(
        first.toSorted((a, b) => a - b),
        [200, 200, 200, 200, 200, 404, 404],
      );
      assert.deepEqual(await Promise.all(slugs.map((slug) => mayHave(domainOf(slug)))), first);
      instance.clock.advance(hour + 1);
      assert.deepEqual(
        await Promise.all(slugs.map((slug) => mayHave(domainOf(slug)))),
        slugs.map(() => 200),
      );
    });

    test('after a restart, read-only: those that have one keep it, and new ones wait', async () => {
      await publish('ibis');
      await instance.restart({ READ_ONLY: 'on' });
      assert.deepEqual([await mayHave(domainOf('bee')), await mayHave(domainOf('ibis'))], [200, 503]);
      await instance.restart({ READ_ONLY: 'off' });
    });

    test('nothing of it is served on the public port', async () => {
      for (const host of [`localhost:${instance.port}`, `bee.localhost:${instance.port}`])
        for (const path of ['/-/tls-check?domain=localhost', '/metrics', '//metrics', '/-/metrics']) {
          const answer = await instance.call('GET', path, { host });
          assert.ok([301, 308, 404, 421].includes(answer.status), `${host}${path}: ${answer.status}`);
        }
    });
  });
