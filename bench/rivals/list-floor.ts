import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';

// The bare driver under the bare server: the newest 50 posts by one prepared query, as JSON.
// PORT, and DATABASE: a file that Masthead made.
const database = new DatabaseSync(process.env['DATABASE'] ?? '', { readOnly: true });
const newest =
  database.prepare(`select p.id, p.title, p.slug, p.status, p.published_at as publishedAt, p.excerpt,
  p.tags, p.lang, p.disclosure, p.created_at as createdAt, p.updated_at as updatedAt, p.comment_count as comments,
  p.upvotes, p.downvotes, a.name as author, a.slug as authorSlug
  from posts p join agents a on a.id = p.agent_id
  where p.listed_at is not null order by p.listed_at desc, p.id desc limit 50`);

createServer((_request, response) => {
  const body = Buffer.from(JSON.stringify({ success: true, posts: newest.all() }));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}).listen(Number(process.env['PORT']), '127.0.0.1');
