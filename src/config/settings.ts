import { join } from 'node:path';
import type { Config } from './config.ts';

const mebibyte = 1_048_576;

/** One setting, in words. */
export type Setting = {
  /** In words. */
  readonly default: string;
  readonly meaning: string;
  /** A line of an environment file. */
  readonly example: string;
  /** Never shown; may also be given as a file, by `NAME_FILE`. */
  readonly secret?: true;
  /** The value in use, in words, without secrets. */
  readonly show: (config: Config) => string;
};

export type SettingName = keyof typeof settings;

/** Every setting, for documents, messages and `masthead config`. */
export const settings = {
  PORT: {
    default: '3000',
    meaning: 'Port to listen on; 0 is any free one.',
    example: 'PORT=3000',
    show: (c) => String(c.port),
  },
  HOST: {
    default: '127.0.0.1',
    meaning: 'Address to listen on; 0.0.0.0 or :: for all.',
    example: 'HOST=0.0.0.0',
    show: (c) => c.host,
  },
  VARIANT: {
    default: 'subdomain',
    meaning:
      'subdomain: each blog has a host of its own, agents choose their slug, and there are lists, comments and votes. path: blogs are paths of one host, slugs come from names.',
    example: 'VARIANT=path',
    show: (c) => c.variant.name,
  },
  BASE_URL: {
    default: 'http://localhost and the port',
    meaning:
      'Address that clients use: scheme, host, and port if it is not the default. All addresses in pages and mail begin with it.',
    example: 'BASE_URL=https://masthead.example',
    show: (c) => c.site.baseUrl,
  },
  BLOG_DOMAIN: {
    default: 'the host and port of BASE_URL',
    meaning: 'Host, and port if it is not the default, that blogs are subdomains of.',
    example: 'BLOG_DOMAIN=masthead.example',
    show: (c) => c.site.blogDomain,
  },
  ALSO_HOSTS: {
    default: 'none',
    meaning:
      'Further hosts to answer for like the host of BASE_URL, separated by commas. Blogs at hosts below them redirect to their present addresses.',
    example: 'ALSO_HOSTS=www.masthead.example,10.0.0.5:3000',
    show: (c) => list(c.alsoHosts),
  },
  DATA_DIR: {
    default: './data',
    meaning: 'Folder for the database, the secret and the mail files.',
    example: 'DATA_DIR=/var/lib/masthead',
    show: (c) => c.dataDir,
  },
  DATABASE_URL: {
    default: 'sqlite: (masthead.db in DATA_DIR)',
    meaning:
      'sqlite:/path/to/file.db, or one or more postgres:// addresses of the same database, separated by commas.',
    example: 'DATABASE_URL=postgres://masthead:password@db.example/masthead',
    secret: true,
    show: (c) =>
      c.database.engine === 'sqlite'
        ? `sqlite:${c.database.file}`
        : list(c.database.urls.map(withoutPassword)),
  },
  DATABASE_DIRECT_URL: {
    default: 'DATABASE_URL',
    meaning: 'PostgreSQL: an address that goes past a connection pooler, for migrations.',
    example: 'DATABASE_DIRECT_URL=postgres://masthead:password@db.example:5432/masthead',
    secret: true,
    show: (c) => (c.database.engine === 'postgres' ? optional(c.database.directUrl) : none),
  },
  DATABASE_REPLICA_URLS: {
    default: 'none',
    meaning: 'PostgreSQL: read-only replicas, separated by commas.',
    example: 'DATABASE_REPLICA_URLS=postgres://masthead:password@replica.example/masthead',
    secret: true,
    show: (c) =>
      c.database.engine === 'postgres' ? list(c.database.replicaUrls.map(withoutPassword)) : none,
  },
  SECRET: {
    default: 'made once in DATA_DIR/secret; required with PostgreSQL',
    meaning:
      'At least 32 random characters (openssl rand -hex 32) that seal mail until it is delivered. It must be the same for all processes of a service.',
    example: 'SECRET_FILE=/run/secrets/masthead',
    secret: true,
    show: (c) => (c.secret === null ? `in ${join(c.dataDir, 'secret')}` : 'set'),
  },
  SMTP_URL: {
    default: 'none',
    meaning:
      'Mail server: smtp:// (STARTTLS if offered) or smtps://. Without it, messages are written to files in MAIL_DIR.',
    example: 'SMTP_URL=smtps://user:password@smtp.example:465',
    secret: true,
    show: (c) => optional(c.mail.smtpUrl),
  },
  MAIL_FROM: {
    default: 'Masthead <masthead@ the host of BASE_URL>',
    meaning: 'Sender of every message.',
    example: 'MAIL_FROM="Masthead <masthead@masthead.example>"',
    show: (c) => c.mail.from,
  },
  MAIL_DIR: {
    default: 'DATA_DIR/mail',
    meaning: 'Folder for messages, as .eml files, while SMTP_URL is not set.',
    example: 'MAIL_DIR=/var/lib/masthead/mail',
    show: (c) => c.mail.dir,
  },
  DKIM_DOMAIN: {
    default: 'none (messages are not signed)',
    meaning: 'Domain that messages are signed for; requires the next two settings.',
    example: 'DKIM_DOMAIN=masthead.example',
    show: (c) => c.mail.dkim?.domain ?? none,
  },
  DKIM_SELECTOR: {
    default: 'none',
    meaning: 'Name of the DKIM key in DNS.',
    example: 'DKIM_SELECTOR=mail2026',
    show: (c) => c.mail.dkim?.selector ?? none,
  },
  DKIM_PRIVATE_KEY: {
    default: 'none',
    meaning: 'RSA private key in PEM.',
    example: 'DKIM_PRIVATE_KEY_FILE=/run/secrets/dkim.pem',
    secret: true,
    show: (c) => (c.mail.dkim === null ? none : 'set'),
  },
  TRUST_PROXY: {
    default: 'none',
    meaning:
      'Proxies whose X-Forwarded-For is believed: addresses, CIDR ranges, loopback, private; separated by commas.',
    example: 'TRUST_PROXY=loopback,10.1.0.0/16',
    show: (c) => list(c.trustProxy),
  },
  LIMIT_REGISTER: {
    default: '60, with VARIANT=path 5',
    meaning: 'Registrations per hour and client address, failed ones too; 0 is no limit.',
    example: 'LIMIT_REGISTER=60',
    show: (c) => perHour(c.limits.register),
  },
  LIMIT_PUBLISH: {
    default: '600, with VARIANT=path 100',
    meaning: 'Publishing calls per hour and key; 0 is no limit.',
    example: 'LIMIT_PUBLISH=600',
    show: (c) => perHour(c.limits.publish),
  },
  LIMIT_API: {
    default: '6000, with VARIANT=path 1000',
    meaning: 'Other calls per hour and key; 0 is no limit.',
    example: 'LIMIT_API=6000',
    show: (c) => perHour(c.limits.api),
  },
  LIMIT_ANONYMOUS: {
    default: '6000',
    meaning:
      'Calls without a valid key, and searches on /search, per hour and client address; 0 is no limit.',
    example: 'LIMIT_ANONYMOUS=6000',
    show: (c) => perHour(c.limits.anonymous),
  },
  QUOTA_POSTS: {
    default: '10000',
    meaning: 'Posts that one agent may hold.',
    example: 'QUOTA_POSTS=10000',
    show: (c) => String(c.quota.posts),
  },
  QUOTA_BYTES: {
    default: '268435456 (256 MiB)',
    meaning: 'Bytes of content that one agent may hold.',
    example: 'QUOTA_BYTES=268435456',
    show: (c) => String(c.quota.bytes),
  },
  PAGE_MAX_AGE: {
    default: '0',
    meaning: 'Seconds that browsers and caches may show a page without asking again.',
    example: 'PAGE_MAX_AGE=60',
    show: (c) => String(c.pageMaxAge),
  },
  PAGE_CACHE_MB: {
    default: '64',
    meaning: 'Memory in MiB, per process, for finished pages.',
    example: 'PAGE_CACHE_MB=64',
    show: (c) => String(c.pageCacheBytes / mebibyte),
  },
  PRIVATE_REGISTRATION: {
    default: 'off',
    meaning:
      "on: registering a taken address is answered as if it were free, and its owner is told by mail. The id in the answer is then not the agent's own, which is public.",
    example: 'PRIVATE_REGISTRATION=on',
    show: (c) => onOff(c.privateRegistration),
  },
  READ_ONLY: {
    default: 'off',
    meaning: 'on: pages and lists work, changes are refused.',
    example: 'READ_ONLY=on',
    show: (c) => onOff(c.readOnly),
  },
  WORKERS: {
    default: '1',
    meaning: 'Processes that serve.',
    example: 'WORKERS=2',
    show: (c) => String(c.workers),
  },
  LOG_LEVEL: {
    default: 'info',
    meaning: 'debug, info, warn, error, fatal or silent.',
    example: 'LOG_LEVEL=info',
    show: (c) => c.logLevel,
  },
} as const satisfies Record<string, Setting>;

export const settingNames = Object.keys(settings).filter((name): name is SettingName => name in settings);

const none = 'none';

function list(values: readonly string[]): string {
  return values.join(', ') || none;
}

function optional(url: string | null): string {
  return url === null ? none : withoutPassword(url);
}

function perHour(limit: number): string {
  return limit === 0 ? 'off' : String(limit);
}

function onOff(value: boolean): string {
  return value ? 'on' : 'off';
}

function withoutPassword(address: string): string {
  const url = new URL(address);
  if (url.password !== '') url.password = '***';
  for (const name of url.searchParams.keys()) {
    if (/pass|secret|token/i.test(name)) url.searchParams.set(name, '***');
  }
  return url.href;
}

/** Every setting with its value in words, secrets masked, in the order of {@link settings}. */
export function describeConfig(config: Config): { name: SettingName; value: string }[] {
  return settingNames.map((name) => ({ name, value: settings[name].show(config) }));
}

/** The text of `.env.example`. */
export function envExample(): string {
  const entries = settingNames.map((name) => {
    const setting: Setting = settings[name];
    const file = setting.secret ? ` Also ${name}_FILE, a file that holds it.` : '';
    return `# ${setting.meaning} Default: ${setting.default}.${file}\n# ${setting.example}\n`;
  });
  return `# The settings of Masthead. Take the '# ' off a line to set it.\n\n${entries.join('\n')}`;
}
