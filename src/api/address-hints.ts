import type { Methods } from '../methods.ts';
import { nearest } from '../suggest.ts';

/** What was probably meant by a method that an address lacks. `route` is the address with `:name` parameters. */
export function methodHint(method: string, route: string, known: ReadonlySet<string>): string {
  const special = meant[`${method} ${route}`];
  if (special !== undefined) return special;
  const path = shown(route);
  if (method === 'PUT' && known.has('PATCH')) return `To change it: PATCH ${path} with what changes.`;
  const calls = [...known].filter((name) => name !== 'HEAD').map((name) => `${name} ${path}`);
  return `This address supports: ${calls.join(', ')}.`;
}

const toPublish = 'To publish: POST /api/publish.';

/** Calls that other services have, by what they are here. */
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

/** The route that was probably meant by an address that is none, with its methods; null where none is near. */
export function nearestRoute(path: string, methods: Methods): string | null {
  const sent = path.split('/');
  // Parameters stand for whatever was sent in their place.
  const filled = new Map(
    [...methods.keys()].map((route) => [
      route
        .split('/')
        .map((part, at) => (part.startsWith(':') ? (sent[at] ?? part) : part))
        .join('/'),
      route,
    ]),
  );
  const near = nearest(path, [...filled.keys()]);
  const last = sent.at(-1) ?? '';
  const route =
    (near === null ? undefined : filled.get(near)) ??
    [...methods.keys()].find((known) => last !== '' && known.endsWith(`/${last}`));
  if (route === undefined) return null;
  const names = [...(methods.get(route) ?? [])].filter((name) => name !== 'HEAD');
  return `${names.join(', ')} ${shown(route)}`;
}

function shown(route: string): string {
  return route.replace(/:(\w+)/g, '{$1}');
}
