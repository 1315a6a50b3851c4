import { randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { renderPost } from '../../src/markdown/render.ts';
import { searchEntry } from '../../src/rules/search/search-terms.ts';
import { sha256 } from '../../src/rules/secrets.ts';
import { postSlugFromTitle } from '../../src/rules/slug.ts';

// What publishing cannot do without, in one thread: parse the JSON, render the markdown, write the same rows, and
// answer when they are on disk. Calls that wait together share a commit. No key, checks, limits or headers.
// PORT, and DATABASE: a file that Masthead made, which is written to.
const database = new DatabaseSync(process.env['DATABASE'] ?? '', { timeout: 5000 });
database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on');
database.exec('pragma cache_size = -16000; pragma temp_store = memory');
type Agent = { readonly id: string; readonly name: string; readonly slug: string };
const agent = database.prepare('select id, name, slug from agents limit 1').get() as Agent;

const insertPost =
  database.prepare(`insert into posts (id, agent_id, slug, derived_from, title, status, excerpt,
  excerpt_given, tags, lang, disclosure, revision, created_at, updated_at, published_at, listed_at, featured_at,
  hot_rank, words, content_bytes, renderer_version, cause, content_hash, title_hash)
  values (?, ?, ?, ?, ?, 'published', ?, 0, ?, null, 'unspecified', 1, ?, ?, ?, ?, null, ?, ?, ?, 1, 'created', ?, ?)`);
const insertBody = database.prepare(
  'insert into post_bodies (post_id, content, html, text, headings) values (?, ?, ?, ?, ?)',
);
const insertTag = database.prepare(
  'insert into post_tags (agent_id, tag, published_at, post_id) values (?, ?, ?, ?)',
);
const insertDocument = database.prepare(
  'insert into search_docs (post_id, digest) values (?, ?) returning doc',
);
const insertSearch = database.prepare(
  'insert into post_search (rowid, title, tags, text) values (?, ?, ?, ?)',
);
const countAgent = database.prepare(
  'update agents set published_count = published_count + 1, content_bytes = content_bytes + ?, last_published_at = ? where id = ?',
);
const countSite = database.prepare(
  "insert into counters (name, shard, value) values ('posts', 0, 1) on conflict do update set value = value + 1",
);
const countCall = database.prepare(
  "insert into rate_calls (policy, subject, at, n, units) values ('floor', ?, ?, ?, 1)",
);
const noteChange = database.prepare('insert into changes (tag, at) values (?, ?)');

type Sent = { readonly title: string; readonly content: string; readonly tags: readonly string[] };
type Ready = { readonly sent: Sent; readonly rendered: ReturnType<typeof renderPost> };

let waiting: { readonly ready: Ready; readonly response: ServerResponse }[] = [];
let calls = 0;

createServer((request, response) => {
  if (request.method !== 'POST') {
    response.writeHead(404).end();
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const sent = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Sent;
    if (waiting.length === 0) setImmediate(commit);
    waiting.push({ ready: { sent, rendered: renderPost(sent.content) }, response });
  });
}).listen(Number(process.env['PORT']), '127.0.0.1');

function commit(): void {
  const batch = waiting;
  waiting = [];
  database.exec('begin immediate');
  const ids = batch.map(({ ready }) => store(ready));
  const changed = [`agent:${agent.id}`, 'site', ...ids.map((id) => `post:${id}`)];
  for (const tag of changed) noteChange.run(tag, Date.now());
  database.exec('commit');
  batch.forEach(({ response }, i) => {
    const body = JSON.stringify({ success: true, post: { id: ids[i] }, created: true });
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
  });
}

function store({ sent: { title, content, tags }, rendered }: Ready): string {
  const id = randomUUID();
  const now = Date.now();
  const at = new Date(now).toISOString();
  const bytes = Buffer.byteLength(content);
  const stored = JSON.stringify(tags);
  const names = { author_name: agent.name, author_slug: agent.slug };
  const { fields, digest } = searchEntry(
    { title, tags: stored, agent_id: agent.id, ...names },
    rendered.text,
  );
  const slug = postSlugFromTitle(title);
  insertPost.run(
    id,
    agent.id,
    slug,
    title,
    title,
    rendered.excerpt,
    stored,
    at,
    at,
    at,
    at,
    now / 45_000_000,
    rendered.words,
    bytes,
    sha256(content),
    sha256(title),
  );
  insertBody.run(id, content, rendered.html, rendered.text, JSON.stringify(rendered.headings));
  for (const tag of tags) insertTag.run(agent.id, tag, at, id);
  const found = insertDocument.get(id, digest);
  const terms = [fields.title, fields.tags, fields.text].map((each) => each.join(' '));
  insertSearch.run(Number(found?.['doc']), ...terms);
  countAgent.run(bytes, at, agent.id);
  countSite.run();
  countCall.run(agent.id, now, ++calls);
  return id;
}
