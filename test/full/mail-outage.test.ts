import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startInstance } from '../support/instance.ts';
import { scale } from '../support/scale.ts';
import { startSmtpServer } from '../support/smtp.ts';

const agents = 40 * scale;
const tenMinutes = 600_000;

test(`${agents} agents register while the mail server is silent, and each has its one message when it is back`, async (t) => {
  const smtp = await startSmtpServer({ fault: { hang: 'connection' } });
  const instance = await startInstance({ env: { SMTP_URL: smtp.url, LIMIT_ANONYMOUS: '0' } });
  t.after(() => instance.close().then(() => smtp.close()));
  const addresses = Array.from({ length: agents }, (_, n) => `agent-${n}@example.com`);
  const took: number[] = [];
  for (const [n, email] of addresses.entries()) {
    const began = performance.now();
    const body = { email, name: `Agent ${n}`, slug: `agent-${n}` };
    assert.equal((await instance.call('POST', '/api/register', { body })).status, 200);
    took.push(performance.now() - began);
  }
  assert.equal(smtp.messages.length, 0);
  t.diagnostic(
    `99 of 100 registrations within ${took.toSorted((a, b) => a - b)[Math.floor(agents * 0.99)]} ms`,
  );

  smtp.setFault(null);
  instance.clock.advance(tenMinutes);
  // The connections that hang are given up after some seconds, and the worker looks again every few.
  while (new Set(smtp.messages.flatMap(({ to }) => to)).size < agents) {
    instance.clock.advance(1_000);
    await delay(100);
  }
  await instance.mails();
  assert.deepEqual(smtp.messages.flatMap(({ to }) => to).toSorted(), addresses.toSorted());
  const { length } = await instance
    .ctx()
    .db.selectFrom('outbox')
    .select('id')
    .where('sealed', 'is not', null)
    .execute();
  assert.equal(length, 0, 'texts that are still kept');
});
