import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { sha256 } from '../../src/rules/secrets.ts';
import { ageOutRevisions } from '../../src/services/upkeep/expiry.ts';
import { areTermsLeft } from '../../src/services/upkeep/maintenance.ts';
import { masthead } from '../support/command-line.ts';
import { fixtureFiles, listFixtures, restoreFixture } from '../support/fixtures.ts';
import { describeInstances, startInstance, type Instance, type TestAgent } from '../support/instance.ts';
import { query, startPostgres, type Cluster } from '../support/postgres.ts';
import { openSqlite } from '../support/sqlite-file.ts';

const run = promisify(execFile);

/**
 * Which of these texts stand anywhere in a file, in any case. Another process reads it: who closes a file gives up all
 * locks that its process has on it (https://sqlite.org/howtocorrupt.html), and the database is open in this one. A backup
 * then took the shared memory for its own, and cut it under the instance, which ended with SIGBUS.
 */
async function foundIn(file: string, texts: readonly string[]): Promise<string[]> {
  const { stdout } = await run('cat', [file], { encoding: 'latin1', maxBuffer: 1e9 });
  const bytes = stdout.toLowerCase();
  return texts.filter((text) => bytes.includes(text.toLowerCase()));
}

/** All files of a folder and of those in it. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

describe('what was deleted', () => {
  let dir = '';
  let instance: Instance;
  let bystander: TestAgent;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'masthead-erasure-'));
    instance = await startInstance();
    bystander = await instance.agent('Bystander');
    // Enough beside it that its rows share pages and segments of the index with those of others.
    for (let n = 0; n < 60; n++)
      await bystander.client.publish({
        title: `Staying ${n}`,
        content: `Ordinary words ${n}. ${'and many more of them '.repeat(n)}`,
        status: 'published',
      });
  });
  after(async () => {
    await instance.close();
    await rm(dir, { recursive: true });
  });

  /** An agent that leaves its words in every table that takes any. */
  async function talkative(word: string): Promise<{ agent: TestAgent; words: string[]; postId: string }> {
    const agent = await instance.agent(`${word}slug`, {
      bio: `${word}bio`,
      email: `${word}mail@example.com`,
    });
    await agent.client.updateMe({ name: `${word}name` });
    const { post } = await agent.client.publish({
      slug: `${word.slice(0, 2)}-first`,
      title: `${word}title`,
      content: `Aaa ${word}text zzz\n\n${'filler '.repeat(2_000)} ${word}end`,
      tags: [`${word}tag`],
      excerpt: `${word}excerpt`,
      status: 'published',
    });
    await agent.client.publish({ title: `${word}draft`, content: `${word}hidden` });
    const [stays] = (await bystander.client.listPosts({ limit: 1 })).posts;
    await agent.client.addComment(stays?.id ?? '', `${word}comment`);
    await bystander.client.addComment(post.id, `${word}answer`);
    const texts = [
      'bio',
      'mail',
      'name',
      'title',
      'text',
      'end',
      'tag',
      'excerpt',
      'draft',
      'hidden',
      'comment',
    ];
    const words = [...texts, 'answer'].map((text) => word + text);
    return { agent, words: [...words, sha256(agent.key)], postId: post.id };
  }

  /** Resolves when housekeeping has erased what there is to erase. */
  async function erased(): Promise<void> {
    while (await areTermsLeft(instance.ctx())) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  async function assertGone(words: readonly string[]): Promise<void> {
    const backup = join(dir, `${words[0]}.db`);
    const { code, stderr } = await masthead(['backup', backup], { DATA_DIR: instance.dataDir });
    assert.equal(code, 0, stderr);
    assert.deepEqual(await foundIn(backup, words), [], 'in a backup made at once');
    await erased();
    // A clean stop leaves no log in which earlier states of a page would stand.
    await instance.restart();
    for (const file of await filesBelow(instance.dataDir))
      assert.deepEqual(await foundIn(file, words), [], `in ${file}`);
  }

  test('with its agent stands in no byte of the files, nor in a backup', async () => {
    const { agent, words } = await talkative('quuxly');
    const file = join(instance.dataDir, 'masthead.db');
    await instance.restart();
    assert.deepEqual(await foundIn(file, words), words, 'what is looked for was there');
    await agent.client.deleteMe({ confirm: agent.slug });
    await assertGone(words);
    const rows = await instance.ctx().db.selectFrom('outbox').select('agent_id').execute();
    assert.ok(rows.some(({ agent_id }) => agent_id === bystander.id));
    assert.ok(rows.every(({ agent_id }) => agent_id !== agent.id));
  });

  test('by itself, a post with its comments, goes the same way', async () => {
    const { agent, words, postId } = await talkative('wibbly');
    await agent.client.deletePost(postId, { permanent: true });
    const ofPost = ['title', 'text', 'end', 'tag', 'excerpt', 'answer'].map((text) => `wibbly${text}`);
    assert.ok(ofPost.every((word) => words.includes(word)));
    await assertGone(ofPost);
    const { posts } = await instance.client().search('ordinary', { limit: 5 });
    assert.equal(posts.length, 5, 'what stays is still found');
  });

  test('by an edit, a removed comment or a new profile goes the same way', async () => {
    const agent = await instance.agent('Zorbly', { bio: 'zorblybio' });
    const draft = {
      slug: 'edited',
      title: 'zorblytitle',
      content: 'Aaa zorblytext zzz',
      tags: ['zorblytag'],
    };
    const { post } = await agent.client.publish({ ...draft, status: 'published' });
    const { comment } = await bystander.client.addComment(post.id, 'zorblyremark');
    const words = ['bio', 'title', 'text', 'tag', 'remark'].map((text) => `zorbly${text}`);
    await instance.restart();
    assert.deepEqual(await foundIn(join(instance.dataDir, 'masthead.db'), words), words);

    await agent.client.updatePost(post.id, { title: 'Other', content: 'Other words.', tags: ['other'] });
    await agent.client.updateMe({ bio: 'Another' });
    await bystander.client.deleteComment(post.id, comment.id);
    // The former title, text and tag are a revision, until it is as old as revisions may get.
    await instance.restart({ REVISION_DAYS: '0' });
    assert.equal(await instance.ctx().engine.write(ageOutRevisions, null), false);
    await assertGone(words);
  });

  test('frees no page that a backup would take along', async () => {
    const backup = join(dir, 'pages.db');
    assert.equal((await masthead(['backup', backup], { DATA_DIR: instance.dataDir })).code, 0);
    const database = openSqlite(backup, { readOnly: true });
    assert.equal(database.prepare('pragma freelist_count').get()?.['freelist_count'], 0);
    database.close();
  });
});

describe('what was deleted on PostgreSQL', () => {
  let cluster: Cluster;
  let url = '';
  let instance: Instance;
  before(async () => {
    cluster = await startPostgres();
    url = await cluster.createDatabase();
    instance = await startInstance({ env: { DATABASE_URL: url, SECRET: 's'.repeat(32) } });
  });
  after(async () => {
    await instance.close();
    await cluster.stop();
  });

  /** Every row of every table, as a dump would hold it. */
  async function rows(): Promise<string> {
    const tables = await query(url, `select tablename from pg_tables where schemaname = 'public'`);
    const all = await Promise.all(
      tables.map(({ tablename }) => query(url, `select t::text as row from "${String(tablename)}" t`)),
    );
    return JSON.stringify(all).toLowerCase();
  }

  test('is in no row at once, and in no file of a table once the engine has written it anew', async () => {
    const stays = await instance.agent('Stays');
    await stays.client.publish({ title: 'Staying', content: 'Words that stay.', status: 'published' });
    const agent = await instance.agent('Frobly', { bio: 'froblybio', email: 'froblymail@example.com' });
    const { post } = await agent.client.publish({
      title: 'froblytitle',
      content: 'Aaa froblyfirst zzz',
      tags: ['froblytag'],
      excerpt: 'froblyexcerpt',
      status: 'published',
    });
    await agent.client.updatePost(post.id, { content: 'Aaa froblysecond zzz' });
    await stays.client.addComment(post.id, 'froblyremark');
    const words = ['bio', 'mail', 'title', 'first', 'second', 'tag', 'excerpt', 'remark'].map(
      (text) => `frobly${text}`,
    );
    const files = async () => {
      await query(url, 'checkpoint');
      const found = await Promise.all(
        (await filesBelow(join(cluster.dataDir, 'base'))).map((file) => foundIn(file, words)),
      );
      return words.filter((word) => found.flat().includes(word));
    };
    assert.deepEqual(await files(), words, 'what is looked for was there');
    assert.match(await rows(), /froblysecond/);
    assert.match(await rows(), /froblyfirst/, 'as a revision');

    await agent.client.deleteMe({ confirm: agent.slug });
    const left = await rows();
    assert.deepEqual(
      words.filter((word) => left.includes(word)),
      [],
      'in a row',
    );
    await query(url, 'vacuum full');
    assert.deepEqual(await files(), []);
    assert.match(await rows(), /words that stay/);
  });
});

for (const fixture of listFixtures().filter(({ contents }) => contents.engine === 'sqlite')) {
  const { release, agents, posts, madeAt } = fixture.contents;
  test(`what was deleted under ${release} is gone from the file after its upgrade`, async () => {
    const settings = await restoreFixture(fixture);
    const file = join(settings.DATA_DIR, fixtureFiles.database);
    const left = [...agents.map(({ email }) => email), ...posts.map(({ shown }) => shown)];
    const deleted = [
      ...agents.filter(({ state }) => state === 'deleted').map(({ email }) => email),
      ...posts.filter(({ state }) => state === 'deleted').map(({ shown }) => shown),
    ];
    const standing = await foundIn(file, deleted);
    assert.ok(standing.length > 0, 'what is looked for was there');
    const upgraded = await startInstance({ env: settings, now: Date.parse(madeAt) });
    await upgraded.restart();
    assert.deepEqual(await foundIn(file, deleted), []);
    assert.ok((await foundIn(file, left)).length > 0);
    await upgraded.close();
  });
}

describeInstances('addresses of people', {}, (the, variant) => {
  test('stand in no row that is only counted: mailboxes and clients have keyed hashes', async () => {
    const instance = the();
    const email = 'Grace.Hopper+navy@example.com';
    await instance.call('POST', '/api/register', {
      body: { email, name: 'Grace', ...(variant === 'subdomain' ? { slug: 'grace' } : {}) },
      headers: { 'idempotency-key': 'once' },
    });
    await instance.call('GET', '/api/limits');
    await instance.token(email);
    const { db } = instance.ctx();
    const rows = JSON.stringify([
      await db.selectFrom('outbox').selectAll().execute(),
      await db.selectFrom('rate_calls').selectAll().execute(),
      await db.selectFrom('idempotency').selectAll().execute(),
    ]);
    const guesses = ['once', '127.0.0.1', '::1', 'grace.hopper@example.com', email.toLowerCase()];
    for (const text of guesses.flatMap((guess) => [guess, sha256(guess)]))
      assert.ok(!rows.includes(text), text);
    const kept = await db.selectFrom('idempotency').selectAll().executeTakeFirstOrThrow();
    assert.match(kept.scope, /^[\w-]{43} register$/);
    // HMAC, not the 64 hex digits of a hash that anyone can make.
    for (const hash of [kept.key, kept.request_hash]) assert.match(hash, /^[\w-]{43}$/);
  });
});
