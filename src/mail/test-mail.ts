import type { Config } from '../config/config.ts';
import { uuidv7 } from '../rules/secrets.ts';
import { letter } from './letter.ts';
import type { OutgoingMail } from './mailer.ts';

/** A message by which an operator sees whether mail arrives. */
export function testMail(
  { site: { baseUrl }, contact }: Pick<Config, 'site' | 'contact'>,
  { to, now }: { readonly to: string; readonly now: number },
): OutgoingMail {
  const text = letter({ baseUrl, contact }, 'Test of outgoing mail', [
    `The operator of ${baseUrl} has sent this message to see whether mail arrives.`,
    'There is nothing to do.',
  ]);
  return { id: uuidv7(now), to, ...text, createdAt: new Date(now).toISOString() };
}
