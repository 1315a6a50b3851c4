import type { Answer } from './http.ts';
import type { CallOptions, Instance } from './instance.ts';

/** Asks for an absolute address of the instance, at whatever host it is. GET unless told. */
export function open(
  site: Instance,
  url: string,
  { method = 'GET', ...options }: CallOptions & { readonly method?: string } = {},
): Promise<Answer> {
  const { host, pathname, search } = new URL(url);
  return site.call(method, pathname + search, { host, ...options });
}

/** Every address of this instance that an answer names, in its text or its headers, without fragments. */
export function addressesIn(site: Instance, answer: Answer, at: string): Set<string> {
  const type = String(answer.headers['content-type']).split(';')[0] ?? '';
  const found = [
    ...(finders[type] ?? []).flatMap((finder) => all(answer.text, finder)),
    ...all(String(answer.headers['link'] ?? ''), /<([^>]*)>/g),
  ];
  const { host } = new URL(site.baseUrl);
  const urls = found.map((address) => new URL(address.replaceAll('&amp;', '&'), at));
  const own = urls.filter((url) => url.host === host || url.host.endsWith(`.${host}`));
  return new Set(own.map((url) => url.href.replace(/#.*$/, '')));
}

const inMarkdown = [/\]\((https?:[^)]*)\)/g, /<(https?:[^>]*)>/g, /^(?:Sitemap|Canonical): (.*)$/gm];
const inXml = [
  /<(?:loc|link|uri|url|icon|logo|comments)>(http[^<]*)</g,
  / (?:href|xmlUrl|htmlUrl|domain|scheme)="([^"]*)"/g,
];
const inJson = [/"(https?:[^"\\]*)"/g];

/** Where each media type names addresses. */
const finders: Readonly<Record<string, readonly RegExp[]>> = {
  'text/html': [/ (?:href|src|action)="([^"]*)"/g, /<meta property="og:(?:url|image)" content="([^"]*)"/g],
  'text/markdown': inMarkdown,
  'text/plain': inMarkdown,
  'application/atom+xml': inXml,
  'application/rss+xml': inXml,
  'application/xml': inXml,
  'text/x-opml': inXml,
  'application/feed+json': inJson,
  // An anchor names what the links are of, which need not be there itself.
  'application/linkset+json': [/"href":\s*"([^"]*)"/g],
};

function all(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, address = '']) => address);
}
