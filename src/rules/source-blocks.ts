import { blocksAddress, addressRangeFault } from './client-address.ts';
import { domainOf, parseEmail } from './email.ts';
import { nameKey } from './text.ts';

/** What an operator can block: of registrations the first three, of texts the next two, and pictures. */
export const blockKinds = ['email', 'email-domain', 'address', 'phrase', 'link-host', 'media'] as const;
export type BlockKind = (typeof blockKinds)[number];

export type SourceBlock = { readonly kind: BlockKind; readonly value: string };

/** Letters of a phrase, at least: a shorter one is in nearly every text. */
const shortestPhrase = 3;

/** A value in the one form that it is compared in, or what is wrong with it, as a predicate. */
export function parseBlock(
  kind: BlockKind,
  typed: string,
): { readonly value: string } | { readonly fault: string } {
  const text = typed.trim();
  if (kind === 'email') {
    const email = parseEmail(text);
    return email.ok ? { value: email.mailboxKey } : { fault: email.message };
  }
  if (kind === 'address') {
    const fault = addressRangeFault(text);
    return fault === null ? { value: text.toLowerCase() } : { fault };
  }
  if (kind === 'media') {
    const value = text.toLowerCase();
    return /^[0-9a-f]{64}$/.test(value)
      ? { value }
      : { fault: 'is not a SHA-256 of 64 hex digits, as sha256sum prints it for the file of the picture' };
  }
  if (kind === 'phrase') {
    const value = folded(text).trim();
    return value.length < shortestPhrase
      ? { fault: `has fewer than ${shortestPhrase} letters, and would be found nearly everywhere` }
      : { value };
  }
  const email = parseEmail(`any@${text.replace(/^(?:@|\*\.)/, '')}`);
  return email.ok ? { value: domainOf(email.key) } : { fault: 'is not a domain name such as spam.example' };
}

/** Who registers, as blocks see it. */
export type Registering = {
  readonly emailKey: string;
  readonly mailboxKey: string;
  readonly client: string | null;
};

/** Whether a block is of the one who registers. */
export function blocksRegistration(
  { kind, value }: SourceBlock,
  { emailKey, mailboxKey, client }: Registering,
): boolean {
  if (kind === 'email') return value === mailboxKey;
  if (kind === 'email-domain') return isWithin(domainOf(emailKey), value);
  return kind === 'address' && client !== null && blocksAddress(value, client);
}

/** What was written: texts as they were sent and as readers see them, and the HTML that has its links. */
export type Written = { readonly texts: readonly string[]; readonly html: string };

/** The first block that what was written meets; undefined where there is none. */
export function blockOfText<Block extends SourceBlock>(
  blocks: readonly Block[],
  { texts, html }: Written,
): Block | undefined {
  const phrases = blocks.filter(({ kind }) => kind === 'phrase');
  const hosts = blocks.filter(({ kind }) => kind === 'link-host');
  const words = phrases.length === 0 ? [] : texts.map(folded);
  const phrase = phrases.find(({ value }) => words.some((text) => text.includes(value)));
  if (phrase || hosts.length === 0) return phrase;
  const blocked = new Set(hosts.map(({ value }) => value));
  const met = new Set([...linkedHosts(texts, html)].flatMap((host) => domainsAround(host, blocked)));
  return hosts.find(({ value }) => met.has(value));
}

/** A text without differences of letter case, accents and blanks, and without what nobody sees, such as soft hyphens. */
function folded(text: string): string {
  return nameKey(text)
    .replaceAll(/\p{DI}+/gu, '')
    .replaceAll(/\s+/g, ' ');
}

function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}

/** Those of some domains that a host is or is within. */
function domainsAround(host: string, domains: ReadonlySet<string>): string[] {
  const found: string[] = [];
  for (let at = 0; at >= 0; at = host.indexOf('.', at) + 1 || -1) {
    const domain = host.slice(at);
    if (domains.has(domain)) found.push(domain);
  }
  return found;
}

/** What stands for the host of the page, for addresses that name none. */
const ownHost = 'page.invalid';

/** The hosts that HTML of our renderer, or a field that is an address, leads to. */
function linkedHosts(texts: readonly string[], html: string): Set<string> {
  const addresses = [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, address = '']) =>
    address.replaceAll('&amp;', '&'),
  );
  const fields = texts.filter((text) => /^https?:\/\/\S+$/i.test(text));
  const hosts = new Set<string>();
  for (const address of new Set([...addresses, ...fields])) {
    // As browsers read it: `//host/` and `HTTPS://host/` lead there too.
    const host = URL.parse(address, `https://${ownHost}`)?.hostname.replace(/\.$/, '').toLowerCase();
    if (host && host !== ownHost) hosts.add(host);
  }
  return hosts;
}
