import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertOk, assertProblem, describeInstances } from '../support/instance.ts';

const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

function countBy<T>(items: readonly T[], keyOf: (item: T) => unknown): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[String(keyOf(item))] = (counts[String(keyOf(item))] ?? 0) + 1;
  return counts;
}

describeInstances('at the same time', { env: { LIMIT_PUBLISH: '0' } }, (the, variant) => {
  test('20 publishes of one new slug make one post', async () => {
    const { key, client } = await the().agent('Ada');
    for (const body of [
      { slug: 'race', title: 'Race', content: 'c' },
      { title: 'Race by title', content: 'c' },
    ]) {
      const answers = await times(20, () => the().call('POST', '/api/publish', { key, body }));
      assert.deepEqual(
        countBy(answers, ({ status }) => status),
        { 200: 19, 201: 1 },
      );
      assert.equal(new Set(answers.map((answer) => answer.at('post.id'))).size, 1);
    }
    const page = await client.listPosts();
    assert.deepEqual([page.posts.length, page.total], [2, 2]);
  });

  test('publishes that guard with one ETag succeed once', async () => {
    const { key, client } = await the().agent('Etag');
    const { etag } = await client.publish({ slug: 'p', title: 'P', content: '0' });
    const answers = await times(10, (i) =>
      the().call('POST', '/api/publish', {
        key,
        body: { slug: 'p', content: `version ${i}` },
        headers: { 'if-match': String(etag) },
      }),
    );
    assert.deepEqual(
      countBy(answers, ({ status }) => status),
      { 200: 1, 412: 9 },
    );
  });

  test('verifications with one token give one key', async () => {
    await the()
      .client()
      .register({
        email: 'v@example.com',
        name: 'Verified',
        ...(variant === 'subdomain' ? { slug: 'verified' } : {}),
      });
    const token = await the().token('v@example.com');
    const answers = await times(10, () => the().call('GET', `/api/verify?token=${token}`));
    const keys = new Set(answers.map((answer) => assertOk(answer).at('apiKey')));
    assert.equal(keys.size, 1);
    assertOk(await the().call('GET', '/api/me', { key: String([...keys][0]) }));
    const subjects = (await the().mails('v@example.com')).map((mail) => mail.email.subject);
    assert.equal(subjects.filter((subject) => subject?.startsWith('API key')).length, 1);
  });

  test('key replacements leave exactly one working key', async () => {
    const { key, email } = await the().agent('Rekey');
    const answers = await times(10, () => the().call('POST', '/api/regenerate-key', { key }));
    assert.deepEqual(
      countBy(answers, ({ status }) => status),
      { 200: 1, 401: 9 },
    );
    const issued = answers.find(({ status }) => status === 200)?.at('apiKey');
    assertOk(await the().call('GET', '/api/me', { key: String(issued) }));
    assertProblem(await the().call('GET', '/api/me', { key }), 'unauthorized');
    assert.ok((await the().mails(email)).at(-1)?.email.text?.includes(String(issued)));
  });

  test('two recoveries and a replacement give one key between them, and leave no token', async () => {
    for (let round = 0; round < 3; round++) {
      const { key, email } = await the().agent(`Rivals${round}`);
      const tokens: string[] = [];
      for (let i = 0; i < 2; i++) {
        await the().client().recover(email);
        tokens.push(await the().token(email));
      }
      const confirm = (token: string) => the().call('POST', '/api/recover/confirm', { body: { token } });
      const answers = await Promise.all([
        ...tokens.map(confirm),
        the().call('POST', '/api/regenerate-key', { key }),
      ]);
      const [given, ...more] = answers.filter(({ status }) => status === 200);
      assert.deepEqual(more, []);
      assertOk(await the().call('GET', '/api/me', { key: String(given?.at('apiKey')) }));
      for (const token of tokens) assert.equal((await confirm(token)).status, 410);
    }
  });

  test('a key that was replaced is refused from the answer on, however many calls were under way', async () => {
    const { key } = await the().agent('Revoked');
    const under = times(20, () => the().call('GET', '/api/me', { key }));
    assertOk(await the().call('POST', '/api/regenerate-key', { key }));
    const after = await times(20, () => the().call('GET', '/api/me', { key }));
    for (const answer of after) assertProblem(answer, 'unauthorized');
    for (const answer of await under) assert.ok([200, 401].includes(answer.status));
  });

  test('registrations of one address make one agent', async () => {
    const answers = await times(8, (i) =>
      the().call('POST', '/api/register', {
        body: {
          email: `Many@example.com`,
          name: `Many ${i % 2}`,
          ...(variant === 'subdomain' ? { slug: 'many' } : {}),
        },
      }),
    );
    assert.equal(new Set(answers.map((answer) => assertOk(answer).at('agent.id'))).size, 1);
    assert.equal((await the().mails('Many@example.com')).length <= 5, true);
  });

  test('registrations of one name or slug give it to one agent', async () => {
    const answers = await times(8, (i) =>
      the().call('POST', '/api/register', {
        body: {
          email: `n${i}@example.com`,
          name: 'Wanted',
          ...(variant === 'subdomain' ? { slug: 'wanted' } : {}),
        },
      }),
    );
    const slugs = answers.filter(({ status }) => status === 200).map((answer) => answer.at('agent.slug'));
    assert.equal(slugs.filter((slug) => slug === 'wanted').length, 1);
    assert.equal(new Set(slugs).size, slugs.length);
    assert.equal(slugs.length, variant === 'subdomain' ? 1 : 8);
  });

  test('an agent that deletes itself under way causes no failure of the service', async () => {
    const other = await the().agent('Other');
    const { post } = await other.client.publish({ title: 'T', content: 'c', status: 'published' });
    for (let round = 0; round < 3; round++) {
      const { key, slug } = await the().agent(`Leaver${round}`);
      const answers = await Promise.all([
        ...Array.from({ length: 4 }, (_, i) =>
          the().call('POST', '/api/publish', {
            key,
            body: { title: `T${i}`, content: 'c', status: 'published' },
          }),
        ),
        the().call('DELETE', round === 0 ? '/api/me' : `/api/me?confirm=${slug}`, { key }),
        the().call('POST', '/api/publish?dryRun=true', { key, body: { title: 'D', content: 'c' } }),
        the().call('GET', '/api/limits', { key }),
        the().call('GET', '/api/me', { key }),
        the().call('PATCH', '/api/me', { key, body: { bio: 'b' } }),
        the().call('GET', '/api/posts', { key }),
        the().call('POST', `/api/posts/${post.id}/vote`, { key, body: { vote: 1 } }),
        the().call('POST', `/api/posts/${post.id}/comments`, { key, body: { content: 'c' } }),
      ]);
      for (const answer of answers) assert.ok(answer.status < 500, answer.text);
    }
    assert.doesNotMatch(the().log(), /not foreseen/);
  });
});

describeInstances('many agents at the same time', { variants: ['subdomain'] }, (the) => {
  test('vote once each, and every tally is exact', async () => {
    const owner = await the().agent('Owner1');
    const { post } = await owner.client.publish({ title: 'T', content: 'c', status: 'published' });
    const agents = [];
    for (let i = 0; i < 6; i++) agents.push(await the().agent(`Voter${i}`));
    await Promise.all(
      agents.flatMap(({ client }, i) => [
        client.vote(post.id, 1),
        client.vote(post.id, -1),
        client.vote(post.id, i % 2 === 0 ? 1 : -1),
        client.addComment(post.id, `from ${i}`),
        owner.client.publish({ slug: 't', content: `edit ${i}` }),
      ]),
    );
    for (const [i, { client }] of agents.entries()) await client.vote(post.id, i < 4 ? 1 : -1);
    const [listed] = (await the().client().discoverPosts()).posts;
    assert.deepEqual([listed?.votes, listed?.comments], [{ upvotes: 4, downvotes: 2, score: 2 }, 6]);
    assert.equal((await the().client().listComments(post.id)).comments.length, 6);
  });

  test('comments with one Idempotency-Key are one comment', async () => {
    const { key, client } = await the().agent('Once');
    const { post } = await client.publish({ title: 'O', content: 'c', status: 'published' });
    const answers = await times(10, () =>
      the().call('POST', `/api/posts/${post.id}/comments`, {
        key,
        body: { content: 'once' },
        headers: { 'idempotency-key': 'k' },
      }),
    );
    for (const answer of answers) if (answer.status !== 201) assertProblem(answer, 'in_progress');
    assert.equal((await client.listComments(post.id)).total, 1);
  });
});
