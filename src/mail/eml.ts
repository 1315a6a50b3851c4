import { plainAddress, type Sender } from '../config/mail-settings.ts';
import { MailError, type OutgoingMail } from './mailer.ts';

const recipientPattern = new RegExp(`^${plainAddress}$`);

/** RFC 5322, section 2.1.1: a line is at most 998 characters. */
const longestLine = 998;

/**
 * One message as RFC 5322 text with CRLF, always the same bytes. Written here since mail libraries encode a long line (a
 * link with a token) as quoted-printable, which programs reading it trip over; bodies go as they are, 7bit. Throws a
 * permanent {@link MailError} for whatever could break out of its place.
 */
export function composeEml(mail: OutgoingMail, sender: Sender): string {
  const boundary = `=_${checked(mail.id, /^[A-Za-z0-9.-]{1,64}$/, 'id')}`;
  return [
    `Date: ${mailDate(mail.createdAt)}`,
    `From: ${displayName(sender.name)}<${sender.address}>`,
    `To: <${checkedRecipient(mail.to)}>`,
    `Subject: ${checked(mail.subject, /^[ -~]{1,200}$/, 'subject')}`,
    `Message-ID: <${mail.id}@${sender.host}>`,
    'Auto-Submitted: auto-generated',
    'X-Auto-Response-Suppress: All',
    'MIME-Version: 1.0',
    `Content-Type: multipart/alternative; boundary="${boundary}"`,
    '',
    ...part(boundary, 'plain', mail.text),
    ...part(boundary, 'html', mail.html),
    `--${boundary}--`,
    '',
  ].join('\r\n');
}

/** The recipient as it goes into the header and the envelope; throws a permanent {@link MailError}. */
export function checkedRecipient(address: string): string {
  return address.length > 254 ? refuse('recipient') : checked(address, recipientPattern, 'recipient');
}

function part(boundary: string, subtype: 'plain' | 'html', body: string): string[] {
  const lines = body.split('\n');
  if (!lines.every((line) => line.length <= longestLine && /^[\t -~]*$/.test(line))) refuse(subtype);
  return [
    `--${boundary}`,
    `Content-Type: text/${subtype}; charset=us-ascii`,
    'Content-Transfer-Encoding: 7bit',
    '',
    ...lines,
  ];
}

function mailDate(createdAt: string): string {
  const date = new Date(createdAt);
  return Number.isNaN(date.getTime()) ? refuse('date') : date.toUTCString().replace('GMT', '+0000');
}

/** A quoted string, or the encoded words of RFC 2047 where the name is not ASCII; with the space that follows. */
function displayName(name: string): string {
  if (name === '') return '';
  if (/^[ -~]*$/.test(name)) return `"${name.replaceAll(/["\\]/g, '\\$&')}" `;
  const words = name.match(/.{1,10}/gu) ?? [];
  return `${words.map((word) => `=?UTF-8?B?${Buffer.from(word).toString('base64')}?=`).join('\r\n ')} `;
}

function checked(value: string, pattern: RegExp, what: string): string {
  return pattern.test(value) ? value : refuse(what);
}

function refuse(what: string): never {
  throw new MailError(`the message has a malformed ${what}`, true);
}
