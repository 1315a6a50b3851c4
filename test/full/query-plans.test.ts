import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { Client } from 'pg';
import type { Engine } from '../../src/db/database.ts';
import type { Write, Ticket } from '../../src/db/write.ts';
import { revive } from '../../src/db/write.ts';
import { Session } from '../../src/db/postgres/postgres-session.ts';
import { createSqliteWriter } from '../../src/db/sqlite/sqlite-writer.ts';
import { readStoredMetrics } from '../../src/services/upkeep/stored-metrics.ts';
import { sweep } from '../../src/services/upkeep/maintenance.ts';
import { allowsCertificate } from '../../src/services/agents/certificates.ts';
import { eraseDue } from '../../src/services/agents/self-deletion.ts';
import { indexRenamed } from '../../src/services/posts/renamed.ts';
import { purgeTrash } from '../../src/services/trash/trash.ts';
import { restoreAgent, suspendAgent } from '../../src/services/community/moderation.ts';
import { writes } from '../../src/services/writes.ts';
import { countCall } from '../../src/services/limits/rate-window.ts';
import { blogOrderNames } from '../../src/rules/orders.ts';
import { startInstance, type Instance, type TestAgent } from '../support/instance.ts';
import { openSqlite } from '../support/sqlite-file.ts';

/** Small whatever the service holds: a row for each process, fact, or shard of a counter. */
const small = ['meta', 'counters', 'processes', 'migrations', 'sqlite_sequence'];

/** Sorted by a count, which no index has: the tags of one blog, as many as its quota of posts allows. */
const sorted = /^select "tag", count\(\*\) as "posts" from "post_tags" where "agent_id" = /;

test('every query of the service finds its rows by an index (sqlite)', { timeout: 100_000 }, async () => {
  const mocked = mock.method(DatabaseSync.prototype, 'prepare');
  const instance = await startInstance({ engine: 'sqlite', env: manyCalls });
  // Without the schema's steps, which may read whole tables.
  mocked.mock.resetCalls();
  await instance.restart();
  const file = join(instance.dataDir, 'masthead.db');
  const database = openSqlite(file, { readOnly: true });
  let closeWriter: () => Promise<void> = async () => undefined;
  try {
    const agents = await twoAgents(instance);
    closeWriter = writeHere(instance.ctx().engine, file, instance);
    await live(instance, agents);
    const texts = new Set(mocked.mock.calls.map((call) => call.arguments[0]));
    mocked.mock.restore();
    const faults: string[] = [];
    const asked = [...texts].filter((text) => /^(?:select|with|insert|update|delete)\b/.test(text));
    assert.ok(asked.length > 100, `only ${asked.length} queries were seen`);
    for (const text of asked) {
      if (/\blimit \?(?! \+ 0)/.test(text)) faults.push(`planned anew at each run\n    ${text}`);
      const plan = database.prepare(`explain query plan ${text}`).all();
      for (const { detail } of plan) {
        const fault = sqliteFault(String(detail), text);
        if (fault !== null) faults.push(`${fault}\n    ${text}`);
      }
    }
    assert.deepEqual(faults, []);
  } finally {
    mocked.mock.restore();
    database.close();
    await closeWriter();
    await instance.close();
  }
});

function sqliteFault(detail: string, text: string): string | null {
  const [, table = '', how = ''] = /^SCAN (\S+)(.*)/.exec(detail) ?? [];
  // Rows of a subquery or of constants; what a full-text index gives.
  const isDerived =
    table.startsWith('(') ||
    text.includes(`) as ${table}\n`) ||
    text.includes(`) as "${table}"`) ||
    /CONSTANT ROW|VALUES CLAUSE|VIRTUAL TABLE INDEX/.test(detail);
  if (table !== '' && !isDerived && !small.includes(table)) {
    // In the order of an index, or of the row number that is its key, and no further than it takes.
    if (!/\blimit\b/.test(text)) return `${detail} to its end`;
    if (how === '' && !text.includes('order by "seq"')) return detail;
  }
  return detail.endsWith('USE TEMP B-TREE FOR ORDER BY') && isPage(text) ? detail : null;
}

/** Operations run on a connection of this thread, where they can be watched; returns how to close it. */
function writeHere(engine: Engine, file: string, instance: Instance): () => Promise<void> {
  const { config, secretKey } = instance.ctx();
  const nothing = { next: () => undefined, count: () => 0 };
  const writer = createSqliteWriter(file, { config, secretKey }, writes, countCall, nothing);
  let last: Promise<unknown> = Promise.resolve();
  async function write<I, O>({ name }: Write<I, O>, input: I, ticket?: Ticket): Promise<O> {
    const uncounted = ticket && ticket.rate === null ? ticket : undefined;
    const request = { name, input, now: instance.clock.now(), ticket: uncounted };
    const written = last.then(() => writer.runBatch({ id: 1, request }, () => performance.now()));
    last = written;
    const [[, outcome] = []] = await written;
    assert.ok(outcome);
    if (uncounted && outcome.rate) uncounted.rate = outcome.rate;
    if (outcome.error) throw revive(outcome.error);
    return outcome.value as O;
  }
  engine.write = write;
  return () => writer.close();
}

test('every query of the service finds its rows by an index (postgres)', { timeout: 100_000 }, async () => {
  const mocked = mock.method(Session.prototype, 'executeQuery');
  const sent = mock.method(Session.prototype, 'send');
  const instance = await startInstance({ engine: 'postgres', env: manyCalls });
  mocked.mock.resetCalls();
  await instance.restart();
  const { database } = instance.ctx().config;
  assert.equal(database.engine, 'postgres');
  const client = new Client({ connectionString: database.urls[0] });
  try {
    await live(instance, await twoAgents(instance));
    const queries = new Map([
      ...mocked.mock.calls.map(({ arguments: [query] }) => [query.sql, query.parameters] as const),
      ...sent.mock.calls.map(({ arguments: [text, values = []] }) => [text, values] as const),
    ]);
    mocked.mock.restore();
    await client.connect();
    // Tables are small here, so that reading all of one is the quickest: what is left of it with this is needed.
    await client.query('set enable_seqscan = off; set enable_sort = off; set enable_bitmapscan = on');
    const faults: string[] = [];
    const asked = [...queries].filter(
      ([text]) => /^(?:select|with|insert|update|delete)\b/.test(text) && !/pg_|current_setting/.test(text),
    );
    assert.ok(asked.length > 100, `only ${asked.length} queries were seen`);
    for (const [text, values] of asked) {
      const { rows } = await client.query({ text: `explain (format json) ${text}`, values: [...values] });
      for (const fault of postgresFaults(rows[0]['QUERY PLAN'][0].Plan, text))
        faults.push(`${fault}\n    ${text}`);
    }
    assert.deepEqual(faults, []);
  } finally {
    mocked.mock.restore();
    await client.end();
    await instance.close();
  }
});

/** Whether few rows of many are asked for, so that sorting them all would be too much. */
function isPage(text: string): boolean {
  return /\blimit\b/.test(text) && !sorted.test(text);
}

type Plan = { 'Node Type': string; 'Relation Name'?: string; Plans?: Plan[] };

function postgresFaults(plan: Plan, text: string): string[] {
  const below = (plan.Plans ?? []).flatMap((part) => postgresFaults(part, text));
  const table = plan['Relation Name'] ?? '';
  if (plan['Node Type'] === 'Seq Scan' && !small.includes(table)) return [`Seq Scan on ${table}`, ...below];
  if (plan['Node Type'] === 'Sort' && isPage(text)) return ['Sort', ...below];
  return below;
}

const manyCalls = { LIMIT_PUBLISH: '1000', LIMIT_API: '100000', LIMIT_ANONYMOUS: '100000' };

async function twoAgents(instance: Instance): Promise<readonly [TestAgent, TestAgent]> {
  return [await instance.agent('Ada'), await instance.agent('Grace')];
}

/** Everything that agents, readers and operators do. */
async function live(instance: Instance, [ada, grace]: readonly [TestAgent, TestAgent]): Promise<void> {
  const posts: string[] = [];
  for (let n = 0; n < 4; n++) {
    const body = {
      title: `Post ${n}`,
      content: `# Text\n\nof ${n}`,
      tags: ['a', `t${n}`],
      status: 'published',
    };
    const answer = await instance.call('POST', '/api/publish', { key: ada.key, body });
    assert.equal(answer.status, 201, answer.text);
    posts.push(String(answer.at('post.id')));
  }
  const [id = '', other = '', third = ''] = posts;
  await instance.call('POST', '/api/publish', {
    key: grace.key,
    body: { title: 'Draft', content: 'x', slug: 'draft' },
  });
  await ofPosts(instance, ada, id, other);
  await ofEngagement(instance, ada, grace, other);
  await ofTrash(instance, ada, third);
  await ofLists(instance, ada.key);
  await ofReaders(instance, other);
  await ofKeys(instance, grace);
  await ofOperators(instance);
  await instance.call('DELETE', '/api/me', { key: ada.key });
  await instance.call('POST', '/api/me/restore', { key: ada.key });
  await instance.call('DELETE', `/api/me?confirm=${ada.slug}`, { key: ada.key });
}

async function ofPosts(instance: Instance, { key }: TestAgent, id: string, other: string): Promise<void> {
  await instance.call('PATCH', `/api/posts/${id}`, {
    key,
    body: { slug: 'renamed', title: 'New', content: 'new' },
  });
  await instance.call('POST', '/api/publish?dryRun=true', { key, body: { title: 'Post 1', content: 'x' } });
  await instance.call('POST', '/api/publish', { key, body: { slug: 'post-1', status: 'draft' } });
  await instance.call('POST', '/api/publish', { key, body: { slug: 'post-1', status: 'published' } });
  await instance.call('POST', '/api/publish', {
    key,
    body: { title: 'A leak', content: `my key: ${key}` },
  });
  for (const who of [undefined, key])
    await instance.call('GET', `/api/posts/${other}`, who === undefined ? {} : { key: who });
}

async function ofTrash(instance: Instance, { key }: TestAgent, id: string): Promise<void> {
  const remove = (query = '') => instance.call('DELETE', `/api/posts/${id}${query}`, { key });
  await instance.call('PATCH', `/api/posts/${id}`, { key, body: { slug: 'trashed' } });
  await remove();
  await instance.call('GET', `/api/posts/${id}`, { key });
  for (const slug of ['trashed', 'post-2'])
    await instance.call('GET', `/api/posts/lookup?agent=ada&slug=${slug}`, { key });
  await pagesOf(instance, '/api/me/trash?limit=1', key);
  await instance.call('POST', `/api/posts/${id}/restore`, { key });
  await remove();
  await instance.ctx().engine.write(purgeTrash, null);
  await instance.call('DELETE', '/api/me/trash', { key });
  await eraseDue(instance.ctx(), async () => true);
}

async function ofEngagement(instance: Instance, ada: TestAgent, grace: TestAgent, id: string): Promise<void> {
  const comments: string[] = [];
  for (let n = 0; n < 3; n++) {
    const headers = { 'idempotency-key': `key-${n}` };
    const body = { content: `Comment ${n}` };
    const answer = await instance.call('POST', `/api/posts/${id}/comments`, {
      key: grace.key,
      body,
      headers,
    });
    assert.equal(answer.status, 201, answer.text);
    comments.push(String(answer.at('comment.id')));
  }
  await instance.call('DELETE', `/api/posts/${id}/comments/${comments[0]}`, { key: ada.key });
  for (const value of [1, -1]) {
    for (const { key } of [ada, grace])
      await instance.call('POST', `/api/posts/${id}/vote`, { key, body: { vote: value } });
  }
  await instance.call('DELETE', `/api/posts/${id}/vote`, { key: grace.key });
  await pagesOf(instance, `/api/posts/${id}/comments?limit=1`);
}

async function ofLists(instance: Instance, key: string): Promise<void> {
  const since = encodeURIComponent('2020-01-01T00:00:00Z');
  for (const query of ['', 'sort=oldest', 'agent=ada', 'agent=ada&sort=oldest', `since=${since}`, 'tag=a'])
    await pagesOf(instance, `/api/posts?limit=1&${query}`);
  await instance.call('GET', '/api/posts?limit=1&offset=1');
  for (const query of ['', 'status=draft', 'status=published', `status=published&since=${since}`])
    await pagesOf(instance, `/api/posts?limit=1&${query}`, key);
  for (const query of ['tag=a&sort=oldest', 'tag=a&agent=ada', `tag=a&since=${since}`])
    await pagesOf(instance, `/api/posts?limit=1&${query}`);
  for (const query of ['', 'status=draft', 'tag=a', 'tag=a&status=published', 'view=brief'])
    await pagesOf(instance, `/api/me/posts?limit=1&${query}`, key);
  for (const sort of blogOrderNames) await pagesOf(instance, `/api/blogs?limit=1&sort=${sort}`);
  for (const path of [
    '/api/posts/featured',
    '/api/search?q=post',
    '/api/search?q=%22post%201%22+-none',
    '/api/search?q=post&tag=a',
  ])
    assert.equal((await instance.call('GET', path)).status, 200);
  for (const path of ['/api/me', '/api/limits', '/api/me/export'])
    assert.equal((await instance.call('GET', path, { key })).status, 200);
  await instance.call('PATCH', '/api/me', { key, body: { name: 'New name', bio: 'New bio' } });
  await indexRenamed(instance.ctx(), async () => true);
}

/** The first two pages of a list, the second by its cursor. */
async function pagesOf(instance: Instance, path: string, key?: string): Promise<void> {
  const options = key === undefined ? {} : { key };
  const first = await instance.call('GET', path, options);
  assert.equal(first.status, 200, first.text);
  const cursor = first.at('nextCursor');
  if (typeof cursor !== 'string') return;
  const second = await instance.call('GET', `${path}&cursor=${encodeURIComponent(cursor)}`, options);
  assert.equal(second.status, 200, second.text);
}

async function ofReaders(instance: Instance, id: string): Promise<void> {
  const host = `ada.localhost:${instance.port}`;
  const files = ['feed.xml', 'rss.xml', 'feed.json', 'sitemap.xml', 'llms.txt', 'index.md', 'post-1.md'];
  for (const path of [
    '',
    'post-1',
    'post-0',
    'post-2',
    'none',
    'feed',
    'tags/a',
    'tags/a.md',
    '-/archive',
    '-/tags',
    ...files,
  ])
    await instance.call('GET', `/${path}`, { host });
  const lists = blogOrderNames.map((sort) => `/blogs?sort=${sort}`);
  for (const path of ['/', '/blogs', ...lists, '/search?q=post', '/feed.xml'])
    assert.equal((await instance.call('GET', path)).status, 200, path);
  for (const path of ['/sitemap.xml', '/-/sitemap.xml', '/llms.txt', '/blogs.opml', '/readyz'])
    assert.equal((await instance.call('GET', path)).status, 200, path);
  await instance.call('GET', `/api/posts/${id}/comments`);
}

async function ofKeys(instance: Instance, grace: TestAgent): Promise<void> {
  await instance.call('POST', '/api/register', {
    body: { email: 'kurt@example.com', name: 'Kurt', slug: 'kurt' },
  });
  await instance.call('POST', '/api/register', {
    body: { email: 'kurt@example.com', name: 'Kurt G', slug: 'kurtg' },
  });
  const token = await instance.token('kurt@example.com');
  await instance.call('GET', `/verify?token=${token}`);
  for (let n = 0; n < 2; n++) await instance.call('GET', `/api/verify?token=${token}`);
  await instance.call('POST', '/api/recover', { body: { email: grace.email } });
  const leaked = await instance.token(grace.email);
  await instance.call('POST', '/api/publish', { key: grace.key, body: { title: 'L', content: leaked } });
  await instance.call('POST', '/api/recover', { body: { email: grace.email } });
  const recovery = await instance.token(grace.email);
  const confirmed = await instance.call('POST', '/api/recover/confirm', { body: { token: recovery } });
  await instance.call('POST', '/api/regenerate-key', { key: String(confirmed.at('apiKey')) });
  await instance.mails();
}

async function ofOperators(instance: Instance): Promise<void> {
  assert.ok(await readStoredMetrics(instance.ctx()));
  assert.ok(await allowsCertificate(instance.ctx(), 'ada.localhost'));
  const { engine } = instance.ctx();
  await engine.write(suspendAgent, { slug: 'grace', reason: 'a test' });
  await engine.write(restoreAgent, { slug: 'grace' });
  await engine.write(sweep, null);
  // The next second settles the calls counted in memory.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
}
