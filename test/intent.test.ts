import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { OpenApiDocument } from '../src/schemas/openapi.ts';
import { operationsOf } from './support/api-document.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';

const id = '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c';

describeInstances('what was not meant', {}, (the) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
  });
  const publish = (body: object) =>
    the().call('POST', '/api/publish', {
      key: ada.key,
      body: { title: 'Not yet', content: 'c', status: 'published', ...body },
    });
  const publishMarkdown = (query: string) =>
    the().call('POST', `/api/publish?title=Not+yet&status=published&${query}`, {
      key: ada.key,
      body: 'c',
      headers: { 'content-type': 'text/markdown' },
    });

  test('is not done by any call that changes something and has no dry run', async () => {
    const { email } = ada;
    await the().call('POST', '/api/recover', { body: { email } });
    const token = await the().token(email);
    const document: OpenApiDocument = JSON.parse((await the().call('GET', '/api/openapi.json')).text);
    const changing = operationsOf(document).filter(
      ({ method, operation: { operationId } }) =>
        operationId === 'verify' ||
        (method !== 'GET' && !['publish', 'publishPost', 'updatePost', 'deletePost'].includes(operationId)),
    );
    assert.ok(changing.length > 6);
    for (const { method, path, operation } of changing) {
      const address = path.replace(/\{\w+\}/g, id);
      const body = { token, email, name: 'New', slug: 'new', title: 'New', content: 'New', vote: 1 };
      for (const [query, asked] of [
        ['?dryRun=true', {}],
        ['?dry_run=1', {}],
        ['', { dryRun: true }],
      ] as const) {
        // An address that is no link is refused first; of a picture, the body has no fields.
        if (operation.operationId === 'uploadByLink') continue;
        if (query === '' && (method === 'GET' || operation.operationId === 'uploadMedia')) continue;
        const answer = await the().call(method, `${address}${query}`, {
          key: ada.key,
          ...(method === 'GET' ? {} : { body: { ...body, ...asked } }),
        });
        assertProblem(answer, 'invalid_input');
        assert.match(answer.text, /POST \/api\/publish has one/, `${method} ${address}${query}`);
      }
    }
    const me = assertOk(await the().call('GET', '/api/me', { key: ada.key }));
    assert.equal(me.at('agent.name'), 'Ada');
    const recovered = assertOk(await the().call('POST', '/api/recover/confirm', { body: { token } }));
    const key = String(recovered.at('apiKey'));
    ada = { ...ada, key, client: the().client(key) };
  });

  for (const [field, value, right] of [
    ['preview', true, /'dryRun': true/],
    ['validateOnly', true, /'dryRun': true/],
    ['draft', true, /'status': 'draft'/],
    ['isDraft', 'true', /'status': 'draft'/],
    ['published', false, /'status': 'draft'/],
    ['publishAt', '2030-01-01', /does not say the zone/],
  ] as const) {
    test(`is not published: ${field}`, async () => {
      for (const answer of [
        await publish({ [field]: value }),
        await publishMarkdown(`${field}=${String(value)}`),
      ]) {
        assertProblem(answer, 'invalid_input');
        assert.equal(answer.at('errors.0.field'), field);
        assert.match(String(answer.at('errors.0.message')), right);
      }
      assert.equal((await the().call('GET', '/api/posts?status=published', { key: ada.key })).at('total'), 0);
    });
  }

  test('is not deleted, however the dry run is spelled', async () => {
    const { post } = await ada.client.publish({ title: 'Stays', content: 'c' });
    for (const name of ['dry_run', 'dryrun', 'dry-run', 'Dry_Run', 'DRY-RUN'])
      for (const more of ['', '&permanent=true']) {
        const answer = await the().call('DELETE', `/api/posts/${post.id}?${name}=true${more}`, ada);
        assert.equal(assertOk(answer).at('dryRun'), true, name);
        assert.match(String(answer.at('warnings.0')), new RegExp(`'${name}' was taken as 'dryRun'`));
      }
    await ada.client.getPost(post.id);
    await ada.client.deletePost(post.id, { permanent: true });
  });

  for (const name of ['publishAt', 'publish_at', 'PublishAt', 'schedule', 'Scheduled-For'])
    test(`is not published at once where the address of a JSON body has ${name}`, async () => {
      const { post } = await ada.client.publish({ title: 'Draft', content: 'c' });
      const query = `?${name}=2027-12-01T09:00:00Z`;
      const body = { title: 'Not yet', content: 'c', status: 'published' };
      for (const [method, path] of [
        ['POST', '/api/publish'],
        ['POST', '/api/posts'],
        ['PATCH', `/api/posts/${post.id}`],
      ] as const) {
        const answer = await the().call(method, `${path}${query}`, { key: ada.key, body });
        assert.equal(assertProblem(answer, 'invalid_input').at('errors.0.field'), name);
        assert.match(String(answer.at('errors.0.message')), /belongs in the JSON body/);
      }
      assert.deepEqual((await ada.client.getPost(post.id)).post.status, 'draft');
      await ada.client.deletePost(post.id, { permanent: true });
      assert.equal((await ada.client.myPosts()).total, 0);
    });

  test('is not published where only the address says so, and the body that it is', async () => {
    const json = { title: 'Not yet', content: 'c', status: 'published' };
    const markdown = '---\ntitle: Not yet\nstatus: published\n---\n\nText.';
    for (const query of ['draft=true', 'preview=1', 'published=false', 'is-draft=yes'])
      for (const [body, type] of [
        [json, 'application/json'],
        [markdown, 'text/markdown'],
      ] as const) {
        const headers = { 'content-type': type };
        const answer = await the().call('POST', `/api/publish?${query}`, { key: ada.key, body, headers });
        assertProblem(answer, 'invalid_input');
        assert.equal(answer.at('errors.0.field'), query.split('=')[0]);
      }
    assert.equal((await ada.client.myPosts()).total, 0);
  });

  test('is no change of a part, where front matter has fields of such names', async () => {
    const fields = [
      'from: Ada',
      'to: Bob',
      'original: A letter',
      'updated: today',
      'search: false',
      'edit: 2',
    ];
    const answer = assertOk(
      await the().call('POST', '/api/publish', {
        key: ada.key,
        body: `---\ntitle: A letter\n${fields.join('\n')}\n---\n\nText.`,
        headers: { 'content-type': 'text/markdown' },
      }),
      201,
    );
    assert.deepEqual(
      answer.at('warningCodes'),
      Array.from(fields, () => 'unknown_field'),
    );
    assertProblem(await publish({ from: 'Ada', to: 'Bob' }), 'invalid_input');
    await ada.client.deletePost(String(answer.at('post.id')), { permanent: true });
  });

  test('names that say what happens anyway are ignored with a warning', async () => {
    const drafts = [{ draft: true }, { published: false }].map((fields) => ({ status: 'draft', ...fields }));
    for (const fields of [{ draft: false }, { published: true }, ...drafts]) {
      const answer = await publish({ ...fields, title: Object.keys(fields).join(' ') });
      assert.match(String(assertOk(answer, 201).at('warnings.0')), /did you mean 'status'\?$/);
    }
  });

  test('is said before everything else in the answer', async () => {
    const lists = await the().call('GET', '/api/posts?topic=tides&page=2', { key: ada.key });
    assert.deepEqual(Object.keys(JSON.parse(assertOk(lists).text)).slice(0, 4), [
      'success',
      'warnings',
      'warningCodes',
      'posts',
    ]);
    assert.match(String(lists.at('warnings.0')), /'topic' ignored: this list takes 'status', 'since', /);
    assert.match(String(lists.at('warnings.1')), /'page' ignored: .*use 'cursor' or 'offset'$/);
  });
});
