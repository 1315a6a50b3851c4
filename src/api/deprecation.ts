import type { FastifyReply, FastifyRequest } from 'fastify';
import { deprecationPath, keywordsOf, type Deprecation, type JsonSchema } from '../schemas/openapi.ts';
import type { Operation } from './endpoint.ts';

type Announce = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Says in the headers of every answer what ends: the operation, or a field of its answers; and a field of the body or
 * the query where the call has sent it. Null where nothing does, as for most.
 */
export function announcementOf({ deprecated, body, query, answers }: Operation): Announce | null {
  const always = [
    deprecated ?? [],
    Object.values(answers).flatMap((answer) => within(keywordsOf(answer))),
  ].flat();
  const sent = { body: endingFields(keywordsOf(body)), query: endingFields(keywordsOf(query)) };
  if (always.length + sent.body.length + sent.query.length === 0) return null;
  return async (request, reply) => {
    const used = (['body', 'query'] as const).flatMap((place) =>
      sent[place].filter(([name]) => Object.hasOwn(Object(request[place]), name)).map(([, ending]) => ending),
    );
    const ending = [...always, ...used];
    if (ending.length > 0) reply.headers(deprecationHeaders(ending, reply.getHeader('link')));
  };
}

function endingFields({ properties = {} }: JsonSchema): (readonly [name: string, ending: Deprecation])[] {
  return Object.entries(properties).flatMap(([name, { deprecated }]) =>
    typeof deprecated === 'object' ? [[name, deprecated] as const] : [],
  );
}

/** What of a schema ends, at any depth. */
function within({ deprecated, properties = {}, items }: JsonSchema): Deprecation[] {
  const below = [...Object.values(properties), ...(items ? [items] : [])];
  return [typeof deprecated === 'object' ? deprecated : [], below.flatMap(within)].flat();
}

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` for what ends, of which the earliest counts. */
function deprecationHeaders(ending: readonly Deprecation[], link: unknown) {
  const earliest = (of: 'since' | 'sunset') => new Date(ending.map((each) => each[of]).toSorted()[0] ?? 0);
  const links = ending.map((each) => `<${deprecationPath(each)}>; rel="deprecation"; type="text/html"`);
  return {
    Deprecation: `@${earliest('since').getTime() / 1000}`,
    Sunset: earliest('sunset').toUTCString(),
    Link: [...(typeof link === 'string' ? [link] : []), ...new Set(links)].join(', '),
  };
}
