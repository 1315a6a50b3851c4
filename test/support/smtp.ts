import { once } from 'node:events';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer } from 'smtp-server';

/** A message as the server took it over. */
export type ReceivedMail = {
  /** Envelope addresses. */
  readonly from: string;
  readonly to: readonly string[];
  /** The bytes between DATA and the final dot, as Latin-1. */
  readonly raw: string;
  /** The same, parsed. `text` and `html` have their transfer encoding undone. */
  readonly email: Email;
  /** Whether the connection was encrypted. */
  readonly encrypted: boolean;
  /** Who logged in, or null. */
  readonly user: string | null;
};

/** How the server misbehaves. A dropped message was received whole; only the answer to it is missing. */
export type SmtpFault =
  | {
      readonly refuse: 'connection' | 'sender' | 'recipient' | 'message';
      readonly code: number;
      readonly enhanced?: string;
    }
  | { readonly hang: 'connection' | 'message' }
  | { readonly drop: 'message' };

export type SmtpServerOptions = {
  readonly fault?: SmtpFault;
  /** A free one by default; give one to come back where a closed server was. */
  readonly port?: number;
  /** The login that is required. */
  readonly auth?: { readonly user: string; readonly pass: string };
  /** Offers STARTTLS, with the self-signed certificate of the smtp-server package unless another is given. */
  readonly startTls?: boolean;
  /** Speaks TLS from the first byte, as `smtps://` does. */
  readonly tls?: boolean;
  readonly certificate?: { readonly key: string; readonly cert: string };
};

/** A real SMTP server on loopback. */
export type TestSmtpServer = {
  /** For `SMTP_URL`, with the login if one is required. */
  readonly url: string;
  readonly port: number;
  /** What was taken over, in order; dropped messages too. */
  readonly messages: readonly ReceivedMail[];
  /** Misbehaves so from now on; null: no more. */
  setFault(fault: SmtpFault | null): void;
  /** The first message, past or to come, that fits; rejects after `timeoutMs` (60,000). */
  waitFor(fits: (mail: ReceivedMail) => boolean, timeoutMs?: number): Promise<ReceivedMail>;
  close(): Promise<void>;
};

/** Starts a server that collects messages. */
export async function startSmtpServer(options: SmtpServerOptions = {}): Promise<TestSmtpServer> {
  const messages: ReceivedMail[] = [];
  const waiting = new Set<() => void>();
  const sockets = new Set<Socket>();
  let fault = options.fault ?? null;

  const refusal = (stage: string): Error | null =>
    fault !== null && 'refuse' in fault && fault.refuse === stage
      ? // Like a real server, the reply repeats what it was given.
        Object.assign(new Error(`${fault.enhanced ?? '5.1.1'} <secret@recipient.example> refused`), {
          responseCode: fault.code,
        })
      : null;
  const hangs = (stage: string): boolean => fault !== null && 'hang' in fault && fault.hang === stage;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };

  const server = new SMTPServer({
    logger: false,
    secure: options.tls === true,
    ...options.certificate,
    disableReverseLookup: true,
    closeTimeout: 100,
    size: 1024 * 1024,
    authOptional: options.auth === undefined,
    allowInsecureAuth: options.startTls !== true,
    disabledCommands: [
      ...(options.startTls === true ? [] : ['STARTTLS']),
      ...(options.auth === undefined ? ['AUTH'] : []),
    ],
    onConnect(_session, done) {
      if (!hangs('connection')) done(refusal('connection'));
    },
    onAuth({ username, password }, _session, done) {
      const known = username === options.auth?.user && password === options.auth?.pass;
      done(null, known ? { user: username } : { message: `no ${username}`, responseCode: 535 });
    },
    onMailFrom(_address, _session, done) {
      done(refusal('sender'));
    },
    onRcptTo(_address, _session, done) {
      done(refusal('recipient'));
    },
    onData(stream, session, done) {
      void (async () => {
        const bytes = await buffer(stream).catch(() => null);
        // The client went away before it had sent everything.
        if (bytes === null) return;
        const refused = refusal('message');
        if (refused !== null || hangs('message')) {
          if (refused !== null) done(refused);
          return;
        }
        const { mailFrom, rcptTo } = session.envelope;
        messages.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map((recipient) => recipient.address),
          raw: bytes.toString('latin1'),
          email: await PostalMime.parse(bytes),
          encrypted: session.secure,
          user: typeof session.user === 'string' ? session.user : null,
        });
        for (const check of waiting) check();
        if (fault !== null && 'drop' in fault) cut();
        else done();
      })();
    },
  });
  server.on('error', () => {}); // A client that goes away is part of the tests.
  const listener = server.listen(options.port ?? 0, '127.0.0.1');
  listener.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('the SMTP server has no port');
  const { port } = address;
  const { auth } = options;
  const login =
    auth === undefined ? '' : `${encodeURIComponent(auth.user)}:${encodeURIComponent(auth.pass)}@`;

  return {
    url: `smtp://${login}127.0.0.1:${port}${options.startTls === true ? '?tls.rejectUnauthorized=0' : ''}`,
    port,
    messages,
    setFault(next) {
      fault = next;
    },
    waitFor(fits, timeoutMs = 60_000) {
      return new Promise((resolve, reject) => {
        const check = () => {
          const mail = messages.find(fits);
          if (mail === undefined) return;
          settle();
          resolve(mail);
        };
        const timer = setTimeout(() => {
          settle();
          const subjects = messages.map((mail) => mail.email.subject).join('; ');
          reject(new Error(`no such message within ${timeoutMs} ms; there are: ${subjects || 'none'}`));
        }, timeoutMs);
        const settle = () => {
          clearTimeout(timer);
          waiting.delete(check);
        };
        waiting.add(check);
        check();
      });
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(resolve));
      cut();
      await closed;
    },
  };
}
