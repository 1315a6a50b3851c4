import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Ticket, Write } from '../src/db/write.ts';
import { sha256Of } from '../src/platform/checksum.ts';
import { parseFrontMatter } from '../src/rules/front-matter.ts';
import { beginExport, endExport, renewExport } from '../src/services/upkeep/export-leases.ts';
import type { Answer } from './support/http.ts';
import {
  assertProblem,
  describeInstances,
  startInstance,
  type Instance,
  type TestAgent,
} from './support/instance.ts';
import { makePng } from './support/made-pictures.ts';
import { query } from './support/postgres.ts';
import { openSqlite } from './support/sqlite-file.ts';

/** Downloads an agent's archive, unpacks it with the system's tar, and returns its files by name. */
async function unpack(instance: Instance, key: string): Promise<Map<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'masthead-export-'));
  try {
    const answer = await fetch(`${instance.baseUrl}/api/me/export`, {
      headers: { authorization: `Bearer ${key}` },
    });
    assert.equal(answer.status, 200);
    const archive = join(folder, 'archive.tar.gz');
    await writeFile(archive, Buffer.from(await answer.arrayBuffer()));
    const { stderr } = await promisify(execFile)('tar', ['-xzf', archive, '-C', folder]);
    assert.equal(stderr, '');
    await rm(archive);
    const entries = await readdir(folder, { recursive: true });
    const files = new Map<string, string>();
    for (const name of entries.toSorted()) {
      const path = join(folder, name);
      const found = await stat(path);
      if (!found.isFile()) continue;
      assert.equal(found.mode & 0o777, 0o644 & ~process.umask());
      if (name.startsWith('posts/media/')) continue;
      files.set(name, name.startsWith('media/') ? await sha256Of(path) : await readFile(path, 'utf8'));
    }
    // Where posts look for their pictures.
    if (files.has('media.json'))
      assert.deepEqual(await readdir(join(folder, 'posts/media')), await readdir(join(folder, 'media')));
    return files;
  } finally {
    await rm(folder, { recursive: true });
  }
}

describeInstances('export', {}, (the, variant) => {
  test('an archive holds everything of the agent and nothing of others, and tar unpacks it', async () => {
    const agent = await the().agent('Archivist', { bio: 'Keeps things.' });
    const other = await the().agent('Other');
    const longSlug = 'l'.repeat(100);
    const { post } = await agent.client.publish({
      title: 'On "quotes": 東京 & more',
      content: '---\n\nNot front matter.\n\n# Ünïcode 🦜\n',
      slug: 'first',
      tags: ['b', 'a'],
      lang: 'en',
      excerpt: 'Given.',
      disclosure: 'ai-generated',
      status: 'published',
    });
    await agent.client.publish({ title: 'Draft', content: 'x'.repeat(512), slug: longSlug });
    for (let i = 0; i < 17; i++) await agent.client.publish({ title: `More ${i}`, content: `Text ${i}` });
    const theirs = await other.client.publish({ title: 'Theirs', content: 'Not mine.', status: 'published' });
    if (variant === 'subdomain') {
      await agent.client.addComment(theirs.post.id, 'Mine.');
      await other.client.addComment(post.id, 'Not mine.');
      await agent.client.vote(theirs.post.id, -1);
      await agent.client.block(other.slug);
    }

    const files = await unpack(the(), agent.key);
    assert.equal(files.size, 4 + 19);
    const { agent: me } = await agent.client.me();
    assert.deepEqual(JSON.parse(files.get('profile.json') ?? ''), me);
    const first = parseFrontMatter(files.get('posts/first.md') ?? '');
    assert.ok(first.ok);
    assert.equal(first.content, '---\n\nNot front matter.\n\n# Ünïcode 🦜\n');
    const { createdAt, updatedAt, ...fields } = first.fields;
    assert.deepEqual(fields, {
      title: 'On "quotes": 東京 & more',
      slug: 'first',
      status: 'published',
      disclosure: 'ai-generated',
      lang: 'en',
      tags: ['b', 'a'],
      excerpt: 'Given.',
      id: post.id,
      url: post.url,
      publishedAt: post.publishedAt,
    });
    assert.deepEqual([createdAt, updatedAt], [post.publishedAt, post.publishedAt]);
    assert.match(files.get(`posts/${longSlug}.md`) ?? '', /^status: draft\n[^]*\n\nx{512}$/m);
    const comments = JSON.parse(files.get('comments.json') ?? '') as Record<string, unknown>[];
    const votes = JSON.parse(files.get('votes.json') ?? '') as Record<string, unknown>[];
    const blocks = JSON.parse(files.get('blocks.json') ?? '') as Record<string, unknown>[];
    if (variant === 'path') {
      assert.deepEqual([comments, votes, blocks], [[], [], []]);
      return;
    }
    assert.deepEqual(
      blocks.map(({ slug }) => slug),
      [other.slug],
    );
    assert.deepEqual(
      comments.map(({ postId, content }) => [postId, content]),
      [[theirs.post.id, 'Mine.']],
    );
    assert.deepEqual(
      votes.map(({ postId, vote }) => [postId, vote]),
      [[theirs.post.id, -1]],
    );
  });

  test('pictures are in it, where posts look for them', async () => {
    const { client, key } = await the().agent('Painter');
    const { media } = await client.uploadMedia(makePng(), { type: 'image/png', alt: 'A square.' });
    const lost = (await client.uploadMedia(makePng(), { type: 'image/png' })).media;
    const content = `![](media/${media.name})`;
    await client.publish({ title: 'Shown', content, slug: 'shown', image: `media/${media.name}` });
    const tag = async () => (await the().call('HEAD', '/api/me/export', { key })).headers['etag'];
    const before = await tag();
    await client.updateMedia(media.id, { alt: 'Four corners.' });
    assert.notEqual(await tag(), before);
    const stored = join(the().ctx().config.media.dir, lost.sha256.slice(0, 2), lost.sha256.slice(2, 4));
    await rm(join(stored, lost.sha256));
    const files = await unpack(the(), key);
    assert.ok(files.get('posts/shown.md')?.endsWith(`\n${content}`));
    assert.equal(files.get(`media/${media.name}`), media.sha256);
    const known = JSON.parse(files.get('media.json') ?? '') as Record<string, unknown>[];
    assert.deepEqual(
      known.map(({ id, alt, file }) => [id, alt, file]),
      [
        [media.id, 'Four corners.', `media/${media.name}`],
        [lost.id, null, null],
      ],
    );
  });

  test('an exported post can be published again as it is, and is then what it was', async () => {
    const agent = await the().agent('Mover');
    await agent.client.publish({ title: 'Moved', content: 'A *text*.\n', tags: ['x'], status: 'published' });
    const file = (await unpack(the(), agent.key)).get('posts/moved.md') ?? '';
    const headers = { 'content-type': 'text/markdown' };
    const again = await the().call('POST', '/api/publish', { key: agent.key, body: file, headers });
    assert.deepEqual(
      [again.status, again.at('created'), again.at('changed')],
      [200, false, false],
      again.text,
    );
  });

  test('what a post was before stands beside it, until it is erased', async () => {
    const { client, key } = await the().agent('Rewriter');
    const { post } = await client.publish({ title: 'First try', content: 'One.', tags: ['x'], slug: 'text' });
    await client.updatePost(post.id, { title: 'Second try', content: 'Two.', tags: [] });
    await client.updatePost(post.id, { content: 'Three.' });
    const files = await unpack(the(), key);
    const names = ['posts/text.md', 'posts/text.revisions/1.md', 'posts/text.revisions/2.md'];
    assert.deepEqual(
      [...files.keys()].filter((name) => name.startsWith('posts/')),
      names,
    );
    const parsed = parseFrontMatter(files.get(names[1] ?? '') ?? '');
    assert.ok(parsed.ok);
    const { title, tags, slug, revision, cause } = parsed.fields;
    assert.deepEqual(
      [parsed.content, title, tags, slug, revision, cause],
      ['One.', 'First try', ['x'], 'text', '1', 'created'],
    );
    const tag = async () => (await the().call('HEAD', '/api/me/export', { key })).headers['etag'];
    const before = await tag();
    await client.eraseRevision(post.id, 1);
    assert.notEqual(await tag(), before);
    assert.deepEqual([...(await unpack(the(), key)).keys()].includes(names[1] ?? ''), false);
  });

  test('the answer is a file for its owner only, and counts like any call', async () => {
    const agent = await the().agent('Keeper');
    for (const method of ['GET', 'HEAD']) {
      const answer = await the().call(method, '/api/me/export', { key: agent.key });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['content-type'], 'application/gzip');
      assert.equal(answer.headers['cache-control'], 'private, no-cache');
      assert.match(
        String(answer.headers['content-disposition']),
        /^attachment; filename="keeper-\d{4}-\d\d-\d\d\.tar\.gz"$/,
      );
      assert.match(String(answer.headers['ratelimit-policy']), /^"api";/);
    }
    assertProblem(await the().call('GET', '/api/me/export'), 'unauthorized');
    assertProblem(await the().call('POST', '/api/me/export', { key: agent.key }), 'method_not_allowed');
  });

  test('an archive that has not changed is 304, and anything that it would hold changes its tag', async () => {
    const agent = await the().agent('Tagged');
    const get = (etag?: string) =>
      the().call('GET', '/api/me/export', {
        key: agent.key,
        headers: etag === undefined ? {} : { 'if-none-match': etag },
      });
    const seen = new Set<string | undefined>();
    const other = await the().agent('Tagger');
    const theirs = await other.client.publish({ title: 'T', content: 'x', status: 'published' });
    const { post } = await agent.client.publish({ title: 'One', content: 'x' });
    const steps: (() => Promise<unknown>)[] = [
      async () => undefined,
      () => agent.client.updatePost(post.id, { content: 'y' }),
      () => agent.client.updateMe({ bio: 'New.' }),
    ];
    if (variant === 'subdomain') {
      steps.push(() => agent.client.addComment(theirs.post.id, 'Mine.'));
      steps.push(() => agent.client.vote(theirs.post.id, 1));
      steps.push(() => agent.client.vote(theirs.post.id, -1));
    }
    for (const step of steps) {
      await step();
      const { status, headers } = await get([...seen].at(-1));
      assert.equal(status, 200);
      seen.add(headers.etag);
      for (let n = 0; n < 3; n++) {
        const unchanged = await get(headers.etag);
        assert.deepEqual([unchanged.status, unchanged.text], [304, '']);
      }
    }
    assert.equal(seen.size, steps.length);
  });

  test('an agent can export 10 times in any 24 hours, which 304 and HEAD do not count', async (t) => {
    const agent = await the().agent('Counter');
    the().clock.freeze();
    const get = (headers = {}) => the().call('GET', '/api/me/export', { key: agent.key, headers });
    let etag = '';
    for (let n = 0; n < 10; n++) {
      const answer = await get();
      assert.equal(answer.status, 200);
      etag = String(answer.headers.etag);
      if (n === 0) the().clock.advance(3_600_000);
    }
    const refused = assertProblem(await get(), 'rate_limited');
    const wait = Number(refused.headers['retry-after']);
    assert.equal(wait, 23 * 3600);
    assert.match(String(refused.at('detail')), /10 times in 24 hours/);
    assert.deepEqual(limitHeaders(refused), {
      'ratelimit-policy': '"export";q=10;w=86400',
      ratelimit: `"export";r=0;t=${wait}`,
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(wait),
    });
    // Neither could begin now: nothing of them would be known without work.
    assertProblem(await get({ 'if-none-match': etag }), 'rate_limited');
    the().clock.advance((wait - 1) * 1000);
    assertProblem(await get(), 'rate_limited');
    the().clock.advance(1000);
    // Each has ended by the time it is answered, however slow the write that says so.
    const { engine } = the().ctx();
    const write = engine.write.bind(engine);
    const slow = t.mock.method(
      engine,
      'write',
      async <I, O>(of: Write<I, O>, input: I, ticket?: Ticket): Promise<O> => {
        if (of.name === endExport.name) await delay(100);
        return write(of, input, ticket);
      },
    );
    assert.equal((await get({ 'if-none-match': etag })).status, 304);
    const head = await the().call('HEAD', '/api/me/export', { key: agent.key });
    assert.deepEqual([head.status, head.headers['content-length']], [200, undefined]);
    assert.equal((await get()).status, 200);
    assert.ok(slow.mock.callCount() > 0);
    slow.mock.restore();
    assertProblem(await get(), 'rate_limited');
    // A clock that was ahead locks nobody out.
    the().clock.advance(-48 * 3_600_000);
    assert.equal((await get()).status, 200);
    the().clock.advance(48 * 3_600_000);
  });

  test('one export runs at a time, in all processes, until it ends or its process is gone', async () => {
    const agent = await the().agent('Single');
    const { engine } = the().ctx();
    const begun = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) =>
        engine.write(beginExport, { id: `other-${variant}-${n}`, agentId: agent.id }),
      ),
    );
    assert.equal(begun.filter(({ status }) => status === 'fulfilled').length, 1);
    const get = () => the().call('GET', '/api/me/export', { key: agent.key });
    const refused = assertProblem(await get(), 'rate_limited');
    assert.match(String(refused.at('detail')), /one at a time/);
    assert.equal(refused.headers['retry-after'], '10');
    assert.deepEqual(limitHeaders(refused), {
      'ratelimit-policy': '"concurrent-exports";q=1;qu="concurrent-requests"',
      ratelimit: '"concurrent-exports";r=0;t=10',
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '10',
    });
    the().clock.advance(60_000);
    assert.equal((await get()).status, 200);
    assert.equal((await get()).status, 200, 'the one before has ended');
    // On PostgreSQL a renewal may be stored behind the end.
    const late = { id: `late-${variant}`, agentId: agent.id };
    await engine.write(beginExport, late);
    await engine.write(endExport, { ...late, counts: true });
    await engine.write(renewExport, late);
    assert.equal((await get()).status, 200);
  });

  test('a client that takes nothing holds back only its own export, and leaving ends it', async () => {
    const agent = await the().agent('Slow');
    const { post } = await agent.client.publish({ title: 'Large', content: 'x' });
    await enlarge(the(), post.id);
    const address = { port: the().port, path: '/api/me/export', agent: false };
    const slow = http.get({ ...address, headers: { authorization: `Bearer ${agent.key}` } });
    slow.on('error', () => undefined);
    const [response]: http.IncomingMessage[] = await once(slow, 'response');
    assert.equal(response?.statusCode, 200);
    const get = () => the().call('HEAD', '/api/me/export', { key: agent.key });
    assert.equal((await get()).status, 429);
    slow.destroy();
    while ((await get()).status === 429) await delay(10);
    assert.equal((await get()).status, 200);
    await agent.client.deletePost(post.id);
  });
});

test('a refused export names the limit that refuses it where no other limit is set', async () => {
  const policies = ['REGISTER', 'PUBLISH', 'COMMENT', 'API', 'ANONYMOUS'];
  const env = Object.fromEntries(policies.map((policy) => [`LIMIT_${policy}`, '0']));
  const instance = await startInstance({ env });
  try {
    const { id, key } = await instance.agent('Unlimited');
    instance.clock.freeze();
    const get = () => instance.call('GET', '/api/me/export', { key });
    for (let n = 0; n < 9; n++) assert.deepEqual(limitHeaders(await get()), {});
    await instance.ctx().engine.write(beginExport, { id: 'of-another-process', agentId: id });
    assert.equal((await get()).headers['ratelimit'], '"concurrent-exports";r=0;t=10');
    instance.clock.advance(60_000);
    const { headers } = assertProblem(await get(), 'rate_limited');
    assert.equal(headers['ratelimit-policy'], '"export";q=10;w=86400');
    assert.equal(headers['ratelimit'], `"export";r=0;t=${headers['retry-after']}`);
  } finally {
    await instance.close();
  }
});

test('exports of one address leave room for those of others', async (t) => {
  const most = 8;
  const instance = await startInstance({ env: { TRUST_PROXY: '127.0.0.1' } });
  const agents = await Promise.all(
    Array.from({ length: most + 1 }, (_, n) => instance.agent(`exporter-${n}`)),
  );
  // Those of the first are under way until the gate opens.
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  t.after(async () => {
    open();
    await instance.close();
  });
  const { engine } = instance.ctx();
  const write = engine.write.bind(engine);
  const begun = { count: 0 };
  t.mock.method(engine, 'write', async <I, O>(of: Write<I, O>, input: I, ticket?: Ticket): Promise<O> => {
    if (of.name === beginExport.name && ++begun.count <= most) await gate;
    return write(of, input, ticket);
  });
  const get = ({ key }: TestAgent, address: string) =>
    instance.call('GET', '/api/me/export', { key, headers: { 'x-forwarded-for': address } });
  const [last, ...others] = agents;
  assert.ok(last);
  const sent = others.map((agent, n) => get(agent, `2001:db8:1:2::${n}`));
  while (begun.count < most) await delay(10);
  const refused = assertProblem(await get(last, '2001:db8:1:2::ffff'), 'unavailable');
  assert.equal(refused.headers['retry-after'], '5');
  assert.equal((await get(last, '2001:db8:1:3::1')).status, 200);
  open();
  for (const { status } of await Promise.all(sent)) assert.equal(status, 200);
  assert.equal((await get(last, '2001:db8:1:2::ffff')).status, 200);
});

/** What an answer says about the limit that it counts against or is refused by. */
function limitHeaders({ headers }: Answer): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => /^(?:x-)?ratelimit/.test(name)));
}

/** Makes the text of a post as large as no socket's buffers are, however it is compressed. */
async function enlarge(instance: Instance, postId: string): Promise<void> {
  const { database } = instance.ctx().config;
  if (database.engine === 'postgres') {
    const text = `(select string_agg(md5(n::text), '') from generate_series(1, 500000) n)`;
    await query(database.urls[0] ?? '', `update post_bodies set content = ${text} where post_id = $1`, [
      postId,
    ]);
    return;
  }
  const file = openSqlite(database.file);
  file.prepare('update post_bodies set content = hex(randomblob(8000000)) where post_id = ?').run(postId);
  file.close();
}
