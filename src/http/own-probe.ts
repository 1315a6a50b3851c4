import { randomUUID, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Context } from '../context.ts';
import { createClientAddress, createPeerAddress } from '../rules/client-address.ts';
import { keyedHash } from '../rules/secrets.ts';

/** The header by which `masthead doctor` shows that it holds the secret. Its value tells nothing else. */
export const probeHeader = 'masthead-probe';

/** How far the clocks of two machines of a service may be apart, ms. */
const validFor = 300_000;

/** What reached the service of a request of doctor's own. */
export type Seen = {
  /** From the header: this is the answer to that request, and not one that was cached. */
  readonly nonce: string;
  readonly requestId: string;
  /** The `Host` header as it came. */
  readonly host: string;
  /** Who connected: a proxy, or the client itself. */
  readonly peer: string;
  /** Whether TRUST_PROXY names the peer. */
  readonly trusted: boolean;
  readonly forwardedFor: string | null;
  /** The address that the call is counted by. */
  readonly client: string;
};

/** A new value of the header. */
export function newProbe(secretKey: Buffer, now: number): { readonly nonce: string; readonly value: string } {
  const nonce = randomUUID();
  return { nonce, value: signed(secretKey, now, nonce) };
}

/** What whoever signed the header of a request may learn of it; undefined for all others. */
export function readProbe(ctx: Context, request: IncomingMessage, requestId: string): Seen | undefined {
  const { config, secretKey } = ctx;
  const given = request.headers[probeHeader];
  const [, at = '', nonce = ''] =
    typeof given === 'string' ? (/^(\d{1,16})\.([\w-]{36})\./.exec(given) ?? []) : [];
  if (typeof given !== 'string' || nonce === '' || Math.abs(ctx.now() - Number(at)) > validFor)
    return undefined;
  const [wanted, got] = [signed(secretKey, Number(at), nonce), given].map((text) => Buffer.from(text));
  if (!wanted || !got || wanted.length !== got.length || !timingSafeEqual(wanted, got)) return undefined;
  const peer = request.socket.remoteAddress ?? '';
  const forwardedFor = [request.headers['x-forwarded-for'] ?? []].flat().join(', ') || null;
  return {
    nonce,
    requestId,
    host: request.headers.host ?? '',
    peer,
    trusted: createPeerAddress(config.trustProxy)(peer) === null,
    forwardedFor,
    client: createClientAddress(config.trustProxy, (address) => address)(peer, forwardedFor ?? undefined),
  };
}

function signed(secretKey: Buffer, at: number, nonce: string): string {
  return `${at}.${nonce}.${keyedHash(secretKey, 'probe', `${at}.${nonce}`)}`;
}
