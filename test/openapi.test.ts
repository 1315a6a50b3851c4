import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { OpenApiDocument } from '../src/schemas/openapi.ts';
import { moderatePost } from '../src/services/operators/post-moderation.ts';
import { answerFaults, documentOf, operationAt, operationsOf, parametersOf } from './support/api-document.ts';
import { makePng } from './support/made-pictures.ts';
import { describeInstances, type CallOptions, type Instance } from './support/instance.ts';

const run = promisify(execFile);

describeInstances('the OpenAPI document', {}, (the) => {
  test('satisfies the recommended rules of redocly without a warning', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'masthead-openapi-'));
    try {
      // Its rules allow no address of the machine itself among the servers.
      const text = JSON.stringify(await documentOf(the())).replaceAll(
        /http:\/\/localhost(?::\d+)?/g,
        'https://masthead.test',
      );
      await writeFile(join(folder, 'openapi.json'), text);
      await writeFile(join(folder, 'redocly.yaml'), 'extends: [recommended]\ntelemetry: off\n');
      const program = fileURLToPath(new URL('../node_modules/@redocly/cli/bin/cli.js', import.meta.url));
      const { stdout, stderr } = await run(
        process.execPath,
        [program, 'lint', '--format=json', 'openapi.json'],
        {
          cwd: folder,
          env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
        },
      );
      const { totals }: { totals: unknown } = JSON.parse(stdout);
      assert.deepEqual(totals, { errors: 0, warnings: 0, ignored: 0 }, stdout + stderr);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('is not sent again to whoever has it', async () => {
    const first = await the().call('GET', '/api/openapi.json');
    const etag = String(first.headers['etag']);
    const again = await the().call('GET', '/api/openapi.json', { headers: { 'if-none-match': etag } });
    assert.deepEqual([again.status, again.text, again.headers['etag']], [304, '', etag]);
  });

  test('describes every answer that a life brings, and each of its operations succeeds in it', async () => {
    const instance = the();
    const document = await documentOf(instance);
    const succeeded = new Set<string>();
    const faults: string[] = [];

    async function call(method: string, path: string, options: CallOptions = {}) {
      const answer = await instance.call(method, path, options);
      const found = answerFaults(document, { method, path }, answer);
      faults.push(...found.map((fault) => `${method} ${path} ${answer.status}: ${fault}`));
      const { pathname } = new URL(path, 'http://x');
      // Of an archive, few are made in a day.
      if (method === 'GET' && answer.status === 200 && path !== '/api/me/export')
        faults.push(...(await faultsAskedAgain(instance, document, path, options)));
      if (answer.status < 400)
        succeeded.add(operationAt(document, method, pathname)?.operation.operationId ?? path);
      return answer;
    }

    await live(instance, call);
    assert.deepEqual(faults, []);
    const described = operationsOf(document).map(({ operation }) => operation.operationId);
    assert.deepEqual([...succeeded].toSorted(), described.toSorted());
  });
});

/** What is wrong with an answer that has an ETag when it is asked for compressed, and when it is known already. */
async function faultsAskedAgain(
  instance: Instance,
  document: OpenApiDocument,
  path: string,
  options: CallOptions,
): Promise<string[]> {
  const placed = operationAt(document, 'GET', new URL(path, 'http://x').pathname);
  if (!parametersOf(placed?.operation.parameters, 'header').includes('If-None-Match')) return [];
  const ask = (headers: Record<string, string>) =>
    instance.call('GET', path, { ...options, headers: { ...options.headers, ...headers } });
  const plain = await ask({ 'accept-encoding': 'identity' });
  const compressed = await ask({ 'accept-encoding': 'gzip' });
  const known = await ask({ 'if-none-match': String(plain.headers['etag']) });
  return [
    ...(compressed.text === plain.text ? [] : [`${path} reads otherwise compressed`]),
    ...(known.status === 304 && known.text === '' ? [] : [`${path} answers ${known.status} to its ETag`]),
  ];
}

type Call = (method: string, path: string, options?: CallOptions) => ReturnType<Instance['call']>;

/** Every operation with success, and most with each kind of failure. */
async function live(instance: Instance, call: Call): Promise<void> {
  const hasSlugs = instance.variant === 'subdomain';
  const email = 'ada@example.com';
  const registration = { email, name: 'Ada', ...(hasSlugs ? { slug: 'ada' } : {}) };
  const once = { 'idempotency-key': 'first' };

  for (const path of ['/api', '/healthz', '/readyz', '/api/openapi.json', '/api/limits'])
    await call('GET', path);
  await call('POST', '/api/register', { body: registration, headers: once });
  await call('POST', '/api/register', { body: registration, headers: once });
  await call('POST', '/api/register', { body: { ...registration, name: 'Eve' }, headers: once });
  await call('POST', '/api/register', { body: { nmae: 'Ada', email: 'x' } });
  await call('POST', '/api/register', { body: '{' });
  await call('POST', '/api/register', { body: 'a=b', headers: { 'content-type': 'text/plain' } });
  await call('POST', '/api/register', { body: `"${'x'.repeat(70_000)}"` });
  await call('POST', '/api/recover', { body: { email: 'nobody@example.com' } });
  await call('GET', '/api/verify');
  await call('GET', '/api/verify?token=unknown');
  const verified = await call('GET', `/api/verify?token=${await instance.token(email)}`);
  let key = String(verified.at('apiKey'));
  await call('GET', '/api/me', { key });
  await call('GET', '/api/me');
  await call('GET', '/api/me', { key: 'wrong' });
  await call('GET', `/api/verify?token=${await instance.token(email)}`);
  await call('POST', '/api/register', { body: { ...registration, name: 'Ada 2' } });
  await call('POST', '/api/verify', { body: { token: 'unknown' } });
  await call('PATCH', '/api/me', { key, body: { bio: 'Notes.', avatarUrl: 'https://example.com/a.png' } });
  await call('GET', '/api/limits', { key });
  await call('GET', '/api/me/export', { key });

  const post = { title: 'Note G', content: '# Bernoulli', status: 'published', tags: ['engine'], statsu: 1 };
  const created = await call('POST', '/api/publish', { key, body: post });
  const id = String(created.at('post.id'));
  const etag = String(created.headers['etag']);
  await call('POST', '/api/publish', { key, body: post });
  const report = {
    url: created.at('post.url'),
    reason: 'spam',
    explanation: 'Nothing but advertisements.',
    goodFaith: true,
  };
  for (const changes of [{}, {}, { url: 'https://other.example' }, { reason: 'illegal' }])
    await call('POST', '/api/reports', { body: { ...report, ...changes } });
  const appeal = { key, body: { text: 'Nothing of it is an advertisement.' } };
  await call('POST', '/api/appeals', appeal);
  const hidden = { state: 'hidden', reason: 'advertisements' } as const;
  await instance.ctx().engine.write(moderatePost, { postId: id, to: hidden });
  for (const body of [appeal.body, appeal.body, { text: 'short' }])
    await call('POST', '/api/appeals', { key, body });
  await instance.ctx().engine.write(moderatePost, { postId: id, to: null });
  await call('POST', '/api/appeals', appeal);
  await call('POST', '/api/publish', { key, body: { title: 'Draft', content: 'x' } });
  await call('POST', '/api/posts', { key, body: { title: 'By its other address', content: 'x' } });
  await call('POST', '/api/publish?dryRun=true', { key, body: { ...post, title: 'Other' } });
  await call('POST', '/api/publish', {
    key,
    body: '# By hand\n\ntext',
    headers: { 'content-type': 'text/markdown' },
  });
  await call('POST', '/api/publish', { key, body: { title: '', content: 7 } });
  await call('POST', '/api/publish', { key, body: { ...post, content: `see ${key}` } });
  await call('POST', '/api/publish', { key, body: { ...post, content: 'x'.repeat(600_000) } });
  await call('POST', '/api/publish', { key, body: post, headers: { 'if-none-match': '*' } });
  await call('GET', '/api/posts', { key });
  await call('GET', '/api/me/posts?tag=Engine', { key });
  await call('GET', '/api/me/posts?view=brief', { key });
  await call('GET', '/api/posts');
  await call('GET', '/api/posts/lookup?agent=nobody&slug=x');
  await call('GET', '/api/posts/lookup?slug=x');
  const url = String(created.at('post.url'));
  await call('GET', `/api/posts/lookup?url=${url}`);
  await call('PATCH', `/api/posts/${id}`, { key, body: { slug: 'note-g-moved' } });
  await call('GET', `/api/posts/lookup?url=${url}`);
  await call('GET', '/api/posts?status=draft&limit=1', { key });
  await call('GET', '/api/posts?limit=many', { key });
  await call('GET', `/api/posts/${id}`);
  await call('GET', `/api/posts/${id}`, { headers: { 'if-none-match': etag } });
  await call('GET', '/api/posts/none');
  await call('PATCH', `/api/posts/${id}`, { key, body: { title: 'Note G, mended', lang: 'en' } });
  await call('PATCH', `/api/posts/${id}`, { key, body: { title: 'x' }, headers: { 'if-match': etag } });

  for (const at of ['', '?limit=1', '/1', '/1/diff', '/1/diff?to=2', '/9', '/x', '/1/diff?to=x'])
    await call('GET', `/api/posts/${id}/revisions${at}`, { key });
  await call('POST', `/api/posts/${id}/preview`, { key });
  await call('DELETE', `/api/posts/${id}/preview`, { key });
  await call('POST', `/api/posts/${id}/revisions/1/restore`, { key });
  await call('POST', `/api/posts/${id}/revisions/9/restore`, { key });
  await call('DELETE', `/api/posts/${id}/revisions/1`, { key });
  await call('DELETE', `/api/posts/${id}/revisions/3`, { key });
  await call('DELETE', `/api/posts/${id}/revisions`, { key });

  const picture = { key, body: makePng(), headers: { 'content-type': 'image/png' } };
  const stored = await call('POST', '/api/media?alt=A%20square.', picture);
  await call('POST', '/api/media', picture);
  await call('POST', '/api/media', { ...picture, body: makePng().subarray(0, -4) });
  await call('POST', '/api/media', { ...picture, headers: { 'content-type': 'image/svg+xml' } });
  const asked = { name: 'upload_media', arguments: { type: 'image/png' } };
  const linked = await instance.call('POST', '/mcp', {
    key,
    body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: asked },
  });
  const { uploadUrl }: { uploadUrl: string } = JSON.parse(String(linked.at('result.content.0.text')));
  const { key: _key, ...byLink } = picture;
  const { pathname } = new URL(uploadUrl);
  for (const body of [byLink.body, byLink.body, makePng(), makePng().subarray(0, -4)])
    await call('PUT', pathname, { ...byLink, body });
  await call('PUT', `${pathname}?alt=x`, byLink);
  await call('PUT', pathname, { ...byLink, headers: { 'content-type': 'image/gif' } });
  const ofPicture = `/api/media/${String(stored.at('media.id'))}`;
  for (const query of ['', '?unused=true', '?sha256=x']) await call('GET', `/api/media${query}`, { key });
  for (const alt of ['A box.', 'A box.', 5]) await call('PATCH', ofPicture, { key, body: { alt } });
  for (const method of ['GET', 'DELETE', 'DELETE']) await call(method, ofPicture, { key });

  const inbox = await call('GET', '/api/me/inbox', { key });
  await call('GET', '/api/me/inbox?kind=votes&limit=x', { key });
  await call('POST', '/api/me/inbox/seen', { key, body: { cursor: inbox.at('cursor') } });
  await call('POST', '/api/me/inbox/seen', { key, body: { cursor: 'x' } });
  if (hasSlugs) {
    await call('PUT', '/api/me/blocks/nobody', { key });
    const { slug } = await instance.agent('Eve');
    await call('PUT', `/api/me/blocks/${slug}`, { key });
    await call('GET', '/api/me/blocks', { key });
    await call('DELETE', `/api/me/blocks/${slug}`, { key });
    await call('GET', '/api/posts?since=2020-01-01&limit=1');
    await call('GET', '/api/posts?agent=ada&tag=engine');
    await call('GET', '/api/posts?agent=nobody');
    await call('GET', '/api/blogs?sort=posts');
    await call('GET', '/api/posts/featured?limit=5');
    await call('GET', '/api/search?q=bernoulli');
    await call('GET', '/api/search');
    const body = { content: 'It *runs*.' };
    const comment = await call('POST', `/api/posts/${id}/comments`, { key, body, headers: once });
    await call('POST', `/api/posts/${id}/comments`, { key, body, headers: once });
    const said = `/api/posts/${id}/comments/${String(comment.at('comment.id'))}`;
    const answer = { content: 'It does.', parentId: comment.at('comment.id') };
    await call('POST', `/api/posts/${id}/comments`, { key, body: answer });
    await call('PATCH', said, { key, body: { content: 'It runs well.' } });
    await call('GET', `/api/posts/${id}/comments`);
    await call('POST', `/api/posts/${id}/vote`, { key, body: { vote: 1 } });
    await call('POST', `/api/posts/${id}/vote`, { key, body: { vote: 2 } });
    await call('GET', `/api/posts/${id}/vote`, { key });
    for (const list of ['comments', 'votes', 'comments?limit=1', 'votes?limit=1'])
      await call('GET', `/api/me/${list}`, { key });
    await call('DELETE', `/api/posts/${id}/vote`, { key });
    await call('DELETE', said, { key });
    await call('GET', `/api/posts/${id}/comments`);
  }

  key = String((await call('POST', '/api/regenerate-key', { key })).at('apiKey'));
  await call('POST', '/api/recover', { body: { email } });
  await call('POST', '/api/verify', { body: { token: await instance.token(email) } });
  const confirmed = await call('POST', '/api/recover/confirm', {
    body: { token: await instance.token(email) },
  });
  key = String(confirmed.at('apiKey'));
  await call('DELETE', `/api/posts/${id}`, { key });
  await call('DELETE', `/api/posts/${id}`, { key });
  await call('GET', `/api/posts/${id}`, { key });
  await call('GET', '/api/me/trash', { key });
  await call('POST', `/api/posts/${id}/restore`, { key });
  await call('POST', `/api/posts/${id}/restore`, { key, body: { slug: 'again' } });
  await call('POST', `/api/posts/${id}/restore`, { key, body: { slgu: 'again' } });
  await call('DELETE', `/api/posts/${id}`, { key });
  await call('DELETE', `/api/posts/${id}?permanent=true`, { key });
  await call('DELETE', '/api/me/trash', { key });
  await call('POST', '/api/me/restore', { key });
  await call('DELETE', '/api/me', { key });
  await call('GET', '/api/me', { key });
  await call('PATCH', '/api/me', { key, body: { name: 'x' } });
  await call('POST', '/api/me/restore', { key });
  await call('DELETE', '/api/me', { key, body: { confirm: 'not-its-slug' } });
  await call('DELETE', '/api/me?confirm=ada', { key });
}
