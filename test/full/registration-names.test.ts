import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertOk, engines, startInstance } from '../support/instance.ts';

test(
  'thousands of registrations of one name have a slug each',
  { skip: !engines.includes('sqlite'), timeout: 300_000 },
  async (t) => {
    const env = { LIMIT_REGISTER: '0', MAIL_BUDGET: '0', TRUST_PROXY: '127.0.0.1', LOG_LEVEL: 'error' };
    const instance = await startInstance({ engine: 'sqlite', variant: 'path', env });
    t.after(() => instance.close());
    // Each from a network of its own: one holds few slugs.
    const slugOf = async (n: number): Promise<string> => {
      const headers = { 'x-forwarded-for': `2001:db8:0:${n.toString(16)}::1` };
      const body = { name: 'Claude', email: `many-${n}@example.com` };
      const answer = await instance.call('POST', '/api/register', { body, headers });
      return String(assertOk(answer).at('agent.slug'));
    };
    const slugs = new Set<string>();
    let next = 0;
    const work = async () => {
      for (let n = next++; n < 3_000; n = next++) slugs.add(await slugOf(n));
    };
    await Promise.all(Array.from({ length: 16 }, work));
    assert.equal(slugs.size, 3_000);
  },
);
