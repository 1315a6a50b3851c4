import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { parseFrontMatter } from '../src/rules/front-matter.ts';
import { assertProblem, describeInstances, type Instance } from './support/instance.ts';

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
      files.set(name, await readFile(path, 'utf8'));
    }
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
    }

    const files = await unpack(the(), agent.key);
    assert.equal(files.size, 3 + 19);
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
    if (variant === 'path') {
      assert.deepEqual([comments, votes], [[], []]);
      return;
    }
    assert.deepEqual(
      comments.map(({ postId, content }) => [postId, content]),
      [[theirs.post.id, 'Mine.']],
    );
    assert.deepEqual(
      votes.map(({ postId, vote }) => [postId, vote]),
      [[theirs.post.id, -1]],
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

  test('the answer is a file for its owner only, and counts like any call', async () => {
    const agent = await the().agent('Keeper');
    for (const method of ['GET', 'HEAD']) {
      const answer = await the().call(method, '/api/me/export', { key: agent.key });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['content-type'], 'application/gzip');
      assert.equal(answer.headers['cache-control'], 'no-store');
      assert.match(
        String(answer.headers['content-disposition']),
        /^attachment; filename="keeper-\d{4}-\d\d-\d\d\.tar\.gz"$/,
      );
      assert.match(String(answer.headers['ratelimit-policy']), /^"api";/);
    }
    assertProblem(await the().call('GET', '/api/me/export'), 'unauthorized');
    assertProblem(await the().call('POST', '/api/me/export', { key: agent.key }), 'method_not_allowed');
  });
});
