import { transcode } from 'node:buffer';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { chooseQuickEncoding, type Encoding } from './encoding.ts';
import { isApi } from './target.ts';

/** Larger bodies are compressed off the main thread, bytes: 32 KiB take brotli about a millisecond. */
const mostCompressedSync = 32 * 1024;

/** Smaller bodies of calls are sent as they are: they fit one packet. */
export const leastCompressed = 1024;

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether answers to calls are compressed. */
    compressesCalls: boolean;
  }
}

/** How well: as what is sent many times, or as what is made for one caller. */
type Effort = 'once' | 'each';

/** A body in an encoding, which has memory of its own. */
export async function compress(
  body: Buffer,
  encoding: Exclude<Encoding, 'identity'>,
  effort: Effort,
): Promise<Buffer> {
  const { inThread, here, options } = coders[encoding];
  const set = { ...options(effort, body.length), chunkSize: chunkSizeFor(body.length) };
  return alone(await (body.length > mostCompressedSync ? inThread(body, set) : here(body, set)));
}

/**
 * Bytes that zlib gives at once: half of the body is more than texts need. V8 takes zlib's streams for used until it next
 * collects its whole heap, and what they gave with them: 16 KiB of each by default, so that it had to do that sooner.
 */
function chunkSizeFor(length: number): number {
  return Math.min(Math.max(length >> 1, 1024), 16 * 1024);
}

/** What was compressed so, in memory of its own. For what this program compressed: it may become as large as it was. */
export async function decompress(body: Buffer, encoding: Encoding): Promise<Buffer> {
  return encoding === 'identity' ? body : alone(await coders[encoding].undo(body));
}

const { constants } = zlib;

/** Bytes of a window that zlib keeps for what it looks at next (MIN_LOOKAHEAD in its deflate.h). */
const leastLookAhead = 262;

/** The smallest window, 2^n bytes, that holds so many: a larger one takes longer and gains nothing. */
function windowFor(bytes: number, least: number, most: number): number {
  return Math.min(Math.max(32 - Math.clz32(bytes - 1), least), most);
}

const coders = {
  br: {
    inThread: promisify<zlib.InputType, object, Buffer>(zlib.brotliCompress),
    here: zlib.brotliCompressSync,
    undo: promisify<zlib.InputType, Buffer>(zlib.brotliDecompress),
    options: (_effort: Effort, length: number) => ({
      params: {
        [constants.BROTLI_PARAM_QUALITY]: 5,
        [constants.BROTLI_PARAM_SIZE_HINT]: length,
        [constants.BROTLI_PARAM_LGWIN]: windowFor(
          length + 16,
          constants.BROTLI_MIN_WINDOW_BITS,
          constants.BROTLI_DEFAULT_WINDOW,
        ),
      },
    }),
  },
  zstd: {
    inThread: promisify<zlib.InputType, object, Buffer>(zlib.zstdCompress),
    here: zlib.zstdCompressSync,
    undo: promisify<zlib.InputType, Buffer>(zlib.zstdDecompress),
    options: (_effort: Effort, length: number) => ({
      // Else memory is taken, and given back, for a window of 2 MiB: three times as long for a page.
      pledgedSrcSize: length,
      params: { [constants.ZSTD_c_compressionLevel]: 3 },
    }),
  },
  gzip: {
    inThread: promisify<zlib.InputType, object, Buffer>(zlib.gzip),
    here: zlib.gzipSync,
    undo: promisify<zlib.InputType, Buffer>(zlib.gunzip),
    options: (effort: Effort, length: number) => ({
      level: effort === 'once' ? 6 : 1,
      // Half of the memory, or less, at the same length.
      windowBits: windowFor(length + leastLookAhead, 9, constants.Z_MAX_WINDOWBITS),
      memLevel: 7,
    }),
  },
} as const;

/** A copy in memory of its own: what zlib and texts give is part of a pool of 64 KiB, which would be kept with it. */
export function alone(body: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(body.length);
  body.copy(copy);
  return copy;
}

/** A text in UTF-8, in memory of its own. */
export function aloneText(text: string): Buffer {
  return transcoded(text) ?? written(text);
}

/** Texts behind one another, as {@link aloneText}. */
export function aloneTexts(texts: readonly string[]): Buffer {
  const parts = texts.map(aloneText);
  const [only] = parts;
  if (only && parts.length === 1) return only;
  const whole = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(whole, at);
  return whole;
}

/** UTF-16 of a text no longer than half of this, bytes. */
const units = Buffer.allocUnsafeSlow(64 * 1024);

/** With simdutf, in a quarter of the time that V8 needs where one character is beyond Latin-1; null if that cannot be. */
function transcoded(text: string): Buffer | null {
  if (2 * text.length > units.length) return null;
  const given = units.subarray(0, units.write(text, 'utf16le'));
  try {
    return transcode(given, 'utf16le', 'utf8');
  } catch {
    // Half of a surrogate pair, for which U+FFFD is written.
    return null;
  }
}

function written(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** Compresses what calls are answered with, where `isOn`. */
export function addCompression(app: FastifyInstance, isOn: boolean): void {
  app.decorate('compressesCalls', isOn);
  if (isOn) app.addHook('onSend', compressAnswer);
}

/** Leaves out what holds a secret, whose text its compressed length could give away (BREACH). */
async function compressAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  if (!isOfCall(request, reply) || request.method === 'OPTIONS') return payload;
  varyByEncoding(reply);
  const isBody = typeof payload === 'string' || Buffer.isBuffer(payload);
  if (!isBody || payload.length < leastCompressed || reply.hasHeader('content-encoding')) return payload;
  const encoding = chooseQuickEncoding(request.headers['accept-encoding']);
  if (encoding === 'identity' || holdsSecret(request, reply, payload)) return payload;
  const body = Buffer.isBuffer(payload) ? payload : aloneText(payload);
  return encoded(reply, encoding, await compress(body, encoding, 'each'));
}

/** Answers with a body that was compressed. */
export function encoded(reply: FastifyReply, encoding: Encoding, body: Buffer): Buffer {
  reply.header('content-encoding', encoding);
  const etag = reply.getHeader('etag');
  // A strong one would promise the same bytes (RFC 9110, 8.8.3.3).
  if (typeof etag === 'string' && etag.startsWith('"')) reply.header('etag', `W/${etag}`);
  return body;
}

function isOfCall({ originalUrl }: FastifyRequest, reply: FastifyReply): boolean {
  return (
    isApi(originalUrl) ||
    /^\/mcp(?:[/?]|$)/.test(originalUrl) ||
    String(reply.getHeader('content-type')).startsWith('application/problem+json')
  );
}

function varyByEncoding(reply: FastifyReply): void {
  const known = reply.getHeader('vary');
  reply.header('vary', known === undefined ? 'Accept-Encoding' : `${String(known)}, Accept-Encoding`);
}

/** A success of the API that no cache may store holds a key or token; a result over MCP names it. */
function holdsSecret(
  { originalUrl }: FastifyRequest,
  reply: FastifyReply,
  payload: string | Buffer,
): boolean {
  const isUnstored = String(reply.getHeader('cache-control')).includes('no-store');
  const isSecret = isApi(originalUrl) && reply.statusCode < 400 && isUnstored;
  return isSecret || secretFields.some((field) => payload.includes(field));
}

/** What results with a key or a token hold, as JSON and as JSON in a text; not so the schemas of tools. */
const secretFields = [
  'apiKey',
  ...['uploadUrl', 'previewUrl'].flatMap((name) => [`${name}":"`, `${name}\\":\\"`]),
];
