import type { Config } from './config.ts';
import { isLoopback } from '../rules/hosts.ts';
import { policies } from '../variant.ts';
import { settings } from './settings.ts';
import { hostAndPort } from './values.ts';

/** What stands between this configuration and use by others, a sentence each. */
export function startupNotes(config: Config): string[] {
  const { site, mail, limits, variant } = config;
  const { protocol, hostname } = new URL(site.baseUrl);
  const local = isLoopback(hostname);
  const exposed = isExposed(config.host);
  const off = policies.filter((policy) => limits[policy] === 0 && variant.limits[policy] > 0);
  const notes: [boolean, string][] = [
    [local, `BASE_URL is ${site.baseUrl}: addresses in pages and mail work on this machine only.`],
    [
      !local && protocol === 'http:',
      'BASE_URL is http: API keys travel in clear. Put a proxy with TLS in front and set an https address.',
    ],
    [
      config.trustProxy.length === 0 && (protocol === 'https:' || exposed),
      'TRUST_PROXY is empty: behind a proxy all clients share one limit. Name the proxy, e.g. TRUST_PROXY=loopback.',
    ],
    [
      config.media.dir === '',
      'MEDIA_DIR is not set: with PostgreSQL the service does not start without a folder for pictures, which all servers share.',
    ],
    [mail.smtpUrl === null, `SMTP_URL is not set: mail goes to files in ${mail.dir}, not to its recipients.`],
    [
      mail.smtpUrl !== null && /@localhost>?$/.test(mail.from),
      `MAIL_FROM is ${mail.from}: other servers will refuse it.`,
    ],
    [
      config.internal !== null && isExposed(config.internal.host),
      `INTERNAL_PORT is at ${config.internal?.host}: let nobody else reach it, by a firewall or a network of its own.`,
    ],
    [off.length > 0, `Limits are off for: ${off.join(', ')}.`],
    [
      !local &&
        protocol === 'https:' &&
        config.registration.admits === 'open' &&
        config.trust.newBlogs === 'open',
      'NEW_BLOGS is open: whoever registers is on the home page and in search engines at once. NEW_BLOGS=probation waits.',
    ],
    [config.readOnly, 'READ_ONLY is on: pages and lists work, changes do not.'],
  ];
  return notes.flatMap(([applies, note]) => (applies ? note : []));
}

function isExposed(host: string): boolean {
  return !isLoopback(host) && host !== '::1';
}

/**
 * The text that a start prints: where things are, and {@link startupNotes}. Ends with a newline. `facts` are the
 * version of the program, what is in the database (`12 public posts`), and the npm package that Node came with, if any.
 */
export function startupBlock(
  config: Config,
  facts: { version: string; database: string; nodePackage?: string | null },
): string {
  const { variant, site, mail, database } = config;
  const place = database.engine === 'sqlite' ? database.file : settings.DATABASE_URL.show(database);
  const rows = [
    ['address', site.baseUrl],
    ['blogs', variant.blogUrl(site, '{slug}')],
    ['listening', hostAndPort(config)],
    ...(config.internal === null ? [] : [['private', hostAndPort(config.internal)]]),
    ['variant', variant.name],
    ['database', `${facts.database}, ${place}`],
    ['mail', mail.smtpUrl === null ? `files in ${mail.dir}` : settings.SMTP_URL.show(mail.smtpUrl)],
    ...(facts.nodePackage
      ? [['Node', `of the npm package ${facts.nodePackage}; MASTHEAD_NODE=system takes your own`]]
      : []),
  ].map(([name = '', value = '']) => `  ${name.padEnd(11)}${value}`);
  const notes = startupNotes(config).map((note) => `  - ${note}`);
  const heading = notes.length === 0 ? [] : ['', 'Before others use it:'];
  return [`Masthead ${facts.version}`, '', ...rows, ...heading, ...notes, ''].join('\n');
}
