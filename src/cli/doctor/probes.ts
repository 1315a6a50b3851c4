import { execFile } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { request as askHttp, type IncomingHttpHeaders } from 'node:http';
import { request as askHttps } from 'node:https';
import { checkServerIdentity, connect } from 'node:tls';
import { trustSystemAuthorities } from '../../config/authorities.ts';
import type { SmtpSettings } from '../../mail/smtp.ts';
import { errorCode, errorMessage } from '../../rules/failure.ts';

/** How long an answer from outside may take, ms. */
const patience = 8_000;

/** A certificate as a server shows it. */
type Certificate = {
  /** Epoch ms. */
  readonly validTo: number;
  /** Why a browser would refuse it for this host, as a code of OpenSSL or Node, or null. */
  readonly fault: string | null;
};

/** An answer of a server. */
export type Answered = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** Everything that doctor asks outside of this program. Each may throw: then the check could not be made. */
export type Probes = {
  /** Epoch ms. */
  readonly now: () => number;
  /** IPv4 and IPv6 addresses of a host; none where DNS knows none. */
  readonly addresses: (host: string) => Promise<readonly string[]>;
  /** TXT records of a name. */
  readonly texts: (name: string) => Promise<readonly string[]>;
  readonly certificate: (host: string, port: number) => Promise<Certificate>;
  /** With `address` from there, whatever DNS says. */
  readonly ask: (
    url: string,
    headers: Readonly<Record<string, string>>,
    address?: string,
  ) => Promise<Answered>;
  /** Announces a body of so many bytes and sends none: the status of a refusal, or null where it is awaited. */
  readonly announce: (url: string, bytes: number) => Promise<number | null>;
  /** Rejects with what the mail server said. */
  readonly login: (settings: SmtpSettings) => Promise<void>;
  /** Whether this machine's clock follows a time server; null where nothing tells. */
  readonly isClockSynchronised: () => Promise<boolean | null>;
};

/** Whatever the certificate: that is a question of its own. */
const asIs = { agent: false, rejectUnauthorized: false, timeout: patience } as const;

function askBy(url: string): typeof askHttps {
  return url.startsWith('https:') ? askHttps : askHttp;
}

/** Those of this machine. */
export const probes: Probes = {
  now: Date.now,
  async addresses(host) {
    const resolver = new Resolver({ timeout: 2_000, tries: 2 });
    const found = await Promise.all([orNone(resolver.resolve4(host)), orNone(resolver.resolve6(host))]);
    return found.flat();
  },
  async texts(name) {
    const records = await orNone(new Resolver({ timeout: 2_000, tries: 2 }).resolveTxt(name));
    return records.map((parts) => parts.join(''));
  },
  certificate: (host, port) =>
    new Promise((resolve, reject) => {
      trustSystemAuthorities();
      // What is wrong with it is the question here, so nothing is refused.
      const socket = connect({ host, port, servername: host, rejectUnauthorized: false });
      socket.setTimeout(patience, () => socket.destroy(new Error('no answer in time')));
      socket.once('error', reject);
      socket.once('secureConnect', () => {
        const shown = socket.getPeerCertificate();
        const authorized = socket.authorized ? null : errorMessage(socket.authorizationError);
        const fault = authorized ?? checkServerIdentity(host, shown)?.message ?? null;
        resolve({ validTo: Date.parse(shown.valid_to), fault });
        socket.destroy();
      });
    }),
  ask: (url, headers, address) =>
    new Promise((resolve, reject) => {
      const lookup: LookupFunction = (_host, { all }, found) => {
        const [known, family] = [address ?? '', isIP(address ?? '')];
        if (all) found(null, [{ address: known, family }]);
        else found(null, known, family);
      };
      const options = { headers, ...asIs, ...(address === undefined ? {} : { lookup }) };
      const request = askBy(url)(url, options, (response) => {
        let body = '';
        response
          .setEncoding('utf8')
          .on('data', (text: string) => (body += text).length > 65_536 && request.destroy());
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
        response.once('error', reject);
      });
      request.once('timeout', () => request.destroy(new Error('no answer in time')));
      request.once('error', reject);
      request.end();
    }),
  announce: (url, bytes) =>
    new Promise((resolve, reject) => {
      const headers = { 'content-length': bytes, expect: '100-continue' };
      const request = askBy(url)(url, { method: 'POST', headers, ...asIs });
      const end = (status: number | null) => {
        resolve(status);
        request.destroy();
      };
      request.once('continue', () => end(null));
      request.once('response', ({ statusCode }) => end(statusCode ?? null));
      request.once('timeout', () => request.destroy(new Error('no answer in time')));
      request.once('error', reject);
      request.flushHeaders();
    }),
  async login(settings) {
    const { tryLogin } = await import('../../mail/smtp.ts');
    await tryLogin(settings);
  },
  isClockSynchronised: () =>
    new Promise((resolve) => {
      execFile(
        'timedatectl',
        ['show', '--property=NTPSynchronized', '--value'],
        { timeout: patience },
        (error, out) =>
          resolve(error === null && /^(?:yes|no)$/.test(out.trim()) ? out.trim() === 'yes' : null),
      );
    }),
};

/** That a name has no such record is an answer; that nobody could be asked is none. */
async function orNone<T>(asked: Promise<T[]>): Promise<T[]> {
  try {
    return await asked;
  } catch (error) {
    if (['ENOTFOUND', 'ENODATA'].includes(errorCode(error) ?? '')) return [];
    throw error;
  }
}
