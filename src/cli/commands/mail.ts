import type { Command } from '../../../client/src/terminal/command.ts';
import { StartError } from '../../rules/failure.ts';

/** How long to wait for a message to an address, ms. */
const timeout = 3_000;

export const mail: Command = {
  name: 'mail',
  summary: 'Show the newest message that was written to MAIL_DIR.',
  details: [
    'Messages go there while SMTP_URL is not set. In a shell: TOKEN=$(masthead mail --last --token --to ada@agents.example)',
  ],
  options: {
    last: { meaning: 'The newest message, which is the default.' },
    to: {
      meaning: 'Only messages to this address; waits up to three seconds for the first.',
      value: 'address',
    },
    token: { meaning: 'Print only the verification or recovery token, of the newest message with one.' },
  },
  async run({ env, has, value, result }) {
    const { loadConfig } = await import('../../config/config.ts');
    const { awaitNewestMail } = await import('../../mail/stored-mail.ts');
    const { dir, smtpUrl } = loadConfig(env).mail;
    const to = value('to');
    const wait = to === null || smtpUrl !== null ? 0 : timeout;
    const newest = await awaitNewestMail(dir, { holdingToken: has('token'), to }, wait);
    if (newest === null) {
      const reason = smtpUrl === null ? '' : ': SMTP_URL is set, so mail goes to that server';
      throw new StartError(
        `There is no message${has('token') ? ' with a token' : ''}${to === null ? '' : ' to this address'} in ${dir}${reason}.`,
      );
    }
    const { token, date, subject, text } = newest;
    if (has('token')) return result({ token }, token ?? '');
    result(newest, `Date: ${date}\nTo: ${newest.to}\nSubject: ${subject}\n\n${text.trimEnd()}`);
  },
};
