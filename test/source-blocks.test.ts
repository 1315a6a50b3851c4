import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { blockKinds, blockOfText, blocksRegistration, parseBlock } from '../src/rules/source-blocks.ts';
import { listActions } from '../src/services/operators/audit.ts';
import { undoBatch } from '../src/services/operators/batches.ts';
import { moderatePost } from '../src/services/operators/post-moderation.ts';
import { moderateComment } from '../src/services/operators/comment-moderation.ts';
import { blockSource, listSourceBlocks } from '../src/services/trust/source-blocks.ts';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { assertOk, assertProblem, describeInstances } from './support/instance.ts';
import { admin, adminFacts } from './support/operator.ts';
import { open } from './support/pages.ts';

test('sources are read in one form, and what is none is refused', () => {
  const valid = [
    ['email', 'Some.Box+spam@GMail.com', 'somebox@gmail.com'],
    ['email-domain', '@Spam.example', 'spam.example'],
    ['email-domain', 'b\u00fccher.example', 'xn--bcher-kva.example'],
    ['address', '203.0.113.0/24', '203.0.113.0/24'],
    ['address', '2001:DB8::/48', '2001:db8::/48'],
    ['phrase', '  Ch\u00c9ap   Pills ', 'cheap pills'],
    ['link-host', '*.Casino.example', 'casino.example'],
  ] as const;
  for (const [kind, typed, value] of valid) assert.deepEqual(parseBlock(kind, typed), { value });
  const invalid = [
    ['email', 'spam.example'],
    ['email-domain', 'spam'],
    ['address', 'private'],
    ['address', '0.0.0.0/0'],
    ['address', '203.0.113.0/33'],
    ['phrase', ' \u0301a '],
    ['link-host', 'https://casino.example/'],
  ] as const;
  for (const [kind, typed] of invalid) assert.ok('fault' in parseBlock(kind, typed), `${kind} ${typed}`);
});

test('a block is of all spellings, of hosts below, and of nothing beside', () => {
  const who = {
    emailKey: 'some.box@mail.spam.example',
    mailboxKey: 'somebox@gmail.com',
    client: '203.0.113.7',
  };
  const cases = [
    [{ kind: 'email', value: 'somebox@gmail.com' }, true],
    [{ kind: 'email', value: 'some.box@mail.spam.example' }, false],
    [{ kind: 'email-domain', value: 'spam.example' }, true],
    [{ kind: 'email-domain', value: 'am.example' }, false],
    [{ kind: 'address', value: '203.0.113.0/24' }, true],
    [{ kind: 'address', value: '203.0.113.8' }, false],
    [{ kind: 'address', value: '2001:db8::/48' }, false],
    [{ kind: 'phrase', value: 'spam' }, false],
  ] as const;
  for (const [block, isBlocked] of cases)
    assert.equal(blocksRegistration(block, who), isBlocked, block.value);
  assert.ok(
    blocksRegistration({ kind: 'address', value: '2001:db8::/48' }, { ...who, client: '2001:db8:0:1::9' }),
  );

  const blocks = [
    { kind: 'phrase', value: 'cheap pills' },
    { kind: 'link-host', value: 'casino.example' },
  ] as const;
  const meets = (text: string, html = '') => blockOfText(blocks, { texts: ['title', text], html })?.kind;
  assert.equal(meets('Buy ch\u00e9ap\n PILLS now'), 'phrase');
  for (const unseen of ['\u00ad', '\u200b', '\u2060', '\ufe0f'])
    assert.equal(meets(`che${unseen}ap${unseen} pills`), 'phrase', unseen);
  assert.equal(meets('cheappills, casino.example'), undefined);
  const linked = (url: string) => meets('', `<p><a href="${url}">x</a></p>`);
  for (const url of [
    'https://casino.example/?a=1&amp;b=2',
    'http://WIN.casino.example.:8080',
    'https://u@casino.example',
    '//casino.example/x',
    'HTTPS://casino.example/',
  ])
    assert.equal(linked(url), 'link-host', url);
  for (const url of [
    'https://notcasino.example/',
    'https://a.example/casino.example',
    '/casino.example',
    'mailto:a@casino.example',
  ])
    assert.equal(linked(url), undefined, url);
  assert.equal(meets('https://casino.example/picture.png'), 'link-host');
});

const env = { CONTACT_EMAIL: 'operator@masthead.example', TRUST_PROXY: 'loopback' };

describeInstances('blocked sources', { env }, (the, variant) => {
  let made = 0;
  const register = (email: string, from = '198.51.100.1') => {
    const name = `Guest ${++made}`;
    const slug = variant === 'subdomain' ? { slug: `guest-${made}` } : {};
    return the().call('POST', '/api/register', {
      body: { email, name, ...slug },
      headers: { 'x-forwarded-for': from },
    });
  };
  const values = async () =>
    (await listSourceBlocks(the().ctx(), blockKinds)).map(({ value }) => value).toSorted();

  test('are refused to register, told whom to write to, until the block is lifted', async () => {
    assertOk(await register('early@spam.example'));
    const early = await the().token('early@spam.example');
    const block = (...args: string[]) => adminFacts(the(), env, 'block', ...args, '--reason', 'spam');
    const dry = await block('email-domain', 'spam.example', '--dry-run');
    assert.deepEqual([dry.blocked, dry.values, await values()], [0, ['spam.example'], []]);
    const first = await block('email-domain', 'spam.example', 'Other.example');
    assert.equal(first.blocked, 2);
    await block('email', 'Some.Box@gmail.com');
    await block('address', '203.0.113.0/24', '2001:db8:7::/48');
    assert.equal((await block('email-domain', 'SPAM.example')).batch, null);

    const refusals = [
      await register('eve@spam.example'),
      await register('eve@mail.spam.example'),
      await register('somebox+2@googlemail.com'),
      await register('ida@fine.example', '203.0.113.9'),
      await register('ida@fine.example', '2001:db8:7:1::2'),
    ].map((answer) => assertProblem(answer, 'forbidden'));
    for (const refused of refusals) {
      // The same words for all: which of them is blocked is nobody's to know.
      assert.equal(refused.at('detail'), refusals[0]?.at('detail'));
      assert.match(String(refused.at('hint')), /write to the operator: operator@masthead\.example\./);
    }
    assertOk(await register('ida@fine.example'));
    // Those who were there before stay.
    assertOk(await the().call('GET', `/api/verify?token=${early}`));
    await adminFacts(
      the(),
      env,
      'agents',
      'create',
      'known@spam.example',
      'Known',
      ...(variant === 'subdomain' ? ['known'] : []),
    );

    const lifted = await adminFacts(
      the(),
      env,
      'unblock',
      'email-domain',
      'spam.example',
      '--reason',
      'moved',
    );
    assertOk(await register('eve@spam.example'));
    await undoBatch(the().ctx(), lifted.batch, { actor: 'cli:test', reason: null, batch: 'again' });
    assertProblem(await register('zoe@spam.example'), 'forbidden');
    assert.equal(
      (await undoBatch(the().ctx(), first.batch, { actor: 'cli:test', reason: null, batch: null })).undone,
      1,
    );
    assert.deepEqual(await values(), [
      '2001:db8:7::/48',
      '203.0.113.0/24',
      'somebox@gmail.com',
      'spam.example',
    ]);
    const log = await adminFacts(the(), env, 'log');
    assert.ok(
      log.some(
        ({ action, target }: { action: string; target: { kind: string } }) =>
          action === 'block' && target.kind === 'block',
      ),
    );
    assert.doesNotMatch(JSON.stringify(log), /spam\.example|203\.0/);
    assert.match(
      (await admin(the(), env, 'blocks')).stdout,
      /^email-domain +spam\.example +\S+ +\S+ +spam$/m,
    );
    const wrong = await admin(the(), env, 'block', 'host', 'x.example', '--reason', 'x');
    assert.deepEqual([wrong.code, /is not a kind of block/.test(wrong.stderr)], [2, true]);
  });

  test('hold back posts that have a phrase, lead to a host, or repeat what was hidden', async () => {
    const [ada, bob] = [await the().agent('Ada'), await the().agent('Bob')];
    const { engine } = the().ctx();
    for (const [kind, value] of [
      ['phrase', 'cheap pills'],
      ['link-host', 'casino.example'],
    ] as const)
      await engine.write(blockSource, { kind, value });
    const publish = (title: string, content: string, more = {}) =>
      ada.client.publish({ title, content, status: 'published', ...more });
    const dry = await the().call('POST', '/api/publish?dryRun=true', {
      key: ada.key,
      body: { title: 'T', content: 'Ch\u00e9ap **pills** or cheap pills' },
    });
    assert.match(dry.text, /"held"/);
    const fine = await publish('Fine', 'Nothing to see at casino.example.');
    assert.equal(fine.post.moderation, undefined);
    for (const [title, content, more] of [
      ['By its text', 'Buy ch\u00e9ap **PILLS** now.'],
      ['By its link', '[Here](https://win.casino.example/?a&b)'],
      ['By its excerpt', 'c', { excerpt: 'cheap  pills' }],
      ['Cheap pills', 'c'],
    ] as const) {
      const { post, warningCodes, created } = await publish(title, content, more);
      assert.deepEqual([created, warningCodes.includes('held')], [true, true], title);
      const [{ status, url, publishedAt, moderation }, seen] = [post, await open(the(), post.url)];
      assert.deepEqual(
        [status, publishedAt, moderation?.action, seen.status],
        ['published', null, 'held', 404],
      );
      assert.equal((await the().call('GET', `/api/posts/${post.id}`, { key: bob.key })).status, 404);
      assert.equal((await ada.client.getPost(post.id)).post.moderation?.action, 'held');
      assert.equal((await adminFacts(the(), env, 'unhide', post.id, '--reason', 'fine')).shown, 1);
      const released = (await ada.client.getPost(post.id)).post;
      assert.ok((released.publishedAt ?? '') > post.createdAt, released.publishedAt ?? 'null');
      while ((await open(the(), url)).status !== 200) await delay(20);
    }
    // A public post is taken back when it comes to have one; its first publication stays.
    const { post } = await publish('Fine', 'Cheap pills.');
    assert.deepEqual(
      [post.id, post.moderation?.action, post.publishedAt],
      [fine.post.id, 'held', fine.post.publishedAt],
    );
    assert.equal((await open(the(), post.url)).status, 404);
    const [action] = await listActions(the().ctx(), { limit: 1, target: post.id });
    assert.deepEqual([action?.action, action?.actor], ['hold', 'system']);

    // What was hidden is not published again under another name.
    const own = await publish('Hidden', 'The same words.');
    await engine.write(moderatePost, { postId: own.post.id, to: { state: 'hidden', reason: 'rule 1' } });
    const again = await publish('Another', 'The same words.');
    assert.deepEqual(
      again.warningCodes.filter((code) => ['held', 'duplicate_content'].includes(code)).toSorted(),
      ['duplicate_content', 'held'],
    );
    assert.equal(again.post.moderation?.action, 'held');
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });

  test('hold back a draft for what of it a call that publishes it does not send', async () => {
    const { client } = await the().agent('Cleo');
    const drafts = [
      { title: 'Fast horses', content: 'x' },
      { title: 'By its excerpt', content: 'x', excerpt: 'Fast horses.' },
      { title: 'By its tag', content: 'x', tags: ['fast-horses'] },
      { title: 'By its slug', content: 'x', slug: 'fast-horses-2' },
      { title: 'By an excerpt made of what it said', content: 'Fast horses.' },
      { title: 'Fast horses, until now', content: 'x', slug: 'slow' },
    ];
    const posts = [];
    for (const draft of drafts) posts.push((await client.publish(draft)).post);
    for (const value of ['fast horses', 'fast-horses', 'fast-horses-2'])
      await the().ctx().engine.write(blockSource, { kind: 'phrase', value });
    const actions = [];
    for (const [n, { id }] of posts.entries()) {
      const more = n === 5 ? { title: 'Slow ones' } : {};
      const { post } = await client.updatePost(id, { content: 'new', status: 'published', ...more });
      actions.push(post.moderation?.action);
    }
    assert.deepEqual(actions, ['held', 'held', 'held', 'held', undefined, undefined]);
    // What is public already is not looked at again for a title that stays.
    const { post } = await client.updatePost(posts[4]?.id ?? '', { content: 'newer' });
    assert.equal(post.moderation, undefined);
  });

  test('hold back what was hidden however it becomes public again', async () => {
    const { client } = await the().agent('Dora');
    const { engine } = the().ctx();
    const publish = (title: string, content: string, more = {}) =>
      client.publish({ title, content, status: 'published', ...more });
    const twin = (await publish('Twin', 'To be hidden.')).post;
    const { post: hidden } = await publish('Original', 'To be hidden.');
    await engine.write(moderatePost, { postId: hidden.id, to: { state: 'hidden', reason: 'rule 1' } });

    const later = (await client.publish({ title: 'Fresh', content: 'x' })).post;
    const byUpdate = await client.updatePost(later.id, { content: 'To be hidden.', status: 'published' });
    const changed = (await publish('Public', 'harmless')).post;
    const bySlug = await client.publish({ slug: changed.slug, content: 'To be hidden.\n' });
    const stored = (await publish('Stored', 'To be hidden.', { status: 'draft' })).post;
    const restored = (await publish('Restored', 'first')).post;
    await client.updatePost(restored.id, { content: 'To be hidden.', status: 'draft' });
    const byStatus = await client.updatePost(restored.id, { status: 'published' });
    const draft = (await client.publish({ title: 'Draft', content: 'y' })).post;
    await client.updatePost(draft.id, { content: 'To be hidden.' });
    await client.deletePost(draft.id);
    const fromTrash = await client.restorePost(draft.id, { status: 'published' });
    assert.deepEqual(fromTrash.warningCodes, ['held']);
    assert.equal((await open(the(), fromTrash.post.url)).status, 404);
    await client.deletePost(hidden.id);
    const afterTrash = await publish('After the trash', 'To be hidden.');
    assert.deepEqual(
      [byUpdate, bySlug, byStatus, fromTrash, afterTrash].map(({ post }) => post.moderation?.action),
      ['held', 'held', 'held', 'held', 'held'],
    );
    assert.equal(stored.moderation?.action, 'held');
    // Its twin was public before, and the operator has left that.
    assert.equal(
      (await client.updatePost(twin.id, { title: 'Twin', content: 'To be hidden.' })).post.moderation,
      undefined,
    );
    assert.equal((await client.updatePost(twin.id, { content: 'Another.' })).post.moderation, undefined);
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });
});

describeInstances('comments that are held', { variants: ['subdomain'], env }, (the) => {
  test('are seen by their author alone until they are released, and counted then', async () => {
    const [ada, bob, eve] = [await the().agent('Ada'), await the().agent('Bob'), await the().agent('Eve')];
    const { engine } = the().ctx();
    await engine.write(blockSource, { kind: 'phrase', value: 'cheap pills' });
    const { post } = await ada.client.publish({ title: 'T', content: 'c', status: 'published' });
    const plain = (await bob.client.addComment(post.id, 'Well said.')).comment;
    const answer = (await eve.client.addComment(post.id, 'Indeed.', { parentId: plain.id })).comment;
    const held = await bob.client.addComment(post.id, 'See @eve: CHEAP  pills!');
    assert.ok(held.warningCodes.includes('held'));
    assert.deepEqual(
      [held.comment.moderation?.action, held.comment.content],
      ['held', 'See @eve: CHEAP  pills!'],
    );
    const state = async () => {
      const { comments, total } = await ada.client.listComments(post.id);
      const page = (await open(the(), post.url)).text;
      const events = async ({ client }: typeof ada) =>
        (await client.inbox()).events.filter(({ kind }) => !['votes', 'moderated'].includes(kind)).length;
      return {
        total,
        texts: comments.map(({ content }) => content),
        onPage: /CHEAP/.test(page),
        events: [await events(ada), await events(bob), await events(eve)],
      };
    };
    const before = { total: 2, texts: ['Well said.', 'Indeed.'], onPage: false, events: [2, 1, 0] };
    assert.deepEqual(await state(), before);
    const [, notice] = (await bob.client.inbox()).events;
    assert.deepEqual(
      [notice?.kind, notice?.action, notice?.commentId],
      ['moderated', 'hold-comment', held.comment.id],
    );
    const mine = (await bob.client.myComments()).comments.find(({ id }) => id === held.comment.id);
    assert.deepEqual([mine?.content, mine?.moderation?.action], ['See @eve: CHEAP  pills!', 'held']);
    assertProblem(
      await the().call('POST', `/api/posts/${post.id}/comments`, {
        key: eve.key,
        body: { content: 'No.', parentId: held.comment.id },
      }),
      'invalid_input',
    );
    assert.deepEqual(await findWrongCounts(the().ctx()), []);

    const dry = await adminFacts(
      the(),
      env,
      'comments',
      'release',
      '--text',
      'cheap',
      '--reason',
      'fine',
      '--dry-run',
    );
    assert.deepEqual([dry.released, dry.comments.length], [0, 1]);
    const done = await adminFacts(the(), env, 'comments', 'release', held.comment.id, '--reason', 'fine');
    assert.equal(done.released, 1);
    while (!(await state()).onPage) await delay(20);
    const { total, texts, events } = await state();
    // Also to those whose inbox had been read up to here.
    assert.deepEqual([total, texts.length, events], [3, 3, [3, 1, 1]]);
    await undoBatch(the().ctx(), done.batch, { actor: 'cli:test', reason: null, batch: 'x' });
    assert.deepEqual(await state(), before);

    // One that is answered is blank to others while it is held.
    const { client } = bob;
    const edited = await client.editComment(post.id, plain.id, 'Cheap pills.');
    assert.deepEqual(
      [edited.comment.moderation?.action, edited.warningCodes.includes('held')],
      ['held', true],
    );
    assert.deepEqual((await state()).texts, ['', 'Indeed.']);
    assert.deepEqual([(await state()).total, await findWrongCounts(the().ctx())], [1, []]);
    await client.deleteComment(post.id, held.comment.id);
    await engine.write(moderateComment, { commentId: plain.id, to: null });
    await client.deleteComment(post.id, plain.id);
    await eve.client.deleteComment(post.id, answer.id);
    assert.deepEqual([(await state()).total, await findWrongCounts(the().ctx())], [0, []]);
  });
});
