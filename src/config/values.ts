import { createPrivateKey } from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import { join } from 'node:path';
import { trustProxyFault } from '../rules/client-address.ts';
import { domainOf, parseEmail } from '../rules/email.ts';
import { canonicalHost, endsInNumber, isLoopback } from '../rules/hosts.ts';
import { canonicalLanguage, languageTagFault } from '../rules/text/language-tags.ts';
import { settingValue } from '../rules/text.ts';
import { variants, type Variant } from '../variant.ts';
import { parseSender, parseSmtpUrl, urlEncoding } from './mail-settings.ts';
import type { Given } from './reader.ts';

/** The values of settings that depend on others, or that take more than a line to read. */

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

/** What messages are signed with; the private key is PEM. */
export type Dkim = { readonly domain: string; readonly selector: string; readonly privateKey: string };

export function readPort(given: Given): number {
  return given.of('PORT').integer(3000, 0, 65_535);
}

/** Where a server listens. */
export type ListenAddress = { readonly host: string; readonly port: number };

/** A port, on the loopback address unless another stands before it. */
export function readInternalPort(given: Given): ListenAddress | null {
  const text = given.text();
  if (text === null) return null;
  const [, bracketed, name, digits] =
    /^(?:(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):)?(\d{1,5})$/i.exec(text) ?? [];
  const host = bracketed ?? name ?? '127.0.0.1';
  const port = Number(digits);
  const isHost = bracketed === undefined ? !endsInNumber(host) : isIP(bracketed) === 6;
  if (!(port >= 1 && port <= 65_535) || !isHost)
    given.refuse(`is ${settingValue(text)}, not a port from 1 to 65535 with or without an address before it`);
  else if (port === readPort(given)) given.refuse('is the port that everybody reaches, PORT: name another');
  return { host, port };
}

/** As it stands in an address: `127.0.0.1:9464`, `[::1]:9464`. */
export function hostAndPort({ host, port }: ListenAddress): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

export function readVariant(given: Given): Variant {
  return variants[given.of('VARIANT').oneOf(['subdomain', 'path'], 'subdomain')];
}

export function readHost(given: Given): string {
  const host = given.text() ?? '127.0.0.1';
  if (isIP(host) === 0 && (!/^[a-z0-9][a-z0-9.-]*$/i.test(host) || endsInNumber(host)))
    given.refuse(`is ${settingValue(host)}, not an address or a host name (no port, no brackets)`);
  return host;
}

/** One line of text. */
export function readLine(given: Given, longest: number): string | null {
  const text = given.text();
  if (text !== null && (Array.from(text).length > longest || /\p{Cc}/u.test(text)))
    given.refuse(`is longer than ${longest} characters, or not one line`);
  return text;
}

export function readLanguage(given: Given): string {
  const tag = given.text() ?? 'en';
  const fault = languageTagFault(tag);
  if (fault === null) return canonicalLanguage(tag);
  given.refuse(`is ${settingValue(tag)}, which ${fault}`);
  return 'en';
}

/** One plain e-mail address. */
export function readAddress(given: Given): string | null {
  const text = given.text();
  const email = text === null ? null : parseEmail(text);
  if (email !== null && !email.ok) given.refuse(email.message);
  return email?.ok ? email.address : null;
}

export function readLegalUrl(given: Given): string | null {
  const text = given.text();
  const url = text === null ? null : URL.parse(text);
  if (
    text !== null &&
    (url === null || !/^https?:$/.test(url.protocol) || url.username + url.password !== '')
  )
    given.refuse('is not an http:// or https:// address, or has a user in it');
  return url?.href ?? null;
}

/** Domains of e-mail addresses, in ASCII. */
export function readRegistrationDomains(given: Given): string[] {
  const isUsed = given.of('REGISTRATION').text() === 'domains';
  const items = given.items();
  if (isUsed && items.length === 0) given.refuse('is missing: REGISTRATION=domains needs at least one');
  if (!isUsed && items.length > 0) given.refuse('has no effect without REGISTRATION=domains');
  return items.flatMap((item) => {
    const email = parseEmail(`any@${item.replace(/^@/, '')}`);
    if (!email.ok) given.refuse(`has ${settingValue(item)}, not a domain`);
    return email.ok ? [domainOf(email.key)] : [];
  });
}

export function readBaseUrl(anyGiven: Given): string {
  const given = anyGiven.of('BASE_URL');
  const local = `http://${canonicalHost(`localhost:${readPort(given)}`, 'http:')}`;
  const value = given.text();
  if (value === null) return local;
  // The value is not repeated in a fault: with userinfo it would be a password.
  const url = /^https?:\/\//i.test(value) ? URL.parse(value) : null;
  const [, written = ''] = /\/\/([^/?#:]*)/.exec(value) ?? [];
  const host = url === null || endsInNumber(written) ? null : canonicalHost(url.host, url.protocol);
  if (url === null || host === null) {
    given.refuse('is not an http:// or https:// address');
    return local;
  }
  if (url.pathname !== '/' || /[?#@]/.test(value))
    given.refuse('must be scheme, host and port alone, without path, query, fragment or user');
  return `${url.protocol}//${host}`;
}

export function readBlogDomain(given: Given): string {
  const { protocol, host, hostname } = new URL(readBaseUrl(given));
  // An IP address has no subdomains; the loopback ones have a name that has.
  const preset = isLoopback(hostname) && isAddress(hostname) ? host.replace(hostname, 'localhost') : host;
  const value = given.text() ?? preset;
  const domain = hostOf(value, protocol);
  if (domain === null || !URL.canParse(`http://${domain}`))
    given.refuse(`is ${settingValue(value)}, not a host with or without a port`);
  else if (readVariant(given).blogHosts && isAddress(new URL(`http://${domain}`).hostname))
    given.refuse('is an IP address, which has no subdomains: name a domain, or set VARIANT=path');
  return domain ?? preset;
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || isIPv4(hostname);
}

/** A host that is to be one of ours, in its canonical form; null if it is none. */
function hostOf(text: string, protocol: string): string | null {
  return endsInNumber(text.replace(/:\d*$/, '')) ? null : canonicalHost(text, protocol);
}

export function readAlsoHosts(given: Given): string[] {
  const { protocol } = new URL(readBaseUrl(given));
  return given.items().map((item) => {
    const host = hostOf(item, protocol);
    if (host === null) given.refuse(`has ${settingValue(item)}, not a host with or without a port`);
    return host ?? item;
  });
}

export function readDataDir(given: Given): string {
  return given.resolve(given.of('DATA_DIR').text() ?? 'data');
}

export function readDatabase(anyGiven: Given): DatabaseConfig {
  const given = anyGiven.of('DATABASE_URL');
  const url = given.text() ?? 'sqlite:';
  const [direct, replicas] = [given.of('DATABASE_DIRECT_URL'), given.of('DATABASE_REPLICA_URLS')];
  if (!/^sqlite:/i.test(url)) {
    return {
      engine: 'postgres',
      urls: postgresUrls(given, given.items()),
      directUrl: direct.isGiven() ? (postgresUrls(direct, [direct.text() ?? ''])[0] ?? null) : null,
      replicaUrls: replicas.items().length === 0 ? [] : postgresUrls(replicas, replicas.items()),
    };
  }
  const path = url.slice('sqlite:'.length).replace(/^\/\//, '');
  if (/[?#]|^:|^file:/i.test(path))
    given.refuse('must name a file after sqlite:, without options; memory alone keeps nothing');
  for (const other of [direct, replicas])
    if (other.isGiven()) other.refuse('is for PostgreSQL, but DATABASE_URL is not');
  return { engine: 'sqlite', file: given.resolve(path || join(readDataDir(given), 'masthead.db')) };
}

function postgresUrls(given: Given, urls: string[]): string[] {
  if (urls.length > 0 && urls.every(isPostgresUrl)) return urls;
  const form = given.name === 'DATABASE_URL' ? 'neither sqlite: nor a' : 'not a';
  given.refuse(`is ${form} postgres:// address; ${urlEncoding}`);
  return [];
}

function isPostgresUrl(text: string): boolean {
  if (!URL.canParse(text) || !/^postgres(?:ql)?:\/\//i.test(text)) return false;
  // A password that is not encoded ends up behind the host, where it would be shown.
  const { pathname, search, hash } = new URL(text);
  return !`${pathname}${search}${hash}`.includes('@');
}

export function readSecret(given: Given): string | null {
  const secret = given.text();
  if (secret !== null && secret.length < 32) given.refuse('is shorter than 32 characters');
  const database = readDatabase(given);
  if (database.engine === 'postgres' && database.urls.length > 0 && !given.isGiven())
    given.refuse('is required with PostgreSQL, since all servers must share it');
  return secret;
}

/** Empty where a server would have to be given one: with PostgreSQL. */
export function readMediaDir(given: Given): string {
  const folder = given.text();
  if (folder === null && readDatabase(given).engine === 'postgres') return '';
  return given.resolve(folder ?? join(readDataDir(given), 'media'));
}

export function readSmtpUrl(given: Given): string | null {
  const url = given.text();
  if (url !== null) given.refuseUnparsed(() => parseSmtpUrl(url));
  return url;
}

export function readMailFrom(given: Given): string {
  const { hostname } = new URL(readBaseUrl(given));
  const from = given.text() ?? `Masthead <masthead@${isAddress(hostname) ? 'localhost' : hostname}>`;
  given.refuseUnparsed(() => parseSender(from));
  return from;
}

export function readDkim(given: Given): Dkim | null {
  const parts = ['DKIM_DOMAIN', 'DKIM_SELECTOR', 'DKIM_PRIVATE_KEY'].map((name) => given.of(name));
  const missing = parts.filter((part) => !part.isGiven());
  if (missing.length === parts.length) return null;
  for (const part of missing) part.refuse('is missing: DKIM needs domain, selector and private key');
  const [domain = '', selector = '', pem = ''] = parts.map((part) => part.text() ?? '');
  if (!/^[a-z0-9._-]*$/i.test(domain)) parts[0]?.refuse(`is ${settingValue(domain)}, not a domain`);
  if (!/^[a-z0-9._-]*$/i.test(selector)) parts[1]?.refuse(`is ${settingValue(selector)}, not a name`);
  // Environment files of several tools keep a key on one line, with \n for its line breaks.
  const privateKey = pem.replaceAll('\\n', '\n').trim();
  if (privateKey !== '' && !isRsaKey(privateKey))
    parts[2]?.refuse('is not an RSA private key in PEM, or is encrypted');
  return { domain, selector, privateKey };
}

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

export function readTrustProxy(given: Given): string[] {
  const entries = given.items();
  for (const entry of entries) {
    const fault = trustProxyFault(entry);
    if (fault !== null) given.refuse(`has ${settingValue(entry)}, which ${fault}`);
  }
  return entries;
}
