import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4, SocketAddress } from 'node:net';
import { keyedHash } from './secrets.ts';

/** What a keyword of `TRUST_PROXY` stands for: RFC 1122 and RFC 4291; RFC 1918 and RFC 4193. */
const keywords: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
]);

/** Proxies that one request may have passed; a longer `X-Forwarded-For` is read no further. */
const maxProxies = 20;
/** Hashes of addresses that are remembered: each costs microseconds, and 0.1 KB. */
const mostHashes = 10_000;

/**
 * The function that names whom an anonymous call counts against: an IPv4 address, or the /64 of an IPv6 one
 * (`2001:db8:1:2::/64`), which is what one subscriber is given. `X-Forwarded-For` is read from its right end,
 * each entry only on the word of a trusted proxy, so nothing that a client sends can change its own address.
 *
 * `peer` is the socket's remote address; `forwardedFor` the header, repeated ones joined by commas.
 */
export function createClientAddress(
  trustProxy: readonly string[],
  nameOf: (address: string) => string = subscriber,
): (peer: string, forwardedFor: string | undefined) => string {
  const trusted = blockList(trustProxy);
  return (peer, forwardedFor) => {
    let address = canonical(peer);
    if (address === null) return peer;
    let rest = forwardedFor;
    for (let hops = 0; rest !== undefined && hops < maxProxies; hops++) {
      if (!trusted.check(address, familyOf(address))) break;
      const comma = rest.lastIndexOf(',');
      const next = canonical(withoutPort(rest.slice(comma + 1).trim()));
      if (next === null) break;
      address = next;
      rest = comma === -1 ? undefined : rest.slice(0, comma);
    }
    return nameOf(address);
  };
}

/** The function that names whom a connection counts against; null for a trusted proxy, which speaks for many. */
export function createPeerAddress(trustProxy: readonly string[]): (peer: string) => string | null {
  const trusted = blockList(trustProxy);
  return (peer) => {
    const address = canonical(peer);
    if (address === null) return peer;
    return trusted.check(address, familyOf(address)) ? null : subscriber(address);
  };
}

function subscriber(address: string): string {
  return isIPv4(address) ? address : network(address, 4);
}

/** What one site is given: an IPv4 address, or the /48 of an IPv6 one (RFC 6177), which has 65,536 of /64. */
export function siteNetwork(address: string): string {
  return isIPv4(address) ? address : network(address, 3);
}

/** What one organisation may have many of: the /24 of an IPv4 address, or the /48 of an IPv6 one. */
export function wideNetwork(address: string): string {
  return isIPv4(address) ? address.replace(/\d+$/, '0/24') : network(address, 3);
}

type ReaderOptions = {
  readonly config: { readonly trustProxy: readonly string[] };
  readonly secretKey: Buffer;
};

/** The same for a request, as a keyed hash: what is stored under it must not tell who called. */
export function createAddressReader(
  { config, secretKey }: ReaderOptions,
  nameOf?: (address: string) => string,
): (request: Pick<IncomingMessage, 'socket' | 'headers'>) => string {
  const clientAddress = createClientAddress(config.trustProxy, nameOf);
  const hashes = new Map<string, string>();
  return ({ socket, headers }) => {
    const address = clientAddress(socket.remoteAddress ?? '', forwarded(headers));
    const known = hashes.get(address);
    if (known !== undefined) return known;
    const hash = keyedHash(secretKey, 'client address', address);
    if (hashes.size >= mostHashes) hashes.clear();
    hashes.set(address, hash);
    return hash;
  };
}

/** Why an entry of `TRUST_PROXY` cannot be used, or null if it can. */
export function trustProxyFault(entry: string): string | null {
  if (keywords.has(entry)) return null;
  const [address = '', prefix, ...more] = entry.split('/');
  const family = address.includes('%') ? 0 : isIP(address);
  if (family === 0 || more.length > 0) {
    return 'is not an address, a CIDR range, loopback or private';
  }
  if (family === 6 && isIPv4(canonical(address) ?? ''))
    return 'is an IPv4 address written as IPv6; write it as IPv4';
  if (prefix === undefined) return null;
  const bits = family === 4 ? 32 : 128;
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) return `needs a prefix length from 1 to ${bits}`;
  return Number(prefix) === 0 ? 'would trust every client to name its own address' : null;
}

/** Why a text names no addresses that can be blocked, as a predicate; null where it does. */
export function addressRangeFault(range: string): string | null {
  const fault = keywords.has(range) ? 'is a keyword' : trustProxyFault(range);
  return fault === null ? null : 'is no address or CIDR range, such as 203.0.113.7 or 2001:db8::/48';
}

/** Whether an address is the given one, or in the given range. */
export function blocksAddress(range: string, address: string): boolean {
  const known = canonical(address);
  return known !== null && blockList([range]).check(known, familyOf(known));
}

/** The client's own address, for a look at it that stores nothing. */
export function createClientReader({
  trustProxy,
}: ReaderOptions['config']): (request: IncomingMessage) => string {
  const clientAddress = createClientAddress(trustProxy, (address) => address);
  return ({ socket, headers }) => clientAddress(socket.remoteAddress ?? '', forwarded(headers));
}

function forwarded({ 'x-forwarded-for': header }: IncomingMessage['headers']): string | undefined {
  return [header ?? []].flat().join(',') || undefined;
}

function blockList(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of entries.flatMap((entry) => keywords.get(entry) ?? entry)) {
    const [address = '', prefix] = range.split('/');
    if (prefix === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return list;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv4(address) ? 'ipv4' : 'ipv6';
}

/** Compressed and without zone, an IPv4-mapped address (RFC 4291, 2.5.5.2) as IPv4; null if it is none. */
function canonical(text: string): string | null {
  const family = isIP(text);
  if (family !== 6) return family === 4 ? text : null;
  const { address } = new SocketAddress({ family: 'ipv6', address: text.replace(/%.*$/, '') });
  return address.replace(/^::ffff:(?=.*\.)/, '');
}

/** The first groups of a canonical IPv6 address, of 16 bits each, with the zeros that `::` stands for. */
function network(address: string, groups: 3 | 4): string {
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter(Boolean));
  const zeros = Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0');
  return `${[...head, ...zeros, ...tail].slice(0, groups).join(':')}::/${16 * groups}`;
}

/** Some proxies append the client's port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(entry: string): string {
  const parts = /^(?:\[([^\]]*)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/.exec(entry);
  return parts?.[1] ?? parts?.[2] ?? entry;
}
