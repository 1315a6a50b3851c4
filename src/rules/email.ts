import { domainToASCII } from 'node:url';

/** An e-mail address in the forms that the service needs, or what is wrong with it, as a predicate. */
type ParsedEmail = ParsedAddress | { readonly ok: false; readonly message: string };

export type ParsedAddress = {
  readonly ok: true;
  /** As typed, trimmed, with a domain that is not ASCII in punycode: what mail is sent to. */
  readonly address: string;
  /** In lower case: what addresses are compared by. */
  readonly key: string;
  /** The same for all spellings of one mailbox: what the mails to it are counted by. Nothing is sent there. */
  readonly mailboxKey: string;
};

const longest = 254;

/**
 * Reads one plain e-mail address: a dot-atom (RFC 5321, section 4.1.2) at a domain name. Quoted local parts, comments,
 * names, lists and literals are refused: nothing can smuggle in a second recipient or header. So is what a mail server on
 * the way may take for a route, a program, a file or an option.
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
  return { ok: true, address, key, mailboxKey: mailboxKeyOf(key) };
}

/** The link that writes to an address. */
export function mailto(address: string): string {
  return `mailto:${encodeURIComponent(address).replaceAll('%40', '@')}`;
}

/** The domain of the `key` of an address. */
export function domainOf(key: string): string {
  return key.slice(key.lastIndexOf('@') + 1);
}

/**
 * The `mailboxKey` of an address. Also of one that was registered before such addresses were refused; the domain in
 * ASCII or not.
 */
export function mailboxKeyOf(address: string): string {
  const key = address.toLowerCase();
  const at = key.lastIndexOf('@');
  const typed = key.slice(at + 1);
  const ascii = domainToASCII(typed) || typed;
  const [, local = key.slice(0, at), domain = ascii] = subdomainAddress.exec(ascii) ?? [];
  const { domains, fold } = providers.find((one) => one.domains.includes(domain)) ?? unknownProvider;
  const untagged = local.replace(/^([^+]+)\+.*/, '$1');
  // Where everything is a tag or a dot, the address is its own mailbox.
  return `${fold(untagged) || untagged}@${domains[0] ?? domain}`;
}

type Provider = { readonly domains: readonly string[]; readonly fold: (local: string) => string };

const unknownProvider: Provider = { domains: [], fold: (local) => local };

/**
 * Large providers that deliver several spellings, or domains, to one mailbox: support.google.com/mail/answer/7436150,
 * proton.me/support/creating-aliases, yandex.com/support/mail/web/preferences/aliases.html, support.apple.com/HT201771,
 * help.yahoo.com/kb/SLN28338.html (disposable addresses: what follows a hyphen).
 */
const providers: readonly Provider[] = [
  { domains: ['gmail.com', 'googlemail.com'], fold: (local) => local.replaceAll('.', '') },
  {
    domains: ['proton.me', 'protonmail.com', 'protonmail.ch', 'pm.me'],
    fold: (local) => local.replaceAll(/[._-]/g, ''),
  },
  {
    domains: ['yandex.ru', 'yandex.com', 'yandex.by', 'yandex.kz', 'yandex.ua', 'ya.ru'],
    fold: (local) => local.replaceAll('.', '-'),
  },
  { domains: ['icloud.com', 'me.com', 'mac.com'], fold: (local) => local },
  ...['yahoo.com', 'ymail.com', 'rocketmail.com', 'yahoo.co.uk', 'yahoo.de', 'yahoo.fr', 'yahoo.co.in'].map(
    (domain) => ({ domains: [domain], fold: (local: string) => local.replace(/^([^-]+)-.*/, '$1') }),
  ),
];

/** `anything@user.fastmail.com` is `user@fastmail.com`: fastmail.help/hc/en-us/articles/360060591053. */
const subdomainAddress = /^([^.]+)\.(fastmail\.[a-z]{2,3}(?:\.[a-z]{2})?)$/;

function fault(message: string): ParsedEmail {
  return { ok: false, message: `${message}; send one plain address like 'ada@example.com'` };
}

function localFault(local: string): string | null {
  if (local === '') return "has nothing before the '@'";
  if (local.length > 64) return "has more than 64 characters before the '@'";
  if (/\P{ASCII}/u.test(local)) return "has a letter outside ASCII before the '@'";
  const atoms = local.split('.');
  if (atoms.includes('')) return "has a dot at an end of the part before the '@', or two in a row";
  if (local.startsWith('-')) return 'begins with a hyphen, which a mail server may take for an option';
  const routed = /[!%|/$`&*?]/.exec(local)?.[0];
  if (routed !== undefined)
    return `has '${routed}' before the '@', which a mail server may take for a command or route`;
  const valid = atoms.every((atom) => /^[a-z0-9#'+=^_{}~-]+$/i.test(atom));
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
