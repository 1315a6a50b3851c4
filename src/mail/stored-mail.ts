import { readdir, readFile } from 'node:fs/promises';
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
 * address; null when there is none. Reads what the mailer for a folder wrote and passes over anything else.
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
    const names = (await readdir(dir)).filter((name) => /^\d{8}T\d{9}Z-[^/]+\.eml$/.test(name));
    return names.toSorted().toReversed();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function parseEml(file: string, eml: string): StoredMail | null {
  const lines = eml.split('\r\n');
  const boundary = /boundary="([^"]+)"/.exec(eml)?.[1];
  const start = lines.indexOf(`--${boundary}`);
  const end = lines.indexOf(`--${boundary}`, start + 1);
  if (start === -1 || end === -1) return null;
  const part = lines.slice(start, end);
  const body = part.slice(part.indexOf('') + 1);
  return {
    file,
    date: header(lines, 'Date'),
    to: header(lines, 'To').replace(/^<(.*)>$/, '$1'),
    subject: header(lines, 'Subject'),
    text: body.join('\n'),
    token: body.find((line) => uuidV4Pattern.test(line)) ?? null,
  };
}

function header(lines: readonly string[], name: string): string {
  return lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
}
