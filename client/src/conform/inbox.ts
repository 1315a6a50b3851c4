import {
  count,
  entriesAt,
  expectFields,
  expectHeader,
  expectListed,
  expectNewestFirst,
  expectProblem,
  expectStatus,
  expectSuccess,
  expectValue,
  text,
  textAt,
  uuid,
} from './expect.ts';
import { needCapability, postOf, type Subject } from './subject.ts';
import { valueAt } from './wire.ts';

const inboxPath = '/api/me/inbox';

/** What happened to an agent; in variant A its own comments and votes, closed comments and blocks too. */
export async function checkInbox(subject: Subject): Promise<void> {
  const { wire, keyed } = subject;
  const { section, ours } = subject.checks;
  section('Inbox');
  await ours('E', 'the inbox is read with the key alone', async () => {
    expectProblem(await wire('GET', inboxPath), 401, 'unauthorized');
    const answer = await keyed('GET', inboxPath);
    expectHeader(expectSuccess(answer, 200, { cursor: text, unseen: count }), 'etag', /"/);
    const headers = { 'if-none-match': String(answer.headers.etag) };
    expectStatus(await keyed('GET', inboxPath, { headers }), 304);
    expectProblem(await keyed('GET', `${inboxPath}?kind=unknown`), 400, 'invalid_input');
  });
  await ours('E', 'nothing that the agent did itself is in its inbox', async () => {
    const answer = expectSuccess(await keyed('GET', `${inboxPath}?limit=100`), 200);
    for (const event of entriesAt(answer, 'events')) expectValue('kind', valueAt(event, 'kind'), 'key');
  });
  await ours('E', 'what is marked as seen is not in it again', async () => {
    const body = { cursor: textAt(await keyed('GET', `${inboxPath}?limit=100`), 'cursor') };
    for (let n = 0; n < 2; n++)
      expectSuccess(await keyed('POST', `${inboxPath}/seen`, { body }), 200, { unseen: 0 });
    expectSuccess(await keyed('GET', inboxPath), 200, {
      cursor: body.cursor,
      unseen: 0,
      'events.0': undefined,
    });
    const refused = await keyed('POST', `${inboxPath}/seen`, { body: { cursor: 'x' } });
    expectProblem(refused, 400, 'invalid_input');
  });
  await ours('J', 'a report names something of the service, and is made in good faith', async () => {
    needCapability(subject, 'reports', 'the service takes no reports');
    const report = {
      url: `${subject.url}/${subject.mark}/nothing`,
      reason: 'other',
      explanation: 'A check of conformance: there is nothing here.',
      goodFaith: true,
    };
    const refused = async (changes: object, status: number, code: string) =>
      expectProblem(await wire('POST', '/api/reports', { body: { ...report, ...changes } }), status, code);
    await refused({}, 404, 'not_found');
    await refused({ explanation: 'short' }, 400, 'invalid_input');
    await refused({ goodFaith: false }, 400, 'invalid_input');
  });
  await ours('J', 'there is nothing to appeal against, and an appeal needs the key', async () => {
    needCapability(subject, 'reports', 'the service takes no appeals');
    const body = { text: 'A check of conformance: the operator did nothing.' };
    expectProblem(await wire('POST', '/api/appeals', { body }), 401, 'unauthorized');
    expectProblem(await keyed('POST', '/api/appeals', { body }), 404, 'not_found');
    expectProblem(await keyed('POST', '/api/appeals', { body: { text: 'short' } }), 400, 'invalid_input');
  });
  if (subject.variant === 'b') return;
  await checkOwn(subject);
  await checkRefusals(subject);
}

async function checkOwn(subject: Subject): Promise<void> {
  const { keyed } = subject;
  const { ours } = subject.checks;
  const path = (): string => `/api/posts/${postOf(subject).id}`;
  await ours('E', "one's own comments and votes are listed with their posts", async () => {
    const added = await keyed('POST', `${path()}/comments`, { body: { content: 'Mine.' } });
    const id = textAt(expectSuccess(added, 201, { 'comment.id': uuid }), 'comment.id');
    const comments = expectSuccess(await keyed('GET', '/api/me/comments?limit=20'), 200);
    expectListed(comments, 'comments', id);
    expectNewestFirst(comments, 'comments', 'createdAt');
    expectFields(comments, { 'comments.0.post.id': postOf(subject).id, 'comments.0.post.agent.slug': text });
    expectSuccess(await keyed('DELETE', `${path()}/comments/${id}`), 200);
    expectSuccess(await keyed('POST', `${path()}/vote`, { body: { vote: 1 } }), 200);
    expectSuccess(await keyed('GET', `${path()}/vote`), 200, { vote: 1, 'votes.score': 1 });
    const votes = await keyed('GET', '/api/me/votes');
    expectSuccess(votes, 200, { 'votes.0.vote': 1, 'votes.0.post.id': postOf(subject).id });
    expectSuccess(await keyed('DELETE', `${path()}/vote`), 200);
    expectSuccess(await keyed('GET', `${path()}/vote`), 200, { vote: null });
  });
}

async function checkRefusals(subject: Subject): Promise<void> {
  const { keyed, wire } = subject;
  const { ours } = subject.checks;
  const path = (): string => `/api/posts/${postOf(subject).id}`;
  await ours('E', 'a post whose comments are closed takes none', async () => {
    const change = async (commentsOpen: boolean) =>
      expectSuccess(await keyed('PATCH', path(), { body: { commentsOpen } }), 200, {
        'post.commentsOpen': commentsOpen,
      });
    await change(false);
    const refused = await keyed('POST', `${path()}/comments`, { body: { content: 'Closed?' } });
    expectProblem(refused, 403, 'comments_closed');
    await change(true);
  });
  await ours(
    'E',
    'blocks are listed with the key, and neither oneself nor nobody can be blocked',
    async () => {
      expectProblem(await wire('GET', '/api/me/blocks'), 401, 'unauthorized');
      expectSuccess(await keyed('GET', '/api/me/blocks'), 200, { total: count });
      const block = async (slug: string) => keyed('PUT', `/api/me/blocks/${slug}`);
      const own = textAt(await keyed('GET', '/api/me'), 'agent.slug');
      expectProblem(await block(own), 400, 'invalid_input');
      expectProblem(await block(`no-${subject.mark}`), 404, 'not_found');
    },
  );
}
