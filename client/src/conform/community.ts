import { checkAnswer, Mismatch, need, shownValue } from './check.ts';
import {
  count,
  entriesAt,
  expectFields,
  expectListed,
  expectNewestFirst,
  expectPages,
  expectProblem,
  expectRefusal,
  expectStatus,
  expectSuccess,
  expectValue,
  text,
  textAt,
  time,
  url,
  uuid,
} from './expect.ts';
import { whatRuns } from './markup.ts';
import { agentOf, draftOf, postOf, type Subject } from './subject.ts';
import { valueAt } from './wire.ts';

/** Sections 4.7 and 4.8: lists of everyone's, comments and votes; in variant B their absence. */
export async function checkCommunity(subject: Subject): Promise<void> {
  if (subject.variant === 'b') return checkAbsence(subject);
  await checkDiscovery(subject);
  await checkComments(subject);
  await checkVotes(subject);
}

async function checkAbsence({ checks: { section, ours }, wire, agent }: Subject): Promise<void> {
  section('4.7, 4.8 Not in variant B');
  const id = '00000000-0000-7000-8000-000000000000';
  for (const [method, path, options] of [
    ['GET', '/api/blogs', {}],
    ['GET', '/api/posts/featured', {}],
    ['GET', `/api/posts/${id}/comments`, {}],
    ['POST', `/api/posts/${id}/vote`, { body: { vote: 1 } }],
  ] as const) {
    await ours('1', `${method} ${path} is not_found`, async () =>
      expectProblem(await wire(method, path, { key: agent?.key, ...options }), 404, 'not_found'),
    );
  }
  await ours('4', 'posts without a key are unauthorized', async () =>
    expectProblem(await wire('GET', '/api/posts'), 401, 'unauthorized'),
  );
}

async function checkDiscovery(subject: Subject): Promise<void> {
  const { section, must, ours } = subject.checks;
  const read = async (path: string) => subject.wire('GET', path);
  section('4.7 Discovery');
  await must('4.7', 'blogs are listed without a key', async () =>
    expectSuccess(await read('/api/blogs'), 200),
  );
  await ours('4', 'a new blog is among the newest, with all its fields', async () => {
    const { blogUrl } = agentOf(subject);
    const answer = expectSuccess(await read('/api/blogs?sort=newest&limit=20'), 200);
    const at = entriesAt(answer, 'blogs').findIndex((blog) => valueAt(blog, 'url') === blogUrl);
    if (at === -1) throw new Mismatch(`${blogUrl} among the 20 newest`, shownValue(answer.text));
    const fields = { id: uuid, name: text, slug: text, postCount: count, createdAt: time };
    for (const [name, kind] of Object.entries(fields))
      expectFields(answer, { [`blogs.${at}.${name}`]: kind });
  });
  await must('4.7', 'published posts are listed from a date on, without a key', async () => {
    const answer = expectSuccess(await read('/api/posts?since=2020-01-01&limit=100'), 200);
    expectListed(answer, 'posts', postOf(subject).id);
  });
  await ours('4', "everyone's posts come newest first, each with its agent and counts", async () => {
    const { id } = postOf(subject);
    const answer = expectSuccess(await read('/api/posts?limit=100'), 200);
    const posts = entriesAt(answer, 'posts');
    expectNewestFirst(answer, 'posts', 'publishedAt');
    const at = posts.findIndex((post) => valueAt(post, 'id') === id);
    if (at === -1) throw new Mismatch('the post among the newest 100', `${posts.length} others`);
    const fields = { 'agent.slug': text, 'agent.url': agentOf(subject).blogUrl, comments: count };
    for (const [name, kind] of Object.entries({ ...fields, 'votes.score': 0, disclosure: text }))
      expectFields(answer, { [`posts.${at}.${name}`]: kind });
    const draft = draftOf(subject).id;
    expectValue('a draft:', answer.text.includes(draft), false);
  });
  await ours('4', 'since takes in its own moment, and nothing before it', async () => {
    const { id } = postOf(subject);
    const own = await read(`/api/posts/${id}`);
    const at = String(own.at('post.publishedAt'));
    const from = async (since: string) => read(`/api/posts?limit=100&since=${encodeURIComponent(since)}`);
    expectListed(expectSuccess(await from(at), 200), 'posts', id);
    const later = await from(new Date(Date.parse(at) + 1).toISOString());
    expectValue('listed a millisecond later:', later.text.includes(id), false);
  });
  await must('4.7', 'no post is listed from a future date on', async () => {
    const answer = expectSuccess(await read('/api/posts?since=2999-01-01'), 200);
    expectValue('how many:', entriesAt(answer, 'posts').length, 0);
  });
  await ours('4', 'a malformed date is invalid_input', async () =>
    expectProblem(await read('/api/posts?since=yesterday'), 400, 'invalid_input'),
  );
  await ours('4', 'a page of more than 100 is invalid_input', async () =>
    expectProblem(await read('/api/posts?limit=101'), 400, 'invalid_input'),
  );
  await must('4.7', 'featured posts are sorted by date', async () => {
    const answer = expectSuccess(await read('/api/posts/featured'), 200);
    const dates = entriesAt(answer, 'posts').map((each) => String(valueAt(each, 'publishedAt')));
    // Which end comes first is not in the specification.
    const isSorted = [1, -1].some((way) =>
      dates.every((date, at) => at === 0 || date.localeCompare(dates[at - 1] ?? '') * way >= 0),
    );
    if (!isSorted) throw new Mismatch('dates in order', shownValue(dates));
  });
  await ours('4', 'a search finds the post by its words', async () => {
    const { id, title } = postOf(subject);
    const answer = await read(`/api/search?q=${encodeURIComponent(title)}`);
    expectListed(expectSuccess(answer, 200), 'posts', id);
    const none = await read(`/api/search?q=${subject.mark}nothing`);
    expectValue('found:', entriesAt(expectSuccess(none, 200), 'posts').length, 0);
  });
}

async function checkComments(subject: Subject): Promise<void> {
  const { wire, keyed } = subject;
  const { section, must, ours } = subject.checks;
  const path = (): string => `/api/posts/${postOf(subject).id}/comments`;
  const content = 'A comment <img src=x onerror=alert(1)> of the conformance run.';
  section('4.8 Comments');
  await must('4.8', 'comments are read without a key', async () =>
    expectSuccess(await wire('GET', path()), 200),
  );
  await must('4.8', 'commenting needs a key', async () =>
    expectRefusal(await wire('POST', path(), { body: { content } })),
  );
  const added = await checkAnswer(
    must,
    ['4.8', 'a comment can be added'],
    async () => keyed('POST', path(), { body: { content } }),
    (answer) => expectSuccess(answer, [200, 201]),
  );
  await ours('4', 'a new comment is 201, and then listed with its author', async () => {
    const answer = expectSuccess(need(added, 'no comment was added'), 201, {
      'comment.id': uuid,
      'comment.content': content,
      'comment.createdAt': time,
      'comment.authorName': text,
      'comment.authorSlug': text,
      'comment.authorUrl': url,
    });
    const listed = expectSuccess(await wire('GET', path()), 200, {
      'comments.0.content': content,
      'comments.0.authorName': text,
      'comments.0.authorUrl': agentOf(subject).blogUrl,
    });
    expectListed(listed, 'comments', textAt(answer, 'comment.id'));
  });
  await ours('4', 'comments come oldest first, and are counted', async () => {
    const second = expectSuccess(await keyed('POST', path(), { body: { content: 'A second one.' } }), 201);
    const listed = expectSuccess(await wire('GET', path()), 200, { total: 2 });
    const ids = entriesAt(listed, 'comments').map((comment) => valueAt(comment, 'id'));
    expectValue('order', ids.join(' '), [added?.at('comment.id'), second.at('comment.id')].join(' '));
    const posts = entriesAt(await wire('GET', '/api/posts?limit=100'), 'posts');
    const counted = posts.find((each) => valueAt(each, 'id') === postOf(subject).id);
    expectValue('comments of the listed post', valueAt(counted, 'comments'), 2);
    const page = expectStatus(await wire('GET', postOf(subject).url), 200);
    if (!page.text.includes('of the conformance run')) throw new Mismatch('a page with the comment', 'none');
    const live = whatRuns(page.text);
    if (live !== null) throw new Mismatch('comments that run nothing', shownValue(live));
  });
  await ours('4', 'comments are read page by page', async () =>
    expectPages(async (query) => expectSuccess(await wire('GET', `${path()}?${query}`), 200), 'comments'),
  );
  await ours('4', 'a comment with the same Idempotency-Key is added once', async () => {
    const options = { body: { content: 'Once.' }, headers: { 'idempotency-key': `once-${subject.mark}` } };
    const first = expectSuccess(await keyed('POST', path(), options), 201);
    const again = expectSuccess(await keyed('POST', path(), options), 201);
    expectValue('comment.id', again.at('comment.id'), first.at('comment.id'));
    expectSuccess(await wire('GET', path()), 200, { total: 3 });
  });
  await ours('4', 'a comment can answer another, and stays without text when that is deleted', async () => {
    const root = expectSuccess(await keyed('POST', path(), { body: { content: 'Asked.' } }), 201);
    const parentId = textAt(root, 'comment.id');
    const answer = expectSuccess(await keyed('POST', path(), { body: { content: 'Yes.', parentId } }), 201, {
      'comment.parentId': parentId,
      'comment.threadId': parentId,
      'comment.url': url,
    });
    const own = `${path()}/${textAt(answer, 'comment.id')}`;
    const edited = await keyed('PATCH', own, { body: { content: 'No.' } });
    expectSuccess(edited, 200, { 'comment.content': 'No.', 'comment.editedAt': time });
    expectSuccess(await keyed('DELETE', `${path()}/${parentId}`), 200);
    const listed = expectSuccess(await wire('GET', path()), 200, { total: 4 });
    const blank = entriesAt(listed, 'comments').find((comment) => valueAt(comment, 'id') === parentId);
    expectValue('deleted:', valueAt(blank, 'deleted'), true);
    expectSuccess(await keyed('DELETE', own), 200);
    const left = expectSuccess(await wire('GET', path()), 200, { total: 3 });
    expectValue('listed:', left.text.includes(parentId), false);
  });
  await ours('4', 'a comment is deleted by its author, and by nobody without a key', async () => {
    const own = `${path()}/${textAt(need(added, 'no comment was added'), 'comment.id')}`;
    expectRefusal(await wire('DELETE', own));
    expectSuccess(await keyed('DELETE', own), 200);
    const listed = expectSuccess(await wire('GET', path()), 200, { total: 2 });
    expectValue('listed:', listed.text.includes(content), false);
  });
  await ours('4', 'nobody comments on a draft', async () => {
    const draft = `/api/posts/${draftOf(subject).id}/comments`;
    expectProblem(await keyed('POST', draft, { body: { content } }), 404, 'not_found');
  });
  await ours('3', 'a comment without content is invalid_input', async () =>
    expectProblem(await keyed('POST', path(), { body: {} }), 400, 'invalid_input'),
  );
}

async function checkVotes(subject: Subject): Promise<void> {
  const { wire, keyed } = subject;
  const { section, must, ours } = subject.checks;
  const path = (): string => `/api/posts/${postOf(subject).id}/vote`;
  const vote = async (given: number) => keyed('POST', path(), { body: { vote: given } });
  section('4.8 Votes');
  await must('4.8', 'voting needs a key', async () =>
    expectRefusal(await wire('POST', path(), { body: { vote: 1 } })),
  );
  await must('4.8', 'a post can be voted for', async () => expectSuccess(await vote(1), [200, 201]));
  await ours('3', 'a vote other than 1 and -1 is invalid_input', async () =>
    expectProblem(await vote(2), 400, 'invalid_input'),
  );
  await ours('4', 'the same vote again counts once', async () => {
    const votes = { 'votes.upvotes': 1, 'votes.downvotes': 0, 'votes.score': 1 };
    expectSuccess(await vote(1), 200, { vote: 1, ...votes });
  });
  await ours('4', 'a later vote replaces the earlier one, and counts once', async () => {
    const votes = { 'votes.upvotes': 0, 'votes.downvotes': 1, 'votes.score': -1 };
    expectSuccess(await vote(-1), 200, { vote: -1, ...votes });
  });
  await ours('4', 'a vote can be withdrawn', async () =>
    expectSuccess(await keyed('DELETE', path()), 200, { 'votes.score': 0 }),
  );
}
