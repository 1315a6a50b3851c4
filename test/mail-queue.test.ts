import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { messages } from '../src/mail/messages.ts';
import { withoutAccess, type QueuedMail } from '../src/services/upkeep/mail-queue.ts';
import { masthead } from './support/command-line.ts';
import { placesOf, startInstance, type Instance } from './support/instance.ts';
import { operate } from './support/operator.ts';
import { scratchFolder } from './support/scratch-folder.ts';
import { startSmtpServer, type TestSmtpServer } from './support/smtp.ts';

const dir = scratchFolder('mail-queue');

for (const { suite, variant, engine } of placesOf('mail of a running service'))
  describe(suite, () => {
    let smtp: TestSmtpServer;
    let instance: Instance;
    before(async () => {
      smtp = await startSmtpServer({ fault: { refuse: 'recipient', code: 450 } });
      instance = await startInstance({ variant, engine, env: { SMTP_URL: smtp.url } });
    });
    after(async () => {
      await instance.close();
      await smtp.close();
    });

    const run = (...args: readonly string[]) => operate(instance, {}, 'mail', ...args);
    const facts = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await run(...args, '--json');
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout).data;
    };
    const register = (name: string) =>
      instance.call('POST', '/api/register', {
        body: { email: `${name}@agents.example`, name, ...(variant === 'subdomain' ? { slug: name } : {}) },
      });
    /** The one that waits, once it was tried in vain. */
    const failed = async (): Promise<QueuedMail> => {
      for (;;) {
        const { messages: waiting } = await facts('queue');
        const found = waiting.find(({ attempts, state }: QueuedMail) => attempts > 0 && state === 'waits');
        if (found !== undefined) return found;
      }
    };

    test('that waits is listed with its reason, shown without its token, and sent again at once', async () => {
      assert.deepEqual(await facts('queue'), { waiting: 0, messages: [] });
      await register('ada');
      const mail = await failed();
      assert.deepEqual([mail.kind, mail.agent, mail.route], ['verification', 'ada', 'smtp']);
      assert.match(mail.lastError ?? '', /450/);
      assert.ok(mail.nextAt !== null);
      const listed = await run('queue');
      assert.match(listed.stdout, new RegExp(`^${mail.id}  verification  ada  .*450`, 'm'));
      assert.ok(!listed.stdout.includes('agents.example'));
      const one = await facts('show', mail.id);
      const shown = await run('show', mail.id);
      assert.equal(one.contents.to, 'ada@agents.example');
      assert.match(one.contents.text, /^An agent was registered at /);
      assert.match(shown.stdout, /^Subject +Confirm the agent ada$/m);

      await register('bob');
      smtp.setFault(null);
      // Unless the service tries it again at this very moment.
      assert.match((await run('retry', mail.id)).stdout, /^1 message is due now\.$|^$/);
      assert.ok((await facts('retry', '--all')).due <= 2);
      await tokenOf('bob@agents.example');
      const token = await tokenOf('ada@agents.example');
      for (const text of [shown.stdout, JSON.stringify(one)]) {
        assert.ok(!text.includes(token));
        assert.ok(!text.includes('token='));
      }
      const delivered = await facts('show', mail.id);
      assert.deepEqual([delivered.state, delivered.contents], ['delivered', null]);
      const again = await run('retry', mail.id);
      assert.equal(again.code, 1);
      assert.match(again.stderr, /^The message cannot be sent again: it is delivered, /m);
    });

    test('is none any more: nothing is due, and what is not there is said', async () => {
      assert.equal((await run('retry', '--all')).stdout, '0 messages are due now.');
      for (const args of [['retry'], ['retry', 'x', '--all']]) assert.equal((await run(...args)).code, 2);
      for (const args of [
        ['retry', 'x'],
        ['show', 'x'],
      ]) {
        const { code, stderr } = await run(...args);
        assert.equal(code, 1);
        assert.match(stderr, /^There is no message 'x': masthead mail queue lists those that wait\.$/m);
      }
    });

    /** In the newest message to an address, once it has come. */
    async function tokenOf(address: string): Promise<string> {
      await instance.mails();
      const mail = smtp.messages.findLast(({ to }) => to.includes(address));
      return /^[0-9a-f-]{36}$/m.exec(mail?.email.text ?? '')?.[0] ?? assert.fail('no token came');
    }
  });

test('mail that goes to a server is not waited for in the folder', async () => {
  const env = { SMTP_URL: 'smtp://mail.example', DATA_DIR: join(dir, 'served') };
  const look = () => masthead(['mail', '--to', 'ada@agents.example'], env);
  await look();
  // Once its modules are loaded; it waits three seconds where the message can come.
  const began = performance.now();
  assert.match((await look()).stderr, /SMTP_URL is set, so mail goes to that server\.$/);
  assert.ok(performance.now() - began < 2_500);
});

describe('mail test', () => {
  let smtp: TestSmtpServer;
  before(async () => {
    smtp = await startSmtpServer();
  });
  after(() => smtp.close());
  const mailTest = (address: string, env: Record<string, string> = {}) =>
    masthead(['mail', 'test', address], { SMTP_URL: smtp.url, DATA_DIR: join(dir, 'none'), ...env });

  test('sends one message by the mail server, without a database', async () => {
    const { code, stdout } = await mailTest('op@masthead.example');
    assert.equal(code, 0);
    assert.match(stdout, /^smtp:\/\/127\.0\.0\.1:\d+\S* has taken it\. If it does not arrive, /);
    assert.deepEqual(
      smtp.messages.map(({ to, email }) => [to, email.subject]),
      [[['op@masthead.example'], 'Test of outgoing mail']],
    );
  });

  test('says why it was not sent, in one line', async () => {
    smtp.setFault({ refuse: 'recipient', code: 550, enhanced: '5.1.1' });
    const refused = await mailTest('op@masthead.example');
    smtp.setFault(null);
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /^It was not sent by smtp:\S+: the mail server answered 550 5\.1\.1 at RCPT TO\. [^\n]+$/,
    );
    const password = await mailTest('op@masthead.example', { SMTP_URL: 'smtp://user:hidden@127.0.0.1:1' });
    assert.equal(password.code, 1);
    assert.match(password.stderr, /ECONNREFUSED/);
    assert.ok(!password.stderr.includes('hidden'));
    const malformed = await mailTest('op at masthead');
    assert.deepEqual([malformed.code, smtp.messages.length], [1, 1]);
  });

  test('writes it to the folder where there is no mail server', async () => {
    const folder = join(dir, 'mail');
    const { stdout } = await mailTest('op@masthead.example', { SMTP_URL: '', MAIL_DIR: folder });
    assert.match(stdout, /^the folder \S+ has taken it\. Nobody gets it: set SMTP_URL\.$/);
    assert.equal(readdirSync(folder).length, 1);
  });
});

test('no message shows what gives access, whatever form that has', () => {
  for (const secret of [
    randomUUID(),
    randomBytes(32).toString('base64url'),
    randomBytes(16).toString('hex'),
    'abcdefghijklmnopqrstuvwxyzABCDEFGH',
  ])
    for (const [kind, { write }] of Object.entries(messages)) {
      const details = {
        token: secret,
        apiKey: secret,
        erasedAt: '2026-01-01',
        what: 'suspended',
        reason: 'spam',
        postUrl: null,
      };
      const facts = {
        baseUrl: 'https://masthead.example',
        contact: { email: null, abuse: null, legalUrl: null },
        agent: { name: 'Ada', slug: 'ada', blogUrl: 'https://ada.masthead.example' },
        address: 'ada@agents.example',
      };
      // A detail that is not listed above is a word.
      const given = new Proxy<object>(
        { ...facts, ...details },
        { get: (all, name) => (Reflect.has(all, name) ? Reflect.get(all, name) : 'word') },
      );
      const { text } = (write as (given: object) => { text: string })(given);
      const shown = withoutAccess(text);
      assert.ok(!shown.includes(secret), `${kind}: ${shown}`);
      assert.ok(!/[?&]\w+=[^\s\]]/.test(shown), `${kind}: ${shown}`);
      if (text.includes('https://ada.')) assert.ok(shown.includes('https://ada.masthead.example'), shown);
    }
});
