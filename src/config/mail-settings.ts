import { endsInNumber, isLoopback } from '../rules/hosts.ts';
import { settingValue } from '../rules/text.ts';

/** The sender of all mail, taken apart. */
export type Sender = { readonly name: string; readonly address: string; readonly host: string };

const atom = "[\\w!#$%&'*+/=?^`{|}~-]+";
const localPart = `${atom}(?:\\.${atom})*`;
const domain = '[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)*';
/** An address without quotes and comments, as a pattern. */
export const plainAddress = `${localPart}@${domain}`;
// A service on [::1] sends from an address literal; nobody is mailed at one.
const senderPattern = new RegExp(`^(?:([^<>]*)<)?${localPart}@(${domain}|\\[[0-9A-Fa-f:.]+\\])(>?)$`);

/** Splits `Name <address>` or `address`. Throws an Error whose message is a predicate if it is neither. */
export function parseSender(from: string): Sender {
  const text = from.trim();
  const match = senderPattern.exec(text);
  const [, rawName, host, bracket] = match ?? [];
  if (host === undefined || (rawName === undefined) !== (bracket === '') || /\p{Cc}/u.test(text)) {
    throw new Error(`is ${settingValue(from)}, neither an address nor a name with an address in <>`);
  }
  const name = (rawName ?? '')
    .trim()
    .replace(/^"(.*)"$/, (_, inside: string) => inside.replaceAll(/\\(.)/g, '$1'));
  return { name, address: text.replace(/^.*<|>$/g, ''), host };
}

/** What to do with a password in an address that cannot be read; addresses themselves are never shown. */
export const urlEncoding = 'in a password, write : / ? # @ and , as %3A %2F %3F %23 %40 and %2C';

const parameters = ['requireTLS', 'ignoreTLS', 'tls.rejectUnauthorized'];

/**
 * Takes an `SMTP_URL` apart: `smtp:` (default port 587, STARTTLS if offered) or `smtps:` (465). `requireTLS` defaults to
 * true with a password to a host that is not loopback. Throws an Error with a predicate that never repeats the address.
 */
export function parseSmtpUrl(text: string) {
  const url = URL.canParse(text) ? new URL(text) : null;
  // A password that is not encoded ends up behind the host, where it would be shown.
  const isAddress = url !== null && /^smtps?:\/\//i.test(text) && url.hostname !== '' && url.hash === '';
  if (!isAddress || /[^/]/.test(url.pathname) || url.port === '0' || endsInNumber(url.hostname)) {
    throw new Error(`is not an smtp:// or smtps:// address; ${urlEncoding}`);
  }
  const unknown = [...url.searchParams.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined) {
    throw new Error(`has a parameter that is not one of ${parameters.join(', ')}`);
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const secure = url.protocol === 'smtps:';
  const auth = credentials(url);
  const needsTls = auth !== null && !isLoopback(url.hostname);
  const ignoreTls = flag(url, 'ignoreTLS', false);
  return {
    host,
    port: Number(url.port) || (secure ? 465 : 587),
    /** TLS from the first byte (`smtps:`). */
    secure,
    /** Nothing is sent, least of all a password, unless STARTTLS worked. */
    requireTls: !secure && flag(url, 'requireTLS', needsTls && !ignoreTls),
    ignoreTls,
    verifyCertificate: flag(url, 'tls.rejectUnauthorized', true),
    auth,
  };
}

function credentials(url: URL): { user: string; pass: string } | null {
  if (url.username === '') return null;
  try {
    return { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) };
  } catch {
    throw new Error('has a % in its user or password that starts no escape: write %25 for it');
  }
}

function flag(url: URL, name: string, absent: boolean): boolean {
  const value = url.searchParams.get(name);
  if (value === null) return absent;
  if (/^(?:1|true)$/.test(value)) return true;
  if (/^(?:0|false)$/.test(value)) return false;
  throw new Error(`has ${name} with a value other than 1 and 0`);
}
