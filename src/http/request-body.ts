import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '../errors.ts';
import { clientLeft } from './connection.ts';
import { freeChunk } from '../platform/memory.ts';
import { createBodyReader, smallBody, type BodyTerms } from './read-body.ts';
import { errorMessage } from '../rules/failure.ts';
import { quoted } from '../rules/text.ts';
import type { Turns } from './turns.ts';

/** Deepest nesting of a JSON body. */
const deepest = 32;
/** Most values in a JSON body, far more than any call has: 4 MiB of small ones take a second to build. */
const mostValues = 10_000;

/** A body sent as `text/markdown`. */
export class MarkdownBody {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

type Parse = (body: Buffer, request: FastifyRequest) => unknown;

declare module 'fastify' {
  interface FastifyInstance {
    /** A parser of bodies that are read from the one budget. */
    bodyParser: (parse: Parse) => (request: FastifyRequest) => Promise<unknown>;
  }
  interface FastifyRequest {
    /** Whose memory the body takes: agent id or client address; empty for the latter. */
    bodyOwner: string;
    /** Why the body may not be larger than {@link smallBody}, where the call takes larger ones of others. */
    onlySmallBody: AppError | null;
    /** Names that an object of the body has more than once: the last counts. */
    repeatedNames: readonly string[];
    /** Gives back the share of a body that was read. */
    releaseBody: (() => void) | null;
  }
}

type AddressOf = (request: IncomingMessage) => string;

/**
 * Replaces Fastify's parsers by strict ones. `addressOf` names the client where no route says whose body it is. What has
 * come in waits for its client's turn before it is parsed, since all that follows is as much work as a call without one.
 */
export function addBodyParsers(
  app: FastifyInstance,
  { addressOf, turns }: { readonly addressOf: AddressOf; readonly turns: Turns },
): void {
  const read = createBodyReader();
  app.decorateRequest('bodyOwner', '');
  app.decorateRequest('onlySmallBody', null);
  app.decorateRequest('releaseBody', null);
  app.decorateRequest('repeatedNames');
  app.decorate('bodyParser', (parse) => async (request: FastifyRequest) => {
    const { body, release } = await read(request.raw, termsOf(request, addressOf));
    request.releaseBody = release;
    const turn = turns.again(request.raw);
    if (turn) await turn;
    if (request.raw.socket.destroyed) throw clientLeft();
    if (body.length === 0) return undefined;
    try {
      refuseEncoding(request);
      return parse(body, request);
    } finally {
      freeChunk(body);
    }
  });
  // Until a call is answered there are texts made from its body, whether or not its client still waits.
  app.addHook('onSend', (request, { raw: response }, _payload, done) => {
    const release = request.releaseBody;
    // What is sent may fail, and then something else is.
    request.releaseBody = null;
    if (release) {
      if (response.destroyed) release();
      else response.once('close', release);
    }
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', app.bodyParser(parseJson));
  app.addContentTypeParser(
    'text/markdown',
    app.bodyParser((body) => new MarkdownBody(decode(body, notMarkdown))),
  );
  const parseUnknown = app.bodyParser((_body, request) => {
    throw unsupportedType(request);
  });
  app.addContentTypeParser('*', async (request: FastifyRequest) => {
    // In chunks there may be none, which is of no type.
    if (request.headers['transfer-encoding'] === undefined) throw unsupportedType(request);
    return parseUnknown(request);
  });
}

function termsOf(request: FastifyRequest, addressOf: AddressOf): BodyTerms {
  const { onlySmallBody } = request;
  const address = addressOf(request.raw);
  return {
    owner: request.bodyOwner || address,
    address,
    limit: onlySmallBody ? smallBody : request.routeOptions.bodyLimit,
    tooLarge: () =>
      onlySmallBody ??
      new AppError(
        'too_large',
        'The request body is larger than this call accepts: 4 MiB for publishing, 64 KiB elsewhere.',
      ),
  };
}

/** The refusal of a body's content type, naming those that the call accepts. */
export function unsupportedType(request: FastifyRequest): AppError {
  const { headers, routeOptions } = request;
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? '';
  const received = type === '' ? 'The body has no content type' : `The content type ${quoted(type)}`;
  const detail = type === '' ? `${received}.` : `${received} is not accepted.`;
  const ofCurl =
    type === 'application/x-www-form-urlencoded' ? " It is curl's default with -d and --data-binary." : '';
  const json = "Send JSON with the header 'Content-Type: application/json'";
  const markdown = routeOptions.config.operation?.markdown
    ? ", or markdown as it is with 'Content-Type: text/markdown'"
    : '';
  return unsupported(request, `${detail}${ofCurl}`, `${json}${markdown}.`);
}

/** The header that says that a body is compressed, or coded otherwise; null where none does. */
export function encodingHeader(headers: IncomingHttpHeaders): string | null {
  const isPlain = (value: string | undefined, plain: string) =>
    value === undefined || value.trim().toLowerCase() === plain;
  if (!isPlain(headers['content-encoding'], 'identity')) return 'Content-Encoding';
  // The parser takes chunks apart, and what else is coded it leaves as it is.
  return isPlain(headers['transfer-encoding'], 'chunked') ? null : 'Transfer-Encoding';
}

function refuseEncoding(request: FastifyRequest): void {
  const header = encodingHeader(request.headers);
  if (header !== null)
    throw unsupported(
      request,
      'A compressed body is not accepted.',
      header === 'Content-Encoding'
        ? 'Send the body as it is, without Content-Encoding.'
        : 'Send the body as it is: of Transfer-Encoding only chunked is known.',
    );
  const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1];
  if (charset !== undefined && !/^(utf-?8|us-ascii)$/i.test(charset))
    throw unsupported(
      request,
      'Only UTF-8 is accepted.',
      'Send the body in UTF-8, and leave charset out or say utf-8.',
    );
}

function unsupported({ routeOptions, method }: FastifyRequest, detail: string, hint: string): AppError {
  const accepted = routeOptions.config.operation?.markdown
    ? 'application/json, text/markdown'
    : 'application/json';
  const headers = method === 'PATCH' ? { 'accept-patch': accepted } : {};
  return new AppError('unsupported_media_type', detail, { hint, headers });
}

function parseJson(body: Buffer, request: FastifyRequest): unknown {
  const text = decode(body, notJson);
  refuseUnbounded(text);
  try {
    const parsed = JSON.parse(text) as unknown;
    request.repeatedNames = repeatedNames(text);
    return parsed;
  } catch (error) {
    const message = errorMessage(error);
    // Where the parser stopped; V8 does not always say.
    const position = /at position (\d+)/.exec(message)?.[1];
    const at = position === undefined ? null : Number(position);
    throw invalidJson(
      `The body is not valid JSON: ${explain(message, at, text)}.`,
      hintFor(message, at, text, request),
    );
  }
}

/** What is wrong, without repeating what stands there: it could be a key. */
function explain(message: string, at: number | null, text: string): string {
  if (at !== null) {
    const before = text.slice(0, at);
    return `reading stopped at line ${before.split('\n').length}, column ${at - before.lastIndexOf('\n')}`;
  }
  return message.startsWith('Unexpected end')
    ? 'it ends too early'
    : 'it contains a bare word, a single quote, a trailing comma or the like';
}

function decode(body: Buffer, fault: () => AppError): string {
  try {
    return utf8.decode(body);
  } catch {
    throw fault();
  }
}

const notJson = () =>
  invalidJson('The body is not valid UTF-8.', 'Encode the text as UTF-8 before it is sent.');

const notMarkdown = () =>
  new AppError('invalid_input', 'The request body is not valid UTF-8.', {
    errors: [{ field: 'body', message: 'is not valid UTF-8' }],
    hint: 'Save the file as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8, and send it again.',
  });

function invalidJson(detail: string, hint: string): AppError {
  return new AppError('invalid_json', detail, { hint });
}

const asFile = 'From a shell, write the body to a file and send it with --data-binary @file.';

const asFields = 'Send the fields of the call by themselves: GET /docs.md leads to those of every call.';

/** What to do, by the character at which the parser stopped. */
function hintFor(message: string, at: number | null, text: string, { routeOptions }: FastifyRequest): string {
  const takesMarkdown = routeOptions.config.operation?.markdown !== undefined;
  if (takesMarkdown && /^\s*(?:---\s|#)/.test(text))
    return "This looks like markdown: send it as it is with 'Content-Type: text/markdown'.";
  const found = at === null ? /^Unexpected token '(.)'/.exec(message)?.[1] : text[at];
  if (!found) return `Is a quote or bracket not closed, or the body cut? ${asFile}`;
  if (found === "'") return 'JSON takes double quotes around names and texts, not single ones.';
  if (at !== null && /[}\]]/.test(found) && /,\s*$/.test(text.slice(0, at)))
    return `A comma before ${found} does not belong there: remove it.`;
  if (/[\n\r\t]/.test(found)) {
    const instead = takesMarkdown ? ", or publish markdown as it is with 'Content-Type: text/markdown'" : '';
    return `A line break inside a JSON string is written \\n${instead}. ${asFile}`;
  }
  return asFile;
}

/** Refuses what is nested too deep or has too many values, by counting brackets and commas before anything is built. */
function refuseUnbounded(text: string): void {
  let depth = 0;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x22) i = endOfString(text, i);
    else if (c === 0x2c) values++;
    else if (c === 0x7b || c === 0x5b) {
      values++;
      if (++depth > deepest) throw invalidJson(`The JSON is nested deeper than ${deepest} levels.`, asFields);
    } else if (c === 0x7d || c === 0x5d) depth--;
    if (values > mostValues) throw invalidJson(`The JSON contains more than ${mostValues} values.`, asFields);
  }
}

/** Names that occur twice in one object of a text that is JSON, at most {@link mostRepeated}: the parser drops all but the last. */
function repeatedNames(text: string): string[] {
  const repeated = new Set<string>();
  const open: (Set<string> | null)[] = [];
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x7b) open.push(new Set());
    else if (c === 0x5b) open.push(null);
    else if (c === 0x7d || c === 0x5d) open.pop();
    else if (c === 0x22) {
      const end = endOfString(text, i);
      const names = open.at(-1);
      if (names && beforeColon.test(text.slice(end + 1, end + 1 + longestGap))) {
        const name = JSON.parse(text.slice(i, end + 1)) as string;
        if (names.has(name) && repeated.size < mostRepeated) repeated.add(name);
        names.add(name);
      }
      i = end;
    }
  }
  return [...repeated];
}

const mostRepeated = 20;
/** White space that may stand between a name and its colon. */
const longestGap = 100;
const beforeColon = /^\s*:/;

/** Index of the closing quote of the string that begins at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === 0x5c) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}
