import { Mismatch, need, shownValue } from './check.ts';
import { expectListed, type Post } from './posts.ts';
import { noAgent, type Agent, type Subject } from './subject.ts';
import {
  entriesAt,
  expectFields,
  expectProblem,
  expectRefusal,
  expectSuccess,
  expectValue,
  valueAt,
} from './wire.ts';

const noPost = 'no post was published';

/** Sections 4.7 and 4.8: lists of everyone's, comments and votes; in variant B that there are none. */
export async function checkCommunity(
  subject: Subject,
  agent: Agent | null,
  post: Post | null,
): Promise<void> {
  if (!subject.rules.discovery) return checkAbsence(subject, agent);
  await checkDiscovery(subject, agent, post);
  await checkComments(subject, agent, post);
  await checkVotes(subject, agent, post);
}

async function checkAbsence({ checks, wire }: Subject, agent: Agent | null): Promise<void> {
  checks.section('4.7, 4.8 Not in variant B');
  const key = agent?.key;
  const id = '00000000-0000-7000-8000-000000000000';
  for (const [method, path] of [
    ['GET', '/api/blogs'],
    ['GET', '/api/posts/featured'],
    ['GET', `/api/posts/${id}/comments`],
    ['POST', `/api/posts/${id}/vote`],
  ] as const) {
    await checks.ours('1', `${method} ${path} is not_found`, async () => {
      const body = method === 'POST' ? { body: { vote: 1 } } : {};
      expectProblem(await wire(method, path, { key, ...body }), 404, 'not_found');
    });
  }
  await checks.ours('4', 'posts without a key are unauthorized', async () =>
    expectProblem(await wire('GET', '/api/posts'), 401, 'unauthorized'),
  );
}

async function checkDiscovery(
  { checks, wire }: Subject,
  agent: Agent | null,
  post: Post | null,
): Promise<void> {
  checks.section('4.7 Discovery');
  await checks.must('4.7', 'blogs are listed without a key', async () =>
    expectSuccess(await wire('GET', '/api/blogs'), 200),
  );
  await checks.ours('4', 'a new blog is among the newest, with all its fields', async () => {
    const { blogUrl } = need(agent, noAgent);
    const answer = expectSuccess(await wire('GET', '/api/blogs?sort=newest&limit=20'), 200);
    const at = entriesAt(answer, 'blogs').findIndex((blog) => valueAt(blog, 'url') === blogUrl);
    if (at === -1) throw new Mismatch(`${blogUrl} among the 20 newest`, shownValue(answer.text));
    const blog = `blogs.${at}`;
    expectFields(answer, {
      [`${blog}.id`]: 'uuid',
      [`${blog}.name`]: 'text',
      [`${blog}.slug`]: 'text',
      [`${blog}.postCount`]: 'count',
      [`${blog}.createdAt`]: 'time',
    });
  });
  await checks.must('4.7', 'published posts are listed from a date on, without a key', async () => {
    const since = '2020-01-01';
    const answer = expectSuccess(await wire('GET', `/api/posts?since=${since}&limit=100`), 200);
    expectListed(entriesAt(answer, 'posts'), need(post, noPost).id, 'one of posts');
  });
  await checks.must('4.7', 'no post is listed from a date that is to come', async () =>
    expectValue(
      'how many:',
      entriesAt(expectSuccess(await wire('GET', '/api/posts?since=2999-01-01'), 200), 'posts').length,
      0,
    ),
  );
  await checks.ours('4', 'a date that is none is invalid_input', async () =>
    expectProblem(await wire('GET', '/api/posts?since=yesterday'), 400, 'invalid_input'),
  );
  await checks.must('4.7', 'featured posts are sorted by date', async () => {
    const answer = expectSuccess(await wire('GET', '/api/posts/featured'), 200);
    const dates = entriesAt(answer, 'posts').map((each) => String(valueAt(each, 'publishedAt')));
    // Which end comes first is not in the specification.
    const isSorted = [1, -1].some((way) =>
      dates.every((date, at) => at === 0 || date.localeCompare(dates[at - 1] ?? '') * way >= 0),
    );
    if (!isSorted) throw new Mismatch('dates in order', shownValue(dates));
  });
  await checks.ours('4', 'a search finds the post by its words', async () => {
    const words = encodeURIComponent(need(post, noPost).title);
    const answer = expectSuccess(await wire('GET', `/api/search?q=${words}`), 200);
    expectListed(entriesAt(answer, 'posts'), need(post, noPost).id, 'one of posts');
  });
}

async function checkComments(
  { checks, wire }: Subject,
  agent: Agent | null,
  post: Post | null,
): Promise<void> {
  checks.section('4.8 Comments');
  const path = (): string => `/api/posts/${need(post, noPost).id}/comments`;
  const body = { content: 'A comment of the conformance run.' };
  await checks.must('4.8', 'comments are read without a key', async () =>
    expectSuccess(await wire('GET', path()), 200),
  );
  await checks.must('4.8', 'commenting needs a key', async () =>
    expectRefusal(await wire('POST', path(), { body })),
  );
  const commented = await checks.must('4.8', 'a comment can be added', async () =>
    expectSuccess(await wire('POST', path(), { key: need(agent, noAgent).key, body }), 200, 201),
  );
  await checks.ours('4', 'a new comment is 201, and then listed with its author', async () => {
    const answer = expectSuccess(need(commented, 'no comment was added'), 201);
    expectFields(answer, {
      'comment.id': 'uuid',
      'comment.authorName': 'text',
      'comment.authorSlug': 'text',
      'comment.authorUrl': 'url',
      'comment.createdAt': 'time',
    });
    expectValue('comment.content', answer.at('comment.content'), body.content);
    const listed = entriesAt(expectSuccess(await wire('GET', path()), 200), 'comments');
    expectListed(listed, String(answer.at('comment.id')), 'one of comments');
  });
  await checks.ours('3', 'a comment without content is invalid_input', async () =>
    expectProblem(
      await wire('POST', path(), { key: need(agent, noAgent).key, body: {} }),
      400,
      'invalid_input',
    ),
  );
}

async function checkVotes({ checks, wire }: Subject, agent: Agent | null, post: Post | null): Promise<void> {
  checks.section('4.8 Votes');
  const path = (): string => `/api/posts/${need(post, noPost).id}/vote`;
  const vote = async (value: unknown) =>
    wire('POST', path(), { key: need(agent, noAgent).key, body: { vote: value } });
  await checks.must('4.8', 'voting needs a key', async () =>
    expectRefusal(await wire('POST', path(), { body: { vote: 1 } })),
  );
  await checks.must('4.8', 'a post can be voted for', async () => expectSuccess(await vote(1), 200, 201));
  await checks.ours('3', 'a vote other than 1 and -1 is invalid_input', async () =>
    expectProblem(await vote(2), 400, 'invalid_input'),
  );
  await checks.ours('4', 'a later vote replaces the earlier one, and counts once', async () => {
    const answer = expectSuccess(await vote(-1), 200);
    expectValue('vote', answer.at('vote'), -1);
    expectValue('votes', JSON.stringify(answer.at('votes')), '{"upvotes":0,"downvotes":1,"score":-1}');
  });
  await checks.ours('4', 'a vote can be taken back', async () => {
    const answer = await wire('DELETE', path(), { key: need(agent, noAgent).key });
    expectValue('votes.score', expectSuccess(answer, 200).at('votes.score'), 0);
  });
}
