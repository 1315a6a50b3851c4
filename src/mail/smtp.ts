import type { Options as PoolOptions } from 'nodemailer/lib/smtp-pool/index.js';
import { trustSystemAuthorities } from '../config/authorities.ts';
import { parseSender, parseSmtpUrl } from '../config/mail-settings.ts';
import type { Dkim } from '../config/values.ts';
import { errorCode } from '../rules/failure.ts';
import { checkedRecipient, composeEml } from './eml.ts';
import { MailError, type Mailer } from './mailer.ts';

export type SmtpSettings = {
  /** `smtp://user:password@host:587` or `smtps://…:465`; parameters in {@link parseSmtpUrl}. */
  readonly url: string;
  /** Sender as in `MAIL_FROM`. */
  readonly from: string;
  /** Signs every message. */
  readonly dkim?: Dkim | null;
  /** Milliseconds; the defaults are for the world, tests take shorter ones. */
  readonly timeouts?: Timeouts;
};

/** Milliseconds: until connected, until greeted, without a byte, and for one message as a whole. */
type Timeouts = { readonly [stage in 'connection' | 'greeting' | 'socket' | 'send']: number };

const defaultTimeouts: Timeouts = { connection: 10_000, greeting: 10_000, socket: 30_000, send: 60_000 };

/** Sends by SMTP over a pool of at most three connections. Throws an Error when the settings cannot work. */
export function createSmtpMailer(settings: SmtpSettings): Mailer {
  const sender = parseSender(settings.from);
  const timeouts = settings.timeouts ?? defaultTimeouts;
  const transportOptions = optionsOf(settings, timeouts);
  let transport: Promise<Transport> | null = null;
  return {
    async send(mail) {
      const raw = composeEml(mail, sender);
      const envelope = { from: sender.address, to: { name: '', address: checkedRecipient(mail.to) } };
      const deadline = AbortSignal.timeout(timeouts.send);
      transport ??= connect(transportOptions);
      try {
        await (await transport).sendMail({ envelope, raw, signal: deadline });
      } catch (error) {
        throw mailError(error);
      }
    },
    async close() {
      (await transport)?.close();
    },
  };
}

/** Connects and logs in as for a message, and sends none. Throws MailError. */
export async function tryLogin(settings: SmtpSettings): Promise<void> {
  const transport = await connect(optionsOf(settings, settings.timeouts ?? defaultTimeouts));
  try {
    await transport.verify();
  } catch (error) {
    throw mailError(error);
  } finally {
    transport.close();
  }
}

function optionsOf({ url, dkim }: SmtpSettings, timeouts: Timeouts): PoolOptions {
  const { host, port, secure, requireTls, ignoreTls, verifyCertificate, auth } = parseSmtpUrl(url);
  return {
    pool: true,
    host,
    port,
    secure,
    requireTLS: requireTls,
    ignoreTLS: ignoreTls,
    tls: { rejectUnauthorized: verifyCertificate },
    maxConnections: 3,
    // The outbox decides on retries; one at once is for a pooled connection that the server had closed.
    maxRequeues: 1,
    connectionTimeout: timeouts.connection,
    greetingTimeout: timeouts.greeting,
    socketTimeout: timeouts.socket,
    dnsTimeout: timeouts.connection,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(auth === null ? {} : { auth }),
    ...(dkim
      ? { dkim: { domainName: dkim.domain, keySelector: dkim.selector, privateKey: dkim.privateKey } }
      : {}),
  };
}

type Transport = Awaited<ReturnType<typeof connect>>;

/** The library is loaded for the first message: it would slow every start, and takes 4 MiB. */
async function connect(options: PoolOptions) {
  if (options.ignoreTLS !== true) trustSystemAuthorities();
  return (await import('nodemailer')).createTransport(options);
}

/**
 * Sorts a failure. Permanent is only what the server says of this recipient or this message with 5yz; a refused
 * login, sender or connection is the operator's to mend, and the message waits for it.
 */
function mailError(error: unknown): MailError {
  if (!(error instanceof Error)) return new MailError('the message could not be sent', false);
  const code = errorCode(error);
  if (code === 'ETIMEDOUT' || code === 'EABORT') {
    return new MailError('the mail server did not answer in time', false);
  }
  const status: unknown = Reflect.get(error, 'responseCode');
  if (typeof status !== 'number') {
    const words = connectionFailures.has(code)
      ? error.message.replaceAll(/\s+/g, ' ').slice(0, 200)
      : (code ?? error.name);
    return new MailError(`the message could not be sent: ${words}`, false);
  }
  // A server's words may repeat the address; its codes do not.
  const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(String(Reflect.get(error, 'response')))?.[1];
  const command = String(Reflect.get(error, 'command'));
  const aboutThisMail = (command === 'RCPT TO' || command === 'DATA') && !aboutTheSession.has(status);
  const permanent = aboutThisMail && status >= 500;
  const ofRecipient = aboutThisMail && command === 'RCPT TO';
  const words = enhanced === undefined ? String(status) : `${status} ${enhanced}`;
  return new MailError(`the mail server answered ${words} at ${command}`, permanent, {
    ofRecipient,
    ofAddress: permanent && ofRecipient && !aboutOthers.test(words),
  });
}

/**
 * What servers refuse a recipient for although its address is good (RFC 3463): a full mailbox, the server itself, the
 * protocol, a policy against the sender, and the sender's address.
 */
const aboutOthers = /^552$| 5\.(?:2\.[2-4]|[3567]\.\d+|1\.[78])$/;

/** Errors of nodemailer without a reply, whose words speak of hosts and certificates only. */
const connectionFailures = new Set<string | undefined>(['ECONNECTION', 'EDNS', 'ESOCKET', 'ETLS']);

/** Bad sequence of commands, and authentication required (RFC 5321, RFC 4954). */
const aboutTheSession = new Set([503, 530]);
