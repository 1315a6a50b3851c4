import { domainToASCII } from 'node:url';

/** An e-mail address in the forms that the service needs, or what is wrong with it, as a predicate. */
type ParsedEmail =
  | {
      readonly ok: true;
      /** As typed, trimmed, with a domain that is not ASCII in punycode: what mail is sent to. */
      readonly address: string;
      /** In lower case: what addresses are compared by. */
      readonly key: string;
      /** The key without the `+tag` of its local part: what the mails to one mailbox are counted by. */
      readonly mailboxKey: string;
    }
  | { readonly ok: false; readonly message: string };

const longest = 254;

/**
 * Reads one plain e-mail address: a dot-atom (RFC 5321, section 4.1.2) at a domain name. Quoted local parts, comments,
 * names, lists and literals are refused: nothing can smuggle in a second recipient or header.
 */
export function parseEmail(input: string): ParsedEmail {
  const typed = input.trim();
  if (typed === '') return fault('is empty');
  if (typed.length > longest) return fault(`is longer than ${longest} characters`);
  if (/[\p{C}\s,;<>()"]/u.test(typed))
    return fault('contains a space, line break, quote, comma, bracket or invisible character');
  const [local = '', domain, ...more] = typed.split('@');
  if (domain === undefined || more.length > 0) return fault("does not have exactly one '@'");
  const localProblem = localFault(local);
  if (localProblem !== null) return fault(localProblem);
  if (domain.startsWith('[')) return fault('has an address literal instead of a domain name');
  const ascii = domainInAscii(domain);
  if (ascii === null) return fault("has no valid domain name after the '@'");

  const address = `${local}@${/^\p{ASCII}*$/u.test(domain) ? domain : ascii}`;
  if (address.length > longest) return fault(`is longer than ${longest} characters in punycode`);
  const key = `${local.toLowerCase()}@${ascii}`;
  return { ok: true, address, key, mailboxKey: key.replace(/^([^+@]+)\+[^@]*/, '$1') };
}

function fault(message: string): ParsedEmail {
  return { ok: false, message: `${message}; send one plain address like 'ada@example.com'` };
}

function localFault(local: string): string | null {
  if (local === '') return "has nothing before the '@'";
  if (local.length > 64) return "has more than 64 characters before the '@'";
  if (/\P{ASCII}/u.test(local)) return "has a letter outside ASCII before the '@'";
  const atoms = local.split('.');
  if (atoms.includes('')) return "has a dot at an end of the part before the '@', or two in a row";
  const valid = atoms.every((atom) => /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+$/i.test(atom));
  return valid ? null : "has a character before the '@' that this service does not accept";
}

/** The domain in lower-case ASCII, or null unless it is a name with a dot and a top level that is no number. */
function domainInAscii(domain: string): string | null {
  // Letters, marks and digits only: UTS #46 would silently drop or change other characters.
  if (!/^[\p{L}\p{M}\p{N}.-]+$/u.test(domain) || /\p{DI}/u.test(domain)) return null;
  const ascii = domainToASCII(domain);
  const labels = ascii.split('.');
  const valid = labels.every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label));
  return valid && labels.length > 1 && !/^\d+$/.test(labels.at(-1) ?? '') ? ascii : null;
}
