import { hash } from 'node:crypto';
import { quoted, withoutMarks } from './text.ts';

/** Longest slug of an agent: it is a DNS label in one of the variants. */
const agentSlugLength = 63;
const postSlugLength = 100;

/** Slug made from an agent's name; null if shorter than three characters. May be reserved or taken. */
export function agentSlugFromName(name: string): string | null {
  const slug = hyphenated(name, agentSlugLength);
  return slug.length < 3 ? null : slug;
}

/** The n-th candidate after `slug` when it is taken: `ada-2`, `ada-3`, …, cut so that it stays within 63. */
export function nthSlug(slug: string, n: number): string {
  return withSuffix(slug, `-${n}`, agentSlugLength);
}

/** The same with a text of its own at the end: `ada-x7k2`. */
export function suffixedSlug(slug: string, suffix: string): string {
  return withSuffix(slug, `-${suffix}`, agentSlugLength);
}

/** Whether no agent can choose this slug: the service has it, or it reads as if it did. */
export function isReservedAgentSlug(slug: string): boolean {
  return reservedAgentSlugs.has(slug) || slug.split('-').includes('masthead');
}

/** Whether an agent or a post may have this slug: a database may refuse to look for other texts. */
export function mayBeSlug(text: string): boolean {
  return /^[a-z0-9-]+$/.test(text);
}

/** What is wrong with an agent's slug as sent, as a predicate that also says what is allowed; null if nothing. */
export function agentSlugFault(slug: string): string | null {
  const encoded = slug.startsWith('xn--') ? "begins with 'xn--', which marks an encoded host name" : null;
  const fault = shapeFault(slug, 3, agentSlugLength) ?? encoded;
  if (fault === null) return null;
  return `${fault}; allowed are 3 to 63 of a-z, 0-9 and '-', with no hyphen at either end and no 'xn--' at the start`;
}

/** A valid, unreserved agent slug near to `text`, to offer beside a refusal. */
export function mendSlug(text: string): string | null {
  const slug = agentSlugFromName(text);
  return slug === null || isReservedAgentSlug(slug) ? null : slug;
}

/** Slug of a post sent without one: from the title, or `post-` and the title's hash where that gives none. */
export function postSlugFromTitle(title: string): string {
  const slug = hyphenated(title, postSlugLength);
  return slug === '' || reservedPostSlugs.has(slug) ? `post-${titleHash(title)}` : slug;
}

/** The slug of a post whose derived slug belongs to a post of another title. */
export function disambiguatedPostSlug(title: string): string {
  return withSuffix(postSlugFromTitle(title), `-${titleHash(title)}`, postSlugLength);
}

/** The first 8 hex digits of the SHA-256 of the title in UTF-8. Pass the title as it is stored (trimmed). */
export function titleHash(title: string): string {
  return hash('sha256', title).slice(0, 8);
}

/** What is wrong with a post's slug as sent, as a predicate that also says what is allowed; null if nothing. */
export function postSlugFault(slug: string): string | null {
  if (slug === '') return 'is empty; leave it out, and the post keeps its slug, or gets one from its title';
  if (reservedPostSlugs.has(slug))
    return `'${slug}' is an address that every blog keeps for itself; choose another`;
  const fault = shapeFault(slug, 1, postSlugLength);
  if (fault === null) return null;
  return `${fault}; allowed are 1 to 100 of a-z, 0-9 and '-', with no hyphen at either end`;
}

/**
 * The text in lower-case ASCII: NFKD without marks, then one table; what is in neither is dropped.
 *
 * The table is frozen. A repeated publish without a slug finds its post by the slug that the title gives, so
 * a changed entry would make a retry create a second post. Mend a bad transliteration by sending a slug.
 */
export function asciiForm(text: string): string {
  const bare = withoutMarks(text).toLowerCase();
  return bare.replace(/\P{ASCII}/gu, (character) => asciiTable.get(character) ?? '');
}

function hyphenated(text: string, longest: number): string {
  const words = asciiForm(text).match(/[a-z0-9]+/g) ?? [];
  return words.join('-').slice(0, longest).replace(/-$/, '');
}

function withSuffix(slug: string, suffix: string, longest: number): string {
  return slug.slice(0, longest - suffix.length).replace(/-+$/, '') + suffix;
}

function shapeFault(slug: string, shortest: number, longest: number): string | null {
  if (slug === '') return 'is empty';
  const foreign = /[^a-z0-9-]/u.exec(slug)?.[0];
  if (foreign !== undefined) return `contains ${quoted(foreign)}`;
  if (slug.startsWith('-') || slug.endsWith('-')) return 'begins or ends with a hyphen';
  if (slug.length < shortest || slug.length > longest) {
    const unit = slug.length === 1 ? 'character' : 'characters';
    return `is ${slug.length} ${unit} long`;
  }
  return null;
}

/** Letters that NFKD leaves as they are, each followed by its ASCII; then what parts words without being ASCII. */
const asciiTable: ReadonlyMap<string, string> = new Map([
  ...letters(
    'ßss æae œoe øo łl đd ðd þth ıi ȷj ħh ŧt ŋng ĸk ƒf əe ǝe ɛe ɔo ɑa ɓb ƀb ƈc ȼc ɖd ɗd ǥg ɠg ɣg ɦh',
  ),
  ...letters('ɨi ɩi ƙk ɫl ƚl ɲn ƞn ɵo ƥp ɍr ʂs ƭt ⱦt ʉu ʊu ʋv ƴy ɏy ƶz ʒz ȥz ⱥa'),
  ...letters('αa βv γg δd εe ζz ηi θth ιi κk λl μm νn ξx οo πp ρr σs ςs τt υu φf χch ψps ωo'),
  ...letters(
    'аa бb вv гg дd еe жzh зz иi кk лl мm нn оo пp рr сs тt уu фf хkh цts чch шsh щshch ыy эe юyu яya',
  ),
  ...letters('ґg єye іi ђdj јj љlj њnj ћc џdz ѕdz ѣe ѳf ѵi ѡo ѫu ѧya'),
  ...letters('әa ғg ҕg җzh ҙz қk ҝk ҟk ҡk ңn ҥng ҧp ҫs ҭt ұu үu ҳh һh ҵts ҷj ҹch ӡdz ӕae өo'),
  ...Array.from('‐‒–—―−⁄∕·•‧・、。〜→←↔⇒×\u2028\u2029', (mark): [string, string] => [mark, '-']),
]);

function letters(row: string): [string, string][] {
  return row.split(' ').map((entry) => [entry.slice(0, 1), entry.slice(1)]);
}

/** Not posts at a blog's host, so never posts: below a path they would be lost on the way to a host. */
export const reservedPostSlugs: ReadonlySet<string> = new Set(['api', 'healthz', 'index', 'readyz', 'tags']);

/** Slugs that no agent can have, each group in alphabetical order. */
export const reservedAgentSlugs: ReadonlySet<string> = new Set(
  [
    // First segments of paths that the program serves, and their likely neighbours.
    'about agents api assets atom auth blog blogs comments docs export favicon featured feed feeds healthz home',
    'index livez llms mcp metrics new oauth openapi opml pages posts problems public publish readyz recover',
    'register robots rss schema search sitemap skill skills tag tags verify version votes',
    // Host names with a meaning to mail, DNS, browsers or networks.
    'autoconfig autodiscover broadcasthost cdn dns ftp git gateway host imap isatap local localdomain localhost',
    'mail mta-sts ns1 ns2 ns3 ns4 ntp pop pop3 proxy sftp smtp ssh ssl static tls vpn webmail wpad www www1 www2',
    // Names that readers take for the operator: RFC 2142, and addresses that certificate authorities write to.
    'abuse account accounts admin administrator billing contact dashboard dmca help hostmaster legal login logout',
    'mailer-daemon masthead moderator no-reply nobody noc noreply null official operator owner payment payments',
    'postmaster press pricing privacy profile root security service settings signin signout signup ssladmin',
    'ssladministrator sslwebmaster staff status support sysadmin system terms undefined usenet user users uucp',
    'webmaster',
  ].flatMap((row) => row.split(' ')),
);
