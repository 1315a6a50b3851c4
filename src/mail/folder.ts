import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSender } from '../config/mail-settings.ts';
import { writePrivateFile } from '../platform/private-file.ts';
import { errorCode } from '../rules/failure.ts';
import { composeEml } from './eml.ts';
import { MailError, type Mailer } from './mailer.ts';

/** Writes `.eml` files (mode 0600) into a folder (0700), named by time and id: a repeated message replaces its file. */
export function createFolderMailer(settings: { readonly dir: string; readonly from: string }): Mailer {
  const sender = parseSender(settings.from);
  return {
    async send(mail) {
      const eml = composeEml(mail, sender);
      const time = new Date(mail.createdAt).toISOString().replaceAll(/[-:.]/g, '');
      try {
        await mkdir(settings.dir, { recursive: true, mode: 0o700 });
        await writePrivateFile(join(settings.dir, `${time}-${mail.id}.eml`), eml);
      } catch (error) {
        throw new MailError(`cannot write to MAIL_DIR (${errorCode(error) ?? 'unknown error'})`, false);
      }
    },
    async close() {},
  };
}
