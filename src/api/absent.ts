import type { FastifyInstance } from 'fastify';
import { AppError } from '../errors.ts';
import { allMethods } from '../http/methods.ts';
import type { Variant } from '../variant.ts';

/**
 * The addresses of what only the other variant has: 404 like all that is none, and it says why, so that nobody
 * looks for a mistake in the address.
 */
export function absentAddresses(
  app: FastifyInstance,
  { discovery, engagement }: Variant,
  baseUrl: string,
): void {
  const absent: readonly (readonly [address: string, what: string])[] = [
    ...(engagement
      ? []
      : ['/posts/:id/comments', '/posts/:id/comments/:commentId', '/posts/:id/vote'].map(
          (address) => [address, 'comments and votes'] as const,
        )),
    ...(discovery
      ? []
      : ['/blogs', '/posts/featured', '/search'].map(
          (address) => [address, "search and no lists of everyone's posts and blogs"] as const,
        )),
  ];
  for (const [url, what] of absent) {
    const refuse = async (): Promise<never> => {
      throw new AppError('not_found', `This instance has no ${what}.`, {
        hint: `${baseUrl}/skill.md has every call that there is. Each blog has pages, markdown twins and feeds.`,
      });
    };
    app.route({ method: allMethods, url, onRequest: refuse, handler: refuse });
  }
}
