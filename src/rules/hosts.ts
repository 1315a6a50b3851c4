import { isIP, isIPv6 } from 'node:net';
import type { Config } from '../config/config.ts';

/** What a `Host` header refers to. */
export type HostMatch =
  | { readonly kind: 'base' }
  /** A blog's host by its form, `former` below one of ALSO_HOSTS; the slug may be reserved, taken or free. */
  | { readonly kind: 'blog'; readonly slug: string; readonly former?: true }
  /** A well-formed host that is not ours: 421. `received` is the header, safe to print. */
  | { readonly kind: 'unknown'; readonly received: string }
  /** Absent or not a host: 400. */
  | { readonly kind: 'malformed' };

/** The canonical forms of all hosts that the service answers as its base. */
export function baseHosts({ site, alsoHosts }: Pick<Config, 'site' | 'alsoHosts'>): ReadonlySet<string> {
  const { host, hostname } = new URL(site.baseUrl);
  const port = host.slice(hostname.length);
  const loopback = isLoopback(hostname) ? ['localhost', '127.0.0.1', '[::1]'].map((name) => name + port) : [];
  return new Set([host, site.blogDomain, ...loopback, ...alsoHosts]);
}

/** Whether a host name (without port, IPv6 in brackets) always means this machine (RFC 6761, RFC 1122). */
export function isLoopback(hostname: string): boolean {
  return /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);
}

/** Whether a host name ends in a number, as none does: systems take `3000` for the address 0.0.11.184. */
export function endsInNumber(hostname: string): boolean {
  return isIP(hostname) === 0 && /(?:^|\.)(?:\d+|0x[\da-f]*)\.?$/i.test(hostname);
}

/**
 * A host as it stands in a `Host` header, in the one form that hosts are compared in: lower case, no final
 * dot, no port if it is the default of `protocol` (`http:` or `https:`), IPv6 compressed. Null if it is none.
 */
export function canonicalHost(text: string, protocol: string): string | null {
  // 253 for the longest name, a dot, a colon and five digits.
  if (text.length > 260) return null;
  const parts = /^(?:([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?|\[([0-9a-f:.]+)\])(?::(\d{0,5}))?$/i.exec(text);
  if (parts === null) return null;
  const [, name, ipv6 = '', port] = parts;
  if ((name === undefined && !isIPv6(ipv6)) || Number(port) > 65_535) return null;
  const host = name === undefined ? new URL(`http://[${ipv6}]`).hostname : name.toLowerCase();
  const defaultPort = protocol === 'https:' ? 443 : 80;
  return port && Number(port) !== defaultPort ? `${host}:${Number(port)}` : host;
}

const base: HostMatch = { kind: 'base' };
const malformed: HostMatch = { kind: 'malformed' };
const agentLabel = /^(?!xn--)[a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9])$/;

/** Tells whom a request is for by its `Host` header. The caller refuses doubled headers: Node keeps the first. */
export function createHostTable(
  config: Pick<Config, 'site' | 'variant' | 'alsoHosts'>,
): (hostHeader: string | undefined) => HostMatch {
  const { protocol } = new URL(config.site.baseUrl);
  const bases = baseHosts(config);
  const blogSuffix = config.variant.blogHosts ? `.${config.site.blogDomain}` : null;
  const formerSuffixes = config.alsoHosts.map((host) => `.${host}`);

  const find = (host: string): HostMatch | null => {
    if (bases.has(host)) return base;
    const slug = blogSuffix === null ? null : labelBefore(blogSuffix, host);
    if (slug !== null) return { kind: 'blog', slug };
    for (const suffix of formerSuffixes) {
      const former = labelBefore(suffix, host);
      if (former !== null) return { kind: 'blog', slug: former, former: true };
    }
    return null;
  };

  return (header) => {
    if (header === undefined) return malformed;
    // Nearly every request has the canonical form already.
    const match = find(header);
    if (match !== null) return match;
    const host = canonicalHost(header, protocol);
    if (host === null) return malformed;
    return find(host) ?? { kind: 'unknown', received: header };
  };
}

function labelBefore(suffix: string, host: string): string | null {
  if (!host.endsWith(suffix)) return null;
  const label = host.slice(0, -suffix.length);
  return agentLabel.test(label) ? label : null;
}

/** Escapes of letters, digits and `-._~`, which no proxy and no address of ours has (RFC 3986, 2.3). */
const needlessEscapes = /%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/gi;

/** The same path in the spelling that has no needless escapes. */
export function withoutNeedlessEscapes(path: string): string {
  return path.replace(needlessEscapes, decodeURIComponent);
}
