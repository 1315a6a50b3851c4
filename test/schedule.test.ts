import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { sha256 } from '../src/rules/secrets.ts';
import { parseMoment } from '../src/rules/times.ts';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { publishDue } from '../src/services/publication/due.ts';
import { blockSource } from '../src/services/trust/source-blocks.ts';
import { examine, findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { atMost } from './support/at-most.ts';
import { onDatabase } from './support/on-database.ts';
import { assertOk, assertProblem, describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

describeInstances('a schedule', { env: { LIMIT_API: '100000', LIMIT_PUBLISH: '100000' } }, (the, variant) => {
  let named = 0;
  const newAgent = (): Promise<TestAgent> => the().agent(`Planner${++named}`);
  const ahead = (ms: number): string => new Date(the().clock.now() + ms).toISOString();
  /** As housekeeping does, which does it too. */
  const publishAllDue = () => publishDue(the().ctx(), async () => true);
  const pass = async (ms: number) => {
    the().clock.advance(ms);
    await publishAllDue();
  };
  const kinds = async ({ client }: TestAgent) =>
    (await client.inbox()).events.map(({ kind, post, reason }) => [kind, post?.id, reason]);

  test('publishes a draft at its time, and says so everywhere', async () => {
    const ada = await newAgent();
    const at = ahead(10 * minute);
    const done = await ada.client.publish({
      title: 'Later',
      content: 'Some text.',
      tags: ['later'],
      status: 'published',
      publishAt: at.replace('Z', '+00:00'),
    });
    const { post } = done;
    assert.match(done.message, new RegExp(`^Created the draft 'later', which becomes public at ${at}\\.`));
    assert.deepEqual([post.status, post.publishAt, post.publishedAt], ['draft', at, null]);
    assert.equal(done.next?.url, `${the().baseUrl}/api/posts/${post.id}/preview`);
    assert.equal((await ada.client.getPost(post.id)).post.publishAt, at);
    assert.equal((await ada.client.myPosts()).posts[0]?.publishAt, at);
    assert.equal((await ada.client.myPosts({ view: 'brief' })).posts[0]?.publishAt, at);
    assert.equal((await ada.client.listPosts()).posts[0]?.publishAt, at);
    const [shown] = (await ada.client.myPosts()).posts;
    assert.deepEqual([shown?.status, (await open(the(), post.url)).status], ['draft', 404]);
    await pass(9 * minute);
    assert.equal((await ada.client.getPost(post.id)).post.status, 'draft');

    // Without any call: housekeeping looks each second.
    the().clock.advance(2 * minute);
    let read = await ada.client.getPost(post.id);
    while (read.post.status === 'draft') {
      await delay(20);
      read = await ada.client.getPost(post.id);
    }
    assert.equal(read.post.publishAt, null);
    assert.ok(String(read.post.publishedAt) >= at, 'when it happened, not when it was planned');
    assert.equal((await open(the(), post.url)).status, 200);
    const { revisions } = await ada.client.listRevisions(post.id);
    assert.deepEqual(
      revisions.map(({ cause }) => cause),
      ['published', 'created'],
    );
    assert.deepEqual(await kinds(ada), [['published', post.id, undefined]]);
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });

  test('is ignored, with the status beside it, where the post is published already', async () => {
    const { client, key } = await newAgent();
    const at = ahead(2 * minute);
    const file = `---\ntitle: Filed\nstatus: draft\npublishAt: ${at}\n---\n\nText.\n`;
    const sent = await client.publishMarkdown(file);
    assert.deepEqual([sent.post.status, sent.post.publishAt], ['draft', at]);
    const archive = gunzipSync(Buffer.from(await (await client.exportMe()).arrayBuffer())).toString();
    assert.ok(archive.includes(`publishAt: "${at}"`));
    await pass(3 * minute);
    const again = await client.publishMarkdown(file);
    assert.deepEqual([again.post.status, again.changed], ['published', false]);
    assert.deepEqual(again.warningCodes, ['already_published']);
    const edited = await client.publishMarkdown(file.replace('Text.', 'Other text.'));
    assert.deepEqual([edited.post.status, edited.post.publishAt, edited.changed], ['published', null, true]);
    const invalid = { publishAt: '2026-01-01', status: 'draft' };
    assertProblem(
      await the().call('PATCH', `/api/posts/${sent.post.id}`, { key, body: invalid }),
      'invalid_input',
    );
    const withdrawn = await client.updatePost(sent.post.id, { status: 'draft', publishAt: null });
    assert.deepEqual([withdrawn.post.status, withdrawn.warningCodes], ['draft', []]);
    const back = await client.updatePost(sent.post.id, { publishAt: ahead(2 * minute) });
    await pass(3 * minute);
    const { post } = await client.getPost(sent.post.id);
    assert.deepEqual([post.status, post.publishedAt], ['published', back.post.publishedAt]);
    const names = { publish_at: ahead(day), status: 'published' };
    const spelt = await the().call('POST', '/api/publish', {
      key,
      body: { title: 'S', content: 'c', ...names },
    });
    assert.deepEqual([spelt.at('post.status'), spelt.at('warningCodes')], ['draft', ['other_name']]);
    const query = `?title=Q&status=published&scheduled_at=${encodeURIComponent(ahead(day))}`;
    const headers = { 'content-type': 'text/markdown' };
    const inQuery = await the().call('POST', `/api/publish${query}`, { key, body: 'c', headers });
    assert.deepEqual([inQuery.status, inQuery.at('post.status')], [201, 'draft'], inQuery.text);
  });

  test('ends when the post is published by hand, or deleted', async () => {
    const ada = await newAgent();
    const create = async (title: string) =>
      (await ada.client.publish({ title, content: title, publishAt: ahead(2 * minute) })).post.id;
    const [byHand, trashed] = [await create('By hand'), await create('Trashed')];
    await ada.client.updatePost(byHand, { status: 'published' });
    await ada.client.updatePost(byHand, { status: 'draft' });
    await ada.client.deletePost(trashed);
    await ada.client.restorePost(trashed);
    await pass(3 * minute);
    for (const id of [byHand, trashed]) {
      const { post } = await ada.client.getPost(id);
      assert.deepEqual([post.status, post.publishAt], ['draft', null]);
    }
    assert.deepEqual(await kinds(ada), []);
  });

  test('that a deletion has ended makes another revision of the post, and restoring says so', async () => {
    const { client, key } = await newAgent();
    const restore = async (fields: object, change: object = {}) => {
      const { post } = await client.publish({ title: `Draft ${named}`, content: 'c', ...fields });
      const path = `/api/posts/${post.id}`;
      const read = (etag: string) => the().call('GET', path, { key, headers: { 'if-none-match': etag } });
      assert.equal((await read(post.etag)).status, 304);
      await client.deletePost(post.id);
      // Nothing that waits in the trash is due.
      await pass(3 * minute);
      const restored = assertOk(await the().call('POST', `${path}/restore`, { key, body: change }));
      const known = await read(post.etag);
      assert.equal((await read(String(restored.headers['etag']))).status, 304);
      const { revisions } = await client.listRevisions(post.id);
      await client.deletePost(post.id, { permanent: true });
      const told = { message: restored.at('message'), publishAt: restored.at('post.publishAt') };
      return { post, known, told, causes: revisions.map(({ cause }) => cause) };
    };
    for (const ms of [day, 2 * minute]) {
      const at = ahead(ms);
      const { post, known, told, causes } = await restore({ publishAt: at });
      const again = 'send publishAt to schedule it again.';
      const message = `Restored the draft '${post.slug}'. It no longer becomes public at ${at}: ${again}`;
      assert.deepEqual(told, { message, publishAt: null });
      assert.deepEqual([known.status, known.at('post.publishAt')], [200, null]);
      assert.notEqual(known.at('post.updatedAt'), post.updatedAt);
      assert.deepEqual(causes, ['restored', 'created']);
    }
    const { post, known, told } = await restore({});
    assert.deepEqual([known.status, told.message], [304, `Restored the draft '${post.slug}'.`]);
    const made = await restore({ publishAt: ahead(day) }, { status: 'published' });
    assert.equal(made.told.message, `Restored '${made.post.title}', public at ${made.post.url}.`);
    assert.deepEqual(made.causes, ['restored', 'created']);
  });

  test('waits while its agent is suspended, then follows in the order of times', async () => {
    const ada = await newAgent();
    const ids: string[] = [];
    for (const minutes of [4, 2, 3]) {
      const fields = { title: `In ${minutes}`, content: 'c', publishAt: ahead(minutes * minute) };
      ids[minutes] = (await ada.client.publish(fields)).post.id;
    }
    await the().ctx().engine.write(suspendAgent, { slug: ada.slug, reason: 'spam' });
    await pass(10 * minute);
    const finding = (await examine(the().ctx())).find(({ what }) => what === 'schedule');
    assert.equal(finding?.state, 'ok', finding?.detail);
    await the().ctx().engine.write(restoreAgent, { slug: ada.slug });
    // Many at once, as of several processes: each is published once.
    await atMost(4, Array(4).keys(), publishAllDue);
    const read = await Promise.all([2, 3, 4].map(async (n) => (await ada.client.getPost(ids[n] ?? '')).post));
    assert.deepEqual(
      read.map(({ status }) => status),
      ['published', 'published', 'published'],
    );
    const times = read.map(({ publishedAt }) => String(publishedAt));
    assert.deepEqual(times, times.toSorted());
    for (const { id } of read) assert.equal((await ada.client.listRevisions(id)).revisions.length, 2);
    const told = (await kinds(ada)).filter(([kind]) => kind === 'published').map(([, id]) => String(id));
    assert.deepEqual(told.toSorted(), ids.filter(Boolean).toSorted());
  });

  test('that cannot be kept at present is looked at once a round, of however many', async () => {
    const ada = await newAgent();
    const at = ahead(10 * minute);
    const drafts = Array.from({ length: 60 }, (_, n) => n);
    await atMost(8, drafts, (n) =>
      ada.client.publish({ title: `Due ${n}`, content: 'c', status: 'published', publishAt: at }),
    );
    const ctx = the().ctx();
    const engine: typeof ctx.engine = {
      ...ctx.engine,
      write: async () => {
        throw new Error('busy');
      },
    };
    let looks = 0;
    const now = () => Date.parse(at);
    await assert.rejects(
      publishDue({ ...ctx, engine, now }, async () => ++looks < 100),
      /busy/,
    );
    assert.equal(looks, drafts.length);
    await pass(10 * minute);
    assert.equal((await ada.client.listPosts({ status: 'published', limit: 1 })).total, drafts.length);
  });

  test('is given up where the text holds a key by now, and holds back what is blocked by now', async () => {
    const [ada, eve] = [await newAgent(), await newAgent()];
    const later = randomUUID();
    const publishAt = ahead(2 * minute);
    const { post } = await ada.client.publish({ title: 'Key', content: `it is ${later}`, publishAt });
    const { post: spam } = await ada.client.publish({ title: 'Spam', content: 'buy zanzibars', publishAt });
    // As if the key had been given out only now.
    await onDatabase(the().ctx(), `update agents set key_hash = '${sha256(later)}' where id = '${eve.id}'`);
    await the().ctx().engine.write(blockSource, { kind: 'phrase', value: 'buy zanzibars' });
    await pass(3 * minute);
    const { post: read } = await ada.client.getPost(post.id);
    assert.deepEqual([read.status, read.publishAt], ['draft', null]);
    const [failed] = (await kinds(ada)).filter(([, id]) => id === post.id);
    assert.equal(failed?.[0], 'schedule_failed');
    assert.match(String(failed?.[2]), /^'content' contains a key or token/);
    const { post: held } = await ada.client.getPost(spam.id);
    assert.deepEqual([held.status, held.moderation?.action], ['published', 'held']);
    assert.equal((await open(the(), spam.url)).status, 404);
  });

  test('left at a post that is public, as an earlier release did, is none', async () => {
    const ada = await newAgent();
    const { post } = await ada.client.publish({ title: 'Old', content: 'c', status: 'published' });
    await onDatabase(
      the().ctx(),
      `update posts set "publishAt" = '${ahead(-minute)}' where id = '${post.id}'`,
    );
    await publishAllDue();
    assert.deepEqual(await kinds(ada), []);
    const { post: read } = await ada.client.getPost(post.id);
    assert.equal(read.publishedAt, post.publishedAt);
  });

  test('stands still while read-only, which the doctor names, and follows afterwards', async () => {
    const { client } = await newAgent();
    const { post } = await client.publish({ title: 'Over', content: 'c', publishAt: ahead(2 * minute) });
    await the().restart({ READ_ONLY: 'on' });
    await assert.rejects(pass(2 * minute + 30_000), /read-only/);
    const findings = async () => (await examine(the().ctx())).find(({ what }) => what === 'schedule');
    assert.equal((await findings())?.state, 'ok');
    the().clock.advance(minute);
    const late = await findings();
    assert.match(late?.detail ?? '', /^1 posts should have been published over a minute ago/);
    assert.equal(late?.mend, 'READ_ONLY=off');
    assert.equal((await client.getPost(post.id)).post.status, 'draft');
    await the().restart({ READ_ONLY: 'off' });
    await publishAllDue();
    assert.equal((await client.getPost(post.id)).post.status, 'published');
    assert.equal((await findings())?.state, 'ok');
  });

  test('knows the kinds of its events in either variant', async () => {
    const { key } = await newAgent();
    for (const kind of ['published', 'schedule_failed'])
      assertOk(await the().call('GET', `/api/me/inbox?kind=${kind}`, { key }));
    const comments = await the().call('GET', '/api/me/inbox?kind=comment', { key });
    assert.equal(comments.status, variant === 'subdomain' ? 200 : 400);
  });

  test('takes a time with its zone, a minute to a year ahead, and repeats it', async () => {
    const { client, key } = await newAgent();
    the().clock.freeze();
    const send = (publishAt: unknown, more: object = {}) =>
      the().call('POST', '/api/publish', { key, body: { title: 'T', content: 'c', publishAt, ...more } });
    for (const [value, message] of [
      ['2030-01-01', /does not say the zone/],
      ['2030-01-01T09:00', /does not say the zone.*like '2026-12-01T09:00:00Z'/],
      ['2030-02-30T09:00Z', /must be an ISO 8601/],
      ['tomorrow', /must be an ISO 8601/],
      [1_900_000_000, /must be a string/],
      [ahead(59_999), /is less than a minute ahead/],
      [ahead(0), /is in the past/],
      [ahead(-day), /is in the past/],
      [ahead(367 * day), /is more than a year ahead/],
    ] as const) {
      const refused = assertProblem(await send(value), 'invalid_input');
      assert.equal(refused.at('errors.0.field'), 'publishAt');
      assert.match(String(refused.at('errors.0.message')), message);
    }
    assert.match(String((await send(ahead(-1))).at('hint')), /the status 'published'/);
    const soon = ahead(minute);
    const created = assertOk(await send(soon), 201);
    const id = String(created.at('post.id'));
    const path = `/api/posts/${id}`;
    const patch = (body: object) => the().call('PATCH', path, { key, body });
    for (const same of [soon, soon.replace('Z', '-00:00'), soon.replace('Z', 'z').replace('T', ' ')])
      assert.equal(assertOk(await send(same)).at('changed'), false, same);
    assert.equal(assertOk(await patch({ title: 'Edited', tags: ['x'] })).at('post.publishAt'), soon);
    assert.equal(assertOk(await patch({ status: 'draft' })).at('post.publishAt'), soon);
    // A file is sent again when its time is too near to be chosen.
    the().clock.advance(1);
    assert.equal(assertOk(await patch({ publishAt: soon })).at('changed'), false);
    assertProblem(await patch({ publishAt: ahead(minute - 2) }), 'invalid_input');
    const yearAhead = new Date(the().clock.now());
    yearAhead.setUTCFullYear(yearAhead.getUTCFullYear() + 1);
    assert.equal(
      assertOk(await patch({ publishAt: yearAhead.toISOString() })).at('post.publishAt'),
      yearAhead.toISOString(),
    );
    for (const none of [null, '']) {
      assert.equal(assertOk(await patch({ publishAt: none })).at('post.publishAt'), null);
      assertOk(await patch({ publishAt: ahead(2 * minute) }));
    }
    assertOk(await patch({ publishAt: yearAhead.toISOString() }));
    the().clock.advance(yearAhead.getTime() - the().clock.now() - 1);
    await publishAllDue();
    assert.equal((await client.getPost(id)).post.status, 'draft');
    await pass(1);
    assert.equal((await client.getPost(id)).post.publishedAt, yearAhead.toISOString());
  });
});

test('a time is the same in every zone, on either side of a change of the clocks there', () => {
  for (const [sent, read] of [
    ['2027-03-28T01:59:59+01:00', '2027-03-28T00:59:59.000Z'],
    ['2027-03-28T03:00+02:00', '2027-03-28T01:00:00.000Z'],
    ['2027-10-31T02:30+02:00', '2027-10-31T00:30:00.000Z'],
    ['2027-10-31T02:30:00.5+01:00', '2027-10-31T01:30:00.500Z'],
    ['2027-10-31 02:30 0100', '2027-10-31T01:30:00.000Z'],
    ['2027-11-07T01:30-0400', '2027-11-07T05:30:00.000Z'],
    ['2027-10-31T02:30:00,5+01:00', null],
    ['2027-10-31 02:30', null],
    ['2027-10-31', null],
  ] as const) {
    const at = parseMoment(sent);
    assert.equal(at === null ? null : new Date(at).toISOString(), read, sent);
  }
});
