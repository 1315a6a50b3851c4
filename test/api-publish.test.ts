import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, test } from 'node:test';
import {
  assertOk,
  assertProblem,
  describeInstances,
  type CallOptions,
  type TestAgent,
} from './support/instance.ts';
import { publish as publishPost } from '../src/services/posts/posts.ts';
import { checkPostQuota } from '../src/services/limits/quota.ts';
import type { PostRow } from '../src/db/tables.ts';
import type { Answer } from './support/http.ts';

/** A key with an invisible character in its middle that a title may hold. */
const broken = (key: string) => `${key.slice(0, 11)}\u00ad${key.slice(11)}`;

describeInstances('publishing', { env: { LIMIT_PUBLISH: '200' } }, (the, variant) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
  });
  const publish = (body: unknown, options: CallOptions = {}, query = '') =>
    the().call('POST', `/api/publish${query}`, { key: ada.key, body, ...options });
  const read = async (id: unknown) => (await ada.client.getPost(String(id))).post;

  test('creates a draft unless told, with everything that the answer promises', async () => {
    const answer = assertOk(await publish({ title: ' A Title ', content: 'Some *text*.' }), 201);
    assert.equal(answer.headers['location'], `${the().baseUrl}/api/posts/${String(answer.at('post.id'))}`);
    assert.match(String(answer.headers['etag']), /^"[0-9a-f]{8}-1\.\d+"$/);
    assert.deepEqual(answer.at('post'), {
      id: answer.at('post.id'),
      title: 'A Title',
      slug: 'a-title',
      status: 'draft',
      url:
        variant === 'subdomain'
          ? `http://ada.localhost:${the().port}/a-title`
          : `${the().baseUrl}/ada/a-title`,
      publishedAt: null,
      excerpt: 'Some text.',
      tags: [],
      publishAt: null,
      disclosure: 'unspecified',
      image: null,
      commentsOpen: true,
      createdAt: answer.at('post.updatedAt'),
      updatedAt: answer.at('post.updatedAt'),
      etag: answer.headers['etag'],
    });
    assert.deepEqual([answer.at('created'), answer.at('changed')], [true, true]);
    assert.equal(answer.at('next.url'), `${the().baseUrl}/api/publish`);
    assert.deepEqual(answer.at('next.body'), { slug: 'a-title', status: 'published' });
    const post = await read(answer.at('post.id'));
    assert.deepEqual(
      [post.content, post.excerpt, post.tags, post.lang, post.disclosure],
      ['Some *text*.', 'Some text.', [], null, 'unspecified'],
    );
  });

  test('an update keeps what is absent', async () => {
    const first = await publish({
      slug: 'kept',
      title: 'Kept',
      content: 'c',
      tags: ['One', 'one', ' TWO  words '],
      lang: 'EN-gb',
      excerpt: 'mine',
      disclosure: 'ai-assisted',
    });
    const second = assertOk(await publish({ slug: 'kept', status: 'published' }));
    assert.deepEqual([second.at('created'), second.at('changed')], [false, true]);
    assert.equal(second.headers['location'], undefined);
    const post = await read(first.at('post.id'));
    assert.deepEqual(
      [post.title, post.content, post.tags, post.lang, post.excerpt, post.disclosure, post.status],
      ['Kept', 'c', ['one', 'two words'], 'en-GB', 'mine', 'ai-assisted', 'published'],
    );
    await publish({ slug: 'kept', content: 'new content', excerpt: null, lang: null, tags: [] });
    const cleared = await read(first.at('post.id'));
    assert.deepEqual([cleared.excerpt, cleared.lang, cleared.tags], ['new content', null, []]);
  });

  test('an excerpt that is taken off gives way to the one that the text had made', async () => {
    const content = '| a | b |\n|-|-|\n| 1 | 2 |\n\n```js\nlet x;\n```\n\nWhat it says.';
    const first = await publish({ slug: 'made', title: 'Made', content, excerpt: 'mine' });
    const id = String(first.at('post.id'));
    assertOk(await the().call('PATCH', `/api/posts/${id}`, { key: ada.key, body: { excerpt: null } }));
    assert.equal((await read(id)).excerpt, 'What it says.');
    await publish({ slug: 'made', excerpt: 'mine again' });
    assertOk(await publish({ title: 'Made', excerpt: null, tags: ['x'] }));
    assert.equal((await read(id)).excerpt, 'What it says.');
    const again = assertOk(await publish({ slug: 'made', excerpt: null }));
    assert.equal(again.at('changed'), false);
  });

  test('identical content again changes nothing, not even the time', async () => {
    const body = { slug: 'same', title: 'Same', content: 'c', tags: ['a'], status: 'published' };
    const first = await publish(body);
    const { updatedAt } = await read(first.at('post.id'));
    the().clock.advance(1000);
    const second = assertOk(await publish(body));
    assert.deepEqual([second.at('created'), second.at('changed')], [false, false]);
    assert.equal(second.headers['etag'], first.headers['etag']);
    assert.equal((await read(first.at('post.id'))).updatedAt, updatedAt);
  });

  test('says when it replaced the published text of a post that was not named, and how to only create', async () => {
    const post = { title: 'Status report', content: 'of last week', status: 'published' };
    const etag = String((await publish(post)).headers['etag']);
    const next = { ...post, content: 'of this week' };
    const dry = assertOk(await publish(next, {}, '?dryRun=true'));
    // Where both are sent, the address says what is meant.
    assert.equal(assertOk(await publish({ ...next, dryRun: false }, {}, '?dryRun=true')).at('dryRun'), true);
    assert.match(String(dry.at('message')), /^Would replace the published text of 'status-report'/);
    const only = await publish(next, { headers: { 'if-none-match': '*' } });
    assertProblem(only, 'precondition_failed');
    const named = await publish({ ...post, content: 'corrected' }, { headers: { 'if-match': etag } });
    assert.match(String(named.at('message')), /^Updated the post at [^,]+\.$/);
    const replaced = assertOk(await publish(next));
    assert.match(
      String(replaced.at('message')),
      /^Updated the post at .*, whose text this replaced\..* If-None-Match: \* only creates\.$/,
    );
    const same = { ...next, tags: ['weekly'] };
    assert.match(String((await publish(same)).at('message')), /^Updated the post at [^,]+\.$/);
  });

  test('publishedAt is that of the first publication, and never changes', async () => {
    const status = async (value: string) =>
      (await publish({ slug: 'dated', title: 'D', content: 'c', status: value })).at('post.publishedAt');
    assert.equal(await status('draft'), null);
    const publishedAt = await status('published');
    assert.match(String(publishedAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    the().clock.advance(5000);
    assert.equal(await status('draft'), publishedAt);
    assert.equal(await status('published'), publishedAt);
  });

  test('taking a post down hides it from everybody else', async () => {
    const answer = await publish({ title: 'Down', content: 'c', status: 'published' });
    assertOk(await the().call('GET', `/api/posts/${String(answer.at('post.id'))}`));
    await publish({ slug: 'down', status: 'draft' });
    assertProblem(await the().call('GET', `/api/posts/${String(answer.at('post.id'))}`), 'not_found');
  });

  test('a new post needs title and content, and both are named', async () => {
    const answer = assertProblem(await publish({ slug: 'unknown', status: 'published' }), 'invalid_input');
    assert.deepEqual([answer.at('errors.0.field'), answer.at('errors.1.field')], ['title', 'content']);
    assert.equal(
      assertProblem(await publish({ content: 'c' }), 'invalid_input').at('errors.0.field'),
      'title',
    );
    assertProblem(await publish({ title: 'No content' }), 'invalid_input');
  });

  for (const [what, body] of [
    ['an unknown status', { title: 'T', content: 'c', status: 'public' }],
    ['a title of 201 characters', { title: 't'.repeat(201), content: 'c' }],
    ['an empty title', { title: ' ', content: 'c' }],
    ['a title on two lines', { title: 'a\nb', content: 'c' }],
    ['an empty content', { title: 'T', content: '' }],
    ['a number for a title', { title: 1, content: 'c' }],
    ['a slug with a capital', { title: 'T', content: 'c', slug: 'A' }],
    ['a slug with a hyphen at the end', { title: 'T', content: 'c', slug: 'a-' }],
    ['the slug index', { title: 'T', content: 'c', slug: 'index' }],
    ['the slug api', { title: 'T', content: 'c', slug: 'api' }],
    ['the slug tags', { title: 'T', content: 'c', slug: 'tags' }],
    ['11 tags', { title: 'T', content: 'c', tags: Array.from('abcdefghijk') }],
    ['a tag of 41 characters', { title: 'T', content: 'c', tags: ['t'.repeat(41)] }],
    ['tags in one string', { title: 'T', content: 'c', tags: 'a,b' }],
    ['an unknown disclosure', { title: 'T', content: 'c', disclosure: 'human' }],
    ['a title with invisible characters', { title: 'Re\u200bport', content: 'c' }],
    ['an annotated title', { title: 'Re\ufff9port\ufffb', content: 'c' }],
    ['a language that is none', { title: 'T', content: 'c', lang: 'klingonese!' }],
    ['an excerpt of 301 characters', { title: 'T', content: 'c', excerpt: 'e'.repeat(301) }],
    ['NUL in the content', { title: 'T', content: 'a\0b' }],
    ['a lone surrogate', { title: 'T', content: 'a\ud800b' }],
    ['a direction override in the title', { title: 'a\u202eb', content: 'c' }],
    ['a list for a body', [{ title: 'T', content: 'c' }]],
    ['null for a body', null],
  ] as const) {
    test(`refuses ${what}`, async () => {
      assertProblem(await publish(JSON.stringify(body)), 'invalid_input');
    });
  }

  test('derives a slug of its own from every title, and finds the post by its title again', async () => {
    const hash = (title: string) => createHash('sha256').update(title).digest('hex').slice(0, 8);
    const long = 'word '.repeat(39);
    for (const [title, slug] of [
      ['C++', 'c'],
      ['C#', `c-${hash('C#')}`],
      ['🦊🦊', `post-${hash('🦊🦊')}`],
      ['日本語', `post-${hash('日本語')}`],
      ['Привет, мир', 'privet-mir'],
      ['Index', `post-${hash('Index')}`],
      [`${long}one`, 'word-'.repeat(20).slice(0, -1)],
      [`${long}two`, `${'word-'.repeat(20).slice(0, 91).replace(/-$/, '')}-${hash(`${long}two`)}`],
    ] as const) {
      const first = assertOk(await publish({ title, content: 'c' }), 201);
      assert.equal(first.at('post.slug'), slug);
      const again = assertOk(await publish({ title, content: 'changed' }));
      assert.equal(again.at('post.id'), first.at('post.id'));
    }
  });

  test('without a slug never changes a post of another title', async () => {
    const chosen = await publish({ slug: 'note', title: 'Chosen', content: 'c' });
    const derived = assertOk(await publish({ title: 'Note', content: 'c' }), 201);
    assert.notEqual(derived.at('post.slug'), 'note');
    assert.equal((await read(chosen.at('post.id'))).title, 'Chosen');
    const again = assertOk(await publish({ title: 'Note', content: 'c' }));
    assert.deepEqual([again.at('post.id'), again.at('changed')], [derived.at('post.id'), false]);
  });

  test('If-Match guards an update, in every form that clients send back', async () => {
    const etagOf = async () =>
      String((await publish({ slug: 'guarded', title: 'G', content: 'c' })).headers['etag']);
    const etag = await etagOf();
    const update = (ifMatch: string, content: string) =>
      publish({ slug: 'guarded', content }, { headers: { 'if-match': ifMatch } });
    for (const form of [etag, `W/${etag}`, `"9.9", ${etag}`, '*', etag.replace(/"$/, '-gzip"')]) {
      assertOk(await update(form, 'c'));
    }
    assertOk(await update(etag, 'second'));
    assertProblem(await update(etag, 'lost update'), 'precondition_failed');
    const lost = assertProblem(await update('"another"', 'x'), 'precondition_failed');
    assert.equal(lost.at('etag'), (await publish({ slug: 'guarded' })).headers['etag']);
    for (const garbage of ['nonsense', '"open', '"a" "b"', 'W/', `${etag}, x`, 'null'])
      assertProblem(await update(garbage, 'x'), 'invalid_input');
    assertProblem(
      await publish({ slug: 'absent', title: 'A', content: 'c' }, { headers: { 'if-match': '*' } }),
      'precondition_failed',
    );
    assert.equal(
      (await ada.client.listPosts()).posts.find((post) => post.slug === 'absent'),
      undefined,
    );
  });

  test('If-None-Match: * creates only', async () => {
    const create = () =>
      publish({ slug: 'only-once', title: 'O', content: 'c' }, { headers: { 'if-none-match': '*' } });
    assertOk(await create(), 201);
    assertProblem(await create(), 'precondition_failed');
  });

  test('a new name of the agent is no conflict for an editor', async () => {
    const { etag } = await ada.client.publish({ slug: 'renames', title: 'R', content: 'c' });
    await ada.client.updateMe({ name: 'Ada L.' });
    await ada.client.publish({ slug: 'renames', title: 'R2' }, { ifMatch: etag ?? '' });
  });

  test('a dry run says what would happen and stores nothing', async () => {
    const create = await ada.client.publish(
      { title: 'Dry', content: '# Top\n\ntext', status: 'published' },
      { dryRun: true, html: true },
    );
    assert.deepEqual(
      [create.dryRun, create.created, create.post.id, create.post.slug],
      [true, true, null, 'dry'],
    );
    assert.match(create.html ?? '', /<h2[^>]*>.*Top/);
    assert.equal(create.limit?.policy, 'publish');
    assert.equal(
      (await ada.client.listPosts()).posts.some((post) => post.slug === 'dry'),
      false,
    );

    const { post } = await ada.client.publish({ title: 'Dry', content: 'old' });
    const update = await ada.client.publish({ slug: 'dry', content: 'new' }, { dryRun: true });
    assert.deepEqual([update.created, update.changed, update.post.id], [false, true, post.id]);
    assert.equal((await read(post.id)).content, 'old');
    assertProblem(await publish({ slug: 'nothing' }, {}, '?dryRun=true'), 'invalid_input');
    assertProblem(await publish({ title: 'T', content: 'c' }, {}, '?dryRun=maybe'), 'invalid_input');
  });

  test('a dry run is one wherever it is asked for, however it is spelt, and counts as one', async () => {
    const post = { slug: 'never', title: 'Never', content: 'c', status: 'published' };
    for (const [query, fields] of [
      ['?dry_run=true', {}],
      ['?dryrun=true', {}],
      ['?dry-run=true', {}],
      ['', { dryRun: true }],
      ['', { dry_run: true }],
      ['?dryRun=true', { dryRun: false }],
    ] as const) {
      const answer = assertOk(await publish({ ...post, ...fields }, {}, query));
      assert.equal(answer.at('dryRun'), true, query);
      assert.match(String(answer.headers['ratelimit']), /^"api"/);
    }
    assertProblem(await publish({ slug: 'never', status: 'published' }), 'invalid_input');
    for (const query of ['?dryRun=false&dry_run=true', '?dryRun=false']) {
      const answer = await publish({ ...post, slug: 'stored', dryRun: true }, {}, query);
      assert.equal(answer.at('dryRun'), undefined, 'the query wins');
      assert.match(String(answer.headers['ratelimit']), /^"publish"/);
    }
  });

  test('says how to schedule a post', async () => {
    const answer = assertOk(await publish({ title: 'Later', content: 'c', date: '2030-01-01' }, {}), 201);
    assert.match(String(answer.at('warnings.0')), /^field 'date' ignored: .*send publishAt$/);
  });

  test('a dry run of a change by id says what would happen, stores nothing and counts as one', async () => {
    const { post } = await ada.client.publish({ title: 'Not dry', content: 'old' });
    const path = `/api/posts/${post.id}`;
    const change = (query: string, fields: object, more: CallOptions = {}) =>
      the().call('PATCH', path + query, { key: ada.key, body: { content: 'new', ...fields }, ...more });
    for (const [query, fields] of [
      ['?dryRun=true', {}],
      ['?dry_run=true', {}],
      ['', { dryRun: true }],
      ['', { 'dry-run': true }],
    ] as const) {
      const answer = assertOk(await change(query, fields));
      assert.deepEqual(
        [answer.at('dryRun'), answer.at('changed'), answer.at('post.id'), answer.at('post.etag')],
        [true, true, post.id, post.etag],
      );
      assert.equal(answer.at('html'), undefined);
      assert.match(String(answer.headers['ratelimit']), /^"api"/);
    }
    assertProblem(await change('?dryrun', {}), 'invalid_input');
    const stale = { headers: { 'if-match': '"00000000-9.1"' } };
    assertProblem(await change('?dryRun=true', {}, stale), 'precondition_failed');
    assert.match(String(assertOk(await change('?dryRun=true&html=true', {})).at('html')), />new<\/p>/);
    assert.equal((await read(post.id)).content, 'old');
  });

  test('a dry run of a deletion deletes nothing', async () => {
    const { post } = await ada.client.publish({ title: 'Not deleted', content: 'c' });
    const path = `/api/posts/${post.id}`;
    const remove = (query: string, more: CallOptions = {}) =>
      the().call('DELETE', path + query, { key: ada.key, ...more });
    const dry = assertOk(await remove('?dryRun=true'));
    assert.match(String(dry.at('message')), /^Would delete 'Not deleted' with 0 comments/);
    assert.equal(dry.at('dryRun'), true);
    const inBody = assertProblem(await remove('', { body: { dryRun: true } }), 'invalid_input');
    assert.match(String(inBody.at('errors.0.message')), /\?dryRun=true/);
    const stale = { headers: { 'if-match': '"00000000-9.1"' } };
    assertProblem(await remove('?dryRun=true', stale), 'precondition_failed');
    assert.equal((await read(post.id)).title, 'Not deleted');
    const eve = await the().agent(`Eve${post.id.slice(-4)}`);
    assertProblem(await the().call('DELETE', `${path}?dryRun=true`, { key: eve.key }), 'not_found');
  });

  test('warns about what is probably a mistake and lets it through', async () => {
    const answer = assertOk(
      await publish(
        {
          title: 'Warned',
          content: 'one\\ntwo ![](https://example.com/a.png) x\u{E0041}y',
          statsu: 'published',
        },
        {},
        '?dryRum=true',
      ),
      201,
    );
    const warnings = JSON.stringify(answer.at('warnings'));
    for (const expected of [
      /unknown field 'statsu' ignored; did you mean 'status'/,
      /unknown query parameter 'dryRum' ignored; did you mean 'dryRun'/,
      /written out/,
      /alternative text/,
      /removed invisible text/,
    ]) {
      assert.match(warnings, expected);
    }
    assert.ok(!(await read(answer.at('post.id'))).content.includes('\u{E0041}'));
  });

  test('takes content of 512 KiB and refuses one byte more', async () => {
    assertOk(await publish({ title: 'Largest', content: 'x'.repeat(512 * 1024) }), 201);
    const more = await publish({ title: 'Larger', content: 'x'.repeat(512 * 1024 + 1) });
    assert.equal(assertProblem(more, 'too_large').at('errors.0.field'), 'content');
    assertProblem(await publish('x'.repeat(4 * 1024 * 1024 + 1)), 'too_large');
  });

  test('refuses what cannot be rendered', async () => {
    assertProblem(await publish({ title: 'Boom', content: `${'>'.repeat(60)} a` }), 'unrenderable');
    assert.equal(
      (await ada.client.listPosts()).posts.some((post) => post.slug === 'boom'),
      false,
    );
  });

  for (const [where, textWith] of [
    ['the title', (key: string) => ({ title: `T ${key}`, content: 'c' })],
    ['the content', (key: string) => ({ title: 'Leak', content: `curl -H "Bearer ${key.toUpperCase()}"` })],
    ['a tag', (key: string) => ({ title: 'Leak', content: 'c', tags: [key] })],
    ['the excerpt', (key: string) => ({ title: 'Leak', content: 'c', excerpt: `see ${key}.` })],
    ['the slug', (key: string) => ({ title: 'Leak', content: 'c', slug: key })],
    [
      'a title with one invisible character',
      (key: string) => ({ title: `Leak ${broken(key)}`, content: 'c' }),
    ],
    ['an excerpt with one', (key: string) => ({ title: 'Leak', content: 'c', excerpt: broken(key) })],
    [
      'a content with one between all',
      (key: string) => ({ title: 'Leak', content: key.replaceAll('', '\u200b') }),
    ],
    ['emphasis', (key: string) => ({ title: 'Leak', content: `${key.slice(0, 9)}**${key.slice(9)}**` })],
    ['a link', (key: string) => ({ title: 'Leak', content: `[a](https://example.com/?key=${key})` })],
    [
      'a text that cannot be rendered',
      (key: string) => ({ title: 'Leak', content: `${'>'.repeat(60)} ${key}` }),
    ],
    [
      'the slug that its title gives',
      (key: string) => ({ title: key.replaceAll('-', ' '), content: 'Leak' }),
    ],
    ['hidden pieces', (key: string) => ({ title: 'Leak', content: key.replace('-', '\u{E0001}\u{E0002}-') })],
    ['markdown escapes', (key: string) => ({ title: 'Leak', content: key.replaceAll('-', '\\-') })],
    ['character references', (key: string) => ({ title: 'Leak', content: key.replaceAll('-', '&#45;') })],
  ] as const) {
    test(`a working key in ${where} is refused and not stored`, async () => {
      const answer = await publish(textWith(ada.key));
      assertProblem(answer, 'leaked_key');
      assert.ok(String(answer.at('errors.0.field')) in textWith(ada.key));
      assert.ok(!answer.text.toLowerCase().includes(ada.key));
      assert.equal(
        (await ada.client.listPosts()).posts.some((post) => /leak/i.test(post.slug)),
        false,
      );
    });
  }

  test('a working key behind thousands of strings like it is found', async () => {
    const decoys = Array.from(
      { length: 5000 },
      (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    );
    const content = `${decoys.join('\n')}\n${ada.key}\n`;
    assertProblem(await publish({ title: 'Leak', content }), 'leaked_key');
  });

  test('the owner of a leaked key is told, once an hour', async () => {
    const bob = await the().agent('Bobby');
    for (let i = 0; i < 3; i++) assertProblem(await publish({ title: 'L', content: bob.key }), 'leaked_key');
    const subjects = (await the().mails(bob.email)).map((mail) => mail.email.subject);
    assert.equal(subjects.filter((subject) => subject?.includes('was in a text')).length, 1);
    assertOk(await publish({ title: 'No key', content: '11111111-2222-4333-8444-555555555555' }), 201);
  });
});

describeInstances('a token in a text', {}, (the, variant) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
    await ada.client.me();
  });
  const publish = (body: object, query = '') =>
    the().call('POST', `/api/publish${query}`, { key: ada.key, body });
  const registered = async (name: string) => {
    const email = `${name}@example.com`;
    await the()
      .client()
      .register({ email, name, ...(variant === 'subdomain' ? { slug: name } : {}) });
    return { email, token: await the().token(email) };
  };
  const recovering = async (name: string) => {
    const { email, client } = await the().agent(name);
    await client.recover(email);
    return { email, token: await the().token(email) };
  };
  const verify = (token: string) => the().call('GET', `/api/verify?token=${token}`);
  const confirm = (token: string) => the().call('POST', '/api/recover/confirm', { body: { token } });
  const warnings = async (email: string) =>
    (await the().mails(email)).filter((mail) => mail.email.subject?.startsWith('A token of the agent'));
  const assertRefused = async (answer: Promise<Answer>, field: string) => {
    const refused = assertProblem(await answer, 'leaked_key');
    assert.match(
      String(refused.at('detail')),
      new RegExp(
        `^'${field}' contains a verification or recovery token that works here, so nothing was stored`,
      ),
    );
    assert.equal(refused.at('errors.0.field'), field);
    assert.equal(refused.at('errors.1'), undefined);
    assert.match(String(refused.at('hint')), /recover/);
    assert.doesNotMatch(String(refused.at('hint')), /regenerate/);
    assert.deepEqual((await ada.client.listPosts()).posts, []);
  };

  test('is refused and void from then on while it gives a key, and its owner is told', async () => {
    const unverified = await registered('unverified');
    const link = `Confirm at ${the().baseUrl}/verify?token=${unverified.token.toUpperCase()} please`;
    await assertRefused(publish({ title: 'T', content: link, status: 'published' }), 'content');
    assertProblem(await verify(unverified.token), 'token_expired');
    const [told, ...more] = await warnings(unverified.email);
    assert.deepEqual(more, []);
    assert.match(told?.email.text ?? '', /The token is void/);
    assert.match(told?.email.text ?? '', /registered again/);
    assert.ok(!told?.email.text?.includes(unverified.token));
    const again = await registered('unverified');
    assertOk(await verify(again.token));

    const recovery = await recovering('Recovering');
    const hidden = recovery.token.replaceAll('-', '\u200b-');
    await assertRefused(publish({ title: `T ${hidden}`, content: 'c' }, '?dryRun=true'), 'title');
    assertProblem(await confirm(recovery.token), 'token_expired');
    assert.equal((await warnings(recovery.email)).length, 1);

    // One that was used gives its key again until that is used.
    const used = await registered('repeatable');
    const { apiKey } = await the().client().verify(used.token);
    await assertRefused(publish({ title: used.token.replaceAll('-', ' '), content: 'c' }), 'title');
    assertProblem(await verify(used.token), 'token_used');
    assertOk(await the().call('GET', '/api/me', { key: apiKey }));
  });

  test('is refused in profiles, registrations and comments as well', async () => {
    const { token } = await recovering('Profiled');
    await assertRefused(
      the().call('PATCH', '/api/me', { key: ada.key, body: { bio: `See ${token}` } }),
      'bio',
    );
    const second = await recovering('Registered');
    const body = { email: 'eve@example.com', name: second.token, slug: 'eve' };
    await assertRefused(the().call('POST', '/api/register', { body }), 'name');
    assert.deepEqual(await the().mails('eve@example.com'), []);
    if (variant === 'path') return;
    const third = await recovering('Commented');
    const { client, key } = await the().agent('Grace');
    const { post } = await client.publish({ title: 'T', content: 'c', status: 'published' });
    const path = `/api/posts/${post.id}/comments`;
    await assertRefused(the().call('POST', path, { key, body: { content: third.token } }), 'content');
    assert.equal((await client.listComments(post.id)).total, 0);
    for (const each of [token, second.token, third.token])
      assertProblem(await confirm(each), 'token_expired');
  });

  test('is refused with all others in the call, which are void too, and beside a key', async () => {
    const [one, two] = [await recovering('Tokenone'), await recovering('Tokentwo')];
    const three = await the().agent('Keythree');
    const decoys = Array.from(
      { length: 1200 },
      (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    );
    const refused = assertProblem(
      await publish({ title: `T ${three.key}`, tags: [one.token], excerpt: two.token, content: 'c' }),
      'leaked_key',
    );
    const faults = [0, 1, 2, 3].map((i) => [
      refused.at(`errors.${i}.field`),
      refused.at(`errors.${i}.message`),
    ]);
    assert.deepEqual(faults, [
      ['title', 'contains an API key that works here'],
      ['tags', 'contains a verification or recovery token that works here'],
      ['excerpt', 'contains a verification or recovery token that works here'],
      [undefined, undefined],
    ]);
    assert.match(String(refused.at('hint')), /regenerate-key.*\/recover/);
    for (const { token, email } of [one, two]) {
      assertProblem(await confirm(token), 'token_expired');
      assert.equal((await warnings(email)).length, 1);
    }
    const [four, five] = [await recovering('Tokenfour'), await recovering('Tokenfive')];
    const content = [four.token, ...decoys, five.token].join('\n');
    await assertRefused(publish({ title: 'T', content }), 'content');
    for (const { token } of [four, five]) assertProblem(await confirm(token), 'token_expired');
  });

  test('is void even if the mailbox can be sent nothing more', async () => {
    const { email } = await the().agent('Fullbox');
    for (let i = 0; i < 5; i++) await the().client().recover(email);
    const token = await the().token(email);
    await assertRefused(publish({ title: 'T', content: token }), 'content');
    assertProblem(await confirm(token), 'token_expired');
    assert.deepEqual(await warnings(email), []);
  });

  test('is a text like others once it gives no key', async () => {
    const { email, client } = await the().agent('Spent');
    const used = await the().token(email);
    await client.recover(email);
    const voided = await the().token(email);
    await client.regenerateKey();
    await client.recover(email);
    const expired = await the().token(email);
    the().clock.advance(24 * 3_600_000);
    assertOk(await publish({ title: 'T', content: `${used} ${voided} ${expired}` }, '?dryRun=true'));
    assert.deepEqual(await warnings(email), []);
  });
});

describeInstances('publishing a markdown document', {}, (the) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
  });
  const send = (body: string, query = '', type = 'text/markdown') =>
    the().call('POST', `/api/publish${query}`, { key: ada.key, body, headers: { 'content-type': type } });
  const stored = async (slug: string) => {
    const { posts } = await ada.client.listPosts();
    return (await ada.client.getPost(posts.find((post) => post.slug === slug)?.id ?? 'none')).post;
  };

  test('its front matter gives the fields', async () => {
    const document =
      '---\ntitle: "Front: matter"\nstatus: published\ntags: [a, B]\nlang: de\n---\n# Heading\n\ntext';
    assertOk(await send(document, '', 'text/markdown; charset=UTF-8'), 201);
    const post = await stored('front-matter');
    assert.deepEqual(
      [post.title, post.status, post.tags, post.lang, post.content],
      ['Front: matter', 'published', ['a', 'b'], 'de', '# Heading\n\ntext'],
    );
  });

  test('within the content, or without its first line, it is told of', async () => {
    const document = '---\ntitle: Other\nstatus: published\n---\n\ntext';
    const { warnings } = await ada.client.publish({ title: 'In JSON', content: document });
    assert.match(String(warnings), /^'content' begins with front matter \(title, status\), which readers/);
    const cut = assertProblem(await send(document.slice(4)), 'invalid_input');
    assert.equal(cut.at('error'), "The body begins with front matter whose first line '---' is missing.");
  });

  test('query parameters win over it', async () => {
    assertOk(await send('---\ntitle: Lost\ntags: [x]\n---\ntext', '?title=Won&tags=y,z&status=draft'), 201);
    assert.deepEqual((await stored('won')).tags, ['y', 'z']);
  });

  test('the first heading is the title and leaves the content, also beside a slug', async () => {
    assertOk(await send('# The *First*\n\ntext'), 201);
    assert.deepEqual(
      [(await stored('the-first')).title, (await stored('the-first')).content],
      ['The First', 'text'],
    );
    assertOk(await send('# Beside\n\ntext', '?slug=chosen'), 201);
    assert.deepEqual([(await stored('chosen')).title, (await stored('chosen')).content], ['Beside', 'text']);
  });

  test('a dry run, an unknown field and a fault work as with JSON', async () => {
    const dry = assertOk(await send('# Try\n\ntext', '?dryRun=true'));
    assert.equal(dry.at('dryRun'), true);
    const warned = assertOk(await send('---\ntitle: Odd\ntgas: x\n---\nc'), 201);
    assert.match(JSON.stringify(warned.at('warnings')), /unknown field 'tgas' ignored; did you mean 'tags'/);
    assertProblem(await send('# T\n\nc', '?status=public'), 'invalid_input');
    assertProblem(await send('---\ntitle: &anchor x\n---\nc'), 'invalid_input');
    assertProblem(await send('---\nnever closed'), 'invalid_input');
    assertProblem(await send('no heading'), 'invalid_input');
    assertProblem(await send(''), 'invalid_input');
  });

  test('only calls that store a post take it', async () => {
    const patch = await the().call('PATCH', '/api/me', {
      key: ada.key,
      body: '# P',
      headers: { 'content-type': 'text/markdown' },
    });
    assertProblem(patch, 'unsupported_media_type');
  });
});

describeInstances('quotas', { env: { QUOTA_POSTS: '2', QUOTA_BYTES: '100' } }, (the) => {
  test('bound the number of posts and the bytes of one agent', async () => {
    const { client } = await the().agent('Quota');
    const other = await the().agent('Other');
    const one = await client.publish({ title: 'One', content: 'é'.repeat(20) });
    await assert.rejects(client.publish({ title: 'Big', content: 'x'.repeat(61) }), {
      code: 'quota_exceeded',
    });
    await client.publish({ title: 'Two', content: 'x'.repeat(60) });
    await assert.rejects(client.publish({ title: 'Three', content: 'x' }), { code: 'quota_exceeded' });
    await assert.rejects(client.publish({ slug: 'two', content: 'x'.repeat(61) }), {
      code: 'quota_exceeded',
    });
    await client.publish({ slug: 'two', title: 'Still two' });
    assert.deepEqual((await client.limits()).quota, {
      posts: { limit: 2, used: 2 },
      bytes: { limit: 100, used: 100 },
    });
    await other.client.publish({ title: 'One', content: 'x'.repeat(100) });

    // The trash frees the place, and not the bytes.
    await client.deletePost(one.post.id);
    assert.deepEqual((await client.limits()).quota, {
      posts: { limit: 2, used: 1 },
      bytes: { limit: 100, used: 100 },
    });
    await assert.rejects(client.publish({ title: 'Three', content: 'x' }), {
      code: 'quota_exceeded',
      hint: /DELETE \/api\/me\/trash frees/,
    });
    await client.deletePost(one.post.id, { permanent: true });
    await client.publish({ title: 'Three', content: 'x'.repeat(40) });
    assert.equal((await client.listPosts()).total, 2);
  });

  test('let an agent that is over one make its posts smaller', async () => {
    const { client, id } = await the().agent('Over');
    const { post } = await client.publish({ title: 'Hidden', content: 'x'.repeat(100) });
    const ctx = the().ctx();
    const agent = await ctx.db
      .selectFrom('agents')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    const over = { ...agent, content_bytes: 200 };
    const row = await ctx.db
      .selectFrom('posts')
      .selectAll()
      .where('id', '=', post.id)
      .$narrowType<PostRow>()
      .executeTakeFirstOrThrow();
    checkPostQuota(ctx, over, row, { ...row, content_bytes: 99 });
    checkPostQuota(ctx, over, row, row);
    const larger = { ...row, content_bytes: 101 };
    assert.throws(() => checkPostQuota(ctx, over, row, larger), { code: 'quota_exceeded' });
  });

  test('bound what is published at once', async () => {
    const { client } = await the().agent('Hasty');
    const publishing = Array.from({ length: 8 }, (_, i) =>
      client.publish({ title: `At once ${i}`, content: 'x' }),
    );
    const codes = (await Promise.allSettled(publishing)).map((one) =>
      one.status === 'fulfilled' ? 'stored' : (one.reason as { code: string }).code,
    );
    assert.deepEqual(codes.toSorted(), [...Array(6).fill('quota_exceeded'), 'stored', 'stored']);
    assert.deepEqual((await client.limits()).quota?.posts, { limit: 2, used: 2 });
  });
});

describeInstances('a call whose client has left', {}, (the) => {
  test('changes nothing, even where there is nothing to render', async () => {
    const ada = await the().agent('Gone');
    const { post } = await ada.client.publish({ title: 'Kept', content: 'c', status: 'draft' });
    const caller = { ...ada, keyHash: '', suspended: null, version: '' };
    const left = { signal: AbortSignal.abort(new Error('left')) };
    for (const fields of [
      { slug: post.slug, status: 'published' as const },
      { slug: post.slug, content: 'other' },
      { title: 'New', content: 'c' },
    ])
      await assert.rejects(publishPost(the().ctx(), caller, fields, left), /left/);
    const { posts } = await ada.client.listPosts();
    assert.deepEqual(
      posts.map(({ title, status }) => [title, status]),
      [['Kept', 'draft']],
    );
  });
});
