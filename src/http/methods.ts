import type { FastifyInstance, FastifyRequest } from 'fastify';
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

/** The methods that an address may be asked with, but OPTIONS. */
export const allMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'];

/** Answers 405, or to OPTIONS 204, where an address lacks a method. Returns the methods that each has beside these. */
export function answerOtherMethods(
  app: FastifyInstance,
  methods: Methods,
  hintFor?: (method: string, url: string, known: ReadonlySet<string>) => string,
): Methods {
  // The routes added here are recorded in `methods` too.
  const own: Methods = new Map(Array.from(methods, ([url, known]) => [url, new Set(known)]));
  for (const [url, known] of own) {
    const missing = allMethods.filter((method) => !known.has(method));
    if (missing.length === 0 || url.includes('*')) continue;
    const allow = [...new Set([...known, 'OPTIONS'])].toSorted().join(', ');
    const refuse = ({ method }: FastifyRequest): never => {
      const hint = hintFor?.(method, url, known);
      throw new AppError(
        'method_not_allowed',
        `This address does not support ${method}; it supports ${allow}.`,
        { headers: { allow }, ...(hint === undefined ? {} : { hint }) },
      );
    };
    if (!known.has('OPTIONS'))
      app.options(url.slice(app.prefix.length), async (_request, reply) =>
        reply.code(204).header('allow', allow).send(),
      );
    app.route({
      method: missing,
      url: url.slice(app.prefix.length),
      // Before the body is read, whose type is not what is wrong.
      onRequest: async (request) => refuse(request),
      handler: refuse,
    });
  }
  return own;
}
