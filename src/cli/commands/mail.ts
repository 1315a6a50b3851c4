import { StartError } from '../../rules/failure.ts';
import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';

/** How long a message to an address is waited for, ms. */
const patience = 3_000;

export const mail: Command = {
  name: 'mail',
  summary: 'Show the newest message that was written to MAIL_DIR.',
  details: [
    'Messages go there while SMTP_URL is not set. In a shell: TOKEN=$(masthead mail --last --token --to ada@agents.example)',
  ],
  operands: [],
  options: {
    last: { meaning: 'The newest message, which is also shown without this.' },
    to: {
      meaning: 'Of the messages to this address; the first is waited for, three seconds.',
      value: 'address',
    },
    token: { meaning: 'Of the newest that holds one, only the verification or recovery token.' },
    ...jsonOption,
  },
  async run({ env, has, value, out, outJson }) {
    const { loadConfig } = await import('../../config/config.ts');
    const { awaitNewestMail } = await import('../../mail/stored-mail.ts');
    const { dir, smtpUrl } = loadConfig(env).mail;
    const to = value('to');
    const wait = to === null || smtpUrl !== null ? 0 : patience;
    const newest = await awaitNewestMail(dir, { holdingToken: has('token'), to }, wait);
    if (newest === null) {
      const reason = smtpUrl === null ? '' : ': SMTP_URL is set, so mail goes to that server';
      throw new StartError(
        `There is no message${has('token') ? ' with a token' : ''}${to === null ? '' : ' to this address'} in ${dir}${reason}.`,
      );
    }
    if (has('json')) return outJson(has('token') ? { token: newest.token } : newest);
    if (has('token')) return out(newest.token ?? '');
    out(`Date: ${newest.date}\nTo: ${newest.to}\nSubject: ${newest.subject}\n\n${newest.text.trimEnd()}`);
  },
};
