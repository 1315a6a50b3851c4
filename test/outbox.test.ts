import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '../src/config/config.ts';
import type { OutboxRow } from '../src/db/tables.ts';
import { createLog } from '../src/platform/log.ts';
import { createSmtpMailer } from '../src/mail/smtp.ts';
import { openContext, type OpenContext } from '../src/process/open-context.ts';
import { sha256 } from '../src/rules/secrets.ts';
import { recover, regenerateKey, verifyAgent } from '../src/services/agents/api-keys.ts';
import { register } from '../src/services/agents/registration.ts';
import { deleteAgent, undoDeletion } from '../src/services/agents/self-deletion.ts';
import { sweep } from '../src/services/upkeep/maintenance.ts';
import { suspendAgent, verifyByOperator } from '../src/services/operators/moderation.ts';
import { listRefused } from '../src/services/trust/suppression.ts';
import { examine } from '../src/services/upkeep/doctor.ts';
import { claimMail, recordAttempt } from '../src/services/mail-delivery.ts';
import { startOutboxWorker, type OutboxOptions } from '../src/workers/outbox-worker.ts';
import { onDatabase } from './support/on-database.ts';
import { startSmtpServer, type SmtpFault } from './support/smtp.ts';
import { putSqliteTemplate } from './support/templates.ts';

const second = 1_000;
const day = 24 * 3_600_000;
const tokenLine = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/m;

describe('the outbox worker', () => {
  test('delivers a message at once and erases its text', async (t) => {
    const { ctx, smtp, startWorker, row } = await setUp(t);
    startWorker();
    // The worker hears of it, and does not wait for its next poll.
    const queued = t.mock.fn();
    ctx.engine.onMailQueued(queued);
    const { agent } = await registered(ctx, 'ada');
    assert.equal(queued.mock.callCount(), 1);

    const mail = await smtp.waitFor(() => true);
    assert.deepEqual(mail.to, ['ada@agents.example']);
    assert.match(mail.email.text ?? '', tokenLine);
    const done = await row((found) => found.delivered_at !== null);
    assert.equal(mail.email.messageId, `<${done.id}@localhost>`);
    const { agent_id, sealed, due_at, lease_owner, attempts, last_error } = done;
    assert.deepEqual(
      { agent_id, sealed, due_at, lease_owner, attempts, last_error },
      { agent_id: agent.id, sealed: null, due_at: null, lease_owner: null, attempts: 1, last_error: null },
    );
  });

  test('delivers each message of a burst once', async (t) => {
    const { ctx, smtp, startWorker, rows } = await setUp(t);
    startWorker();
    const names = Array.from({ length: 25 }, (_, i) => `agent-${i}`);
    await Promise.all(names.map((name) => registered(ctx, name)));

    await until(async () => (await rows()).every((row) => row.delivered_at !== null));
    const receivers = smtp.messages.flatMap((mail) => mail.to);
    assert.deepEqual(receivers.toSorted(), names.map((name) => `${name}@agents.example`).toSorted());
  });

  test('tries again later and later while the server refuses for now, and says so every ten minutes', async (t) => {
    const { ctx, clock, startWorker, row, lines } = await setUp(t, { refuse: 'message', code: 451 });
    const worker = startWorker();
    await registered(ctx, 'ada');

    const waits: number[] = [];
    for (let attempts = 1; attempts <= 10; attempts++) {
      const failed = await row((found) => found.attempts === attempts);
      assert.match(failed.last_error ?? '', /^the mail server answered 451/);
      assert.notEqual(failed.sealed, null);
      const due = Date.parse(failed.due_at ?? '');
      waits.push((due - clock.now) / second);
      clock.now = due;
      worker.nudge();
    }

    assert.deepEqual(waits, [15, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
    const warnings = lines('warn');
    // Of the attempts at 0, 15, 45, 105, 225, 465, 945, 1905, 3825, 7425 s.
    assert.equal(warnings.length, 5);
    assert.match(warnings[0] ?? '', /mail is not going out: the mail server answered 451.*; 1 messages wait/);
  });

  test('delivers what was refused for now once the server takes it', async (t) => {
    const { ctx, clock, smtp, startWorker, row, lines } = await setUp(t, { refuse: 'message', code: 450 });
    const worker = startWorker();
    await registered(ctx, 'ada');
    await row((found) => found.attempts === 1);

    smtp.setFault(null);
    clock.now += 15 * second;
    worker.nudge();
    await row((found) => found.delivered_at !== null && found.sealed === null);
    assert.equal(smtp.messages.length, 1);
    await until(async () => lines('info').some((line) => line.includes('mail is going out again')));
  });

  for (const code of [450, 550])
    test(`a recipient refused with ${code} is no alarm, and ten in a row are one`, async (t) => {
      const { ctx, smtp, startWorker, rows, lines } = await setUp(t, { refuse: 'recipient', code });
      startWorker();
      let count = 0;
      const send = async (names: readonly string[]) => {
        count += names.length;
        for (const name of names) await registered(ctx, name);
        await until(async () => (await rows()).filter(({ attempts }) => attempts > 0).length === count);
      };
      const nine = (of: string) => Array.from({ length: 9 }, (_, n) => `${of}-${n}`);
      await send(nine('one'));
      smtp.setFault(null);
      await send(['accepted']);
      smtp.setFault({ refuse: 'recipient', code });
      await send(nine('two'));
      assert.deepEqual([...lines('warn'), ...lines('error')], []);
      await send(['tenth']);
      assert.equal(lines('warn').length, 1);
      assert.match(lines('warn')[0] ?? '', /mail is not going out: the mail server answered/);
      assert.deepEqual(lines('error'), []);
    });

  test('sends nothing more to an address that is refused for good, until its owner proves it', async (t) => {
    const { ctx, smtp, startWorker, rows, lines } = await setUp(t);
    startWorker();
    const first = await registered(ctx, 'ada');
    const [token] = (await smtp.waitFor(() => true)).email.text?.match(tokenLine) ?? [];
    smtp.setFault({ refuse: 'recipient', code: 550 });
    await registered(ctx, 'ada');
    await until(async () => (await listRefused(ctx, 10)).length === 1);
    smtp.setFault(null);

    // The answer, the token and what the caps count are the same as before.
    const again = await registered(ctx, 'ada');
    assert.deepEqual(again, { ...first, renewed: true });
    await ctx.engine.write(recover, { email: 'ada@agents.example' });
    await until(async () => (await rows()).every(({ due_at }) => due_at === null));
    const unsent = (await rows()).filter(({ attempts, dead_at }) => attempts === 0 && dead_at !== null);
    assert.equal(unsent.length, 2);
    for (const { sealed, last_error } of unsent)
      assert.deepEqual([sealed, last_error], [null, 'the mail server answered 550 5.1.1 at RCPT TO']);
    assert.equal(smtp.messages.length, 1);
    assert.equal((await ctx.db.selectFrom('tokens').selectAll().execute()).length, 4);
    const mail = (await examine(ctx)).find(({ what }) => what === 'mail');
    assert.equal(mail?.state, 'ok');
    assert.match(
      mail?.detail ?? '',
      /3 of them since the recipient was refused; nothing is sent to 1 addresses/,
    );
    assert.deepEqual([...lines('warn'), ...lines('error')], []);

    await ctx.engine.write(verifyAgent, { token: token ?? '' });
    assert.deepEqual(await listRefused(ctx, 10), []);
    await until(async () => smtp.messages.length === 2);
  });

  test('goes on sending where a refusal is not about the address, or hits ten in a row', async (t) => {
    const { ctx, smtp, startWorker, rows, lines } = await setUp(t);
    startWorker();
    let sent = 0;
    const refusedWith = async (code: number, enhanced: string) => {
      smtp.setFault({ refuse: 'recipient', code, enhanced });
      await registered(ctx, `agent-${sent++}`);
      await until(async () => (await rows()).filter(({ attempts }) => attempts > 0).length === sent);
    };
    const others = [
      ['550', '5.7.1'],
      ['552', '5.2.2'],
      ['554', '5.3.0'],
      ['450', '4.2.1'],
    ] as const;
    for (const [code, enhanced] of others) await refusedWith(Number(code), enhanced);
    assert.deepEqual(await listRefused(ctx, 10), []);
    for (const enhanced of ['5.1.1', '5.2.1', '5.4.1', 'no', 'no']) await refusedWith(550, enhanced);
    assert.equal((await listRefused(ctx, 10)).length, 5);
    await refusedWith(550, '5.1.1');
    await until(async () => (await listRefused(ctx, 10)).length === 0);
    assert.equal(lines('warn').length, 1);
  });

  test('raises no alarm for a recipient that is refused for 7 days', async (t) => {
    const { ctx, clock, startWorker, row } = await setUp(t, { refuse: 'recipient', code: 450 });
    const worker = startWorker();
    await registered(ctx, 'ada');
    await row((found) => found.attempts === 1);
    await worker.close();
    clock.now += 7 * day + 1;
    assert.deepEqual(await ctx.engine.write(sweep, null), { mailGivenUp: 0 });
    assert.notEqual((await row((found) => found.dead_at !== null)).last_error, null);
  });

  test('gives up what the server refuses for good, with one line for the operator', async (t) => {
    const { ctx, startWorker, row, lines } = await setUp(t, { refuse: 'message', code: 554 });
    startWorker();
    const { agent } = await registered(ctx, 'ada');

    const dead = await row((found) => found.dead_at !== null);
    assert.equal(dead.sealed, null);
    assert.equal(dead.due_at, null);
    await until(async () => lines('error').length > 0);
    const [line = '', ...more] = lines('error');
    assert.deepEqual(more, []);
    const { mailId, kind, agentId, reason } = JSON.parse(line);
    assert.deepEqual({ mailId, kind, agentId }, { mailId: dead.id, kind: 'verification', agentId: agent.id });
    assert.match(reason, /^the mail server answered 554/);
    assert.doesNotMatch(line, /agents\.example|recipient\.example/);
  });

  test('gives up what could not be delivered for 7 days', async (t) => {
    const { ctx, clock, startWorker, row, lines } = await setUp(t, { refuse: 'message', code: 451 });
    const worker = startWorker();
    await registered(ctx, 'ada');
    await row((found) => found.attempts === 1);

    clock.now += 7 * day - 60_000;
    worker.nudge();
    const waiting = await row((found) => found.attempts === 2);
    assert.deepEqual([waiting.dead_at, waiting.sealed === null], [null, false]);
    clock.now += 60_000;
    worker.nudge();
    assert.equal((await row((found) => found.dead_at !== null)).sealed, null);
    await until(async () => lines('error').length === 1);
  });

  test('lets a text that another secret sealed wait for that one, says so once, and then delivers it', async (t) => {
    const { ctx, clock, smtp, startWorker, row, lines } = await setUp(t);
    await registered(ctx, 'ada');
    const worker = startWorker({ ...ctx, secretKey: Buffer.alloc(32) });
    for (let attempts = 1; attempts <= 3; attempts++) {
      const waiting = await row((found) => found.attempts === attempts);
      assert.notEqual(waiting.sealed, null);
      assert.match(waiting.last_error ?? '', /sealed with another secret/);
      clock.now = Date.parse(waiting.due_at ?? '');
      if (attempts < 3) worker.nudge();
    }
    await worker.close();
    const [warning = '', ...more] = lines('warn');
    assert.match(warning, /mail is not going out: it was sealed with another secret: .*; 1 messages wait/);
    assert.deepEqual([...more, ...lines('error')], []);

    startWorker();
    await smtp.waitFor(() => true);
    await row((found) => found.delivered_at !== null && found.sealed === null);
  });

  test('gives up a text that another secret sealed when it is 7 days old', async (t) => {
    const { ctx, clock, startWorker, row } = await setUp(t);
    await registered(ctx, 'ada');
    startWorker({ ...ctx, secretKey: Buffer.alloc(32) });
    await row((found) => found.attempts === 1);
    clock.now += 7 * day + 1;
    assert.deepEqual(await ctx.engine.write(sweep, null), { mailGivenUp: 1 });
    assert.deepEqual((await row((found) => found.dead_at !== null)).sealed, null);
  });

  test('sends what a crashed process had claimed when its lease has run out, and not before', async (t) => {
    const { ctx, clock, smtp, startWorker, row } = await setUp(t);
    await registered(ctx, 'ada');
    await ctx.engine.write(claimMail, { owner: 'crashed', limit: 10, duration: 120 * second });
    const worker = startWorker();
    await registered(ctx, 'bob');
    await smtp.waitFor((mail) => mail.to.includes('bob@agents.example'));
    assert.equal(smtp.messages.length, 1);

    clock.now += 120 * second;
    worker.nudge();
    await smtp.waitFor((mail) => mail.to.includes('ada@agents.example'));
    await row((found) => found.delivered_at !== null && found.attempts === 1);
  });

  test('sends nothing twice while its result cannot be stored, however long', async (t) => {
    const { ctx, clock, smtp, startWorker, row } = await setUp(t);
    const { promise: stored, resolve: store } = Promise.withResolvers<void>();
    const { promise: claimedAgain, resolve: claimed } = Promise.withResolvers<void>();
    let claims = 0;
    const write: typeof ctx.engine.write = async (kind, input, ticket) => {
      if (kind.name === recordAttempt.name) await stored;
      const result = await ctx.engine.write(kind, input, ticket);
      if (kind.name === claimMail.name && Array.isArray(result) && result.length > 0 && ++claims === 2)
        claimed();
      return result;
    };
    const worker = startWorker({ ...ctx, engine: { ...ctx.engine, write } });
    await registered(ctx, 'ada');
    await smtp.waitFor(() => true);

    clock.now += 121 * second;
    worker.nudge();
    await claimedAgain;
    await registered(ctx, 'bob');
    await smtp.waitFor((mail) => mail.to.includes('bob@agents.example'));
    store();
    await row((found) => found.delivered_at !== null);
    assert.equal(smtp.messages.filter(({ to }) => to.includes('ada@agents.example')).length, 1);
  });

  test('repeats a message under the same Message-ID when the answer to it was lost', async (t) => {
    const { ctx, clock, smtp, startWorker, row } = await setUp(t, { drop: 'message' });
    const worker = startWorker();
    await registered(ctx, 'ada');
    await row((found) => found.attempts === 1);
    const received = smtp.messages.length;

    smtp.setFault(null);
    clock.now += 15 * second;
    worker.nudge();
    await row((found) => found.delivered_at !== null);
    assert.equal(smtp.messages.length, received + 1);
    assert.equal(new Set(smtp.messages.map((mail) => mail.email.messageId)).size, 1);
  });

  test('does not send what was cancelled while it waited', async (t) => {
    const { ctx, clock, smtp, startWorker, row } = await setUp(t, { refuse: 'message', code: 451 });
    const worker = startWorker();
    await registered(ctx, 'ada');
    await row((found) => found.attempts === 1);
    await ctx.engine.write(verifyByOperator, { slug: 'ada' });

    smtp.setFault(null);
    clock.now += 15 * second;
    worker.nudge();
    await registered(ctx, 'bob');
    await smtp.waitFor((mail) => mail.to.includes('bob@agents.example'));
    assert.equal(smtp.messages.length, 1);
    const cancelled = await row((found) => found.cancelled_at !== null);
    assert.deepEqual([cancelled.sealed, cancelled.due_at], [null, null]);
  });

  test('takes the first of each network before the second of any', async (t) => {
    const { ctx, clock } = await setUp(t);
    for (const name of ['ada', 'bob', 'carol']) {
      const { agent } = await registered(ctx, name);
      const network = name === 'carol' ? 'two' : 'one';
      await onDatabase(ctx, `update outbox set network = '${network}' where agent_id = '${agent.id}'`);
      clock.now += second;
    }
    const claimed = await ctx.engine.write(claimMail, { owner: 'a', limit: 2, duration: 120 * second });
    const slugs = await ctx.db
      .selectFrom('agents')
      .select('slug')
      .where(
        'id',
        'in',
        claimed.map(({ agent_id }) => agent_id ?? ''),
      )
      .orderBy('slug')
      .execute();
    assert.deepEqual(
      slugs.map(({ slug }) => slug),
      ['ada', 'carol'],
    );
  });

  test('leaves what was delivered as it is', async (t) => {
    const { ctx, startWorker, row } = await setUp(t);
    startWorker();
    await registered(ctx, 'ada');
    const delivered = await row((found) => found.delivered_at !== null);
    await ctx.engine.write(verifyByOperator, { slug: 'ada' });
    assert.deepEqual(await row(({ id }) => id === delivered.id), delivered);
  });

  for (const [cause, end] of [
    [
      'the key was replaced',
      (ctx: OpenContext, caller: { agentId: string; keyHash: string }) =>
        ctx.engine.write(regenerateKey, caller),
    ],
    [
      'the agent was suspended',
      (ctx: OpenContext) => ctx.engine.write(suspendAgent, { slug: 'ada', reason: 'spam' }),
    ],
  ] as const) {
    test(`does not send a token that is void since ${cause}`, async (t) => {
      const { ctx, clock, smtp, startWorker, row } = await setUp(t, { refuse: 'message', code: 451 });
      const { agent } = await registered(ctx, 'ada');
      const { apiKey } = await ctx.engine.write(verifyByOperator, { slug: 'ada' });
      await ctx.engine.write(recover, { email: 'ada@agents.example' });
      const worker = startWorker();
      await row((found) => found.kind === 'recovery' && found.attempts === 1);
      await end(ctx, { agentId: agent.id, keyHash: sha256(apiKey) });
      const cancelled = await row((found) => found.kind === 'recovery' && found.cancelled_at !== null);
      assert.deepEqual([cancelled.sealed, cancelled.due_at], [null, null]);

      smtp.setFault(null);
      clock.now += 15 * second;
      worker.nudge();
      await registered(ctx, 'bob');
      await smtp.waitFor((mail) => mail.to.includes('bob@agents.example'));
      assert.ok(!smtp.messages.some(({ email }) => email.subject?.startsWith('New API key for')));
    });
  }

  test('looks a recovery up that was queued for any address alike, sealed', async (t) => {
    const { ctx, smtp, startWorker, rows } = await setUp(t);
    await registered(ctx, 'ada');
    await ctx.engine.write(verifyByOperator, { slug: 'ada' });
    for (const email of ['ada@agents.example', 'nobody@agents.example'])
      await ctx.engine.write(recover, { email });
    const requests = (await rows()).filter((row) => row.kind === 'recovery-request');
    assert.equal(requests.length, 2);
    for (const { agent_id, mailbox, sealed, network } of requests) {
      assert.deepEqual([agent_id, mailbox, network], [null, '', null]);
      assert.doesNotMatch(sealed ?? '', /@|ada|nobody/);
    }
    startWorker();
    const mail = await smtp.waitFor(({ email }) => email.subject?.startsWith('New API key for') === true);
    assert.deepEqual(mail.to, ['ada@agents.example']);
    await until(async () => (await rows()).every((row) => row.kind !== 'recovery-request'));
    assert.ok(smtp.messages.every(({ to }) => !to.includes('nobody@agents.example')));
  });

  test('sends the newest key only, of several that waited', async (t) => {
    const { ctx, clock, smtp, startWorker, row } = await setUp(t, { refuse: 'message', code: 451 });
    const { agent } = await registered(ctx, 'ada');
    let { apiKey } = await ctx.engine.write(verifyByOperator, { slug: 'ada' });
    const worker = startWorker();
    for (let i = 1; i <= 3; i++) {
      const replaced = { agentId: agent.id, keyHash: sha256(apiKey) };
      ({ apiKey } = await ctx.engine.write(regenerateKey, replaced));
      worker.nudge();
      await row(
        (found) => found.kind === 'key-replaced' && found.cancelled_at === null && found.attempts > 0,
      );
    }
    smtp.setFault(null);
    clock.now += 15 * second;
    worker.nudge();
    const mail = await smtp.waitFor(() => true);
    assert.ok(mail.email.text?.includes(apiKey));
    await row((found) => found.delivered_at !== null);
    assert.equal(smtp.messages.length, 1);
  });

  test('keeps no row of a message that another replaced before it left, and that no cap counts', async (t) => {
    const { ctx, rows } = await setUp(t);
    const { agent } = await registered(ctx, 'ada');
    let { apiKey } = await ctx.engine.write(verifyByOperator, { slug: 'ada' });
    const { id: agentId } = agent;
    for (let n = 0; n < 3; n++)
      ({ apiKey } = await ctx.engine.write(regenerateKey, { agentId, keyHash: sha256(apiKey) }));
    for (let n = 0; n < 3; n++) {
      await ctx.engine.write(deleteAgent, { agentId, confirm: undefined });
      await ctx.engine.write(undoDeletion, { agentId });
    }
    const left = (await rows()).map(
      ({ kind, cancelled_at }) => `${kind}${cancelled_at === null ? '' : ', cancelled'}`,
    );
    assert.deepEqual(left.toSorted(), ['key-replaced', 'verification, cancelled']);
  });

  test('gives a message back at close that the server has not taken in time', async (t) => {
    const { ctx, smtp, startWorker, row } = await setUp(t, { hang: 'message' });
    const worker = startWorker(ctx, { patience: 20 });
    await registered(ctx, 'ada');
    await row((found) => found.lease_owner !== null);
    await worker.close();
    const released = await row((found) => found.lease_owner === null);
    assert.notEqual(released.sealed, null);
    assert.equal(released.delivered_at, null);

    smtp.setFault(null);
    startWorker();
    await smtp.waitFor(() => true);
    await row((found) => found.delivered_at !== null);
  });

  test('finishes at close what is under way', async (t) => {
    const { ctx, smtp, startWorker, row } = await setUp(t);
    const worker = startWorker(ctx, { patience: 5_000 });
    await registered(ctx, 'ada');
    await row((found) => found.lease_owner !== null || found.delivered_at !== null);
    await worker.close();
    assert.equal(smtp.messages.length, 1);
    await row((found) => found.delivered_at !== null);
  });
});

/** A database, a mail server, and a clock that stands still; all gone after the test. */
async function setUp(t: TestContext, fault?: SmtpFault) {
  const dir = await mkdtemp(join(tmpdir(), 'masthead-outbox-'));
  const smtp = await startSmtpServer(fault ? { fault } : {});
  await putSqliteTemplate({ DATA_DIR: dir });
  const config = loadConfig({ DATA_DIR: dir });
  const clock = { now: Date.parse('2026-03-01T12:00:00Z') };
  const written: string[] = [];
  const log = createLog('info', (line) => written.push(line));
  const ctx = await openContext(config, { existing: false, log, now: () => clock.now });
  const closers: (() => Promise<void>)[] = [];
  t.after(async () => {
    for (const close of closers) await close();
    await ctx.close();
    await smtp.close();
    await rm(dir, { recursive: true });
  });

  const rows = (): Promise<OutboxRow[]> => ctx.db.selectFrom('outbox').selectAll().execute();
  return {
    ctx,
    clock,
    smtp,
    rows,
    /** Waits for a row of the outbox. */
    row: async (fits: (row: OutboxRow) => boolean): Promise<OutboxRow> => {
      let found: OutboxRow | undefined;
      await until(async () => (found = (await rows()).find(fits)) !== undefined);
      assert.ok(found);
      return found;
    },
    lines: (level: string) => written.filter((line) => line.includes(`"level":"${level}"`)),
    startWorker: (context: typeof ctx = ctx, options: OutboxOptions = {}) => {
      const mailer = createSmtpMailer({ url: smtp.url, from: 'Masthead <masthead@localhost>' });
      const worker = startOutboxWorker(context, mailer, { random: () => 1, patience: 100, ...options });
      closers.push(async () => {
        await worker.close();
        await mailer.close();
      });
      return worker;
    },
  };
}

async function registered(ctx: OpenContext, name: string) {
  const { result } = await register(ctx, { email: `${name}@agents.example`, name, slug: name });
  return result;
}

/** Looks again until it holds; fails after a minute. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error('what the test waits for did not happen within a minute');
    await delay(5);
  }
}
