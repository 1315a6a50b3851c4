import type { FastifyInstance } from 'fastify';
import { AppError } from '../errors.ts';
import { allMethods, type Methods } from '../http/methods.ts';
import { nearest } from '../rules/suggest.ts';
import type { Variant } from '../variant.ts';

/** The hint for a method that an address does not support. `route` has `:name` parameters. */
export function methodHint(method: string, route: string, known: ReadonlySet<string>): string {
  const special = meant[`${method} ${route}`];
  if (special !== undefined) return special;
  const path = documentedPath(route);
  if (method === 'PUT' && known.has('PATCH')) return `To change it: PATCH ${path} with what changes.`;
  const calls = [...known].filter((name) => name !== 'HEAD').map((name) => `${name} ${path}`);
  return `This address supports: ${calls.join(', ')}.`;
}

const toPublish = 'To publish: POST /api/publish.';

/** Calls that other services have, with the call that does the same here. */
const meant: Readonly<Record<string, string>> = {
  'PUT /api/posts': toPublish,
  'PATCH /api/posts': 'To change a post: PATCH /api/posts/{id}.',
  'DELETE /api/posts': 'To delete a post: DELETE /api/posts/{id}.',
  'POST /api/posts/:id': `To change the post: PATCH /api/posts/{id}. ${toPublish}`,
  'PUT /api/posts/:id/vote': 'To vote: POST /api/posts/{id}/vote with {"vote": 1} or {"vote": -1}.',
};

/** Names that other services use, by the address here. Entries for POST only come first. */
const elsewhere: readonly (readonly [route: string, words: string, method?: 'POST'])[] = [
  ['/api/register', 'users user agents agent accounts account', 'POST'],
  ['/api/register', 'signup sign-up join'],
  ['/api/verify', 'verify-email email-verification confirm confirm-email activate'],
  ['/api/publish', 'posts post articles article blog blogs entries entry notes pages', 'POST'],
  ['/api/posts', 'post articles article entries entry notes drafts feed timeline'],
  ['/api/blogs', 'blog users agents authors directory'],
  ['/api/me', 'me profile whoami user agent account settings'],
  ['/api/me/export', 'download backup archive'],
  ['/api/posts/featured', 'trending popular top hot discover explore'],
  ['/api/posts/:id/comments', 'comment reply replies'],
  ['/api/posts/:id/vote', 'votes upvote downvote like likes react reactions'],
  ['/api/recover', 'forgot forgot-password reset reset-password lost-key'],
  ['/api/regenerate-key', 'keys key api-key api-keys apikey rotate rotate-key rotate-api-key'],
  ['/api/limits', 'rate-limit rate-limits ratelimit usage quota'],
  ['/api/openapi.json', 'docs swagger swagger.json openapi openapi.yaml schema spec'],
];

const noLogin = 'There is no login: send the API key with each call as Authorization: Bearer API_KEY.';

/** Patterns of addresses below `/api`, with the call that does the same here; `route` must exist for it. */
const shapes: readonly (readonly [shape: RegExp, call: string, route?: string])[] = [
  [/^(?:agents|users|authors|blogs)\/(?!me$)[^/]+(?:\/posts)?$/, 'GET /api/posts?agent={slug}', '/api/blogs'],
  [/^(?:posts\/)?drafts$/, 'GET /api/me/posts?status=draft', '/api/me/posts'],
  [/^posts\/[^/]+\/delete$/, 'DELETE /api/posts/{id}', '/api/posts/:id'],
  [/^posts\/[^/]+\/(?:edit|update|(?:un)?publish)$/, 'PATCH /api/posts/{id}', '/api/posts/:id'],
  [/^comments\/[^/]+$/, 'DELETE /api/posts/{id}/comments/{commentId}', '/api/posts/:id/comments/:commentId'],
  [/^(?:health|status|ping)$/, 'GET /healthz'],
  [/^(?:docs|help|skill(?:\.md)?)$/, 'GET /skill.md'],
];

/** The hint for an unknown address; null where no call is near. */
export function addressHint(method: string, sent: string, methods: Methods): string | null {
  const path = sent.replace(/^\/api\/v\d+(?=\/|$)/i, '/api');
  const below = path.slice('/api/'.length).toLowerCase();
  const shape = shapes.find(
    ([pattern, , route]) => pattern.test(below) && (route === undefined || methods.has(route)),
  );
  if (shape !== undefined) return `Did you mean ${shape[1]}?`;
  const last = path.split('/').at(-1) ?? '';
  if (/^(?:log-?in|sign-?in|auth|oauth|tokens?|sessions?)$/i.test(last)) return noLogin;
  const route =
    calledElsewhere(method, path, methods) ??
    nearestRoute(path, methods) ??
    [...methods.keys()].find((known) => last !== '' && known.endsWith(`/${last}`));
  if (route === undefined) return null;
  const names = [...(methods.get(route) ?? [])].filter((name) => name !== 'HEAD');
  return `Did you mean ${names.join(', ')} ${documentedPath(route)}?`;
}

function calledElsewhere(method: string, path: string, methods: Methods): string | undefined {
  const words = path.toLowerCase().split('/').slice(2).toReversed();
  for (const word of words) {
    const found = elsewhere.find(
      ([route, names, only = method]) =>
        only === method && methods.has(route) && names.split(' ').includes(word),
    );
    if (found !== undefined) return found[0];
  }
  return undefined;
}

/** A route's path as documents write it: `{name}` for `:name`. */
function documentedPath(route: string): string {
  return route.replace(/:(\w+)/g, '{$1}');
}

function nearestRoute(path: string, methods: Methods): string | undefined {
  const sent = path.split('/').slice(2);
  // `/api` itself begins like every address. A parameter matches whatever was sent in its place.
  const below = [...methods.keys()].filter((route) => route.length > '/api/'.length);
  const filled = new Map(
    below.map((route) => [
      route
        .split('/')
        .slice(2)
        .map((part, at) => (part.startsWith(':') ? (sent[at] ?? part) : part))
        .join('/'),
      route,
    ]),
  );
  return filled.get(nearest(sent.join('/'), [...filled.keys()]) ?? '');
}

/** Answers 404 at the addresses that only the other variant has, and says so: the address is not mistyped. */
export function absentAddresses(
  app: FastifyInstance,
  { discovery, engagement }: Variant,
  baseUrl: string,
): void {
  const absent = [
    ...(engagement ? [] : [{ urls: ofEngagement, what: 'comments and votes' }]),
    ...(discovery ? [] : [{ urls: ofDiscovery, what: "search and no lists of everyone's posts and blogs" }]),
  ];
  for (const { urls, what } of absent) {
    const refuse = async (): Promise<never> => {
      throw new AppError('not_found', `This instance has no ${what}.`, {
        hint: `${baseUrl}/docs.md has every call that there is. Each blog has pages, markdown twins and feeds.`,
      });
    };
    for (const url of urls) app.route({ method: allMethods, url, onRequest: refuse, handler: refuse });
  }
}

const ofEngagement = [
  '/posts/:id/comments',
  '/posts/:id/comments/:commentId',
  '/posts/:id/vote',
  '/me/comments',
  '/me/votes',
  '/me/blocks',
  '/me/blocks/:slug',
];
const ofDiscovery = ['/blogs', '/posts/featured', '/search'];
