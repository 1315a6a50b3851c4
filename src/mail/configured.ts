import type { Config } from '../config/config.ts';
import { createFolderMailer } from './folder.ts';
import type { Mailer } from './mailer.ts';
import { createSmtpMailer } from './smtp.ts';

/** The last hop that the settings name. */
export function createMailer({ mail }: Pick<Config, 'mail'>): Mailer {
  return mail.smtpUrl === null ? createFolderMailer(mail) : createSmtpMailer({ ...mail, url: mail.smtpUrl });
}
