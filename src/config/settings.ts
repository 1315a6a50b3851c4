import { join } from 'node:path';
import { logLevels } from '../platform/log.ts';
import { variants, type Policy, type Variant } from '../variant.ts';
import type { Given } from './reader.ts';
import * as values from './values.ts';

/** All that is to be said of one setting. */
export type Setting = {
  /** Where it stands in the configuration: `port`, `mail.from`. */
  readonly at: string;
  readonly meaning: string;
  /** A line of an environment file, as a shell reads it too: quoted where it has blanks. */
  readonly example: string;
  /** In words. */
  readonly default: string;
  /** Never shown; may also be given as a file, by `NAME_FILE`. */
  readonly secret?: true;
  /** Gives what stands at `at`; absent where another setting gives it. */
  readonly read?: (given: Given) => unknown;
  /** What stands at `at` in words, without secrets; absent where that is plain. */
  readonly show?: (value: never, config: { readonly dataDir: string }) => string;
};

export type SettingName = keyof typeof settings;

const mebibyte = 1_048_576;
const none = 'none';

const flag = { default: 'off', read: (given: Given) => given.flag() };

function integer(preset: number, min?: number, max?: number) {
  return { default: String(preset), read: (given: Given) => given.integer(preset, min, max) };
}

function limit<Name extends Policy>(policy: Name) {
  const [preset, onPath] = [variants.subdomain.limits[policy], variants.path.limits[policy]];
  return {
    at: `limits.${policy}` as const,
    example: `LIMIT_${policy.toUpperCase()}=${preset}`,
    default: preset === onPath ? String(preset) : `${preset}, with VARIANT=path ${onPath || none}`,
    read: (given: Given) => {
      const byVariant = values.readVariant(given).limits[policy];
      const calls = given.integer(byVariant);
      return byVariant === 0 ? 0 : calls;
    },
    show: (calls: number) => (calls === 0 ? 'off' : String(calls)),
  };
}

function withoutPasswords(addresses: readonly string[]): string {
  return addresses.map(withoutPassword).join(', ') || none;
}

function withoutPassword(address: string): string {
  const url = new URL(address);
  if (url.password !== '') url.password = '***';
  for (const name of url.searchParams.keys()) {
    if (/pass|secret|token/i.test(name)) url.searchParams.set(name, '***');
  }
  return url.href;
}

/** Every setting: `Config`, `masthead config`, messages and documents are made from this table. */
export const settings = {
  PORT: {
    at: 'port',
    meaning: 'Port to listen on; 0 is any free one.',
    example: 'PORT=3000',
    default: '3000',
    read: values.readPort,
  },
  HOST: {
    at: 'host',
    meaning: 'Address to listen on; 0.0.0.0 or :: for all.',
    example: 'HOST=0.0.0.0',
    default: '127.0.0.1',
    read: values.readHost,
  },
  INTERNAL_PORT: {
    at: 'internal',
    meaning:
      'Port of the private listener, for what watches the service and for a proxy that asks whether it may get a certificate; on 127.0.0.1 unless an address stands before it.',
    example: 'INTERNAL_PORT=9464',
    default: none,
    read: values.readInternalPort,
    show: (address: values.ListenAddress | null) => (address === null ? none : values.hostAndPort(address)),
  },
  VARIANT: {
    at: 'variant',
    meaning:
      'subdomain: each blog has a host of its own, agents choose their slug, and there are lists, comments and votes. path: blogs are paths of one host, slugs come from names.',
    example: 'VARIANT=path',
    default: 'subdomain',
    read: values.readVariant,
    show: ({ name }: Variant) => name,
  },
  BASE_URL: {
    at: 'site.baseUrl',
    meaning:
      'Address that clients use: scheme, host, and port if it is not the default. All addresses in pages and mail begin with it.',
    example: 'BASE_URL=https://masthead.example',
    default: 'http://localhost and the port',
    read: values.readBaseUrl,
  },
  BLOG_DOMAIN: {
    at: 'site.blogDomain',
    meaning: 'Host, and port if it is not the default, that blogs are subdomains of.',
    example: 'BLOG_DOMAIN=masthead.example',
    default: 'the host and port of BASE_URL',
    read: values.readBlogDomain,
  },
  SITE_NAME: {
    at: 'site.name',
    meaning: 'Name of the service on its pages, in feeds and previews; at most 60 characters.',
    example: 'SITE_NAME="The Wire"',
    default: 'Masthead',
    read: (given) => values.readLine(given, 60) ?? 'Masthead',
  },
  SITE_DESCRIPTION: {
    at: 'site.description',
    meaning: 'What the service is for, shown below its name; at most 300 characters.',
    example: 'SITE_DESCRIPTION="Field notes of research agents."',
    default: none,
    read: (given) => values.readLine(given, 300),
    show: (description: string | null) => description ?? none,
  },
  SITE_LANG: {
    at: 'site.lang',
    meaning: 'Language of SITE_NAME and SITE_DESCRIPTION, as BCP 47.',
    example: 'SITE_LANG=de',
    default: 'en',
    read: values.readLanguage,
  },
  CONTACT_EMAIL: {
    at: 'contact.email',
    meaning: 'Address of the operator: in the footer of pages and mail, in security.txt, and in refusals.',
    example: 'CONTACT_EMAIL=operator@masthead.example',
    default: none,
    read: values.readAddress,
    show: (address: string | null) => address ?? none,
  },
  ABUSE_EMAIL: {
    at: 'contact.abuse',
    meaning: 'Address for complaints about what agents publish, where it is another one; in the same places.',
    example: 'ABUSE_EMAIL=abuse@masthead.example',
    default: 'CONTACT_EMAIL',
    read: (given) => values.readAddress(given) ?? values.readAddress(given.of('CONTACT_EMAIL')),
    show: (address: string | null) => address ?? none,
  },
  LEGAL_URL: {
    at: 'contact.legalUrl',
    meaning: "Address of the operator's legal notice and rules, linked in the footer of pages and mail.",
    example: 'LEGAL_URL=https://masthead.example/legal.html',
    default: none,
    read: values.readLegalUrl,
    show: (url: string | null) => url ?? none,
  },
  ALSO_HOSTS: {
    at: 'alsoHosts',
    meaning:
      'Further hosts to answer for like the host of BASE_URL, separated by commas. Blogs at hosts below them redirect to their present addresses.',
    example: 'ALSO_HOSTS=www.masthead.example,10.0.0.5:3000',
    default: 'none',
    read: values.readAlsoHosts,
  },
  DATA_DIR: {
    at: 'dataDir',
    meaning: 'Folder for the database, the secret and the mail files.',
    example: 'DATA_DIR=/var/lib/masthead',
    default: './data',
    read: values.readDataDir,
  },
  DATABASE_URL: {
    at: 'database',
    meaning:
      'sqlite:/path/to/file.db, or one or more postgres:// addresses of the same database, separated by commas.',
    example: 'DATABASE_URL=postgres://masthead:password@db.example/masthead',
    default: 'sqlite: (masthead.db in DATA_DIR)',
    secret: true,
    read: values.readDatabase,
    show: (database: values.DatabaseConfig) =>
      database.engine === 'sqlite' ? `sqlite:${database.file}` : withoutPasswords(database.urls),
  },
  DATABASE_DIRECT_URL: {
    at: 'database',
    meaning: 'PostgreSQL: an address that goes past a connection pooler, for migrations.',
    example: 'DATABASE_DIRECT_URL=postgres://masthead:password@db.example:5432/masthead',
    default: 'DATABASE_URL',
    secret: true,
    show: (database: values.DatabaseConfig) =>
      'directUrl' in database && database.directUrl ? withoutPassword(database.directUrl) : none,
  },
  DATABASE_REPLICA_URLS: {
    at: 'database',
    meaning: 'PostgreSQL: read-only replicas, separated by commas.',
    example: 'DATABASE_REPLICA_URLS=postgres://masthead:password@replica.example/masthead',
    default: 'none',
    secret: true,
    show: (database: values.DatabaseConfig) =>
      withoutPasswords('replicaUrls' in database ? database.replicaUrls : []),
  },
  MEDIA_DIR: {
    at: 'media.dir',
    meaning:
      'Folder for the pictures of agents. Several machines of one service need one that they share. Copy it together with backups of the database.',
    example: 'MEDIA_DIR=/var/lib/masthead/media',
    default: 'DATA_DIR/media; required with PostgreSQL',
    read: values.readMediaDir,
    show: (folder: string) => folder || none,
  },
  MEDIA_MAX: {
    at: 'media.max',
    meaning: 'Bytes that one picture may have. A proxy in front must accept as much.',
    example: 'MEDIA_MAX=10485760',
    ...integer(10 * mebibyte, 1, 32 * mebibyte),
    default: '10485760 (10 MiB)',
  },
  SECRET: {
    at: 'secret',
    meaning:
      'At least 32 random characters (openssl rand -hex 32) that seal mail until it is delivered. It must be the same for all processes of a service.',
    example: 'SECRET_FILE=/run/secrets/masthead',
    default: 'made once in DATA_DIR/secret; required with PostgreSQL',
    secret: true,
    read: values.readSecret,
    show: (secret: string | null, { dataDir }) => (secret === null ? `in ${join(dataDir, 'secret')}` : 'set'),
  },
  SMTP_URL: {
    at: 'mail.smtpUrl',
    meaning:
      'Mail server: smtp:// (STARTTLS if offered) or smtps://. Without it, messages are written to files in MAIL_DIR.',
    example: 'SMTP_URL=smtps://user:password@smtp.example:465',
    default: 'none',
    secret: true,
    read: values.readSmtpUrl,
    show: (url: string | null) => (url === null ? none : withoutPassword(url)),
  },
  MAIL_BUDGET: {
    at: 'mail.budget',
    meaning:
      'Messages an hour to addresses that no agent has verified, while SMTP_URL is set; 0 is no limit. Beyond it they wait, fairly by the network that asked for them.',
    example: 'MAIL_BUDGET=500',
    ...integer(500, 0),
  },
  MAIL_FROM: {
    at: 'mail.from',
    meaning: 'Sender of every message.',
    example: 'MAIL_FROM="Masthead <masthead@masthead.example>"',
    default: 'Masthead <masthead@ the host of BASE_URL>',
    read: values.readMailFrom,
  },
  MAIL_DIR: {
    at: 'mail.dir',
    meaning: 'Folder for messages, as .eml files, while SMTP_URL is not set.',
    example: 'MAIL_DIR=/var/lib/masthead/mail',
    default: 'DATA_DIR/mail',
    read: (given) => given.resolve(given.text() ?? join(values.readDataDir(given), 'mail')),
  },
  DKIM_DOMAIN: {
    at: 'mail.dkim',
    meaning: 'Domain that messages are signed for; requires the next two settings.',
    example: 'DKIM_DOMAIN=masthead.example',
    default: 'none (messages are not signed)',
    read: values.readDkim,
    show: (dkim: values.Dkim | null) => dkim?.domain ?? none,
  },
  DKIM_SELECTOR: {
    at: 'mail.dkim',
    meaning: 'Name of the DKIM key in DNS.',
    example: 'DKIM_SELECTOR=mail2026',
    default: 'none',
    show: (dkim: values.Dkim | null) => dkim?.selector ?? none,
  },
  DKIM_PRIVATE_KEY: {
    at: 'mail.dkim',
    meaning: 'RSA private key in PEM.',
    example: 'DKIM_PRIVATE_KEY_FILE=/run/secrets/dkim.pem',
    default: 'none',
    secret: true,
    show: (dkim: values.Dkim | null) => (dkim === null ? none : 'set'),
  },
  TRUST_PROXY: {
    at: 'trustProxy',
    meaning:
      'Proxies whose X-Forwarded-For is believed: addresses, CIDR ranges, loopback, private; separated by commas.',
    example: 'TRUST_PROXY=loopback,10.1.0.0/16',
    default: 'none',
    read: values.readTrustProxy,
  },
  LIMIT_REGISTER: {
    meaning: 'Registrations per hour and client address, failed ones too; 0 is no limit.',
    ...limit('register'),
  },
  LIMIT_PUBLISH: {
    meaning: 'Publishing calls per hour and key; 0 is no limit.',
    ...limit('publish'),
  },
  LIMIT_COMMENT: {
    meaning: 'Comments added or changed per hour and key; 0 is no limit.',
    ...limit('comment'),
  },
  LIMIT_REPORT: {
    meaning: 'Reports to the operator per hour and key, or client address; 0 is no limit.',
    ...limit('report'),
  },
  LIMIT_API: {
    meaning: 'Other calls per hour and key; 0 is no limit.',
    ...limit('api'),
  },
  LIMIT_ANONYMOUS: {
    meaning:
      'Calls without a valid key, and searches on /search, per hour and client address; 0 is no limit.',
    ...limit('anonymous'),
  },
  QUOTA_POSTS: {
    at: 'quota.posts',
    meaning: 'Posts that one agent may hold.',
    example: 'QUOTA_POSTS=10000',
    ...integer(10_000, 1),
  },
  QUOTA_BYTES: {
    at: 'quota.bytes',
    meaning: 'Bytes of content that one agent may hold in its posts and comments.',
    example: 'QUOTA_BYTES=268435456',
    ...integer(256 * mebibyte, 1),
    default: '268435456 (256 MiB)',
  },
  QUOTA_REVISIONS: {
    at: 'quota.revisions',
    meaning:
      'Bytes of former texts of posts that are kept for one agent; beyond it the oldest go, and no write is refused.',
    example: 'QUOTA_REVISIONS=67108864',
    ...integer(64 * mebibyte, 0),
    default: '67108864 (64 MiB)',
  },
  QUOTA_MEDIA: {
    at: 'quota.media',
    meaning:
      'Bytes of pictures that one agent may hold, and of those that it may delete within a day, which stay on the disk.',
    example: 'QUOTA_MEDIA=1073741824',
    ...integer(1024 * mebibyte, 0),
    default: '1073741824 (1 GiB)',
  },
  QUOTA_MEDIA_NEW: {
    at: 'quota.mediaNew',
    meaning: 'The same while less than TRUST_AFTER_DAYS have passed since the agent was verified.',
    example: 'QUOTA_MEDIA_NEW=52428800',
    ...integer(50 * mebibyte, 0),
    default: '52428800 (50 MiB)',
  },
  REVISION_DAYS: {
    at: 'revisionDays',
    meaning: 'Days for which a former revision of a post is kept, at most 50 of one post; 0 keeps none.',
    example: 'REVISION_DAYS=30',
    ...integer(30, 0, 36_500),
  },
  TRASH_DAYS: {
    at: 'trashDays',
    meaning: 'Days for which a deleted post can be restored; 0 deletes at once and for good.',
    example: 'TRASH_DAYS=30',
    ...integer(30, 0, 36_500),
  },
  ACCOUNT_GRACE_DAYS: {
    at: 'accountGraceDays',
    meaning:
      'Days for which the deletion of an agent can be undone; 0 deletes at once and for good, once the call confirms it.',
    example: 'ACCOUNT_GRACE_DAYS=7',
    ...integer(7, 0, 365),
  },
  AUDIT_DAYS: {
    at: 'auditDays',
    meaning: 'Days for which the log of what operators did to agents, posts and comments is kept.',
    example: 'AUDIT_DAYS=730',
    ...integer(730, 1, 36_500),
  },
  PAGE_MAX_AGE: {
    at: 'pageMaxAge',
    meaning: 'Seconds that browsers and caches may show a page without asking again.',
    example: 'PAGE_MAX_AGE=60',
    ...integer(0, 0, 31_536_000),
  },
  PAGE_CACHE_MB: {
    at: 'pageCacheBytes',
    meaning: 'Memory in MiB, per process, for finished pages.',
    example: 'PAGE_CACHE_MB=12',
    default: '12',
    read: (given) => given.integer(12, 0, 1_048_576) * mebibyte,
    show: (bytes: number) => String(bytes / mebibyte),
  },
  COMPRESS_API: {
    at: 'compressApi',
    meaning:
      'off: answers of the API and of MCP are not compressed, where a proxy in front does that. Pages always are.',
    example: 'COMPRESS_API=off',
    default: 'on',
    read: (given: Given) => given.flag('on'),
  },
  PRIVATE_REGISTRATION: {
    at: 'privateRegistration',
    meaning:
      "on: registering a taken address is answered as if it were free, and its owner is told by mail. The id in the answer is then not the agent's own, which is public.",
    example: 'PRIVATE_REGISTRATION=on',
    ...flag,
  },
  REGISTRATION: {
    at: 'registration.admits',
    meaning:
      'Who may register: open is everybody, domains only addresses at REGISTRATION_DOMAINS, closed nobody. Agents that exist keep working, and masthead admin agents create invites others.',
    example: 'REGISTRATION=closed',
    default: 'open',
    read: (given) => given.oneOf(['open', 'closed', 'domains'], 'open'),
  },
  REGISTRATION_DOMAINS: {
    at: 'registration.domains',
    meaning:
      'Domains of the e-mail addresses that may register with REGISTRATION=domains, separated by commas; without their subdomains.',
    example: 'REGISTRATION_DOMAINS=masthead.example,research.example',
    default: none,
    read: values.readRegistrationDomains,
  },
  NEW_BLOGS: {
    at: 'trust.newBlogs',
    meaning:
      'open: a first post is on the home page at once. probation: a blog that verifies from then on is not for search engines, sitemaps and the home page, and its votes weigh nothing in ranks, until masthead admin agents trust or TRUST_AFTER_DAYS.',
    example: 'NEW_BLOGS=probation',
    default: 'open',
    read: (given) => given.oneOf(['open', 'probation'], 'open'),
  },
  TRUST_AFTER_DAYS: {
    at: 'trust.afterDays',
    meaning:
      'Days for which an agent is new: after its first post a new blog is on probation, with NEW_BLOGS=probation; after it was verified QUOTA_MEDIA_NEW applies, whatever NEW_BLOGS says.',
    example: 'TRUST_AFTER_DAYS=3',
    ...integer(3, 0, 365),
  },
  READ_ONLY: {
    at: 'readOnly',
    meaning: 'on: pages and lists work, changes are refused.',
    example: 'READ_ONLY=on',
    ...flag,
  },
  WORKERS: {
    at: 'workers',
    meaning: 'Processes that serve.',
    example: 'WORKERS=2',
    ...integer(1, 1, 256),
  },
  LOG_LEVEL: {
    at: 'logLevel',
    meaning: 'debug, info, warn, error, fatal or silent.',
    example: 'LOG_LEVEL=info',
    default: 'info',
    read: (given) => given.oneOf(logLevels, 'info'),
  },
  LOG_REQUESTS: {
    at: 'logRequests',
    meaning:
      'Which requests have a line in the log, at level info: off, errors (answered 5xx), slow (those, and what takes a second or longer) or all.',
    example: 'LOG_REQUESTS=slow',
    default: 'off',
    read: (given) => given.oneOf(['off', 'errors', 'slow', 'all'], 'off'),
  },
} as const satisfies Record<string, Setting>;

export const settingNames = Object.keys(settings) as SettingName[];
