import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../errors.ts';

/** The methods of each address, by its path below the instance's prefix. */
export type Methods = ReadonlyMap<string, ReadonlySet<string>>;

/** Records the methods of every route added to this instance from now on. */
export function collectMethods(app: FastifyInstance): Methods {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', (route) => {
    const known = methods.get(route.url) ?? new Set();
    for (const method of [route.method].flat()) known.add(method);
    methods.set(route.url, known);
  });
  return methods;
}

declare module 'node:http' {
  interface IncomingMessage {
    /** The method as it was sent, where it is routed as {@link refused}. */
    sentMethod?: string;
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of a route for OPTIONS: the methods of the address. */
    allow?: string;
  }
}

/** A method that every address refuses. */
const refused = 'TRACE';

/** Has a method that Node can read, such as PROPFIND, but no address has, refused as one that is routed. */
export function routeAsRefused(request: IncomingMessage): void {
  const { method = '' } = request;
  if (method === 'OPTIONS' || allMethods.includes(method)) return;
  request.sentMethod = method;
  request.method = refused;
}

/** The method of a request as it was sent. */
export function askedMethod({ raw }: FastifyRequest): string {
  return askedMethodOf(raw);
}

/** The same before it is routed. */
export function askedMethodOf({ method = '', sentMethod }: IncomingMessage): string {
  return sentMethod ?? method;
}

/** The methods that an address may be asked with, but OPTIONS. */
export const allMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'];

type Options = {
  readonly hintFor?: (method: string, url: string, known: ReadonlySet<string>) => string;
  /** Whether there is anything at the path that a request names on a route with a wildcard. */
  readonly isThere?: (path: string) => boolean;
};

/** Answers 405, or to OPTIONS 204, where an address lacks a method. Returns the methods that each has beside these. */
export function answerOtherMethods(
  app: FastifyInstance,
  methods: Methods,
  { hintFor, isThere = () => false }: Options = {},
): Methods {
  // The routes added here are recorded in `methods` too.
  const own: Methods = new Map(Array.from(methods, ([url, known]) => [url, new Set(known)]));
  for (const [url, known] of own) {
    const missing = allMethods.filter((method) => !known.has(method));
    if (missing.length === 0) continue;
    const allow = [...new Set([...known, 'OPTIONS'])].toSorted().join(', ');
    const isNone = ({ params }: FastifyRequest) =>
      url.endsWith('*') && !isThere(url.slice(0, -1) + (params as { '*': string })['*']);
    const refuse = (request: FastifyRequest): never => {
      const method = askedMethod(request);
      const hint = hintFor?.(method, url, known);
      throw new AppError(
        'method_not_allowed',
        `This address does not support ${method}; it supports ${allow}.`,
        { headers: { allow }, ...(hint === undefined ? {} : { hint }) },
      );
    };
    if (!known.has('OPTIONS'))
      app.options(url.slice(app.prefix.length), { config: { allow } }, async (request, reply) =>
        isNone(request) ? nothing(reply) : reply.code(204).header('allow', allow).send(),
      );
    app.route({
      method: missing,
      url: url.slice(app.prefix.length),
      // Before the body is read, whose type is not what is wrong.
      onRequest: async (request, reply) => (isNone(request) ? nothing(reply) : refuse(request)),
      handler: refuse,
    });
  }
  return own;
}

function nothing(reply: FastifyReply): FastifyReply {
  reply.callNotFound();
  return reply;
}
