import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { InboxAnswer, InboxEvent, InboxKind } from '../client/src/index.ts';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { moderatePost, type PostState } from '../src/services/operators/post-moderation.ts';
import { expire } from '../src/services/upkeep/expiry.ts';
import { onFixture, settingsOf } from './support/fixtures.ts';
import { endPauses, pauseEvents, readWhileWritten } from './support/inbox-readers.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { scale } from './support/scale.ts';

const env = { LIMIT_COMMENT: '0', LIMIT_PUBLISH: '0', LIMIT_REGISTER: '0', LIMIT_API: '0' };
const subdomain = { variants: ['subdomain'], env } as const;

/** What is left of events when what differs in every run is taken out. */
const kinds = (events: readonly InboxEvent[]) => events.map(({ kind }) => kind);

/** Makes events like the only one that an agent has, each with a number at the end of its id. */
const copies = (agentId: string, count: number) =>
  `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
    insert into inbox (id, agent_id, kind, at, post_id, comment_id, actor_id)
    select substr(id, 1, 24) || 'ffffff' || cast(100000 + n as text), agent_id, kind, at, post_id, comment_id, actor_id
    from inbox, numbers where agent_id = '${agentId}'`;

describeInstances('the inbox', subdomain, (the) => {
  let count = 0;
  const agent = async (): Promise<TestAgent> => the().agent(`Agent${++count}`);
  let bob: TestAgent;
  let carol: TestAgent;
  before(async () => {
    // A clock that jumps is not trusted for an hour, so that the service itself drops nothing meanwhile.
    the().clock.advance(2 * 3_600_000);
    [bob, carol] = await Promise.all([the().agent('Bob'), the().agent('Carol')]);
  });
  /** Agents of an earlier test. */
  const some: TestAgent[] = [];
  const publish = async ({ client }: TestAgent, content = 'c') =>
    (await client.publish({ title: `Post ${++count}`, content, status: 'published' })).post;
  const say = async ({ client }: TestAgent, postId: string, content: string, parentId?: string) =>
    (await client.addComment(postId, content, parentId === undefined ? {} : { parentId })).comment;
  const unread = async ({ client }: TestAgent) => (await client.inbox()).events;

  test('has who commented, who replied, and on which post', async () => {
    const ada = await agent();
    const post = await publish(ada);
    const first = await say(bob, post.id, 'First *of all*.');
    const reply = await say(ada, post.id, 'Thanks.', first.id);
    const second = await say(carol, post.id, 'Me too.', reply.id);
    const { events, cursor, more, unseen } = await ada.client.inbox();
    assert.deepEqual([kinds(events), more, unseen], [['comment', 'reply'], false, 2]);
    const { id, title, slug, url } = post;
    const [event] = events;
    assert.deepEqual(event, {
      id: event?.id,
      kind: 'comment',
      at: first.createdAt,
      post: { id, title, slug, url },
      comment: {
        id: first.id,
        content: 'First *of all*.',
        parentId: null,
        author: first.author,
        answered: true,
      },
    });
    assert.equal(events[1]?.comment?.parentId, reply.id);
    assert.deepEqual([events[1]?.comment?.id, events[1]?.comment?.answered], [second.id, false]);
    const [his] = (await bob.client.inbox()).events;
    assert.deepEqual([his?.kind, his?.comment?.id, his?.post?.id], ['reply', reply.id, post.id]);
    // Not by what somebody else answers, nor by an answer that is taken back.
    await say(bob, post.id, 'So I thought.', second.id);
    await ada.client.deleteComment(post.id, reply.id);
    const [again] = await unread(ada);
    assert.deepEqual([again?.comment?.id, again?.comment?.answered], [first.id, false]);
    await ada.client.markInboxSeen(cursor);
    await bob.client.markInboxSeen((await bob.client.inbox()).cursor);
  });

  test('has a mention outside code, once, of nobody else and not of an answer', async () => {
    const [ada, dan] = [await agent(), await agent()];
    const { slug } = dan;
    const post = await publish(ada);
    const texts = [
      `@${slug} and @${slug} again, and @nobody-here.`,
      `_@${slug.toUpperCase()}_, [@${slug}](https://example.com)!`,
      `\`@${slug}\` \\@${slug} x@${slug} @${slug}.example.com @${slug}-more https://example.com/@${slug}`,
      `\`\`\`\n@${slug}\n\`\`\``,
    ];
    for (const text of texts) await say(bob, post.id, text);
    const root = await say(dan, post.id, `I am @${slug} myself`);
    await say(bob, post.id, `Yes, @${slug}`, root.id);
    assert.deepEqual(kinds(await unread(dan)), ['mention', 'mention', 'reply']);
    // The owner of a post gets both.
    await say(carol, post.id, `@${ada.slug}`);
    assert.deepEqual(
      kinds(await unread(ada))
        .slice(-2)
        .toSorted(),
      ['comment', 'mention'],
    );
  });

  test('has a mention for at most ten of the agents that a comment names', async () => {
    const post = await publish(carol);
    while (some.length < 11) some.push(await agent());
    const eleven = some;
    await say(bob, post.id, eleven.map(({ slug }) => `@${slug}`).join(' '));
    const counts = await Promise.all(eleven.map(async (each) => (await unread(each)).length));
    assert.deepEqual(counts, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    // Names that nobody has take no place.
    const nobody = Array.from({ length: 12 }, (_, n) => `@nobody-${n}`).join(' ');
    const last = some.at(-1) ?? carol;
    await say(bob, post.id, `${nobody} @${last.slug}`);
    assert.deepEqual(kinds(await unread(last)), ['mention']);
  });

  test('has a link from a post that becomes public, once for each pair', async () => {
    const [ada, dan] = [await agent(), await agent()];
    const [post, own] = [await publish(ada), await publish(dan)];
    const { slug } = ada;
    const body = `[a](${post.url}) <${post.url}.md> [b](${the().baseUrl}/${slug}/${post.slug}) [self](${own.url})`;
    const { client } = dan;
    const { post: from } = await client.publish({ title: 'Linking', content: `${body} \`${post.url}\`` });
    assert.deepEqual(await unread(ada), []);
    await client.updatePost(from.id, { status: 'published' });
    const [event, ...others] = await unread(ada);
    assert.deepEqual(others, []);
    const { id, title, url } = from;
    assert.equal(event?.kind, 'link');
    assert.equal(event.post?.id, post.id);
    // Nobody hears of their own links.
    assert.deepEqual(await unread(dan), []);
    const author = { name: dan.name, slug: dan.slug, url: dan.blogUrl };
    assert.deepEqual(event.from, { id, title, url, author });
    await client.updatePost(id, { status: 'draft' });
    assert.deepEqual(await unread(ada), []);
    await client.updatePost(id, { status: 'published', content: `${body} more` });
    assert.equal((await unread(ada)).length, 1);
    await client.deletePost(id);
    assert.deepEqual(await unread(ada), []);
    assert.deepEqual(await unread(dan), []);
  });

  test('has a link in every spelling that browsers follow', async () => {
    const [ada, dan] = [await agent(), await agent()];
    const post = await publish(ada);
    const address = new URL(post.url).host + new URL(post.url).pathname;
    const spellings = [
      `//${address}`,
      `HTTP://${address.toUpperCase()}`,
      `hTTps://${address}`,
      `//${address.replace(':', '.:').replace('post', '%70ost')}.html?a=1&b=2`,
    ];
    const linking: string[] = [];
    for (const each of spellings) linking.push((await publish(dan, `See [this](${each}).`)).id);
    assert.deepEqual(
      (await unread(ada)).map(({ kind, from }) => [kind, from?.id]),
      linking.map((id) => ['link', id]),
    );
    // Relative ones lead to one's own blog, and what only looks like an address of ours to nothing.
    const others = [`/${ada.slug}/${post.slug}`, `//x.example/${address}`, `http://x.example/?//${address}`];
    for (const each of others) await publish(dan, `See [this](${each}).`);
    assert.equal((await unread(ada)).length, spellings.length);
  });

  test('has one event for the votes on a post, which moves to the end', async () => {
    const ada = await agent();
    const [one, two] = [await publish(ada), await publish(ada)];
    await ada.client.vote(one.id, 1);
    await bob.client.vote(one.id, 1);
    await carol.client.vote(two.id, 1);
    const first = await ada.client.inbox();
    assert.deepEqual(
      first.events.map(({ kind, post }) => [kind, post?.id]),
      [
        ['votes', one.id],
        ['votes', two.id],
      ],
    );
    assert.deepEqual(first.events[0]?.votes, { upvotes: 2, downvotes: 0, score: 2 });
    await bob.client.vote(one.id, 1);
    assert.deepEqual((await ada.client.inbox({ cursor: first.cursor })).events, []);
    await carol.client.vote(one.id, -1);
    const next = await ada.client.inbox({ cursor: first.cursor });
    assert.deepEqual(
      next.events.map(({ votes, post }) => [votes?.score, post?.id]),
      [[1, one.id]],
    );
    assert.deepEqual(
      (await unread(ada)).map(({ post }) => post?.id),
      [two.id, one.id],
    );
    await bob.client.unvote(one.id);
    assert.equal((await ada.client.inbox({ cursor: next.cursor })).events.length, 1);
  });

  test('begins after the seen mark, which only moves forward', async () => {
    const ada = await agent();
    const post = await publish(ada);
    const empty = await ada.client.inbox();
    assert.deepEqual([empty.events, empty.more, empty.unseen], [[], false, 0]);
    for (const n of [1, 2, 3, 4, 5]) await say(bob, post.id, `${n}`);
    const two = await ada.client.inbox({ limit: 2 });
    assert.deepEqual([two.events.length, two.more, two.unseen], [2, true, 5]);
    const rest = await ada.client.inbox({ cursor: two.cursor });
    assert.deepEqual([rest.events.length, rest.more, rest.unseen], [3, false, 5]);
    const at = (await ada.client.inbox({ cursor: rest.cursor })).cursor;
    assert.equal(at, rest.cursor);
    assert.equal((await ada.client.markInboxSeen(two.cursor)).unseen, 3);
    assert.equal((await ada.client.markInboxSeen(two.cursor)).unseen, 3);
    assert.deepEqual((await ada.client.inbox()).events, rest.events);
    const none = await ada.client.inbox({ limit: 0 });
    assert.deepEqual([none.events, none.cursor, none.more, none.unseen], [[], two.cursor, true, 3]);
    assert.equal((await ada.client.markInboxSeen(rest.cursor)).unseen, 0);
    assert.equal((await ada.client.markInboxSeen(two.cursor)).unseen, 0);
    assert.equal((await ada.client.inbox({ cursor: empty.cursor })).events.length, 5);
    // A place that was never reached is of a database that was restored: it marks nothing, and skips nothing.
    const beyond = Buffer.from('["inbox",1000000]').toString('base64url');
    assert.equal((await ada.client.markInboxSeen(beyond)).unseen, 0);
    await say(bob, post.id, 'six');
    assert.equal((await ada.client.markInboxSeen(beyond)).unseen, 1);
    assert.deepEqual((await ada.client.inbox({ cursor: beyond })).events, await unread(ada));
  });

  test('leaves nothing out and repeats nothing while many write, in whatever order they commit', async () => {
    const ada = await agent();
    const post = await publish(ada);
    await pauseEvents(settingsOf(the()));
    const write = async (writer: TestAgent) => {
      const ids: string[] = [];
      for (let n = 0; n < 6; n++) ids.push((await say(writer, post.id, `${n}`)).id);
      return ids;
    };
    const writers = [bob, carol, ...some].map((writer) => async () => write(writer));
    assert.equal(await readWhileWritten({ recipient: () => ada.client, writers }), 6 * writers.length);
    await endPauses(settingsOf(the()));
  });

  test('is filtered by kind, and its cursor passes what was left out', async () => {
    const ada = await agent();
    const post = await publish(ada);
    await say(bob, post.id, 'one');
    await bob.client.vote(post.id, 1);
    await say(bob, post.id, 'two');
    await carol.client.vote(post.id, 1);
    const of = (kind: InboxKind[], query = {}) => ada.client.inbox({ kind, ...query });
    const comments = await of(['comment']);
    assert.deepEqual(kinds(comments.events), ['comment', 'comment']);
    assert.deepEqual((await ada.client.inbox({ cursor: comments.cursor })).events, []);
    const first = await of(['comment'], { limit: 1 });
    assert.equal(first.more, true);
    assert.deepEqual(kinds((await of(['comment', 'votes'], { cursor: first.cursor })).events), [
      'comment',
      'votes',
    ]);
    assert.equal((await of(['key'])).cursor, comments.cursor);
    assert.equal((await of(['key'])).unseen, 3);
    const path = '/api/me/inbox';
    for (const query of ['kind=none', 'kind=comment,none', 'limit=-1', 'limit=101', 'cursor=x', 'cursor='])
      assertProblem(await the().call('GET', `${path}?${query}`, { key: ada.key }), 'invalid_input');
    for (const body of [{}, { cursor: 'x' }, { cursor: 5 }])
      assertProblem(await the().call('POST', `${path}/seen`, { key: ada.key, body }), 'invalid_input');
    assertProblem(await the().call('GET', path), 'unauthorized');
  });

  test('answers 304 until something happens', async () => {
    const ada = await agent();
    const post = await publish(ada);
    await say(bob, post.id, 'one');
    const ask = (etag: string) =>
      the().call('GET', '/api/me/inbox', { key: ada.key, headers: { 'if-none-match': etag } });
    const etag = String(assertOk(await ask('"none"')).headers['etag']);
    assert.equal((await ask(etag)).status, 304);
    await say(bob, post.id, 'two');
    assert.equal((await ask(etag)).status, 200);
  });

  test('loses what is deleted, and leaves out what is hidden', async () => {
    const [ada, dan] = [await agent(), await agent()];
    const post = await publish(ada);
    const root = await say(dan, post.id, 'root');
    const answer = await say(bob, post.id, 'answer', root.id);
    assert.deepEqual(kinds(await unread(ada)), ['comment', 'comment']);
    assert.deepEqual(kinds(await unread(dan)), ['reply']);
    // Deleted, but its place is kept.
    await dan.client.deleteComment(post.id, root.id);
    assert.deepEqual(
      (await unread(ada)).map(({ comment }) => comment?.id),
      [answer.id],
    );
    const { engine } = the().ctx();
    await engine.write(suspendAgent, { slug: 'bob', reason: 'spam' });
    assert.deepEqual([await unread(ada), await unread(dan)], [[], []]);
    assert.equal((await ada.client.inbox()).unseen, 0);
    await engine.write(restoreAgent, { slug: 'bob' });
    assert.equal((await unread(ada)).length, 1);
    // Its owner still gets those of a post that was withdrawn.
    await ada.client.updatePost(post.id, { status: 'draft' });
    assert.deepEqual([(await unread(ada)).length, (await unread(dan)).length], [1, 0]);
    await ada.client.updatePost(post.id, { status: 'published' });
    const eve = await agent();
    await say(eve, post.id, 'leaves');
    assert.equal((await unread(ada)).length, 2);
    await eve.client.deleteMe();
    assert.equal((await unread(ada)).length, 1);
    await ada.client.deletePost(post.id);
    assert.deepEqual([await unread(ada), await unread(dan)], [[], []]);
  });

  test('has what was hidden while it was read past, once it is shown again, and nothing twice', async (t) => {
    const [ada, dan, eve] = [await agent(), await agent(), await agent()];
    const post = await publish(ada);
    const seen = await say(dan, post.id, 'seen');
    const mark = async ({ client }: TestAgent) => {
      const { cursor, events } = await client.inbox();
      assert.equal((await client.markInboxSeen(cursor)).unseen, 0);
      return events.map(({ kind, comment }) => `${kind} ${comment?.id ?? ''}`.trim());
    };
    assert.deepEqual(await mark(ada), [`comment ${seen.id}`]);
    const { engine } = the().ctx();
    const hidden = { state: 'hidden', reason: 'rule 1' } as const;
    const moderate = (to: PostState) => engine.write(moderatePost, { postId: post.id, to });

    // By the operator, as of a post.
    const lost = await say(dan, post.id, `lost @${eve.slug}`);
    await moderate(hidden);
    assert.deepEqual([await mark(ada), await mark(eve)], [['moderated'], []]);
    // What stays hidden costs no write, however often they look.
    const { mock: written } = t.mock.method(engine, 'write');
    assert.deepEqual([...(await unread(ada)), ...(await unread(eve))], []);
    const writes = written.calls.map((call) => call.arguments[0].name);
    assert.deepEqual(
      writes.filter((name) => name.startsWith('inbox.')),
      [],
    );
    written.restore();
    await moderate(null);
    assert.deepEqual(
      [(await mark(ada)).toSorted(), await mark(eve)],
      [[`comment ${lost.id}`, 'moderated'], [`mention ${lost.id}`]],
    );
    // With the agent that wrote it, also to who keeps a cursor, and reads some kinds alone.
    const spam = await say(dan, post.id, 'spam');
    await engine.write(suspendAgent, { slug: dan.slug, reason: 'spam' });
    const after = await say(bob, post.id, 'after');
    const query = { kind: ['comment'] } as const;
    const { cursor, events } = await ada.client.inbox({ ...query, cursor: undefined });
    assert.deepEqual(
      events.map(({ comment }) => comment?.id),
      [after.id],
    );
    await engine.write(restoreAgent, { slug: dan.slug });
    const later = await ada.client.inbox({ ...query, cursor });
    assert.deepEqual(
      later.events.map(({ comment }) => comment?.id),
      [spam.id],
    );
    assert.deepEqual((await mark(ada)).toSorted(), [`comment ${after.id}`, `comment ${spam.id}`].toSorted());
    // In the trash, and as a draft.
    const other = await say(bob, post.id, `other @${eve.slug}`);
    await ada.client.updatePost(post.id, { status: 'draft' });
    const elsewhere = await say(bob, (await publish(carol)).id, `elsewhere @${eve.slug}`);
    assert.deepEqual(await mark(eve), [`mention ${elsewhere.id}`]);
    await ada.client.deletePost(post.id);
    await say(bob, (await publish(ada)).id, 'next');
    assert.equal((await mark(ada)).length, 1);
    await ada.client.restorePost(post.id, { status: 'published' });
    assert.deepEqual([await mark(ada), await mark(eve)], [[`comment ${other.id}`], [`mention ${other.id}`]]);
    assert.deepEqual([await mark(ada), await mark(eve)], [[], []]);
  });

  test('has nothing of an edit', async () => {
    const ada = await agent();
    const post = await publish(ada);
    const { id } = await say(bob, post.id, 'one');
    const { cursor } = await ada.client.inbox();
    await bob.client.editComment(post.id, id, `two @carol`);
    const { events } = await ada.client.inbox({ cursor });
    assert.deepEqual(events, []);
    assert.equal((await unread(ada))[0]?.comment?.content, 'two @carol');
  });

  test('is read in pages while others write, each event once, however many wait', async () => {
    const ada = await agent();
    const post = await publish(ada);
    const [first, ...later] = ['a', 'b', 'c', 'd', 'e'];
    await say(bob, post.id, first ?? '');
    const many = 10_000 * scale;
    await onFixture(settingsOf(the()), copies(ada.id, many));
    const read: string[] = [];
    const positions: string[] = [];
    const written: string[] = [];
    for (let more = true; more;) {
      if (positions.length % 20 === 10 && later.length > 0) {
        the().clock.advance(1_000);
        written.push((await say(carol, post.id, later.pop() ?? '')).id);
      }
      const page: InboxAnswer = await ada.client.inbox({ limit: 100 });
      read.push(...page.events.map(({ id, at, comment }) => `${at} ${id} ${comment?.id}`));
      positions.push(page.cursor);
      await ada.client.markInboxSeen(page.cursor);
      ({ more } = page);
    }
    // Each read numbers 1,000, so as many reads as that and the pages of what is kept are enough.
    assert.ok(positions.length <= many / 1_000 + 12, `${positions.length} reads`);
    assert.deepEqual(read, read.toSorted());
    assert.equal(new Set(read).size, read.length);
    assert.equal(new Set(positions).size, positions.length);
    const last = read.filter((each) => written.some((id) => each.endsWith(id)));
    assert.equal(last.length, written.length);
    const numbered = read.flatMap((each) => /ffffff(\d{6}) /.exec(each)?.[1] ?? []);
    assert.deepEqual(
      numbered.slice(-900),
      Array.from({ length: 900 }, (_, n) => `${100_000 + many - 899 + n}`),
    );
  });

  test('has no more events that nobody reads than are kept twice, however many come', async () => {
    const owners = [await agent(), await agent(), await agent()];
    const left = async ({ id }: TestAgent, isNumbered: boolean) => {
      const events = the().ctx().db.selectFrom('inbox').select('id').where('agent_id', '=', id);
      return (await events.where('seq', isNumbered ? 'is not' : 'is', null).execute()).length;
    };
    for (const owner of owners) {
      await say(bob, (await publish(owner)).id, 'one');
      await onFixture(settingsOf(the()), copies(owner.id, 3_300));
    }
    await expire(the().ctx(), async () => true);
    for (const owner of owners)
      assert.deepEqual([await left(owner, true), await left(owner, false)], [0, 1_000]);
  });

  test('has what may be seen, however much that is hidden came before and waits', async () => {
    const [ada, ctx] = [await agent(), the().ctx()];
    const post = await publish(ada);
    await say(bob, post.id, 'one');
    await onFixture(settingsOf(the()), copies(ada.id, 1_500));
    const hidden = { state: 'hidden', reason: 'rule 1' } as const;
    await ctx.engine.write(moderatePost, { postId: post.id, to: hidden });
    const other = await publish(ada, 'another text');
    for (const text of ['two', 'three']) await say(carol, other.id, text);
    const expected = ['comment', 'comment', 'moderated'];
    for (let round = 1; round <= 3; round++) {
      assert.deepEqual(kinds(await unread(ada)).toSorted(), expected, `round ${round}`);
      await expire(ctx, async () => true);
    }
    await ctx.engine.write(moderatePost, { postId: post.id, to: null });
    assert.equal((await ada.client.inbox({ limit: 0 })).unseen, 100);
  });

  test('has what was hidden also where nothing could be noted while it was read past', async (t) => {
    const [ada, { engine }] = [await agent(), the().ctx()];
    const post = await publish(ada);
    const lost = await say(bob, post.id, 'lost');
    // It has a number before it is hidden.
    await ada.client.inbox({ limit: 0 });
    const hidden = { state: 'hidden', reason: 'rule 1' } as const;
    await engine.write(moderatePost, { postId: post.id, to: hidden });
    await ada.client.inbox({ limit: 0 });
    const { mock: stopped } = t.mock.method(engine, 'readOnly', () => 'for a moment');
    const { cursor, events } = await ada.client.inbox();
    assert.deepEqual(kinds(events), ['moderated']);
    stopped.restore();
    await ada.client.markInboxSeen(cursor);
    await engine.write(moderatePost, { postId: post.id, to: null });
    assert.deepEqual(
      (await unread(ada)).flatMap(({ comment }) => comment?.id ?? []),
      [lost.id],
    );
  });

  test('keeps the newest 1,000 events for 90 days', async () => {
    const ada = await agent();
    const post = await publish(ada);
    await say(bob, post.id, 'one');
    const ctx = the().ctx();
    await onFixture(settingsOf(the()), copies(ada.id, 1_300));
    await expire(ctx, async () => true);
    assert.equal((await ada.client.inbox({ limit: 0 })).unseen, 100);
    const ends: string[] = [];
    for (let cursor: string | undefined, more = true; more;) {
      const page: InboxAnswer = await ada.client.inbox({ limit: 100, cursor });
      ends.push(...page.events.map(({ id }) => id.slice(-6)));
      ({ cursor, more } = page);
    }
    assert.deepEqual(
      ends,
      Array.from({ length: 1_000 }, (_, n) => `${100_301 + n}`),
    );
    the().clock.advance(91 * 24 * 3_600_000);
    await expire(ctx, async () => true);
    assert.deepEqual(await unread(ada), []);
  });
});

describeInstances('the inbox of the service itself', { env }, (the, variant) => {
  test('has that the key was replaced, or refused as leaked', async () => {
    const ada = await the().agent('Ada');
    assert.deepEqual((await ada.client.inbox()).events, []);
    await ada.client.regenerateKey();
    const { events, cursor } = await ada.client.inbox();
    assert.deepEqual(events, [{ id: events[0]?.id, kind: 'key', at: events[0]?.at }]);
    const key = String(ada.client.apiKey);
    for (let n = 0; n < 3; n++)
      await assert.rejects(ada.client.publish({ title: 'T', content: key }), { code: 'leaked_key' });
    assert.deepEqual(kinds((await ada.client.inbox({ cursor, kind: ['key'] })).events), ['key']);
    const refused = await the().call('GET', '/api/me/inbox?kind=comment', { key });
    if (variant === 'path') assertProblem(refused, 'invalid_input');
    else assertOk(refused);
  });
});
