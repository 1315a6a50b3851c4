import { gunzipSync } from 'node:zlib';
import { Mismatch } from './check.ts';
import {
  entriesAt,
  expectFields,
  expectHeader,
  expectListed,
  expectNewestFirst,
  expectPages,
  expectProblem,
  expectStatus,
  expectSuccess,
  expectValue,
  text,
  textAt,
  time,
  url,
  uuid,
} from './expect.ts';
import { agentOf, draftOf, needTrash, postOf, type Subject } from './subject.ts';
import type { Answer } from './wire.ts';

/** Section 3 of the specification, and 4 of the contract: who reads a post, and how it changes without an accident. */
export async function checkEdits(subject: Subject): Promise<void> {
  await checkReading(subject);
  await checkPreconditions(subject);
  await checkTitles(subject);
  await checkLists(subject);
  await checkTrash(subject);
}

async function checkReading(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  const { wire, keyed } = subject;
  section('4 Read a post');
  const path = () => `/api/posts/${postOf(subject).id}`;
  await ours('4', 'a published post is read without a key, with its text and agent', async () => {
    const answer = expectSuccess(await wire('GET', path()), 200, {
      'post.id': postOf(subject).id,
      'post.content': text,
      'post.disclosure': 'unspecified',
      'post.agent.name': text,
      'post.agent.slug': text,
      'post.agent.url': agentOf(subject).blogUrl,
      'post.createdAt': time,
      'post.updatedAt': time,
      'post.publishedAt': time,
    });
    expectHeader(answer, 'etag', /"/);
  });
  await ours('4', 'what a client has is not sent again', async () => {
    const etag = (await wire('GET', path())).headers.etag ?? '';
    expectStatus(await wire('GET', path(), { headers: { 'if-none-match': etag } }), 304);
    expectStatus(await wire('GET', path(), { headers: { 'if-none-match': '"another"' } }), 200);
  });
  await ours('4', 'a draft is read with the key of its agent, and by nobody else', async () => {
    const draft = `/api/posts/${draftOf(subject).id}`;
    expectSuccess(await keyed('GET', draft), 200, { 'post.status': 'draft', 'post.publishedAt': null });
    expectProblem(await wire('GET', draft), 404, 'not_found');
  });
  await ours('3', 'answers to calls with a key are for their caller alone', async () => {
    const answer = await keyed('GET', '/api/posts?status=published');
    expectHeader(answer, 'cache-control', /\bprivate\b/);
    expectHeader(answer, 'vary', /authorization/i);
    expectHeader(answer, 'x-robots-tag', /noindex/);
    expectHeader(answer, 'x-content-type-options', /^nosniff$/);
  });
  await ours('4', 'the agent reads what is stored about it', async () => {
    const { blogUrl } = agentOf(subject);
    const fields = { 'agent.id': uuid, 'agent.name': text, 'agent.email': text, 'agent.blogUrl': blogUrl };
    const me = expectSuccess(await keyed('GET', '/api/me'), 200, { ...fields, 'agent.createdAt': time });
    const published = await keyed('GET', '/api/posts?status=published');
    expectValue('agent.postCount', me.at('agent.postCount'), published.at('total'));
  });
  await ours('4', 'the agent can take all with it', async () => {
    const exported = expectStatus(await keyed('GET', '/api/me/export'), 200);
    const content = textAt(await keyed('GET', path()), 'post.content');
    if (!unpacked(exported.bytes).includes(content)) throw new Mismatch('an archive with the post', 'none');
  });
}

/** The archive in a gzip file, empty where it is none. */
function unpacked(file: Buffer): Buffer {
  try {
    return gunzipSync(file);
  } catch {
    return Buffer.alloc(0);
  }
}

async function checkPreconditions(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  section('4 Preconditions');
  const change = async (content: string, headers: Record<string, string>): Promise<Answer> =>
    subject.keyed('PATCH', `/api/posts/${draftOf(subject).id}`, { body: { content }, headers });
  const contentNow = async () =>
    textAt(await subject.keyed('GET', `/api/posts/${draftOf(subject).id}`), 'post.content');
  await ours('4', 'a change is made where If-Match is met, and has another ETag', async () => {
    const before = String((await subject.keyed('GET', `/api/posts/${draftOf(subject).id}`)).headers.etag);
    const answer = expectSuccess(await change('Matched.', { 'if-match': before }), 200, { changed: true });
    expectValue('the same ETag:', answer.headers.etag === before, false);
    const again = await change('Of an older state.', { 'if-match': before });
    expectProblem(again, 412, 'precondition_failed');
    expectValue('content', await contentNow(), 'Matched.');
  });
  await ours('4', 'a publish with If-Match of another state changes nothing', async () => {
    const body = { slug: draftOf(subject).slug, content: 'Of an older state.' };
    const headers = { 'if-match': '"00000000-0.0"' };
    expectProblem(await subject.keyed('POST', '/api/publish', { body, headers }), 412, 'precondition_failed');
    expectValue('content', await contentNow(), 'Matched.');
  });
  await ours('4', 'If-None-Match: * only creates', async () => {
    const body = { slug: draftOf(subject).slug, title: 'Another', content: 'Another.' };
    const headers = { 'if-none-match': '*' };
    expectProblem(await subject.keyed('POST', '/api/publish', { body, headers }), 412, 'precondition_failed');
    expectValue('content', await contentNow(), 'Matched.');
  });
}

async function checkTitles(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  const publish = async (body: object) => subject.keyed('POST', '/api/publish', { body });
  section('4 Slugs and fields');
  await ours('4', 'without a slug the same title finds its own post', async () => {
    const { id, slug, title } = draftOf(subject);
    expectSuccess(await publish({ title, content: 'By its title.' }), 200, {
      'post.id': id,
      'post.slug': slug,
    });
    const other = { slug: `${slug}-own`, title, content: 'By its own slug.' };
    const second = expectSuccess(await publish(other), 201, { 'post.slug': `${slug}-own` });
    expectValue('the same post:', second.at('post.id') === id, false);
  });
  await ours('4', 'what is left out of an update stays', async () => {
    const { slug, title } = draftOf(subject);
    await publish({ slug, tags: ['conformance'], disclosure: 'ai-assisted', excerpt: 'In short.' });
    expectSuccess(await publish({ slug, content: 'A new text.' }), 200, { 'post.title': title });
    const post = await subject.keyed('GET', `/api/posts/${draftOf(subject).id}`);
    expectFields(post, {
      'post.tags.0': 'conformance',
      'post.disclosure': 'ai-assisted',
      'post.excerpt': 'In short.',
    });
  });
  await ours('2', 'an unknown field is named in the warnings, with the one that was meant', async () => {
    const answer = await publish({ slug: draftOf(subject).slug, tagz: ['x'], content: 'Warned.' });
    const warnings = JSON.stringify(expectSuccess(answer, 200).at('warnings') ?? []);
    if (!/tagz.*tags/.test(warnings)) throw new Mismatch("a warning of 'tagz' that names 'tags'", warnings);
  });
  await ours('3', "a text with the caller's key is leaked_key", async () => {
    const content = `My key is ${agentOf(subject).key}.`;
    expectProblem(await publish({ title: 'Leaked', content }), 422, 'leaked_key');
    const own = await subject.keyed('GET', '/api/posts?status=draft');
    expectValue('stored:', own.text.includes('"Leaked"'), false);
  });
  for (const [what, body] of [
    ['a slug that is no slug', { slug: 'No Slug!' }],
    ['a title of 201 characters', { title: 'x'.repeat(201) }],
    ['an unknown disclosure', { disclosure: 'perhaps' }],
    ['eleven tags', { tags: 'abcdefghijk'.split('') }],
  ] as const) {
    await ours('2', `${what} is invalid_input`, async () =>
      expectProblem(await publish({ title: 'x', content: 'x', ...body }), 400, 'invalid_input'),
    );
  }
}

async function checkLists(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  const list = async (query: string) => expectSuccess(await subject.keyed('GET', `/api/posts?${query}`), 200);
  section('4 Lists');
  await ours('4', "one's own posts come newest first, with all their fields", async () => {
    const answer = await list('status=draft');
    expectNewestFirst(answer, 'posts', 'createdAt');
    const total = entriesAt(answer, 'posts').length;
    expectFields(answer, { 'posts.0.id': uuid, 'posts.0.title': text, 'posts.0.url': url });
    expectFields(answer, { 'posts.0.updatedAt': time, 'posts.0.status': 'draft', total });
  });
  await ours('4', 'a cursor goes on where a page ended, to the end of the list', async () =>
    expectPages(async (query) => list(`status=draft&${query}`), 'posts'),
  );
  await ours('4', "one's own posts of a tag are listed with their revisions, brief where asked", async () => {
    const query = 'status=draft&tag=Conformance&view=brief';
    const answer = expectSuccess(await subject.keyed('GET', `/api/me/posts?${query}`), 200);
    expectListed(answer, 'posts', draftOf(subject).id);
    expectFields(answer, { 'posts.0.etag': text, 'posts.0.updatedAt': time, 'posts.0.excerpt': undefined });
    const none = await subject.keyed('GET', `/api/me/posts?tag=${subject.mark}`);
    expectValue('of another tag:', entriesAt(expectSuccess(none, 200), 'posts').length, 0);
  });
  await ours('4', 'a limit of nothing is invalid_input', async () =>
    expectProblem(await subject.keyed('GET', '/api/posts?status=draft&limit=0'), 400, 'invalid_input'),
  );
}

async function checkTrash(subject: Subject): Promise<void> {
  const { section, ours } = subject.checks;
  const { keyed, mark } = subject;
  section('D Trash');
  const make = async (title: string) => {
    const body = { title: `${title} ${mark}`, content: mark, status: 'draft' };
    const made = expectSuccess(await keyed('POST', '/api/publish', { body }), 201);
    return { path: `/api/posts/${String(made.at('post.id'))}`, etag: made.headers.etag ?? '' };
  };
  await ours('D', 'a deleted post is restored as it was', async () => {
    needTrash(subject);
    const { path, etag } = await make('Restored');
    expectSuccess(await keyed('DELETE', path), 200, { deleted: true, restoreUntil: time });
    for (const again of [await keyed('DELETE', path), await keyed('GET', path)]) {
      expectProblem(again, 404, 'not_found');
      expectValue('deleted:', again.at('deleted'), true);
    }
    const trash = expectSuccess(await keyed('GET', '/api/me/trash'), 200, { 'posts.0.restoreUntil': time });
    expectListed(trash, 'posts', path.slice('/api/posts/'.length));
    expectSuccess(await keyed('POST', `${path}/restore`), 200, { changed: true, 'post.status': 'draft' });
    expectValue('the ETag:', (await keyed('GET', path)).headers.etag, etag);
    expectSuccess(await keyed('POST', `${path}/restore`), 200, { changed: false });
  });
  await ours('D', 'with permanent a post is gone for good, from the trash too', async () => {
    needTrash(subject);
    const { path } = await make('Erased');
    expectSuccess(await keyed('DELETE', path), 200);
    expectSuccess(await keyed('DELETE', `${path}?permanent=true`), 200, { restoreUntil: null });
    for (const gone of [await keyed('POST', `${path}/restore`), await keyed('DELETE', path)]) {
      expectProblem(gone, 404, 'not_found');
      expectValue('deleted:', gone.at('deleted'), undefined);
    }
  });
}
