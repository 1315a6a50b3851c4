import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseSender } from '../config/mail-settings.ts';
import { uuidV4Pattern } from '../rules/secrets.ts';
import { composeEml } from './eml.ts';
import { MailError, type Mailer } from './mailer.ts';

/**
 * Writes each message as an `.eml` file (mode 0600) into a folder (made with mode 0700 at the first one), under
 * a name that sorts by time. The same message again replaces its file.
 */
export function createFolderMailer(settings: { readonly dir: string; readonly from: string }): Mailer {
  const sender = parseSender(settings.from);
  return {
    async send(mail) {
      const eml = composeEml(mail, sender);
      const time = new Date(mail.createdAt).toISOString().replaceAll(/[-:.]/g, '');
      try {
        await mkdir(settings.dir, { recursive: true, mode: 0o700 });
        await replaceFile(settings.dir, `${time}-${mail.id}.eml`, eml);
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
        throw new MailError(`cannot write to MAIL_DIR (${code})`, false);
      }
    },
    async close() {},
  };
}

/** The file exists whole or not at all, and survives a power failure. */
async function replaceFile(dir: string, name: string, content: string): Promise<void> {
  const temporary = join(dir, `.${name}.${randomUUID()}`);
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(dir, name));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  const folder = await open(dir, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

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
 * address; null when there is none. Reads what {@link createFolderMailer} wrote and passes over anything else.
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
    const names = await readdir(dir);
    return names
      .filter((name) => /^\d{8}T\d{9}Z-[^/]+\.eml$/.test(name))
      .toSorted()
      .toReversed();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
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
