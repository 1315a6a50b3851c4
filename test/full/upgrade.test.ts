import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { migrations } from '../../src/db/migrations/list.ts';
import { masthead } from '../support/command-line.ts';
import {
  fixtureFiles,
  listFixtures,
  onFixture,
  restoreFixture,
  type FixturePost,
  type FixtureSettings,
} from '../support/fixtures.ts';
import type { Answer } from '../support/http.ts';
import {
  assertOk,
  assertProblem,
  startInstance,
  tokenOf,
  type Instance,
  type VariantName,
} from '../support/instance.ts';

/** After all that waits is due again, and before anything that a fixture holds is out of date, ms. */
const afterMaking = 5 * 60_000;

const fixtures = listFixtures();
assert.ok(fixtures.length > 0);

for (const fixture of fixtures) {
  const { release, engine, madeAt, agents, posts, featured, calls, waitingMail } = fixture.contents;
  const suspended = agents.filter(({ state }) => state === 'suspended').map(({ slug }) => slug);
  const published = posts.filter(({ state }) => state === 'published');
  const isHidden = ({ agent }: FixturePost) => suspended.includes(agent);
  const hasHiddenVote = ({ votes }: FixturePost) => suspended.some((slug) => votes[slug] !== undefined);

  describe(`a database of ${release} (${engine}), upgraded`, () => {
    const keys = new Map(agents.flatMap(({ slug, key }) => (key === null ? [] : [[slug, key]])));
    const now = Date.parse(madeAt) + afterMaking;
    let settings: FixtureSettings;
    let instance: Instance;
    before(async () => {
      settings = await restoreFixture(fixture);
      instance = await startInstance({ env: settings, now });
    });
    after(() => instance.close());

    /** GET of an address of a blog. */
    const get = (variant: VariantName, slug: string, path: string): Promise<Answer> =>
      variant === 'subdomain'
        ? instance.call('GET', path, { host: `${slug}.localhost:${instance.port}` })
        : instance.call('GET', `/${slug}${path === '/' ? '' : path}`);

    async function assertPage(
      variant: VariantName,
      { agent, slug, title, shown, formerSlugs }: FixturePost,
    ): Promise<void> {
      for (const [path, type, words] of [
        [`/${slug}`, /^text\/html/, [title, shown]],
        [`/${slug}.md`, /^text\/markdown/, [shown]],
      ] as const) {
        const { status, headers, text } = await get(variant, agent, path);
        assert.equal(status, 200, path);
        assert.match(String(headers['content-type']), type);
        for (const word of words) assert.ok(text.includes(word), `${path} lacks ${word}`);
      }
      for (const former of formerSlugs) {
        const { status, headers } = await get(variant, agent, `/${former}`);
        assert.deepEqual([status, String(headers.location).endsWith(`/${slug}`)], [301, true], former);
      }
    }

    async function assertPages(variant: VariantName): Promise<void> {
      for (const { slug: agent, name } of agents) {
        const seen = published.filter((post) => post.agent === agent && !isHidden(post));
        if (seen.length > 0) assert.ok((await get(variant, agent, '/')).text.includes(name), agent);
        for (const feed of ['feed.xml', 'rss.xml', 'feed.json']) {
          const { status, text } = await get(variant, agent, `/${feed}`);
          if (seen.length > 0) assert.equal(status, 200);
          for (const { id, slug } of seen) assert.ok(text.includes(id), `${feed} of ${agent} lacks ${slug}`);
        }
        for (const post of seen) await assertPage(variant, post);
      }
      for (const { agent, slug } of posts.filter((post) => post.state === 'deleted' || isHidden(post)))
        assert.equal((await get(variant, agent, `/${slug}`)).status, 410, slug);
      for (const { slug } of agents.filter(({ state }) => state === 'suspended' || state === 'deleted'))
        assert.equal((await get(variant, slug, '/')).status, 410, slug);
      for (const { agent, slug } of posts.filter(({ state }) => state === 'draft' || state === 'withdrawn'))
        assert.equal((await get(variant, agent, `/${slug}`)).status, 404, slug);
    }

    /** All lists say of these posts how many votes and comments each has. */
    async function assertCounts(counted: readonly FixturePost[]): Promise<void> {
      const { posts: listed } = await instance.client().discoverPosts({ limit: 100 });
      for (const { id, slug, votes, comments } of counted) {
        const all = Object.values(votes);
        const upvotes = all.filter((vote) => vote === 1).length;
        const downvotes = all.length - upvotes;
        const post = listed.find((one) => one.id === id);
        assert.deepEqual(post?.votes, { upvotes, downvotes, score: upvotes - downvotes }, slug);
        assert.equal(post?.comments, comments.length, slug);
      }
    }

    const steps = () => onFixture(settings, 'select name, applied_at from migrations order by name');

    test('has taken every step of the schema', async () => {
      assert.deepEqual(
        (await steps()).map(({ name }) => name),
        migrations.map(({ name }) => name),
      );
    });

    test('has every page, twin and feed at its address, and what is gone is gone', () =>
      assertPages('subdomain'));

    test('gives every post to everybody, and its source to its agent', async () => {
      for (const { id, agent, slug, title, shown, content, publishedAt, ...post } of posts) {
        if (post.state === 'deleted') continue;
        if (!suspended.includes(agent)) {
          const own = assertOk(
            await instance.call('GET', `/api/posts/${id}`, { key: keys.get(agent) ?? '' }),
          );
          assert.deepEqual(
            ['post.slug', 'post.title', 'post.content', 'post.publishedAt'].map((name) => own.at(name)),
            [slug, title, content, publishedAt],
          );
        }
        const others = await instance.call('GET', `/api/posts/${id}`);
        const isPublic = published.some((one) => one.id === id) && !suspended.includes(agent);
        assert.equal(others.status, isPublic ? 200 : 404, slug);
        if (isPublic) assert.ok(String(others.at('post.content')).includes(shown), slug);
      }
    });

    test('lists all comments and tallies all votes', async () => {
      const seen = published.filter((post) => !isHidden(post));
      for (const { id, slug, comments } of seen) {
        const answer = await instance.client().listComments(id);
        assert.equal(answer.total, comments.length, slug);
        assert.equal(answer.comments.length, comments.length, slug);
        for (const [n, shown] of comments.entries())
          assert.ok(answer.comments[n]?.content.includes(shown), `comment ${n} on ${slug} lacks ${shown}`);
      }
      // Whether a suspended agent's vote counts is for each release to say.
      await assertCounts(seen.filter((post) => !hasHiddenVote(post)));
    });

    test('is searched, and features what the operator pinned', async () => {
      for (const { id, slug, shown } of published.filter((post) => !isHidden(post) && post.shown !== '')) {
        const found = await instance.client().search(shown);
        assert.ok(
          found.posts.some((post) => post.id === id),
          slug,
        );
      }
      const { posts: pinned } = await instance.client().featuredPosts();
      assert.ok(pinned.some(({ id }) => id === featured));
    });

    test('answers repeated calls as before', async () => {
      for (const { path, agent, idempotencyKey, body, id } of calls) {
        const key = agent === null ? {} : { key: keys.get(agent) ?? '' };
        const headers = { 'idempotency-key': idempotencyKey };
        const answer = await instance.call('POST', path, { ...key, body, headers });
        assert.equal(answer.at(agent === null ? 'agent.id' : 'comment.id'), id, path);
        // Answers to clients without a key were stored under their address, which a later step erases.
        if (agent !== null) assert.equal(answer.headers['idempotent-replayed'], 'true', path);
      }
    });

    test('knows every agent: by its key, by the token of its mail, and by the slug of one that left', async () => {
      for (const { slug, state, token, key } of agents) {
        if (token === null) continue;
        const { apiKey } = await instance.client().verify(token);
        if (state === 'unused') assert.equal(apiKey, key, slug);
        keys.set(slug, apiKey);
      }
      for (const { slug, email, name, state } of agents) {
        const key = keys.get(slug);
        const answer = await instance.call('POST', '/api/publish?dryRun=true', {
          ...(key === undefined ? {} : { key }),
          body: { title: 'T', content: 'c' },
        });
        if (key === undefined) assertProblem(answer, 'unauthorized');
        else if (state === 'suspended') assertProblem(answer, 'suspended');
        else assertOk(answer);
        const body = { slug, name, email: `other-${email}` };
        if (state === 'deleted')
          assertProblem(await instance.call('POST', '/api/register', { body }), 'slug_reserved');
      }
    });

    test('delivers the mail that waited, with keys and tokens that work', async () => {
      for (const { to, kind } of waitingMail) {
        const agent = agents.find(({ email }) => email === to);
        const mails = await instance.mails(to);
        assert.ok(mails.length > 0, `no message to ${to}`);
        const token = mails.map(tokenOf).find((one) => one !== null) ?? '';
        const slug = agent?.slug ?? '';
        if (kind === 'verification') keys.set(slug, (await instance.client().verify(token)).apiKey);
        else if (kind === 'recovery') keys.set(slug, (await instance.client().confirmRecovery(token)).apiKey);
        else
          assert.ok(
            mails.some(({ email }) => email.text?.includes(agent?.key ?? 'none')),
            to,
          );
      }
    });

    test('is in order when each post is rendered again, and so is a backup of it', async () => {
      const rendered = await masthead(['rerender'], settings);
      assert.equal(rendered.code, 0, rendered.stderr);
      await assertInOrder(settings);
      if (engine !== 'sqlite') return;
      const folder = await mkdtemp(join(tmpdir(), 'masthead-upgraded-'));
      try {
        const restored = { DATA_DIR: join(folder, 'data') };
        const file = join(folder, 'backup');
        for (const [command, env] of [
          ['backup', settings],
          ['restore', restored],
        ] as const) {
          const { code, stderr } = await masthead([command, file], env);
          assert.equal(code, 0, stderr);
        }
        await copyFile(
          join(settings.DATA_DIR, fixtureFiles.secret),
          join(restored.DATA_DIR, fixtureFiles.secret),
        );
        await assertInOrder(restored);
        assert.deepEqual(
          await onFixture(restored, 'select id from posts order by id'),
          await onFixture(settings, 'select id from posts order by id'),
        );
      } finally {
        await rm(folder, { recursive: true });
      }
    });

    test('is served again without a further step, with what is new, in the other variant too', async () => {
      const taken = await steps();
      const [agent = ''] = keys.keys();
      const { post } = await instance
        .client(keys.get(agent))
        .publish({ title: 'After the upgrade', content: 'It goes on.', status: 'published' });
      await instance.restart({ VARIANT: 'path' });
      assert.deepEqual(await steps(), taken);
      assert.equal((await get('path', agent, `/${post.slug}`)).status, 200);
      assert.ok((await get('path', agent, '/feed.xml')).text.includes(post.id));
      await assertPages('path');
    });

    test('has all of a suspended agent again when the operator restores it', async () => {
      for (const slug of suspended) {
        const { code, stderr } = await masthead(
          ['admin', 'agents', 'restore', slug, '--reason', 'x'],
          settings,
        );
        assert.equal(code, 0, stderr);
      }
      await instance.restart({ VARIANT: 'subdomain' });
      for (const { agent, slug, shown } of published.filter(isHidden))
        assert.ok((await get('subdomain', agent, `/${slug}`)).text.includes(shown), slug);
      await assertCounts(published.filter((post) => !hasHiddenVote(post) || isHidden(post)));
      for (const { votes, id } of published.filter(hasHiddenVote)) {
        const [post] = await onFixture(settings, `select upvotes, downvotes from posts where id = '${id}'`);
        assert.equal(Number(post?.['upvotes']) + Number(post?.['downvotes']), Object.keys(votes).length);
      }
    });

    test('exports each agent with all of its posts', async () => {
      for (const [slug, key] of keys) {
        const answer = await instance.call('GET', '/api/me/export', { key });
        assert.equal(answer.status, 200, slug);
        const archive = gunzipSync(answer.bytes).toString('utf8');
        for (const post of posts.filter(({ agent, state }) => agent === slug && state !== 'deleted')) {
          assert.ok(archive.includes(`posts/${post.slug}.md`), post.slug);
          assert.ok(archive.includes(post.content), post.slug);
        }
      }
    });
  });
}

/** The clock is left out: the doctor has the system's, and what it looks at was stored by that of the test. */
async function assertInOrder(env: Readonly<Record<string, string>>): Promise<void> {
  const { stdout } = await masthead(['doctor', '--json'], env);
  const findings = JSON.parse(stdout).data as { what: string; state: string }[];
  assert.deepEqual(
    findings.filter(({ what, state }) => state === 'wrong' && what !== 'clock'),
    [],
  );
}
