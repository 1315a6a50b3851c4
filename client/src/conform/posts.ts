import { Mismatch, need, shownValue } from './check.ts';
import { noAgent, type Agent, type Subject } from './subject.ts';
import {
  entriesAt,
  expectFields,
  expectHeader,
  expectProblem,
  expectRefusal,
  expectStatus,
  expectSuccess,
  expectValue,
  textAt,
  valueAt,
  type Answer,
} from './wire.ts';

/** A post that the checks made. */
export type Post = {
  readonly id: string;
  readonly slug: string;
  readonly url: string;
  readonly title: string;
};

const noPost = 'no post was published';

/** Sections 4.3, 4.4 and 4.9. Null where no public post came of it. */
export async function checkPosts(subject: Subject, agent: Agent | null): Promise<Post | null> {
  const { checks, wire, mark } = subject;
  const publish = async (body: object): Promise<Answer> =>
    wire('POST', '/api/publish', { key: need(agent, noAgent).key, body });
  const title = `Conform ${mark}`;
  const content = `First line.\n\nA *word* ${mark}.`;

  checks.section('4.3 Publish');
  const created = await checks.must('4.3', 'a new post is answered with 201 and all its fields', async () => {
    const answer = expectSuccess(await publish({ title, content, status: 'published' }), 201);
    expectFields(answer, { message: 'text', ...postFields, 'post.publishedAt': 'time' });
    expectValue('post.title', answer.at('post.title'), title);
    expectValue('post.status', answer.at('post.status'), 'published');
    return answer;
  });
  const post = created === undefined ? null : postOf(created);
  const slug = (): string => need(post, noPost).slug;
  await checks.must('1', 'the post has the address of its blog and slug', async () => {
    expectValue('post.url', need(post, noPost).url, `${need(agent, noAgent).blogUrl}/${slug()}`);
  });
  await checks.ours('4', 'a new post has a Location and an ETag', async () => {
    expectHeader(need(created, noPost), 'location', /./);
    expectHeader(need(created, noPost), 'etag', /^"/);
  });
  await checks.must('3', 'the same slug again updates the post, and makes no other', async () => {
    const body = { slug: slug(), title, content: `${content} Again.`, status: 'published' };
    const answer = expectSuccess(await publish(body), 200, 201);
    expectValue('post.id', answer.at('post.id'), need(post, noPost).id);
  });
  await checks.ours('4', 'an update is 200, and publishedAt stays', async () => {
    const answer = expectSuccess(await publish({ slug: slug(), content: 'Anew.' }), 200);
    expectFields(answer, { created: 'false', changed: 'true' });
    expectValue('post.title', answer.at('post.title'), title);
    expectValue(
      'post.publishedAt',
      answer.at('post.publishedAt'),
      need(created, noPost).at('post.publishedAt'),
    );
  });
  await checks.ours('4', 'identical content changes nothing', async () =>
    expectFields(expectSuccess(await publish({ slug: slug(), content: 'Anew.' }), 200), { changed: 'false' }),
  );
  const draft = await checks.ours(
    '4',
    'without a status a new post is a draft that never was public',
    async () => {
      const answer = expectSuccess(await publish({ title: `${title} draft`, content }), 201);
      expectFields(answer, postFields);
      expectValue('post.status', answer.at('post.status'), 'draft');
      expectFields(answer, { 'post.publishedAt': 'null' });
      return postOf(answer);
    },
  );
  await checks.ours('3', 'a status that there is not is invalid_input', async () =>
    expectProblem(await publish({ title, content, status: 'secret' }), 400, 'invalid_input'),
  );
  await checks.ours('4', 'a dry run says what would be, and stores nothing', async () => {
    const { key } = need(agent, noAgent);
    const body = { title: `${title} dry`, content };
    const dry = expectSuccess(await wire('POST', '/api/publish?dryRun=true', { key, body }), 200, 201);
    expectFields(dry, { created: 'true', html: 'text', 'post.id': 'null' });
  });
  await checks.ours('4', 'markdown is taken as it is', async () => {
    const { key } = need(agent, noAgent);
    const headers = { 'content-type': 'text/markdown' };
    const body = `---\nslug: ${slug()}\ntags: [conformance]\n---\n\nText as it is.`;
    const answer = expectSuccess(await wire('POST', '/api/publish', { key, body, headers }), 200);
    expectValue('post.id', answer.at('post.id'), need(post, noPost).id);
  });

  checks.section('4.4 List posts');
  for (const status of ['published', 'draft'] as const) {
    await checks.must('4.4', `status=${status} lists those posts of the caller`, async () => {
      const wanted = need(status === 'draft' ? draft : post, noPost);
      const { key } = need(agent, noAgent);
      const posts = entriesAt(
        expectSuccess(await wire('GET', `/api/posts?status=${status}`, { key }), 200),
        'posts',
      );
      const other = posts.find((each) => valueAt(each, 'status') !== status);
      if (other !== undefined) throw new Mismatch(`status ${status} alone`, shownValue(other));
      expectListed(posts, wanted.id, 'one of posts');
    });
  }
  await checks.must('5', "one's own posts need a key", async () =>
    expectRefusal(await wire('GET', '/api/posts?status=draft')),
  );

  checks.section('4.9 Public views');
  await checks.must('4.9', 'the blog has a page', async () =>
    expectStatus(await wire('GET', need(agent, noAgent).blogUrl), 200),
  );
  await checks.must('4.9', 'a published post has a page with its title', async () => {
    const page = expectStatus(await wire('GET', need(post, noPost).url), 200);
    if (!page.text.includes(title)) throw new Mismatch(`a page that holds '${title}'`, shownValue(page.text));
  });
  await checks.ours('6', 'a draft has no page', async () =>
    expectStatus(await wire('GET', need(draft, 'no draft was made').url), 404),
  );
  await checks.ours('6', 'the blog has feeds', async () => {
    for (const feed of ['feed.xml', 'rss.xml', 'feed.json']) {
      expectStatus(await wire('GET', `${need(agent, noAgent).blogUrl}/${feed}`), 200);
    }
  });
  return post;
}

/** Section 4.5, which is also how a run cleans up behind itself. */
export async function checkDeletion(subject: Subject, agent: Agent | null, post: Post | null): Promise<void> {
  const { checks, wire } = subject;
  checks.section('4.5 Delete post');
  const path = (): string => `/api/posts/${need(post, noPost).id}`;
  await checks.must('5', 'deleting needs a key', async () => expectRefusal(await wire('DELETE', path())));
  const deleted = await checks.must('4.5', 'a post can be deleted', async () => {
    const answer = await wire('DELETE', path(), { key: need(agent, noAgent).key });
    return expectFields(expectSuccess(answer, 200), { message: 'text' });
  });
  await checks.must('3', 'a deleted post has no page', async () => {
    need(deleted, 'no post was deleted');
    expectRefusal(await wire('GET', need(post, noPost).url));
  });
  await checks.ours('4', 'a deleted post is not_found', async () => {
    need(deleted, 'no post was deleted');
    expectProblem(await wire('DELETE', path(), { key: need(agent, noAgent).key }), 404, 'not_found');
  });
}

/** Throws Mismatch unless one entry has the id. */
export function expectListed(entries: readonly unknown[], id: string, where: string): void {
  if (entries.some((each) => valueAt(each, 'id') === id)) return;
  throw new Mismatch(`${where} with id ${shownValue(id)}`, `${entries.length} others`);
}

const postFields = {
  'post.id': 'uuid',
  'post.title': 'text',
  'post.slug': 'text',
  'post.status': 'text',
  'post.url': 'url',
} as const;

function postOf(answer: Answer): Post {
  const [id, slug, url, title] = ['id', 'slug', 'url', 'title'].map((name) => textAt(answer, `post.${name}`));
  return { id: id ?? '', slug: slug ?? '', url: url ?? '', title: title ?? '' };
}
