import { StartError } from '../rules/failure.ts';
import { createPrivateKey } from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import { join, resolve } from 'node:path';
import { trustProxyFault } from '../rules/client-address.ts';
import { parseSender, parseSmtpUrl, urlEncoding } from './mail-settings.ts';
import { createReader, split, type Environment, type Reader } from './reader.ts';
import { quoted } from '../rules/text.ts';
import { settingNames, type SettingName } from './settings.ts';
import { canonicalHost, isLoopback } from '../rules/hosts.ts';
import { logLevels, type LogLevel } from '../platform/log.ts';
import { variants } from '../variant.ts';
import type { Limits, Site, Variant } from '../variant.ts';

/** Everything that an operator decides, validated, frozen, and complete: no default is applied later. */
export type Config = {
  /** TCP port to listen on; 0 is any free one, see {@link withPort}. */
  readonly port: number;
  /** Address or name to listen on. */
  readonly host: string;
  readonly variant: Variant;
  readonly site: Site;
  /** Further hosts, with a port unless it is the scheme's own, that the service answers as its base. */
  readonly alsoHosts: readonly string[];
  /** Absolute path. */
  readonly dataDir: string;
  readonly database: DatabaseConfig;
  /** At least 32 characters; null: SQLite only, and the server makes one once as `dataDir`/secret. */
  readonly secret: string | null;
  readonly mail: MailConfig;
  /** Proxies that may name the client's address; see `createClientAddress`. */
  readonly trustProxy: readonly string[];
  /** Calls per hour, 0 = unlimited. */
  readonly limits: Limits;
  /** What one agent may hold: posts, and bytes of content. */
  readonly quota: { readonly posts: number; readonly bytes: number };
  /** Seconds that others may keep a public page without asking. */
  readonly pageMaxAge: number;
  readonly pageCacheBytes: number;
  /** Registering a taken address answers as if it were free, and mails its owner. */
  readonly privateRegistration: boolean;
  readonly readOnly: boolean;
  /** Processes that serve. */
  readonly workers: number;
  readonly logLevel: LogLevel;
};

export type DatabaseConfig =
  | { readonly engine: 'sqlite'; /** Absolute path. */ readonly file: string }
  | {
      readonly engine: 'postgres';
      /** Candidates for the primary, in order; at least one. */
      readonly urls: readonly string[];
      /** Past a pooler, for migrations. */
      readonly directUrl: string | null;
      readonly replicaUrls: readonly string[];
    };

type MailConfig = {
  /** null: messages are files in `dir`. */
  readonly smtpUrl: string | null;
  /** Sender as written in the header, e.g. `Masthead <masthead@example.com>`. */
  readonly from: string;
  /** Absolute path of the folder for `.eml` files. */
  readonly dir: string;
  readonly dkim: {
    readonly domain: string;
    readonly selector: string;
    /** PEM. */
    readonly privateKey: string;
  } | null;
};

/** The settings cannot be used. `faults` has a line for each one, with an example; none holds a secret. */
export class ConfigError extends StartError {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/**
 * The settings of an environment; relative paths are taken from `cwd`. An empty variable counts as unset.
 * Reads the files that `NAME_FILE` variables name and nothing else; throws {@link ConfigError}.
 */
export function loadConfig(env: Environment = process.env, { cwd = process.cwd() } = {}): Config {
  const read = createReader(env, cwd);
  const port = read.integer('PORT', 3000, 0, 65_535);
  const variant = variants[read.oneOf('VARIANT', ['subdomain', 'path'], 'subdomain')];
  const baseUrl = readBaseUrl(read, port);
  const dataDir = resolve(cwd, read.text('DATA_DIR') ?? 'data');
  const database = readDatabase(read, dataDir, cwd);
  const config: Config = {
    port,
    host: readHost(read),
    variant,
    site: { baseUrl, blogDomain: readBlogDomain(read, variant, baseUrl) },
    alsoHosts: readAlsoHosts(read, baseUrl),
    dataDir,
    database,
    secret: readSecret(read, database),
    mail: {
      smtpUrl: readSmtpUrl(read),
      from: readMailFrom(read, baseUrl),
      dir: resolve(cwd, read.text('MAIL_DIR') ?? join(dataDir, 'mail')),
      dkim: readDkim(read),
    },
    trustProxy: readTrustProxy(read),
    limits: {
      register: read.integer('LIMIT_REGISTER', variant.limits.register),
      publish: read.integer('LIMIT_PUBLISH', variant.limits.publish),
      api: read.integer('LIMIT_API', variant.limits.api),
      anonymous: read.integer('LIMIT_ANONYMOUS', variant.limits.anonymous),
    },
    quota: {
      posts: read.integer('QUOTA_POSTS', 10_000, 1),
      bytes: read.integer('QUOTA_BYTES', 256 * mebibyte, 1),
    },
    pageMaxAge: read.integer('PAGE_MAX_AGE', 0, 0, 31_536_000),
    pageCacheBytes: read.integer('PAGE_CACHE_MB', 64, 0, 1_048_576) * mebibyte,
    privateRegistration: read.flag('PRIVATE_REGISTRATION'),
    readOnly: read.flag('READ_ONLY'),
    workers: read.integer('WORKERS', 1, 1, 256),
    logLevel: read.oneOf('LOG_LEVEL', logLevels, 'info'),
  };
  if (read.faults.length > 0) throw new ConfigError(read.faults);
  return frozen(config);
}

/** The configuration of a server that listens on `port`: puts it where an address was left at port 0. */
export function withPort(config: Config, port: number): Config {
  const put = (address: string): string => address.replace(/:0$/, `:${port}`);
  const site = { baseUrl: put(config.site.baseUrl), blogDomain: put(config.site.blogDomain) };
  return frozen({ ...config, port, site });
}

/** Warnings about variables that look like a misspelt setting (`BASEURL`); their values are not read. */
export function misspeltSettings(env: Environment = process.env): string[] {
  const known = new Map(settingNames.map((name) => [bare(name), name]));
  return Object.keys(env).flatMap((name) => {
    const meant = known.get(bare(name));
    return meant === undefined || meant === name ? [] : [`${name} is not a setting; did you mean ${meant}?`];
  });
}

function bare(name: string): string {
  return name.toUpperCase().replace(/^MASTHEAD_|[^A-Z0-9]/g, '');
}

const mebibyte = 1_048_576;

function readHost(read: Reader): string {
  const host = read.text('HOST') ?? '127.0.0.1';
  if (isIP(host) === 0 && !/^[a-z0-9][a-z0-9.-]*$/i.test(host)) {
    read.refuse('HOST', `is ${quoted(host)}, not an address or a host name (no port, no brackets)`);
  }
  return host;
}

function readBaseUrl(read: Reader, port: number): string {
  const local = `http://${canonicalHost(`localhost:${port}`, 'http:')}`;
  const value = read.text('BASE_URL');
  if (value === null) return local;
  // The value is not repeated in a fault: with userinfo it would be a password.
  const url = /^https?:\/\//i.test(value) && URL.canParse(value) ? new URL(value) : null;
  const host = url === null ? null : canonicalHost(url.host, url.protocol);
  if (url === null || host === null) {
    read.refuse('BASE_URL', 'is not an http:// or https:// address');
    return local;
  }
  if (url.pathname !== '/' || /[?#@]/.test(value)) {
    read.refuse('BASE_URL', 'must be scheme, host and port alone, without path, query, fragment or user');
  }
  return `${url.protocol}//${host}`;
}

function readBlogDomain(read: Reader, variant: Variant, baseUrl: string): string {
  const { protocol, host, hostname } = new URL(baseUrl);
  const value = read.text('BLOG_DOMAIN');
  // An IP address has no subdomains; the loopback ones have a name that has.
  const preset = isLoopback(hostname) && isAddress(hostname) ? host.replace(hostname, 'localhost') : host;
  const domain = canonicalHost(value ?? preset, protocol);
  if (domain === null || !URL.canParse(`http://${domain}`)) {
    read.refuse('BLOG_DOMAIN', `is ${quoted(value ?? preset)}, not a host with or without a port`);
  } else if (variant.blogHosts && isAddress(new URL(`http://${domain}`).hostname)) {
    read.refuse(
      'BLOG_DOMAIN',
      'is an IP address, which has no subdomains: name a domain, or set VARIANT=path',
    );
  }
  return domain ?? preset;
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || isIPv4(hostname);
}

function readAlsoHosts(read: Reader, baseUrl: string): string[] {
  const { protocol } = new URL(baseUrl);
  return read.items('ALSO_HOSTS').map((item) => {
    const host = canonicalHost(item, protocol);
    if (host === null) read.refuse('ALSO_HOSTS', `has ${quoted(item)}, not a host with or without a port`);
    return host ?? item;
  });
}

function readDatabase(read: Reader, dataDir: string, cwd: string): DatabaseConfig {
  const url = read.text('DATABASE_URL') ?? 'sqlite:';
  if (!/^sqlite:/i.test(url)) {
    const directUrl = read.text('DATABASE_DIRECT_URL');
    const replicaUrls = read.items('DATABASE_REPLICA_URLS');
    return {
      engine: 'postgres',
      urls: postgresUrls(read, 'DATABASE_URL', split(url)),
      directUrl: directUrl && (postgresUrls(read, 'DATABASE_DIRECT_URL', [directUrl])[0] ?? null),
      replicaUrls: replicaUrls.length === 0 ? [] : postgresUrls(read, 'DATABASE_REPLICA_URLS', replicaUrls),
    };
  }
  const path = url.slice('sqlite:'.length).replace(/^\/\//, '');
  if (/[?#]|^:|^file:/i.test(path)) {
    read.refuse(
      'DATABASE_URL',
      'must name a file after sqlite:, without options; memory alone keeps nothing',
    );
  }
  for (const name of ['DATABASE_DIRECT_URL', 'DATABASE_REPLICA_URLS'] as const) {
    if (read.isGiven(name)) read.refuse(name, 'is for PostgreSQL, but DATABASE_URL is not');
  }
  return { engine: 'sqlite', file: path === '' ? join(dataDir, 'masthead.db') : resolve(cwd, path) };
}

function postgresUrls(read: Reader, name: SettingName, urls: string[]): string[] {
  if (urls.length > 0 && urls.every(isPostgresUrl)) return urls;
  const form = name === 'DATABASE_URL' ? 'neither sqlite: nor a' : 'not a';
  read.refuse(name, `is ${form} postgres:// address; ${urlEncoding}`);
  return [];
}

function readSmtpUrl(read: Reader): string | null {
  const url = read.text('SMTP_URL');
  if (url !== null) read.refuseUnread('SMTP_URL', () => parseSmtpUrl(url));
  return url;
}

function isPostgresUrl(text: string): boolean {
  if (!URL.canParse(text) || !/^postgres(?:ql)?:\/\//i.test(text)) return false;
  // A password that is not encoded ends up behind the host, where it would be shown.
  const { pathname, search, hash } = new URL(text);
  return !`${pathname}${search}${hash}`.includes('@');
}

function readSecret(read: Reader, database: DatabaseConfig): string | null {
  const secret = read.text('SECRET');
  if (secret !== null && secret.length < 32) read.refuse('SECRET', 'is shorter than 32 characters');
  if (database.engine === 'postgres' && database.urls.length > 0 && !read.isGiven('SECRET')) {
    read.refuse('SECRET', 'is required with PostgreSQL, since all servers must share it');
  }
  return secret;
}

function readMailFrom(read: Reader, baseUrl: string): string {
  const { hostname } = new URL(baseUrl);
  const preset = `Masthead <masthead@${isAddress(hostname) ? 'localhost' : hostname}>`;
  const from = read.text('MAIL_FROM') ?? preset;
  read.refuseUnread('MAIL_FROM', () => parseSender(from));
  return from;
}

function readDkim(read: Reader): MailConfig['dkim'] {
  const names = ['DKIM_DOMAIN', 'DKIM_SELECTOR', 'DKIM_PRIVATE_KEY'] as const;
  const missing = names.filter((name) => !read.isGiven(name));
  if (missing.length === names.length) return null;
  for (const name of missing) read.refuse(name, 'is missing: DKIM needs domain, selector and private key');
  const domain = read.text('DKIM_DOMAIN') ?? '';
  const selector = read.text('DKIM_SELECTOR') ?? '';
  if (!/^[a-z0-9._-]*$/i.test(domain)) read.refuse('DKIM_DOMAIN', `is ${quoted(domain)}, not a domain`);
  if (!/^[a-z0-9._-]*$/i.test(selector)) read.refuse('DKIM_SELECTOR', `is ${quoted(selector)}, not a name`);
  // Environment files of several tools keep a key on one line, with \n for its line breaks.
  const privateKey = (read.text('DKIM_PRIVATE_KEY') ?? '').replaceAll('\\n', '\n').trim();
  if (privateKey !== '' && !isRsaKey(privateKey)) {
    read.refuse('DKIM_PRIVATE_KEY', 'is not an RSA private key in PEM, or is encrypted');
  }
  return { domain, selector, privateKey };
}

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

function readTrustProxy(read: Reader): string[] {
  const entries = read.items('TRUST_PROXY');
  for (const entry of entries) {
    const fault = trustProxyFault(entry);
    if (fault !== null) read.refuse('TRUST_PROXY', `has ${quoted(entry)}, which ${fault}`);
  }
  return entries;
}

function frozen<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) {
    if (typeof part === 'object' && part !== null) frozen(part);
  }
  return Object.freeze(value);
}
