import { checkAnswer, Mismatch, need, shownValue } from './check.ts';
import {
  entriesAt,
  expectHeader,
  expectListed,
  expectProblem,
  expectRefusal,
  expectStatus,
  expectSuccess,
  expectValue,
  text,
  time,
  url,
  uuid,
} from './expect.ts';
import { agentOf, draftOf, noPost, postOf, type Post, type Subject } from './subject.ts';
import { valueAt, type Answer } from './wire.ts';

/** Sections 4.3 and 4.4. Leaves a public post and a draft for the checks that follow. */
export async function checkPosts(subject: Subject): Promise<void> {
  const title = `Conform ${subject.mark}`;
  const content = `First line.\n\nA *word* ${subject.mark}.`;
  await checkPublishing(subject, title, content);
  await checkDrafts(subject, title, content);
  await checkOwnList(subject);
}

async function checkPublishing(subject: Subject, title: string, content: string): Promise<void> {
  const { section, must, ours } = subject.checks;
  const publish = async (body: object) => subject.keyed('POST', '/api/publish', { body });
  section('4.3 Publish');
  const created = await checkAnswer(
    must,
    ['4.3', 'a new post is answered with 201 and all its fields'],
    async () => publish({ title, content, status: 'published' }),
    (answer) =>
      expectSuccess(answer, 201, {
        ...postFields,
        message: text,
        'post.publishedAt': time,
        'post.title': title,
        'post.status': 'published',
        'post.disclosure': 'unspecified',
      }),
  );
  subject.post = postIn(created);
  const slug = (): string => postOf(subject).slug;
  await must('1', 'the post has the address of its blog and slug', () =>
    expectValue('post.url', postOf(subject).url, `${agentOf(subject).blogUrl}/${slug()}`),
  );
  await ours('4', 'a new post has a Location and an ETag', () => {
    expectHeader(need(created, noPost), 'location', /./);
    expectHeader(need(created, noPost), 'etag', /^(?:W\/)?"/);
  });
  await must('3', 'the same slug again updates the post, and makes no other', async () => {
    const body = { slug: slug(), title, content: `${content} Again.`, status: 'published' };
    expectSuccess(await publish(body), [200, 201], { 'post.id': postOf(subject).id });
  });
  await ours('4', 'an update is 200, and publishedAt stays', async () => {
    const answer = await publish({ slug: slug(), content: 'Anew.' });
    expectSuccess(answer, 200, { created: false, changed: true, 'post.title': title });
    const publishedAt = need(created, noPost).at('post.publishedAt');
    expectValue('post.publishedAt', answer.at('post.publishedAt'), publishedAt);
  });
  await ours('4', 'identical content changes nothing', async () =>
    expectSuccess(await publish({ slug: slug(), content: 'Anew.' }), 200, { changed: false }),
  );
  await ours('4', 'a new post with the same Idempotency-Key is made once', async () => {
    const headers = { 'idempotency-key': `post-${subject.mark}` };
    const body = { title: `Once ${subject.mark}`, content: 'Once.' };
    const send = async () => subject.keyed('POST', '/api/publish', { body, headers });
    const first = expectSuccess(await send(), 201, { created: true });
    expectSuccess(await send(), 201, { created: true, 'post.id': first.at('post.id') as string });
  });
  await ours('4', 'markdown is taken as it is', async () => {
    const headers = { 'content-type': 'text/markdown' };
    const body = `---\nslug: ${slug()}\ntags: [conformance]\n---\n\nText as it is.`;
    const answer = await subject.keyed('POST', '/api/publish', { body, headers });
    expectSuccess(answer, 200, { 'post.id': postOf(subject).id });
  });
}

/** What publishes nothing. */
async function checkDrafts(subject: Subject, title: string, content: string): Promise<void> {
  const { ours } = subject.checks;
  const publish = async (body: object, query = '') => subject.keyed('POST', `/api/publish${query}`, { body });
  const created = await checkAnswer(
    ours,
    ['4', 'without a status a new post is a draft that never was public'],
    async () => publish({ title: `${title} draft`, content }),
    (answer) =>
      expectSuccess(answer, 201, { ...postFields, 'post.status': 'draft', 'post.publishedAt': null }),
  );
  subject.draft = postIn(created);
  await ours('3', 'an unknown status is invalid_input', async () =>
    expectProblem(await publish({ title, content, status: 'secret' }), 400, 'invalid_input'),
  );
  await ours('4', 'a dry run says what would happen, and stores nothing', async () => {
    const answer = await publish({ title: `${title} dry`, content }, '?dryRun=true&html=true');
    expectSuccess(answer, [200, 201], { created: true, html: text, 'post.id': null });
    const own = await subject.keyed('GET', '/api/posts?status=draft');
    expectValue('stored:', own.text.includes(`"${title} dry"`), false);
  });
}

async function checkOwnList(subject: Subject): Promise<void> {
  const { section, must } = subject.checks;
  section('4.4 List posts');
  for (const status of ['published', 'draft'] as const) {
    await must('4.4', `status=${status} lists those posts of the caller`, async () => {
      const wanted = status === 'draft' ? draftOf(subject) : postOf(subject);
      const answer = expectSuccess(await subject.keyed('GET', `/api/posts?status=${status}`), 200);
      const other = entriesAt(answer, 'posts').find((each) => valueAt(each, 'status') !== status);
      if (other !== undefined) throw new Mismatch(`status ${status} alone`, shownValue(other));
      expectListed(answer, 'posts', wanted.id);
    });
  }
  await must('5', "one's own posts need a key", async () =>
    expectRefusal(await subject.wire('GET', '/api/posts?status=draft')),
  );
}

/** Section 4.5, which is also how a run cleans up behind itself. */
export async function checkDeletion(subject: Subject): Promise<void> {
  const { section, must, ours } = subject.checks;
  const path = (): string => `/api/posts/${postOf(subject).id}`;
  section('4.5 Delete post');
  await must('5', 'deleting needs a key', async () => expectRefusal(await subject.wire('DELETE', path())));
  const deleted = await must('4.5', 'a post can be deleted', async () =>
    expectSuccess(await subject.keyed('DELETE', path()), 200, { message: text }),
  );
  await must('3', 'a deleted post has no page', async () => {
    need(deleted, 'no post was deleted');
    expectRefusal(await subject.wire('GET', postOf(subject).url));
  });
  await ours('6', 'a post deleted after its publication is gone, not unknown', async () => {
    need(deleted, 'no post was deleted');
    expectStatus(await subject.wire('GET', postOf(subject).url), 410);
  });
  await ours('4', 'what belonged to a deleted post is gone with it', async () => {
    need(deleted, 'no post was deleted');
    for (const part of subject.variant === 'a' ? ['', '/comments'] : [''])
      expectProblem(await subject.wire('GET', path() + part), 404, 'not_found');
    const own = await subject.keyed('GET', '/api/posts?status=published');
    expectValue('listed:', own.text.includes(postOf(subject).id), false);
  });
  await ours('4', 'a deleted post is not_found', async () => {
    need(deleted, 'no post was deleted');
    expectProblem(await subject.keyed('DELETE', path()), 404, 'not_found');
  });
}

const postFields = {
  'post.id': uuid,
  'post.title': text,
  'post.slug': text,
  'post.status': text,
  'post.url': url,
};

/** The post of an answer; null where that has none. */
function postIn(answer: Answer | undefined): Post | null {
  const [id, slug, address, title] = ['id', 'slug', 'url', 'title'].map((name) => answer?.at(`post.${name}`));
  if (typeof id !== 'string' || typeof slug !== 'string') return null;
  return { id, slug, url: String(address), title: String(title) };
}
