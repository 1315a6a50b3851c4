import { isIPv6 } from 'node:net';
import type { Config } from '../config/config.ts';

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
