import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Static, TObject, TSchema, TUnsafe } from 'typebox';
import { callerOf, requireCaller, type Auth, type CallerOf } from '../admission/admission.ts';
import { AppError, type ErrorCode } from '../errors.ts';
import { weakEtag } from '../http/etag.ts';
import { tooMuch } from '../http/read-body.ts';
import type { Caller, Hidden } from '../services/agents/callers.ts';
import type { Batches } from '../services/lists/paging.ts';
import type { Deprecation } from '../schemas/openapi.ts';
import { withWarnings, type CheckOptions } from '../schemas/validate.ts';
import { operations, type OperationId } from '../rules/calls.ts';
import { uuidPattern } from '../rules/secrets.ts';
import { warningFields, type Warning } from '../rules/warnings.ts';
import type { Policy } from '../variant.ts';
import { createAnswerCache, sendCached } from './answer-cache.ts';
import { announcementOf } from './deprecation.ts';
import { createInputCheck } from './input-check.ts';
import type { RequestHeader } from './request-headers.ts';

export type Input = TObject | TUnsafe;
export type Sent<S extends Input | undefined> = S extends Input ? Static<S> : undefined;

/** What an operation takes, answers and promises: its documentation is made from this alone. */
export type Operation = {
  /** Names its method and path: see `operations`. */
  readonly operationId: OperationId;
  readonly summary: string;
  readonly description?: string;
  /** It ends, as the policy of /docs/changes allows. A field says so by the keyword of this name. */
  readonly deprecated?: Deprecation;
  readonly tag: 'Agents' | 'Posts' | 'Media' | 'Discovery' | 'Engagement' | 'Service';
  readonly auth: Auth;
  /** Also for an agent whose deletion is under way, or that is suspended. */
  readonly allows?: readonly Hidden[];
  /** The limit that the call counts against, unless it is `api` or `anonymous`; null: none. */
  readonly policy?: Policy | null;
  readonly body?: Input | undefined;
  /** Whether the body may be left out. */
  readonly isBodyOptional?: true;
  readonly query?: Input | undefined;
  /** Present if the body may also be `text/markdown`, with the query of such a call. */
  readonly markdown?: { readonly query: Input | undefined };
  /** The body is a picture. */
  readonly picture?: true;
  /** Success answers by status. */
  readonly answers: Readonly<Record<number, TSchema>>;
  /** Optional query parameters that the sample call names. */
  readonly sampled?: readonly string[];
  /** Request headers that the operation reads. */
  readonly requestHeaders?: readonly RequestHeader[];
  /** Headers of its successes; `Location` only of those that create something. */
  readonly answerHeaders?: readonly ('ETag' | 'Location')[];
  /** Codes that it may fail with, besides those common to all. */
  readonly errors?: readonly ErrorCode[];
};

/** An operation and its handler: all that its route and its checks are made from. */
export type Endpoint<A extends Auth, B extends Input | undefined, Q extends Input | undefined> = Omit<
  Operation,
  'auth' | 'body' | 'query' | 'markdown'
> & {
  readonly auth: A;
  readonly body?: B;
  readonly query?: Q;
  /** A query with narrower bounds, where it holds for a call: `query` allows what either does. */
  readonly narrower?: {
    readonly query: Q;
    readonly holds: (hasKey: boolean, query: Readonly<Record<string, unknown>>) => boolean;
  };
  /** Names that body and query recognise besides their own, and those that the query of a JSON body must not have. */
  readonly check?: Pick<CheckOptions, 'ignored' | 'refused' | 'spellings' | 'together'> & {
    readonly refusedBesideJson?: CheckOptions['refused'];
  };
  /** How a `text/markdown` body becomes the fields of `body`; without it only JSON is accepted. */
  readonly markdown?: {
    readonly query: Q;
    readonly fields: (source: string, query: Readonly<Record<string, unknown>>) => Record<string, unknown>;
    /** What is wrong with them as a whole, in place of that of `check`. */
    readonly together: NonNullable<CheckOptions['together']>;
  };
  readonly bodyLimit?: number;
  /** What a HEAD does where the GET changes something. */
  readonly head?: (call: Call<A, B, Q>) => Promise<Answer>;
  /**
   * The answer depends only on the address, the caller and stored data, and is cached until that changes. Where it has
   * an ETag, `If-None-Match` is answered too.
   */
  readonly cached?: true;
  readonly handle: (call: Call<A, B, Q>) => Promise<Answer>;
};

/** A call that has passed authentication and its schema. */
type Call<A extends Auth, B extends Input | undefined, Q extends Input | undefined> = {
  readonly caller: CallerOf<A>;
  readonly body: Sent<B>;
  readonly query: Sent<Q>;
  readonly params: Readonly<Record<string, string>>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
};

/** A success: the body without `success`, which every one has. */
export type Answer = {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly warnings?: readonly Warning[];
  readonly body: Readonly<Record<string, unknown>>;
  /** Entries for the list of this name, empty in `body`: read and sent a batch at a time, however many there are. */
  readonly entries?: { readonly list: string } & Batches<unknown>;
};

declare module 'fastify' {
  interface FastifyInstance {
    answers: ReturnType<typeof createAnswerCache>;
  }
  interface FastifyContextConfig {
    operation?: Operation;
  }
}

/** Largest body that has an entity tag of its own, bytes. */
const largestTagged = 1024 * 1024;

/** Adds an operation to the application. */
export function addEndpoint<
  A extends Auth,
  B extends Input | undefined = undefined,
  Q extends Input | undefined = undefined,
>(app: FastifyInstance, endpoint: Endpoint<A, B, Q>): void {
  const { method, path } = operations[endpoint.operationId];
  const check = createInputCheck(endpoint);
  const operation: Operation = endpoint;
  const announce = announcementOf(operation);
  const addRoute = (of: 'HEAD' | typeof method, handle: typeof endpoint.handle) =>
    app.route({
      method: of,
      url: path.slice('/api'.length).replace(/\{(\w+)\}/g, ':$1'),
      ...(endpoint.bodyLimit === undefined ? {} : { bodyLimit: endpoint.bodyLimit }),
      exposeHeadRoute: endpoint.head === undefined,
      ...(announce === null ? {} : { onSend: announce }),
      config: { operation },
      handler: async (request, reply) => {
        const caller = readCaller(operation, request) as CallerOf<A>;
        const whose = caller === null ? '' : `${caller.id} ${caller.version}`;
        const key = endpoint.cached ? `${whose} ${request.originalUrl}` : null;
        const cached = key === null ? undefined : app.answers.get(key);
        const isShared = caller === null;
        if (cached) return sendCached(request, reply, cached, isShared);
        const generation = app.answers.generation();
        const { body, query, warnings: inputWarnings } = check(request, caller !== null);
        const params = request.params as Record<string, string>;
        const answer = await handle({ caller, body, query, params, request, reply }).catch(
          (error: unknown) => {
            throw withWarnings(error, inputWarnings);
          },
        );
        request.storedNothing = answer.body['dryRun'] === true;
        const warnings = [...inputWarnings, ...(answer.warnings ?? [])];
        if (answer.headers) reply.headers(answer.headers);
        reply.code(answer.status ?? 200).serializer(serializerOf(reply, endpoint.answers[reply.statusCode]));
        const content = { success: true, ...warningFields(warnings), ...answer.body };
        if (answer.entries) return sendEntries(request, reply, content, answer.entries);
        const [hasTag, takesTag] = method === 'GET' ? tagUse(operation) : [false, false];
        const wantsTag = hasTag && answer.headers?.['etag'] === undefined;
        if (key === null && !takesTag && !wantsTag) {
          reply.type('application/json; charset=utf-8');
          return content;
        }
        const sent = serialize(reply, content);
        const tag = wantsTag && sent.length <= largestTagged ? { etag: weakEtag(sent) } : {};
        const made = { headers: { ...answer.headers, ...tag }, body: sent, forms: new Map() };
        if (key !== null) app.answers.put(key, made, generation);
        return sendCached(request, reply, made, isShared && key !== null);
      },
    });
  addRoute(method, endpoint.handle);
  if (endpoint.head) addRoute('HEAD', endpoint.head);
}

/** By the schema of the answer: what writes it. Made at the first answer, since all together are a tenth of a start. */
const serializers = new WeakMap<TSchema, (content: unknown) => string>();

function serializerOf(reply: FastifyReply, schema: TSchema | undefined): (content: unknown) => string {
  if (schema === undefined) return JSON.stringify;
  const known = serializers.get(schema);
  if (known) return known;
  // It writes required properties first; warnings after a long list would go unnoticed.
  const write = reply.compileSerializationSchema({ ...schema, required: [] });
  // A failure while the answer is sent is text.
  const serializer = (content: unknown) =>
    typeof content === 'string' ? content : write(content as Record<string, unknown>);
  serializers.set(schema, serializer);
  return serializer;
}

/** Whether a read has an ETag, and is answered with 304 to it. */
function tagUse({ answerHeaders = [], requestHeaders = [] }: Operation): [boolean, boolean] {
  return [answerHeaders.includes('ETag'), requestHeaders.includes('If-None-Match')];
}

function serialize(reply: FastifyReply, content: object): Buffer {
  const text = reply.serialize(content);
  if (typeof text !== 'string') throw new Error('An answer is serialized as text');
  return Buffer.from(text);
}

/** Has one batch in memory at a time: it is sent before the next is read. Throws unavailable where there is no room. */
function sendEntries(
  { raw, bodyOwner, server: { answerBudget } }: FastifyRequest,
  reply: FastifyReply,
  content: object,
  { list, first, next }: NonNullable<Answer['entries']>,
) {
  const text = serialize(reply, content).toString();
  const at = text.indexOf(`"${list}":[`) + list.length + 4;
  const end = Buffer.from(text.slice(at));
  const opening = Buffer.from(text.slice(0, at) + entriesOf(first));
  const full = answerBudget.fullFor(raw, opening, bodyOwner);
  if (full !== null) throw tooMuch(full, 'sent');
  const parts = answerBudget.inParts(raw, reply.raw, bodyOwner);
  let part: Buffer | null = opening;
  async function* pieces() {
    while (part) {
      parts.sending(part);
      yield part;
      part = null;
      await parts.sent();
      if (!(await parts.room())) return;
      const batch = await next();
      if (batch?.length) part = Buffer.from(`,${entriesOf(batch)}`);
    }
    parts.sending(end);
    yield end;
  }
  return reply.type('application/json; charset=utf-8').send(Readable.from(pieces()));
}

/** As members of an array in JSON. */
function entriesOf(batch: readonly unknown[]): string {
  return JSON.stringify(batch).slice(1, -1);
}

function readCaller({ auth, allows }: Operation, request: FastifyRequest): Caller | null {
  if (auth === 'required' || auth === 'link') return requireCaller(request, allows);
  return auth === 'optional' ? callerOf(request.credential) : null;
}

/** A path parameter that is a UUID. Throws not_found, since nothing else names anything. */
export function uuidParam(
  params: Readonly<Record<string, string>>,
  name: string,
  hint = name === 'id' ? toFindPost : 'GET /api/posts/{id}/comments lists comments with their ids.',
): string {
  const value = params[name] ?? '';
  if (uuidPattern.test(value)) return value.toLowerCase();
  throw new AppError(
    'not_found',
    `'${value.slice(0, 64)}' is not an id: ids are UUIDs, given as 'id' in answers.`,
    { hint },
  );
}

const toFindPost =
  'GET /api/me/posts lists your posts with theirs; GET /api/posts/lookup?agent=SLUG&slug=SLUG, or ?url=ADDRESS, answers any post with its.';
