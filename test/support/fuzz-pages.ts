import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { chance, encoded, fieldsOf, text } from './fuzz-values.ts';
import type { Answer } from './http.ts';

type FuzzOptions = {
  /** Of the base and of blogs, with ports. */
  readonly hosts: readonly string[];
  /** Slugs of blogs and posts that exist. */
  readonly slugs: readonly string[];
  /** Requests in all: rounded up to whole batches. */
  readonly requests: number;
  readonly seed: number;
  readonly send: (
    method: string,
    path: string,
    options: {
      readonly host: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body?: string;
    },
  ) => Promise<Answer>;
};

const batch = 16;
const known = [
  '',
  'index.md',
  'blogs',
  'blogs.opml',
  'search',
  'docs',
  'docs.md',
  'skill.md',
  'llms.txt',
  'robots.txt',
  'sitemap.xml',
  'sitemap-1.xml',
  'feed.xml',
  'rss.xml',
  'feed.json',
  'favicon.ico',
  'favicon.svg',
  'verify',
  'healthz',
  'readyz',
  'api',
  'mcp',
  'tags',
  'problems',
  'media',
  '-',
  '.well-known',
  'security.txt',
  'agent-skills',
  'index.json',
  'api-catalog',
  'invalid_input',
  'archive',
  'style.css',
];
const methods = ['GET', 'GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'PUT', 'DELETE', 'PROPFIND', 'LOCK'];
/** What the server does not know may be answered 501. */
const unknownMethods = ['PROPFIND', 'LOCK'];
const headerNames = [
  'accept',
  'accept-encoding',
  'accept-language',
  'if-none-match',
  'if-modified-since',
  'if-match',
  'range',
  'cookie',
  'content-type',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'forwarded',
  'origin',
  'referer',
  'authorization',
  'x-request-id',
  'prefer',
];

/**
 * Sends generated requests for pages, feeds and files: addresses that exist, their neighbours, and what is none, on
 * known and unknown hosts. Rejects at the first 5xx; how many of each status there were.
 */
export async function fuzzPages(options: FuzzOptions): Promise<Map<number, number>> {
  const seen = new Map<number, number>();
  const requests = fc.array(pageRequest(options), { minLength: batch, maxLength: batch });
  await fc.assert(
    fc.asyncProperty(requests, async (sent) => {
      await Promise.all(
        sent.map(async ({ method, path, host, headers, body }) => {
          const answer = await options.send(method, path, {
            host,
            headers,
            ...(body === undefined ? {} : { body }),
          });
          const isAllowed = answer.status < 500 || (answer.status === 501 && unknownMethods.includes(method));
          assert.ok(isAllowed, `${answer.status} ${answer.text.slice(0, 500)}`);
          seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
        }),
      );
    }),
    { seed: options.seed, numRuns: Math.ceil(options.requests / batch), endOnFailure: true },
  );
  return seen;
}

function pageRequest({ hosts, slugs }: FuzzOptions) {
  const segment = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...known, ...slugs, ...slugs.map((slug) => `${slug}.md`)) },
    { weight: 2, arbitrary: text.map(encoded) },
    // Whatever may stand in a request target at all.
    {
      weight: 1,
      arbitrary: fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map(letter), maxLength: 30 }),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom('%', '%00', '%ff', '%c0%af', '..', '.', '%2e%2e', '%2f', 'x'.repeat(9_000)),
    },
  );
  const query = fieldsOf<string>(
    ['q', 'token', 'cursor', 'sort', 'page', 'limit', 'before', 'tag', 'lang'].map((name) => [
      name,
      8,
      fc.oneof(text, fc.constantFrom('1', '-1', '0', '999999999999', 'word', '"a b" -c', 'newest')),
    ]),
  ).map((fields) => Object.entries(fields).map(([name, value]) => `${name}=${encoded(value)}`));
  const path = fc
    .tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), query)
    .map(([segments, asked]) => `/${segments.join('/')}${asked.length > 0 ? `?${asked.join('&')}` : ''}`);
  const host = fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...hosts) },
    {
      weight: 1,
      arbitrary: fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map(letter), maxLength: 30 }),
    },
  );
  const value = fc.oneof(
    fc.constantFrom(
      'text/markdown',
      '*/*;q=0',
      'br;q=1, gzip',
      'identity;q=0',
      '*',
      'W/"1"',
      'bytes=0-1',
      '127.0.0.1',
    ),
    fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map(letter), maxLength: 80 }),
  );
  return fc.record({
    method: fc.constantFrom(...methods),
    path,
    host,
    headers: fieldsOf(headerNames.map((name) => [name, 8, value])),
    body: chance(8, text),
  });
}

function letter(code: number): string {
  return String.fromCodePoint(code);
}
