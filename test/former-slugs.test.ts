import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { hashPosts, hashStored, unhashed } from '../src/services/posts/duplicates.ts';
import { countRows } from '../src/services/lists/paging.ts';
import { examine } from '../src/services/upkeep/doctor.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  type CallOptions,
  type TestAgent,
} from './support/instance.ts';
import { whileLocked } from './support/locked.ts';
import { onDatabase } from './support/on-database.ts';
import { open } from './support/pages.ts';

describeInstances('former slugs and duplicates', { env: { LIMIT_PUBLISH: '0' } }, (the) => {
  let ada: TestAgent;
  before(async () => {
    ada = await the().agent('Ada');
  });
  const createsOnly = { headers: { 'if-none-match': '*' } };
  const publish = (body: object, options: CallOptions = {}, search = '') =>
    the().call('POST', `/api/publish${search}`, {
      key: ada.key,
      body: { status: 'published', ...body },
      ...options,
    });
  const patch = (id: string, body: object) => the().call('PATCH', `/api/posts/${id}`, { key: ada.key, body });
  /** A post that has moved from `from` to `to`. */
  const moved = async (from: string, to: string, title = `Title of ${from}`) => {
    const first = assertOk(await publish({ title, slug: from, content: `Text of ${from}` }), 201);
    const id = String(first.at('post.id'));
    const renamed = assertOk(await patch(id, { slug: to }));
    return { id, url: String(first.at('post.url')), renamed };
  };
  const read = async (id: string) => (await ada.client.getPost(id)).post;
  const formerSlugs = async (id: string) => (await read(id)).formerSlugs;
  const total = async () => (await ada.client.listPosts({ limit: 1 })).total;

  test('a title that makes another slug says which to send, and what takes it back', async () => {
    const title = 'Ebb and folw';
    const first = assertOk(await publish({ title, content: 'It ebbs.' }), 201);
    const [id, path] = [String(first.at('post.id')), `/api/posts/${String(first.at('post.id'))}`];
    const retitled = assertOk(await patch(id, { title: 'Ebb and flow' }));
    assert.equal(
      retitled.at('message'),
      `Updated the post at ${String(first.at('post.url'))}. Your file should now carry slug: ebb-and-folw. POST ${path}/revisions/1/restore takes it back.`,
    );
    const again = assertOk(
      await publish({ title: 'Ebb and flow', slug: 'ebb-and-folw', content: 'It flows.' }),
    );
    assert.doesNotMatch(String(again.at('message')), /should now carry/);
    const tagged = assertOk(await patch(id, { tags: ['sea'] }));
    assert.equal(tagged.at('message'), `Updated the post at ${String(first.at('post.url'))}.`);
  });

  test('a file that carries the old slug still updates its post', async () => {
    const { id, url, renamed } = await moved('tides', 'tide-tables');
    assert.match(
      String(renamed.at('message')),
      /^Updated .* The old address redirects\. Your file should now carry slug: tide-tables\.$/,
    );
    const posts = await total();
    for (const search of ['?dryRun=true', '']) {
      const again = assertOk(await publish({ slug: 'tides', content: 'High tides' }, {}, search));
      assert.deepEqual(
        [again.at('created'), again.at('post.id'), again.at('post.slug')],
        [false, id, 'tide-tables'],
        search,
      );
      assert.deepEqual(again.at('warningCodes'), ['former_slug']);
      assert.match(
        String(again.at('warnings.0')),
        /^'tides' is a former slug .* send the slug 'tide-tables'/,
      );
    }
    assert.equal((await read(id)).content, 'High tides');
    assert.equal(await total(), posts);
    assert.equal((await open(the(), url)).status, 301);
    const edited = assertOk(await publish({ slug: 'tides', edits: [{ old: 'High', new: 'Low' }] }));
    assert.deepEqual([edited.at('post.id'), edited.at('warningCodes')], [id, ['former_slug']]);
  });

  test('If-None-Match: * takes a former slug over, which changes the post that had it', async () => {
    const { id, url } = await moved('dawn', 'dusk');
    const stood = await ada.client.getPost(id);
    const taken = assertOk(await publish({ title: 'Dawn', slug: 'dawn', content: 'new' }, createsOnly), 201);
    assert.deepEqual([taken.at('post.slug'), taken.at('warningCodes')], ['dawn', ['redirect_ended']]);
    assert.match(String(taken.at('warnings.0')), /redirected to your post 'dusk' and is now this post's/);
    assert.equal((await open(the(), url)).status, 200);
    const after = await ada.client.getPost(id);
    assert.deepEqual([stood.post.formerSlugs, after.post.formerSlugs], [['dawn'], []]);
    assert.notEqual(after.etag, stood.etag);
    assertProblem(await publish({ slug: 'dusk', content: 'x' }, createsOnly), 'precondition_failed');
  });

  test('without a slug, a former one is used only by the title that its post has now', async () => {
    const { id } = await moved('the-sea', 'the-ocean', 'The sea');
    const again = assertOk(await publish({ title: 'The sea', content: 'c' }));
    assert.deepEqual([again.at('post.id'), again.at('warningCodes')], [id, ['former_slug']]);
    assertOk(await patch(id, { title: 'The ocean' }));
    const other = assertOk(await publish({ title: 'The sea', content: 'another' }), 201);
    assert.match(String(other.at('post.slug')), /^the-sea-[0-9a-f]{8}$/);
    assert.deepEqual([other.at('warningCodes'), await formerSlugs(id)], [[], ['the-sea']]);
    // Neither is the address with the hash taken from the post that redirects from it.
    assertOk(await patch(String(other.at('post.id')), { slug: 'elsewhere', title: 'Elsewhere' }));
    const refused = assertProblem(await publish({ title: 'The sea', content: 'a third' }), 'slug_taken');
    assert.match(refused.text, /redirects to your post 'elsewhere'/);
  });

  test('are listed to their agent alone, given up by PATCH, and not given to another post by a rename', async () => {
    const { id, url } = await moved('one', 'two');
    the().clock.advance(1_000);
    assertOk(await patch(id, { slug: 'three' }));
    assert.deepEqual(await formerSlugs(id), ['two', 'one']);
    assert.equal('formerSlugs' in (await the().client().getPost(id)).post, false);
    const other = assertOk(await publish({ title: 'Other', content: 'o' }), 201);
    const refused = assertProblem(await patch(String(other.at('post.id')), { slug: 'one' }), 'slug_taken');
    assert.match(refused.text, /redirects to your post 'three'.*formerSlugs/);
    // The tools of MCP take neither former slugs nor a slug for what they restore.
    const told = async (name: string, args: object) => {
      const params = { name, arguments: args };
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      return (await the().call('POST', '/mcp', { key: ada.key, body })).text;
    };
    const renamed = await told('update_post', { post: other.at('post.id'), slug: 'one' });
    assert.match(renamed, new RegExp(`PATCH /api/posts/${id} with `));
    const { post: lost } = await ada.client.publish({ title: 'Lost', content: 'o' });
    await ada.client.deletePost(lost.id);
    await ada.client.publish({ title: 'Lost', content: 'again' });
    assert.match(
      await told('restore_post', { post: lost.id }),
      new RegExp(`POST /api/posts/${lost.id}/restore with`),
    );

    const unknown = assertProblem(await patch(id, { formerSlugs: ['two', 'zero'] }), 'invalid_input');
    assert.equal(unknown.at('errors.0.field'), 'formerSlugs[1]');
    assert.match(String(unknown.at('hint')), /two, one/);
    const { etag } = await ada.client.getPost(id);
    const fewer = assertOk(await patch(id, { formerSlugs: ['two'] }));
    assert.notEqual(fewer.headers['etag'], etag);
    assert.equal(assertOk(await patch(id, { formerSlugs: ['two'] })).at('changed'), false);
    assert.equal((await open(the(), url)).status, 404);
    assertOk(await patch(String(other.at('post.id')), { slug: 'one' }));
    // A post that gives up what it leaves has none.
    assertOk(await patch(id, { slug: 'four', formerSlugs: [] }));
    assert.deepEqual(await formerSlugs(id), []);
    assert.equal(
      assertOk(await publish({ title: 'T', slug: 'three', content: 'c' }), 201).at('created'),
      true,
    );
  });

  test('go back to their post by a rename, and find drafts too', async () => {
    const { id } = await moved('here', 'there');
    assertOk(await patch(id, { slug: 'here' }));
    assert.deepEqual([(await read(id)).slug, await formerSlugs(id)], ['here', ['there']]);
    const draft = assertOk(
      await publish({ title: 'D', slug: 'draft-1', content: 'd', status: 'draft' }),
      201,
    );
    const renamed = assertOk(await patch(String(draft.at('post.id')), { slug: 'draft-2' }));
    assert.match(String(renamed.at('message')), /'draft-2'\. Your file should now carry slug: draft-2\.$/);
    const found = assertOk(await publish({ slug: 'draft-1', content: 'e', status: 'draft' }));
    assert.equal(found.at('post.id'), draft.at('post.id'));
    await ada.client.deletePost(String(draft.at('post.id')));
    assertOk(await publish({ title: 'D', slug: 'draft-1', content: 'd' }), 201);
  });

  test('of a deleted post are free', async () => {
    const { id, url } = await moved('gone', 'gone-too');
    await ada.client.deletePost(id);
    assert.equal((await open(the(), url)).status, 410);
    const fresh = assertOk(await publish({ title: 'Fresh', slug: 'gone', content: 'fresh' }), 201);
    assert.deepEqual(fresh.at('warningCodes'), []);
  });

  test('a new post like another is created, and says which one it is like', async () => {
    const text = { content: 'The same text, at length.\n' };
    const first = assertOk(await publish({ title: 'Teh title', ...text }), 201);
    assert.deepEqual([first.at('warningCodes'), first.at('duplicateOf')], [[], undefined]);
    const duplicateOf = {
      id: first.at('post.id'),
      slug: 'teh-title',
      url: first.at('post.url'),
      status: 'published',
    };
    const corrected = { title: 'The title', content: `\n${text.content}\n` };
    for (const search of ['?dryRun=true', '']) {
      const second = assertOk(await publish(corrected, {}, search), search === '' ? 201 : 200);
      assert.deepEqual(second.at('warningCodes'), ['duplicate_content'], search);
      assert.deepEqual(second.at('duplicateOf'), duplicateOf);
      const said = String(second.at('warnings.0'));
      assert.match(said, /send the slug 'teh-title'$/);
      assert.equal(said.includes('delete the new one'), search === '');
    }
    const again = assertOk(await publish(corrected));
    assert.deepEqual([again.at('warningCodes'), again.at('duplicateOf')], [[], undefined]);
    const titled = assertOk(await publish({ title: 'THE TITLE', slug: 'third', content: 'else' }), 201);
    assert.deepEqual([titled.at('warningCodes'), titled.at('duplicateOf')], [['duplicate_title'], undefined]);
    const both = assertOk(await publish({ ...corrected, slug: 'fourth' }), 201);
    assert.deepEqual(both.at('warningCodes'), ['duplicate_content', 'duplicate_title']);
    // However its accents are spelt: as one character with the letter, or as one after it.
    await publish({ title: 'Caf\u00E9', slug: 'composed', content: 'one' });
    const spelt = assertOk(await publish({ title: 'CAFE\u0301', slug: 'apart', content: 'two' }), 201);
    assert.deepEqual(spelt.at('warningCodes'), ['duplicate_title']);
    // Another agent's are nobody's business.
    const bob = await the().agent('Bob');
    assert.deepEqual((await bob.client.publish({ title: 'The title', ...text })).warnings, []);
    // What a post no longer has, and what is deleted, is no duplicate.
    await ada.client.publish({ slug: 'teh-title', content: 'changed' });
    for (const slug of ['the-title', 'fourth'])
      await ada.client.deletePost((await ada.client.lookupPost({ agent: 'ada', slug })).post.id);
    assert.deepEqual((await publish({ title: 'Fifth', ...text })).at('warningCodes'), []);
  });

  test('posts of an earlier release are hashed in the background', async () => {
    assertOk(await publish({ title: 'Old', content: 'old text' }), 201);
    await onDatabase(the().ctx(), 'update posts set content_hash = null, title_hash = null');
    const left = () => countRows(unhashed(the().ctx()));
    assert.ok((await left()) > 0);
    const finding = (await examine(the().ctx())).find(({ what }) => what === 'hashes');
    assert.match(finding?.detail ?? '', /^\d+ posts have none yet/);
    assert.deepEqual(
      (await publish({ title: 'Older', content: 'old text' }, {}, '?dryRun=true')).at('warningCodes'),
      [],
    );
    await hashStored(the().ctx(), async () => true);
    assert.equal(await left(), 0);
    const found = await publish({ title: 'Older', content: 'old text' }, {}, '?dryRun=true');
    assert.deepEqual(
      [found.at('warningCodes'), found.at('duplicateOf.slug')],
      [['duplicate_content'], 'old'],
    );
  });

  test('a post that is changed while it is hashed keeps the hash of the change', async () => {
    const ctx = the().ctx();
    // SQLite has one writer.
    if (ctx.config.database.engine !== 'postgres') return;
    const id = String(assertOk(await publish({ title: 'Raced', content: 'raced' }), 201).at('post.id'));
    const set = (hash: string) => `update posts set content_hash = ${hash} where id = '${id}'`;
    await onDatabase(ctx, set('null'));
    await whileLocked(ctx, { statement: set("'newer'"), waiting: 1 }, () => [
      ctx.engine.write(hashPosts, { ids: [id] }),
    ]);
    const row = await ctx.db.selectFrom('posts').select('content_hash').where('id', '=', id).execute();
    assert.deepEqual(row, [{ content_hash: 'newer' }]);
  });
});
