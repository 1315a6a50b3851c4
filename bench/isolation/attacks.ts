import { hostileDocuments } from '../../test/markdown-hostile-cases.ts';
import { makeLargePng } from '../../test/support/made-pictures.ts';
import { flood, head, hold, send, type Attacker, type Outcome } from './attack.ts';

type Attack = {
  readonly what: string;
  /** The variant that it is for; subdomain unless told. */
  readonly variant?: 'path';
  run(attacker: Attacker): Promise<Outcome>;
};

const mebibyte = 1024 * 1024;
const words = 'harbor ledger needle orbit quiet river signal timber window yard agent cedar'.split(' ');
/** 475 KB of ordinary markdown, as it stands in JSON. */
const long = 'Some *words* of a [long](https://example.org/) text, `code` and so on.\\n\\n'.repeat(6_600);

/** What one key, or one address, can do within its limits of an hour, by name. */
export const attacks: Readonly<Record<string, Attack>> = {
  // First, since the first have most posts.
  deletion: {
    what: 'deleting itself with all posts and undoing that, again and again',
    run: (attacker) =>
      flood(attacker, { at: 1 }, (n) =>
        n % 2 === 0 ? { method: 'DELETE', path: '/api/me' } : { method: 'POST', path: '/api/me/restore' },
      ),
  },
  'dry-runs': {
    what: '400 dry runs of 475 KB at a time',
    run: (attacker) =>
      flood(attacker, { at: 400 }, (n) => ({
        path: '/api/publish?dryRun=true',
        body: `{"title":"Dry ${attacker.round}-${n}","content":"${n}\\n\\n${long}"}`,
      })),
  },
  'slow-markdown': {
    what: 'publishing pathological documents of 500 KiB, 16 at a time',
    run: (attacker) => {
      const documents = [...hostileDocuments(500 * 1024).values()];
      return flood(attacker, { at: 16, most: 600 }, (n) => ({
        path: '/api/publish',
        json: {
          slug: `slow-${n % 20}`,
          title: 'Slow',
          content: documents[(n + attacker.round * 37) % documents.length],
          status: 'published',
        },
      }));
    },
  },
  'large-posts': {
    what: 'publishing posts of 475 KB, 16 at a time',
    run: (attacker) =>
      flood(attacker, { at: 16, most: 600 }, (n) => ({
        path: '/api/publish',
        body: `{"slug":"large-${n % 20}","title":"Large","status":"published","content":"${attacker.round} ${n}\\n\\n${long}"}`,
      })),
  },
  searches: {
    what: '110 heavy searches at a time, without a key',
    run: (attacker) =>
      flood(attacker, { at: 110 }, (n) => ({
        path: `/api/search?q=${encodeURIComponent(heavy(n + attacker.round * 1_000))}`,
        keyed: false,
      })),
  },
  pipelining: {
    what: '15,000 pipelined requests for a page, again and again',
    run: (attacker) => {
      const line = `GET / HTTP/1.1\r\nHost: localhost:${attacker.port}\r\n\r\n`;
      return hold(attacker, 4, line.repeat(15_000), { reading: true });
    },
  },
  'pipelined-calls': {
    what: '6,000 pipelined API calls over 4 connections',
    run: (attacker) =>
      hold(attacker, 4, head(attacker, 'GET /api/posts?limit=50').repeat(1_500), { reading: true }),
  },
  bodies: {
    what: '1,000 unfinished bodies of 4 MiB',
    run: (attacker) => {
      const start = head(
        attacker,
        'POST /api/publish',
        'Content-Type: application/json',
        `Content-Length: ${4 * mebibyte}`,
      );
      return hold(attacker, 1_000, start + 'x'.repeat(mebibyte / 2), { reading: true });
    },
  },
  'tiny-chunks': {
    what: '64 bodies in 300,000 chunks of a byte',
    run: (attacker) => {
      const start = head(
        attacker,
        'POST /api/publish',
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      );
      return hold(attacker, 64, start + '1\r\nx\r\n'.repeat(300_000), { reading: true });
    },
  },
  'empty-lines': {
    what: '4 MiB of empty lines over each of 16 connections',
    run: (attacker) => hold(attacker, 16, '\r\n'.repeat(2 * mebibyte), { reading: true }),
  },
  'slow-readers': {
    what: '200 connections that ask for lists of 1,000 and read nothing',
    run: (attacker) =>
      hold(attacker, 200, head(attacker, 'GET /api/posts?limit=1000').repeat(20), { reading: false }),
  },
  exports: {
    what: 'exports, 8 at a time',
    run: (attacker) => flood(attacker, { at: 8 }, () => ({ path: '/api/me/export' })),
  },
  lists: {
    what: 'lists of 1,000 and far pages, 32 at a time',
    run: (attacker) =>
      flood(attacker, { at: 32 }, (n) => ({
        path:
          n % 2 === 0
            ? `/api/posts?limit=1000&since=2020-01-01T00:00:00.${String(n % 1000).padStart(3, '0')}Z`
            : `/api/posts?limit=100&offset=${(n * 97) % 10_000}&sort=oldest&tag=river`,
        keyed: n % 2 === 0,
      })),
  },
  comments: {
    what: 'comments of 2,000 characters on one post, 32 at a time',
    run: (attacker) =>
      flood(attacker, { at: 32 }, (n) => ({
        path: `/api/posts/${attacker.posts[attacker.round]?.id}/comments`,
        json: { content: `${n} ${'*word* '.repeat(280)}` },
      })),
  },
  votes: {
    what: 'votes, up and down, 32 at a time',
    run: (attacker) =>
      flood(attacker, { at: 32 }, (n) => ({
        path: `/api/posts/${attacker.posts[n % attacker.posts.length]?.id}/vote`,
        json: { vote: n % 2 === 0 ? 1 : -1 },
      })),
  },
  profile: {
    what: 'PATCH /api/me, name and bio, 32 at a time',
    run: (attacker) =>
      flood(attacker, { at: 32 }, (n) => ({
        method: 'PATCH',
        path: '/api/me',
        json: { name: `Name ${n}`, bio: `Bio ${n}` },
      })),
  },
  sitemaps: {
    what: 'a change, then sitemap, OPML and feed, 8 at a time',
    run: (attacker) =>
      flood(attacker, { at: 8 }, (n) =>
        n % 16 === 0
          ? {
              path: '/api/publish',
              json: { slug: 'again', title: `T ${n}`, content: `${n}`, status: 'published' },
            }
          : {
              path: ['/sitemap.xml', '/blogs.opml', '/feed.xml', '/sitemap-1.xml', '/blogs'][n % 5] ?? '/',
              keyed: false,
            },
      ),
  },
  previews: {
    what: 'the preview of a draft with 30,000 links, 32 at a time',
    async run(attacker) {
      const content = Array.from({ length: 30_000 }, (_, n) => `[a](b${n})`).join(' ');
      const draft = { title: 'Links', content, status: 'draft' };
      const id = String((await send(attacker, { path: '/api/publish', json: draft })).at('post.id'));
      const made = await send(attacker, { path: `/api/posts/${id}/preview`, json: {} });
      const path = new URL(String(made.at('previewUrl'))).pathname;
      return flood(attacker, { at: 32 }, () => ({ path, keyed: false }));
    },
  },
  idle: {
    what: '5,000 idle connections',
    run: (attacker) => hold(attacker, 5_000, '', { reading: true }),
  },
  mcp: {
    what: 'MCP calls, 64 at a time',
    run: (attacker) =>
      flood(attacker, { at: 64 }, (n) => ({
        path: '/mcp',
        headers: { accept: 'application/json, text/event-stream' },
        json: {
          jsonrpc: '2.0',
          id: n,
          method: 'tools/call',
          params: [
            { name: 'list_posts', arguments: { limit: 100 } },
            { name: 'search', arguments: { query: `${words[n % words.length]} river` } },
            { name: 'me', arguments: {} },
          ][n % 3],
        },
      })),
  },
  uploads: {
    what: 'uploads of pictures of 10 MiB, 16 at a time',
    run: (attacker) => {
      const picture = makeLargePng(10 * mebibyte - 2_000);
      return flood(attacker, { at: 16 }, () => ({
        path: '/api/media',
        body: picture,
        headers: { 'content-type': 'image/png' },
      }));
    },
  },
  registrations: {
    what: 'registrations under one name, 16 at a time, from a /48',
    variant: 'path',
    run: (attacker) =>
      flood(attacker, { at: 16, most: 3_000 }, (n) => ({
        path: '/api/register',
        keyed: false,
        headers: { 'x-forwarded-for': `2001:db8:${attacker.round}:${n.toString(16)}::1` },
        json: { name: 'Claude', email: `claude-${attacker.round}-${n}@example.org` },
      })),
  },
};

/** Queries that match much and can be ranked or excluded only by reading it. */
function heavy(n: number): string {
  const word = words[n % words.length] ?? '';
  const other = words[(n * 7 + 3) % words.length] ?? '';
  const start = word.slice(0, 3);
  return (
    [
      `${start}* -${start}*`,
      `${word}* -${word}*`,
      `${start}* ${other.slice(0, 3)}* -${word}x${n}`,
      `${word} ${other} -nothing${n}`,
      `"${word} ${other}" ${start}*`,
      `${word.slice(0, 1)}* -${other.slice(0, 1)}*`,
    ][n % 6] ?? word
  );
}
