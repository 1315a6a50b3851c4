import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { uuidV4Pattern } from '../rules/secrets.ts';
import { errorCode } from '../rules/failure.ts';

/** One message of the folder, as a person or program wants it. */
export type StoredMail = {
  /** Name of the file within the folder. */
  readonly file: string;
  /** As in the header. */
  readonly date: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The verification or recovery token: a UUID alone on a line. */
  readonly token: string | null;
};

type Wanted = { readonly holdingToken?: boolean; readonly to?: string | null };

/**
 * The newest message in the folder: with `holdingToken` of those that hold a token, with `to` of those to this
 * address; null when there is none. Any program may have written the `.eml` files.
 */
export async function readNewestMail(
  dir: string,
  { holdingToken = false, to = null }: Wanted = {},
): Promise<StoredMail | null> {
  for (const file of await newestFirst(dir)) {
    const mail = parseEml(file, await readFile(join(dir, file), 'utf8'));
    if (mail === null || (holdingToken && mail.token === null)) continue;
    if (to === null || mail.to.toLowerCase() === to.toLowerCase()) return mail;
  }
  return null;
}

/** The same, waiting for it up to `patience` ms: a message follows the answer to the call that asked for it. */
export async function awaitNewestMail(
  dir: string,
  wanted: Wanted,
  patience: number,
): Promise<StoredMail | null> {
  const end = performance.now() + patience;
  for (;;) {
    const mail = await readNewestMail(dir, wanted);
    if (mail !== null || performance.now() >= end) return mail;
    await delay(50);
  }
}

async function newestFirst(dir: string): Promise<string[]> {
  try {
    const names = (await readdir(dir)).filter((name) => /^[^.].*\.eml$/i.test(name));
    const dated = await Promise.all(names.map(async (name) => [await writtenAt(dir, name), name] as const));
    return dated.toSorted(([a, one], [b, other]) => b - a || (one < other ? 1 : -1)).map(([, name]) => name);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Epoch ms: as the name says, where the mailer for a folder gave it, else as the file does; 0 where that is gone. */
async function writtenAt(dir: string, name: string): Promise<number> {
  const [, date, time, ms] = /^(\d{8})T(\d{6})(\d{3})Z-[^/]+$/.exec(name) ?? [];
  if (date !== undefined) {
    const [day, clock] = [
      date.replace(/(....)(..)(..)/, '$1-$2-$3'),
      time?.replace(/(..)(..)(..)/, '$1:$2:$3'),
    ];
    return Date.parse(`${day}T${clock}.${ms}Z`);
  }
  return (await stat(join(dir, name)).catch(() => null))?.mtimeMs ?? 0;
}

/** Null for what is no message. */
function parseEml(file: string, eml: string): StoredMail | null {
  const message = partOf(eml.replaceAll('\r\n', '\n'));
  if (message.header('To') === '') return null;
  const body = plainText(message);
  return {
    file,
    date: message.header('Date'),
    to: message.header('To').replace(/^.*<(.*)>$/, '$1'),
    subject: message.header('Subject'),
    text: body,
    token: body.split('\n').find((line) => uuidV4Pattern.test(line)) ?? null,
  };
}

type Part = { readonly header: (name: string) => string; readonly body: string };

/** A message, or a part of one (RFC 5322, section 2.1; RFC 2045). */
function partOf(source: string): Part {
  const end = `${source}\n\n`.indexOf('\n\n');
  const lines = source
    .slice(0, end)
    .replaceAll(/\n[ \t]+/g, ' ')
    .split('\n');
  return {
    header(name) {
      const start = `${name.toLowerCase()}:`;
      return (
        lines
          .find((line) => line.toLowerCase().startsWith(start))
          ?.slice(start.length)
          .trim() ?? ''
      );
    },
    body: source.slice(end + 2),
  };
}

/** The text of the first part that is plain, decoded. */
function plainText({ header, body }: Part): string {
  const boundary = /;\s*boundary="?([^";]+)"?/i.exec(header('Content-Type'))?.[1];
  if (boundary !== undefined) {
    const parts = `\n${body}`.split(`\n--${boundary}`).slice(1, -1);
    const found = parts.map((part) => partOf(part.replace(/^[^\n]*\n/, ''))).map(plainText);
    return found.find((text) => text !== '') ?? '';
  }
  if (!/^(?:text\/plain|$)/i.test(header('Content-Type'))) return '';
  const encoding = header('Content-Transfer-Encoding').toLowerCase();
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString().replaceAll('\r\n', '\n');
  if (encoding !== 'quoted-printable') return body;
  const bytes = body
    .replaceAll(/=\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/gi, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}
