import { UsageError, type Command } from '../../../client/src/terminal/command.ts';
import { listing, plainText, table } from '../../../client/src/terminal/format.ts';
import { MailError } from '../../mail/mailer.ts';
import { parseEmail } from '../../rules/email.ts';
import { StartError } from '../../rules/failure.ts';
import { withContext } from '../operator.ts';

/** How long to wait for a message to an address, ms. */
const timeout = 3_000;

const showNewest: Command = {
  name: 'mail',
  summary: 'Show the newest message that was written to MAIL_DIR.',
  details: [
    'What waits to be sent is shown by masthead mail queue.',
    'Messages go there while SMTP_URL is not set. In a shell: TOKEN=$(masthead mail --last --token --to ada@agents.example)',
  ],
  options: {
    last: { meaning: 'The newest message, which is the default.' },
    to: {
      meaning: 'Only messages to this address; waits up to three seconds for the first.',
      value: 'address',
    },
    token: { meaning: 'Print only the verification or recovery token, of the newest message with one.' },
  },
  async run({ env, has, value, result }) {
    const { loadConfig } = await import('../../config/config.ts');
    const { awaitNewestMail } = await import('../../mail/stored-mail.ts');
    const { dir, smtpUrl } = loadConfig(env).mail;
    const to = value('to');
    const wait = to === null || smtpUrl !== null ? 0 : timeout;
    const newest = await awaitNewestMail(dir, { holdingToken: has('token'), to }, wait);
    if (newest === null) {
      const reason = smtpUrl === null ? '' : ': SMTP_URL is set, so mail goes to that server';
      throw new StartError(
        `There is no message${has('token') ? ' with a token' : ''}${to === null ? '' : ' to this address'} in ${dir}${reason}.`,
      );
    }
    const { token, date, subject, text } = newest;
    if (has('token')) return result({ token }, token ?? '');
    result(newest, `Date: ${date}\nTo: ${newest.to}\nSubject: ${subject}\n\n${text.trimEnd()}`);
  },
};

const queue: Command = {
  name: 'mail queue',
  summary: 'List the messages that wait to be sent, and why.',
  details: ['Nothing of their texts. While SMTP_URL is set, MAIL_BUDGET may hold some back.'],
  options: {
    limit: { meaning: 'How many to list; 100 unless given.', value: 'number', maximum: 10_000 },
  },
  async run(call) {
    const { listQueue } = await import('../../services/upkeep/mail-queue.ts');
    const most = Number(call.value('limit') ?? 100);
    const found = await withContext(call, (ctx) => listQueue(ctx, most));
    const rows = found.messages.map((mail) => [
      mail.id,
      mail.kind,
      mail.agent ?? '-',
      mail.createdAt,
      mail.nextAt === null ? mail.state : `next at ${mail.nextAt}`,
      String(mail.attempts),
      mail.lastError ?? '',
    ]);
    const heads = ['ID', 'KIND', 'AGENT', 'MADE', 'STATE', 'TRIES', 'WHY'];
    const more = found.waiting - rows.length;
    const notes = more > 0 ? [`${more} more wait: see --limit.`] : [];
    call.result(
      found,
      rows.length === 0 ? 'No message waits.' : listing(heads, rows, call.columns?.('result')),
      notes,
    );
  },
};

const show: Command = {
  name: 'mail show',
  summary: 'Show one message by its id, without links, tokens and keys that give access.',
  details: ['Texts are erased once a message is delivered or given up.'],
  operands: ['id'],
  async run(call) {
    const { findMail } = await import('../../services/upkeep/mail-queue.ts');
    const [id = ''] = call.operands;
    const mail = await withContext(call, (ctx) => findMail(ctx, id));
    const { contents } = mail;
    const facts = [
      ['Kind', mail.kind],
      ['Agent', mail.agent ?? 'none'],
      ['State', mail.state],
      ['Queued', mail.createdAt],
      ...(mail.nextAt === null ? [] : [['Next try', mail.nextAt]]),
      ['Tries', String(mail.attempts)],
      ...(mail.lastError === null ? [] : [['Last error', mail.lastError]]),
      ...(contents === null
        ? [['Text', mail.isStored ? 'sealed, and not readable here' : 'erased']]
        : [
            ['To', contents.to],
            ['Subject', contents.subject],
          ]),
    ];
    call.result(
      mail,
      `${table(facts)}${contents === null ? '' : `\n\n${plainText(contents.text.trimEnd())}`}`,
    );
  },
};

const retry: Command = {
  name: 'mail retry',
  summary: 'Have the running service send a message again now, or all that wait.',
  details: ['What is being sent at the moment is left alone, and what MAIL_BUDGET holds back waits on.'],
  operands: ['id?'],
  options: { all: { meaning: 'All messages that wait.' } },
  async run(call) {
    const { retryMail } = await import('../../services/upkeep/mail-queue.ts');
    const [id] = call.operands;
    if ((id !== undefined) === call.has('all'))
      throw new UsageError('name one message, or say --all', retry.name);
    const due = await withContext(call, ({ engine }) => engine.write(retryMail, { id: id ?? null }));
    call.result({ due }, `${due} ${due === 1 ? 'message is' : 'messages are'} due now.`);
  },
};

const tryOut: Command = {
  name: 'mail test',
  summary: 'Send one message to an address by SMTP_URL, or to MAIL_DIR, and say what happened.',
  details: ['At once, beside the queue: it needs neither the service nor its database.'],
  operands: ['address'],
  async run(call) {
    const { loadConfig } = await import('../../config/config.ts');
    const { settings } = await import('../../config/settings.ts');
    const { createMailer } = await import('../../mail/configured.ts');
    const { testMail } = await import('../../mail/test-mail.ts');
    const config = loadConfig(call.env);
    const email = parseEmail(call.operands[0] ?? '');
    if (!email.ok) throw new StartError(`The address ${email.message}.`);
    const { smtpUrl, dir } = config.mail;
    const place = smtpUrl === null ? `the folder ${dir}` : settings.SMTP_URL.show(smtpUrl);
    const mailer = createMailer(config);
    try {
      await mailer.send(testMail(config, { to: email.address, now: Date.now() }));
    } catch (error) {
      if (error instanceof MailError)
        throw new StartError(`It was not sent by ${place}: ${error.message}. masthead doctor looks further.`);
      throw error;
    } finally {
      await mailer.close();
    }
    const next =
      smtpUrl === null
        ? 'Nobody gets it: set SMTP_URL.'
        : 'If it does not arrive, look at SPF, DKIM and DMARC, and at the log of that server.';
    call.result({ sent: true, by: place, to: email.address }, `${place} has taken it. ${next}`);
  },
};

/** What the operator does about mail. */
export const mailCommands: readonly Command[] = [showNewest, queue, show, retry, tryOut];
