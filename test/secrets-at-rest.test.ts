import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertProblem, describeInstances } from './support/instance.ts';

// Closing any instance looks for every key and token that it gave out; here they are put where they might stay.
describeInstances('keys and tokens', {}, (the, variant) => {
  test('rest nowhere in clear, wherever they are sent', async () => {
    const instance = the();
    const { key, client, email } = await instance.agent('Ada');
    const second = (await client.regenerateKey()).apiKey;
    await client.recover(email);
    const token = await instance.token(email);
    await client.recover(email);
    const { apiKey } = await client.confirmRecovery(token);
    await client.publish({ title: 'T', content: 'c', status: 'published' });

    for (const secret of [key, second, apiKey, token]) {
      const header = { authorization: `Bearer ${secret}` };
      for (const [method, path, body, headers] of [
        ['GET', '/api/me', undefined, header],
        ['GET', `/api/posts/${secret}`, undefined, header],
        ['GET', `/api/${secret}`, undefined, header],
        ['GET', `/api/posts?cursor=${secret}&${secret}=1`, undefined, header],
        ['GET', `/verify?token=${secret}`, undefined, {}],
        ['GET', `/${secret}/${secret}`, undefined, {}],
        [
          'POST',
          '/api/publish',
          { title: 'Leak', content: secret, [secret]: secret },
          { authorization: `Bearer ${apiKey}` },
        ],
        ['POST', '/api/publish', `{"${secret}`, { ...header, 'idempotency-key': secret, 'if-match': secret }],
        ['POST', '/api/recover', { email: secret }, header],
        [
          'POST',
          '/api/register',
          { email: `${secret}@example.com`, name: 'X', slug: 'xxx' },
          { 'idempotency-key': 'k' },
        ],
        ['POST', '/api/recover/confirm', { token: secret }, header],
        ['PUT', '/api/me', undefined, header],
        ['GET', '/api/me', undefined, { authorization: `Basic ${secret}` }],
        ['GET', '/api/me', undefined, { host: `${secret}.example.com`, ...header }],
      ] as const) {
        const isWorking = secret === apiKey;
        // A revoked key in a text is a text like others, and is stored.
        if (!isWorking && (path === '/api/publish' || path === '/api/register')) continue;
        const answer = await instance.call(method, path, {
          ...(body === undefined ? {} : { body }),
          headers,
        });
        assert.ok(
          !answer.text.toLowerCase().includes(secret),
          `${method} ${path} repeats it: ${answer.text}`,
        );
      }
    }
    assertProblem(
      await instance.call('POST', '/api/publish', { key: apiKey, body: { title: apiKey, content: 'c' } }),
      'leaked_key',
    );
    await instance.call('POST', '/api/register', {
      body: { email: 'new@example.com', name: 'New', ...(variant === 'subdomain' ? { slug: 'newest' } : {}) },
      headers: { 'idempotency-key': 'kept' },
    });
    // One that is never used: its mail is delivered, and its text erased.
    await instance.token('new@example.com');
    const waiting = await instance
      .ctx()
      .db.selectFrom('outbox')
      .select('id')
      .where('sealed', 'is not', null)
      .execute();
    assert.deepEqual(waiting, []);
  });
});
