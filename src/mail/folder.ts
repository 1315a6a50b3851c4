import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSender } from '../config/mail-settings.ts';
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
