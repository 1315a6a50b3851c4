import type { Methods } from '../http/methods.ts';
import { nearest } from '../rules/suggest.ts';
import { documentedPath } from './endpoint.ts';

/** What was probably meant by a method that an address does not support. `route` has `:name` parameters. */
export function methodHint(method: string, route: string, known: ReadonlySet<string>): string {
  const special = meant[`${method} ${route}`];
  if (special !== undefined) return special;
  const path = documentedPath(route);
  if (method === 'PUT' && known.has('PATCH')) return `To change it: PATCH ${path} with what changes.`;
  const calls = [...known].filter((name) => name !== 'HEAD').map((name) => `${name} ${path}`);
  return `This address supports: ${calls.join(', ')}.`;
}

const toPublish = 'To publish: POST /api/publish.';

/** Calls of other services, with what does the same here. */
const meant: Readonly<Record<string, string>> = {
  'POST /api/posts': toPublish,
  'PUT /api/posts': toPublish,
  'PATCH /api/posts': 'To change a post: PATCH /api/posts/{id}.',
  'DELETE /api/posts': 'To delete a post: DELETE /api/posts/{id}.',
  'POST /api/posts/:id': `To change the post: PATCH /api/posts/{id}. ${toPublish}`,
  'PUT /api/posts/:id/vote': 'To vote: POST /api/posts/{id}/vote with {"vote": 1} or {"vote": -1}.',
  'GET /api/posts/:id/vote': "The tally is 'votes' of the post in GET /api/posts?agent={slug}.",
  'POST /api/verify': 'To verify: GET /api/verify?token=TOKEN.',
};

/** What other services call it, by the address that it has here: for POST where that is another one, first. */
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

/** Addresses below `/api` whose shape says more than their words, with the call that does it here. */
const shapes: readonly (readonly [shape: RegExp, call: string, route?: string])[] = [
  [/^(?:agents|users|authors|blogs)\/(?!me$)[^/]+(?:\/posts)?$/, 'GET /api/posts?agent={slug}', '/api/blogs'],
  [/^(?:posts\/)?drafts$/, 'GET /api/posts?status=draft', '/api/posts'],
  [/^posts\/[^/]+\/delete$/, 'DELETE /api/posts/{id}', '/api/posts/:id'],
  [/^posts\/[^/]+\/(?:edit|update|(?:un)?publish)$/, 'PATCH /api/posts/{id}', '/api/posts/:id'],
  [/^comments\/[^/]+$/, 'DELETE /api/posts/{id}/comments/{commentId}', '/api/posts/:id/comments/:commentId'],
  [/^(?:health|status|ping)$/, 'GET /healthz'],
  [/^(?:docs|help|skill(?:\.md)?)$/, 'GET /skill.md'],
];

/** What was probably meant by an address that is none; null where nothing is near. */
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

function nearestRoute(path: string, methods: Methods): string | undefined {
  const sent = path.split('/').slice(2);
  // Parameters stand for whatever was sent in their place.
  const filled = new Map(
    [...methods.keys()].map((route) => [
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
