import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import PostalMime from 'postal-mime';
import { parseSender, parseSmtpUrl } from '../src/config/mail-settings.ts';
import { composeEml } from '../src/mail/eml.ts';
import { createFolderMailer } from '../src/mail/folder.ts';
import { readNewestMail } from '../src/mail/stored-mail.ts';
import { shownAddress, shownName } from '../src/mail/letter.ts';
import { MailError, type Mailer, type OutgoingMail } from '../src/mail/mailer.ts';
import type { MailText } from '../src/mail/letter.ts';
import { messages, type MailFacts } from '../src/mail/messages.ts';
import { createSmtpMailer } from '../src/mail/smtp.ts';
import { type SmtpFault, startSmtpServer, type TestSmtpServer } from './support/smtp.ts';

const baseUrl = 'https://a-rather-long-name-of-a-blog-service.example';
const token = '7f0e8f4e-5b0f-4f6e-9d0c-3b8a5f3e2d1c';
const apiKey = '0c9b7a51-6d2e-4b7f-8a3c-5e4d3c2b1a09';
const ada = { name: 'Ada', slug: 'ada', blogUrl: `https://ada.example` };
const address = 'ada@example.com';
const contact = {
  email: 'op@example.com',
  abuse: 'abuse@example.com',
  legalUrl: 'https://example.com/legal',
};
const from = 'Masthead <masthead@mail.example>';

function allMessages(agent: MailFacts['agent']): readonly MailText[] {
  const erasedAt = '2026-10-08T09:30:00.000Z';
  const moderated = {
    what: 'post deleted',
    reason: 'Nur Werbung f\u00fcr X.',
    postUrl: agent.blogUrl,
    reportId: token,
    reportedUrl: agent.blogUrl,
    reportReason: 'spam',
    upheld: true,
    rule: 'spam',
    until: erasedAt,
    appealToken: 'b'.repeat(43),
    verdict: 'granted',
    isUndone: true,
  } as const;
  const facts = { baseUrl, contact, agent, address, token, apiKey, erasedAt, ...moderated };
  return Object.values(messages).map(({ write }) => write(facts));
}

function mailOf(text: MailText, changes: Partial<OutgoingMail> = {}): OutgoingMail {
  return {
    id: '01a1fbe4-a775-72bf-89b2-9e2b63df3183',
    to: address,
    createdAt: '2026-01-02T03:04:05.678Z',
    ...text,
    ...changes,
  };
}

const verification = mailOf(messages.verification.write({ baseUrl, contact, agent: ada, address, token }));

/** What a person sees of HTML without tags. */
function decoded(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));
}

describe('What messages say', () => {
  const hostileNames = [
    'Zoë 测试 😀',
    '<script>alert(1)</script><img src=x onerror=alert(1)>',
    '"</bdi></td></table><a href=//evil.example>x</a>',
    'x\r\nBcc: victim@example.com\r\n\r\n<b>hi</b>',
    `\n${token}\n`,
    '\u202egnp.exe\u0000\u{e0041}',
    '\ud800 lone',
    '&lt;b&gt; \\u003cb',
    '😀'.repeat(100),
    '\u{10ffff}'.repeat(100),
    'a'.repeat(100),
  ];
  for (const name of hostileNames) {
    test(`All are 7bit lines of at most 998 characters when the name is ${JSON.stringify(name.slice(0, 40))}.`, () => {
      const plain = allMessages({ ...ada, name: 'x' });
      for (const [index, message] of allMessages({ ...ada, name }).entries()) {
        for (const line of `${message.text}\n${message.html}\n${message.subject}`.split('\n')) {
          assert.match(line, /^[ -~]{0,998}$/);
        }
        const [text, html] = [message.text.split('\n'), message.html.split('\n')];
        assert.equal(text.length, plain[index]?.text.split('\n').length);
        assert.equal(html.length, plain[index]?.html.split('\n').length);
        assert.deepEqual(message.html.match(/<\/?\w+/g), plain[index]?.html.match(/<\/?\w+/g));
      }
    });
  }

  test('The subject never repeats the name, and tells which agent it is about.', () => {
    for (const message of allMessages({ ...ada, name: 'Urgent' })) {
      assert.doesNotMatch(message.subject, /Urgent/);
      assert.match(message.subject, /\bada\b|^Your report was /);
    }
  });

  test('The text form of a name is a JSON string of it; the HTML form reads as the name.', () => {
    for (const name of ['Ada Lovelace', 'Zoë "Z" 测试 😀', "Dr. O'Hara, v1.2 (50% off) & <friends>"]) {
      const shown = shownName(name);
      assert.equal(JSON.parse(shown.text), name);
      assert.equal(decoded(shown.html), name);
    }
  });

  test('Nothing in a name or address looks like a link to a mail program, in either form.', () => {
    const linkish = [
      'visit http://evil.example/x',
      'HTTPS://EVIL.EXAMPLE',
      'evil.example',
      'www.evil.example',
      'evil\u3002example',
      'evil\uff0eexample',
      'evil\uff61example',
      'пример.рф',
      'mailto:a@evil.example',
      'a\uff20evil.example',
      'tel:+1900555',
      'evil.4chan.org',
      'javascript:alert(1)',
    ];
    for (const name of linkish) {
      const shown = shownName(name);
      for (const form of [shown.text, decoded(shown.html)]) {
        assert.doesNotMatch(form.normalize('NFKC'), /:\S|@|[.。]\p{L}{2}/u, form);
      }
    }
    assert.equal(
      shownAddress('x+www.evil.example/y@example.com').text,
      'x+www.evil.example\\u002fy@example.com',
    );
    assert.equal(shownAddress("o'hara+b_1@example.com").text, "o'hara+b_1@example.com");
  });

  test('Verification names what is confirmed, links to the page, and holds the token alone on a line.', () => {
    const { text, html } = verification;
    for (const part of ['"Ada"', ada.slug, ada.blogUrl, address]) assert.ok(text.includes(part), part);
    const lines = text.split('\n');
    assert.equal(lines.filter((line) => line === token).length, 1);
    assert.equal(lines.filter((line) => line === `${baseUrl}/verify?token=${token}`).length, 1);
    assert.deepEqual(html.match(/href="[^"]*"/g), [`href="${baseUrl}/verify?token=${token}"`]);
  });

  test('No address of the API in any message holds a token or a key.', () => {
    for (const { text, html } of allMessages(ada)) {
      for (const url of `${text}\n${decoded(html)}`.match(/https?:\/\/\S+/g) ?? []) {
        assert.ok(!url.includes(apiKey), url);
        const ofPages = [`${baseUrl}/verify?token=`, `${baseUrl}/verify/undo-deletion?token=`];
        assert.ok(!url.includes(token) || ofPages.some((start) => url.startsWith(start)), url);
      }
    }
  });

  test('Only the messages with a token have a line that is a UUID alone, so that a key is never taken for one.', () => {
    const alone = allMessages(ada).map(({ text }) =>
      text.split('\n').filter((line) => /^[0-9a-f-]{36}$/.test(line)),
    );
    assert.deepEqual(alone, [[token], [], [], [token], [], [], [], [], [], [], [], []]);
  });

  test('The messages with a key hold it once in each form, as a line to paste into a shell.', () => {
    const holding = allMessages(ada).filter(({ text }) => text.includes(apiKey));
    assert.equal(holding.length, 2);
    for (const { text, html } of holding) {
      assert.deepEqual(
        text.split('\n').filter((line) => line.includes(apiKey)),
        [
          `(umask 077; echo 'Authorization: Bearer ${apiKey}' > ~/.config/masthead/https-a-rather-long-name-of-a-blog-service.example.key)`,
        ],
      );
      assert.equal(html.split(apiKey).length, 2);
    }
  });

  test('No message loads anything from anywhere.', () => {
    for (const { html } of allMessages(ada))
      assert.doesNotMatch(html, /src=|url\(|<(?:img|link|script|style)\b/i);
  });
});

describe('The message as bytes', () => {
  const senders = [
    { from: 'masthead@mail.example', name: '', address: 'masthead@mail.example' },
    { from: 'Masthead <masthead@mail.example>', name: 'Masthead', address: 'masthead@mail.example' },
    { from: '"Ada \\"B\\", C" <a@b.example>', name: 'Ada "B", C', address: 'a@b.example' },
    {
      from: 'Grüße von der 長い名前のブログサービス 😀 <a@b.example>',
      name: 'Grüße von der 長い名前のブログサービス 😀',
      address: 'a@b.example',
    },
    { from: 'Back\\slash <a@b.example>', name: 'Back\\slash', address: 'a@b.example' },
    { from: 'masthead@[::1]', name: '', address: 'masthead@[::1]' },
  ];
  for (const { from: sender, name, address: expected } of senders) {
    test(`The sender ${sender} arrives as it was set.`, async () => {
      const eml = composeEml(verification, parseSender(sender));
      assert.match(eml, /^[\r\n -~]*$/);
      const parsed = await PostalMime.parse(eml);
      assert.deepEqual(parsed.from, { name, address: expected });
      assert.equal(parsed.messageId, `<${verification.id}@${expected.split('@')[1]}>`);
    });
  }

  test('A sender that is none is refused at start.', () => {
    const wrong = [
      '',
      'Masthead',
      'a@b@c',
      'A <a@b.example',
      'a@b.example>',
      'A <a@b.example>\r\nBcc: x@y.example',
      'a b@c.example',
      'A <B> <a@b.example>',
    ];
    for (const sender of wrong)
      assert.throws(() => parseSender(sender), /^Error: is .*, neither/s, JSON.stringify(sender));
  });

  test('A line of just 998 letters goes out as it is.', () => {
    const line = 'x'.repeat(998);
    assert.ok(composeEml({ ...verification, text: line }, parseSender(from)).includes(`\r\n${line}\r\n`));
  });

  const injections: readonly Partial<OutgoingMail>[] = [
    { to: 'a@b.example\r\nRCPT TO:<victim@example.com>' },
    { to: 'a@b.example, victim@example.com' },
    { to: 'Name <a@b.example>' },
    { to: 'a@b.example>' },
    { to: '"a b"@b.example' },
    { to: 'ä@b.example' },
    { to: 'a@[127.0.0.1]' },
    { to: '' },
    { to: `${'a'.repeat(250)}@b.example` },
    { subject: 'Hi\r\nBcc: victim@example.com' },
    { subject: 'Hi\nBcc: victim@example.com' },
    { subject: 'Grüße' },
    { subject: '' },
    { id: 'x>\r\nBcc: <y' },
    { id: '"; x="' },
    { createdAt: 'yesterday' },
    { text: 'lone\rcarriage return' },
    { text: 'grüße' },
    { text: 'NUL \0' },
    { text: 'x'.repeat(999) },
    { html: '<p>\u2028</p>' },
  ];
  for (const changes of injections) {
    test(`A message with ${JSON.stringify(changes).slice(0, 60)} goes nowhere, for good.`, () => {
      assert.throws(
        () => composeEml({ ...verification, ...changes }, parseSender(from)),
        (error) => error instanceof MailError && error.permanent && !error.message.includes('example'),
      );
    });
  }
});

async function failure(sending: Promise<void>): Promise<MailError> {
  const error: unknown = await sending.then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof MailError, `expected a MailError, got ${String(error)}`);
  assert.doesNotMatch(error.message, /@|recipient\.example|password|\n/);
  return error;
}

describe('SMTP', { concurrency: 8 }, () => {
  const open: (() => Promise<void>)[] = [];
  after(async () => {
    for (const close of open.toReversed()) await close();
  });

  async function startServer(options: Parameters<typeof startSmtpServer>[0] = {}): Promise<TestSmtpServer> {
    const server = await startSmtpServer(options);
    open.push(() => server.close());
    return server;
  }

  function mailerFor(url: string, settings: Partial<Parameters<typeof createSmtpMailer>[0]> = {}): Mailer {
    const mailer = createSmtpMailer({ url, from, ...settings });
    open.push(() => mailer.close());
    return mailer;
  }

  test('A message arrives as it was written: 7bit, to one recipient, marked as automatic.', async () => {
    const server = await startServer();
    const text = `${verification.text}.\n.. dots\n${'x'.repeat(998)}\n`;
    await mailerFor(server.url).send({ ...verification, text });
    const [mail] = server.messages;
    assert.ok(mail !== undefined);
    assert.equal(mail.from, 'masthead@mail.example');
    assert.deepEqual(mail.to, [address]);
    assert.match(mail.raw, /^[\r\n -~]*$/);
    assert.doesNotMatch(mail.raw, /quoted-printable|base64|=3D|=\r\n/i);
    assert.equal(mail.raw.match(/^Content-Transfer-Encoding: 7bit\r$/gm)?.length, 2);
    const lines = mail.raw.split('\r\n');
    for (const expected of [
      'Date: Fri, 02 Jan 2026 03:04:05 +0000',
      'From: "Masthead" <masthead@mail.example>',
      `To: <${address}>`,
      'Subject: Confirm the agent ada',
      `Message-ID: <${verification.id}@mail.example>`,
      'Auto-Submitted: auto-generated',
      'X-Auto-Response-Suppress: All',
      token,
      `${baseUrl}/verify?token=${token}`,
    ]) {
      assert.equal(lines.filter((line) => line === expected).length, 1, expected);
    }
    assert.equal(mail.email.text?.trimEnd(), text.trimEnd());
    assert.equal(mail.email.html?.trimEnd(), verification.html.trimEnd());
  });

  test('The same message sent again is the same bytes, so that a double can be told by its Message-ID.', async () => {
    const server = await startServer();
    const mailer = mailerFor(server.url);
    await mailer.send(verification);
    await mailer.send(verification);
    assert.equal(server.messages.length, 2);
    assert.equal(server.messages[0]?.raw, server.messages[1]?.raw);
  });

  test('Nothing of a message that is refused here reaches the server.', async () => {
    const server = await startServer();
    const error = await failure(
      mailerFor(server.url).send({ ...verification, to: 'a@b.example,c@d.example' }),
    );
    assert.equal(error.permanent, true);
    assert.equal(server.messages.length, 0);
  });

  const failures: readonly { fault: SmtpFault; permanent: boolean; says: RegExp }[] = [
    { fault: { refuse: 'recipient', code: 550 }, permanent: true, says: /550 5\.1\.1 at RCPT TO/ },
    { fault: { refuse: 'message', code: 554 }, permanent: true, says: /554 5\.1\.1 at DATA/ },
    { fault: { refuse: 'recipient', code: 500 }, permanent: true, says: /500 .*at RCPT TO/ },
    { fault: { refuse: 'recipient', code: 451 }, permanent: false, says: /451 .*at RCPT TO/ },
    { fault: { refuse: 'recipient', code: 530 }, permanent: false, says: /530/ },
    { fault: { refuse: 'message', code: 452 }, permanent: false, says: /452 .*at DATA/ },
    { fault: { refuse: 'sender', code: 550 }, permanent: false, says: /550 .*at MAIL FROM/ },
    { fault: { refuse: 'connection', code: 554 }, permanent: false, says: /./ },
    { fault: { refuse: 'connection', code: 421 }, permanent: false, says: /./ },
  ];
  for (const { fault, permanent, says } of failures) {
    test(`${JSON.stringify(fault)} is ${permanent ? 'final' : 'worth another try'}, and afterwards mail flows again.`, async () => {
      const server = await startServer({ fault });
      const mailer = mailerFor(server.url);
      const error = await failure(mailer.send(verification));
      assert.equal(error.permanent, permanent, error.message);
      assert.match(error.message, says);
      server.setFault(null);
      await mailer.send(verification);
      assert.equal(server.messages.length, 1);
    });
  }

  const patient = { connection: 10_000, greeting: 10_000, socket: 10_000, send: 10_000 };
  const hanging = [
    { stage: 'connection', timeouts: { ...patient, greeting: 300 } },
    { stage: 'message', timeouts: { ...patient, socket: 300 } },
    { stage: 'message', timeouts: { ...patient, send: 300 } },
  ] as const;
  for (const { stage, timeouts } of hanging) {
    test(`A server that falls silent at the ${stage} is given up after ${JSON.stringify(timeouts)}.`, async () => {
      const server = await startServer({ fault: { hang: stage } });
      const error = await failure(mailerFor(server.url, { timeouts }).send(verification));
      assert.equal(error.permanent, false);
      assert.equal(error.message, 'the mail server did not answer in time');
    });
  }

  test('A message that was taken before the line broke is sent once by one call, and the call fails.', async () => {
    const server = await startServer({ fault: { drop: 'message' } });
    const error = await failure(mailerFor(server.url).send(verification));
    assert.equal(error.permanent, false);
    assert.equal(server.messages.length, 1);
  });

  test('A server that is not there is worth another try, and a returned one gets the mail.', async () => {
    const server = await startServer();
    const mailer = mailerFor(server.url);
    await mailer.send(verification);
    await server.close();
    assert.equal((await failure(mailer.send(verification))).permanent, false);
    const returned = await startServer({ port: server.port });
    await mailer.send(verification);
    assert.equal(returned.messages.length, 1);
  });

  test("A login goes by what the address says; a wrong one is the operator's to mend.", async () => {
    const server = await startServer({ auth: { user: 'ada@mail.example', pass: 'pass:w%rd' } });
    await mailerFor(server.url).send(verification);
    assert.equal(server.messages[0]?.user, 'ada@mail.example');
    const wrong = mailerFor(server.url.replace('pass', 'password'));
    const error = await failure(wrong.send(verification));
    assert.equal(error.permanent, false);
    assert.match(error.message, /535/);
  });

  test('STARTTLS is used where it is offered, and its certificate is checked.', async () => {
    const server = await startServer({ startTls: true, auth: { user: 'ada', pass: 'secret' } });
    await mailerFor(server.url).send(verification);
    assert.equal(server.messages[0]?.encrypted, true);
    const error = await failure(mailerFor(server.url.replace(/\?.*/, '')).send(verification));
    assert.match(error.message, /certificate/);
    assert.equal(server.messages.length, 1);
  });

  test('With requireTLS nothing is sent to a server that does not offer it.', async () => {
    const server = await startServer();
    const error = await failure(mailerFor(`${server.url}?requireTLS=1`).send(verification));
    assert.equal(error.permanent, false);
    assert.equal(server.messages.length, 0);
  });

  test('DKIM signs the message as it arrives.', async () => {
    const server = await startServer();
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await mailerFor(server.url, {
      dkim: { domain: 'mail.example', selector: 's1', privateKey: pem },
    }).send(verification);
    const raw = server.messages[0]?.raw ?? '';
    const end = raw.indexOf('\r\n\r\n');
    const signature =
      /^DKIM-Signature: ((?:.|\r\n )*)/m.exec(raw.slice(0, end))?.[1]?.replaceAll(/\s/g, '') ?? '';
    assert.match(signature, /d=mail\.example;/);
    assert.match(signature, /s=s1;/);
    // RFC 6376, section 3.4.4: the "relaxed" form of the body.
    const body = raw
      .slice(end + 4)
      .replaceAll(/[ \t]+/g, ' ')
      .replaceAll(/ \r\n/g, '\r\n')
      .replace(/(?:\r\n)*$/, '\r\n');
    const hash = createHash('sha256').update(body, 'latin1').digest('base64');
    assert.ok(signature.includes(`bh=${hash};`), signature);
  });

  const plain = { secure: false, requireTls: false, ignoreTls: false, verifyCertificate: true, auth: null };
  const auth = { user: 'me@mail.example', pass: 'p@ss' };
  const login = 'me%40mail.example:p%40ss@';
  const urls: readonly [string, Partial<ReturnType<typeof parseSmtpUrl>>][] = [
    ['smtp://mail.example', { host: 'mail.example', port: 587, ...plain }],
    ['smtp://127.0.0.1:2525/', { host: '127.0.0.1', port: 2525, ...plain }],
    ['smtp://[::1]:25', { host: '::1', port: 25, ...plain }],
    ['smtps://mail.example', { port: 465, secure: true, requireTls: false }],
    [`smtp://${login}mail.example`, { auth, requireTls: true }],
    [`smtp://${login}mail.example?requireTLS=0`, { auth, requireTls: false }],
    [`smtp://${login}mail.example?ignoreTLS=true`, { requireTls: false, ignoreTls: true }],
    [`smtp://${login}localhost`, { auth, requireTls: false }],
    [
      'smtp://mail.example?requireTLS=1&tls.rejectUnauthorized=false',
      { requireTls: true, verifyCertificate: false },
    ],
  ];
  for (const [url, expected] of urls) {
    test(`The address ${url} is understood.`, () => {
      assert.deepEqual({ ...parseSmtpUrl(url), ...expected }, parseSmtpUrl(url));
    });
  }

  test('An address that cannot work is refused at start without being repeated.', () => {
    const wrong = [
      '',
      'hunter2',
      'http://hunter2@mail.example',
      'smtp://',
      'smtp://u:hunter2@mail.example/path',
      'smtp://u:hunter2%@mail.example',
      'smtp://u:hunter2@mail.example?pool=hunter2',
      'smtp://u:25#hunter2@mail.example',
      'smtp://u:hunter2@mail.example?requireTLS=hunter2',
    ];
    for (const url of wrong) {
      assert.throws(
        () => parseSmtpUrl(url),
        (error: Error) => /^(?:is|has) /.test(error.message) && !error.message.includes('hunter2'),
        url,
      );
    }
  });
});

describe('The mail folder', () => {
  const made: string[] = [];
  after(async () => {
    for (const dir of made) await rm(dir, { recursive: true });
  });

  async function newFolder(): Promise<string> {
    const parent = await mkdtemp(join(tmpdir(), 'masthead-mail-'));
    made.push(parent);
    return join(parent, 'data', 'mail');
  }

  test('A message becomes one private file with the bytes that SMTP would carry.', async () => {
    const dir = await newFolder();
    await createFolderMailer({ dir, from }).send(verification);
    const files = await readdir(dir);
    assert.deepEqual(files, [`20260102T030405678Z-${verification.id}.eml`]);
    assert.equal(
      await readFile(join(dir, files[0] ?? ''), 'utf8'),
      composeEml(verification, parseSender(from)),
    );
    assert.equal((await stat(dir)).mode & 0o777, 0o700);
    assert.equal((await stat(join(dir, files[0] ?? ''))).mode & 0o777, 0o600);
  });

  test('The same message again replaces its file, also when both are written at once.', async () => {
    const dir = await newFolder();
    const mailer = createFolderMailer({ dir, from });
    await Promise.all([mailer.send(verification), mailer.send(verification)]);
    await mailer.send(verification);
    assert.equal((await readdir(dir)).length, 1);
  });

  test('The newest message is read back, and with its token when one is asked for.', async () => {
    const dir = await newFolder();
    const mailer = createFolderMailer({ dir, from });
    const facts = { baseUrl, contact, agent: ada, address, apiKey };
    const older = messages.recovery.write({ ...facts, token: randomUUID() });
    await mailer.send(
      mailOf(messages['key-issued'].write(facts), { id: 'c', createdAt: '2026-01-02T10:00:00.000Z' }),
    );
    await mailer.send({ ...verification, id: 'b' });
    await mailer.send(mailOf(older, { id: 'a', createdAt: '2025-12-31T23:59:59.999Z' }));
    await writeFile(join(dir, 'zzz.eml'), 'something else');
    await writeFile(join(dir, '99991231T235959999Z-x.eml'), 'something else');

    const newest = await readNewestMail(dir);
    assert.equal(newest?.subject, 'API key of the agent ada');
    assert.equal(newest?.token, null);
    assert.deepEqual(await readNewestMail(dir, { holdingToken: true }), {
      file: '20260102T030405678Z-b.eml',
      date: 'Fri, 02 Jan 2026 03:04:05 +0000',
      to: address,
      subject: 'Confirm the agent ada',
      text: verification.text,
      token,
    });
  });

  test('Messages that other programs wrote are read too, the newest file first.', async () => {
    const dir = await newFolder();
    const sent = randomUUID();
    const plain = `Verify with\n${sent}\n`;
    const folded = ['Subject: of', ' two lines', 'Date: today'];
    const written = [
      ['a.eml', ['To: Ada <ada@example.com>', ...folded, 'Content-Type: text/plain', '', plain].join('\n')],
      [
        'B.EML',
        ['to: ada@example.com', 'content-transfer-encoding: base64', '', btoa(plain), ''].join('\r\n'),
      ],
      [
        'c.eml',
        [
          'To: ada@example.com',
          'Content-Type: multipart/mixed;',
          '\tboundary=x',
          '',
          '--x',
          'Content-Type: text/html',
          '',
          `<p>${sent}</p>`,
          '--x',
          'Content-Type: text/plain; charset=utf-8',
          'Content-Transfer-Encoding: quoted-printable',
          '',
          `Verify with=0A${sent.slice(0, 20)}=`,
          `${sent.slice(20)}=0A`,
          '--x--',
        ].join('\r\n'),
      ],
    ] as const;
    await mkdir(dir, { recursive: true });
    for (const [index, [name, eml]] of written.entries()) {
      await writeFile(join(dir, name), eml);
      await utimes(join(dir, name), 0, 1_000 + index);
      const newest = await readNewestMail(dir, { holdingToken: true, to: 'ada@example.com' });
      assert.deepEqual([newest?.file, newest?.token], [name, sent]);
      assert.equal(newest?.text.trimEnd(), plain.trimEnd());
    }
    await utimes(join(dir, 'a.eml'), 0, 2_000);
    assert.equal((await readNewestMail(dir))?.subject, 'of two lines');
  });

  test('A folder that is missing or empty has no newest message.', async () => {
    const dir = await newFolder();
    assert.equal(await readNewestMail(dir), null);
    assert.equal(await readNewestMail(tmpdir(), { holdingToken: true }), null);
  });

  test('A folder that cannot be written is worth another try, and leaves nothing half written.', async () => {
    const dir = await newFolder();
    await createFolderMailer({ dir, from }).send(verification);
    const [file] = await readdir(dir);
    const inAFile = createFolderMailer({ dir: join(dir, file ?? ''), from });
    await assert.rejects(inAFile.send(verification), (error) => {
      assert.ok(error instanceof MailError);
      assert.equal(error.permanent, false);
      assert.equal(error.message, 'cannot write to MAIL_DIR (EEXIST)');
      return true;
    });
    assert.equal((await readdir(dir)).length, 1);
  });
});
