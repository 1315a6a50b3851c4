import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCommandLine } from '../src/cli/main.ts';
import { unlessSlow } from './support/command-line.ts';
import { startInstance, type Instance, type TestAgent } from './support/instance.ts';

describe('changing posts from the command line', () => {
  let instance: Instance;
  let ada: TestAgent;
  let dir = '';
  before(async () => {
    instance = await startInstance({ env: { LIMIT_PUBLISH: '0' } });
    ada = await instance.agent('Ada');
    dir = await mkdtemp(join(tmpdir(), 'masthead-changes-'));
  });
  after(async () => {
    await instance.close();
    await rm(dir, { recursive: true });
  });

  async function run(...args: string[]) {
    const [out, err]: [string[], string[]] = [[], []];
    const code = await runCommandLine(args, {
      env: { HOME: dir, MASTHEAD_URL: instance.baseUrl, MASTHEAD_API_KEY: ada.key },
      out: (line) => void out.push(line),
      err: unlessSlow((line) => void err.push(line)),
    });
    return { code, out: out.join('\n'), err: err.join('\n') };
  }
  async function ok(...args: string[]): Promise<string> {
    const { code, out, err } = await run(...args);
    assert.equal(code, 0, err);
    return out;
  }
  const contentOf = async (slug: string) =>
    (await ada.client.lookupPost({ agent: 'ada', slug })).post.content;

  test('a word, many words and an end, guarded by the etag that show prints', async () => {
    const content = 'Teh engine weaves.\n\nTeh store keeps.';
    await ada.client.publish({ title: 'Note', content, status: 'published' });
    const shown = await ok('post', 'show', `http://ada.localhost:${instance.port}/note`);
    const [, etag = ''] = /^etag +"([^"]+)"$/m.exec(shown) ?? [];
    const refused = await run('post', 'edit', 'note', '--old', 'Teh engin weaves', '--new', 'x');
    assert.equal(refused.code, 5);
    assert.match(refused.err, /near line 1 there is\nTeh engine weaves\./);
    const wanted = ['post', 'edit', 'note', '--old', 'Teh', '--new', 'The', '--all', '--if-match', etag];
    assert.match(await ok(...wanted, '--dry-run'), /^Would update 'note'.*\n.*\n.*\n@@/);
    assert.equal(await contentOf('note'), content);
    assert.match(await ok(...wanted), /^Updated the post .*\n--- note revision 1\n[^]*\n\+The store keeps\./);
    const stale = ['post', 'edit', 'note', '--old', 'kee', '--new', 'x', '--if-match', '00000000-1.1'];
    for (const options of [[], ['--dry-run']]) assert.equal((await run(...stale, ...options)).code, 5);
    await ok('post', 'edit', 'note', '--title', 'Notes', '--old', 'keeps.', '--new', 'keeps!');
    await ok('post', 'edit', 'note', '--slug', 'notes', '--status', 'draft');
    const { post } = await ada.client.lookupPost({ agent: 'ada', slug: 'notes' });
    assert.deepEqual(
      [post.title, post.status, post.content],
      ['Notes', 'draft', 'The engine weaves.\n\nThe store keeps!'],
    );
    await ok('post', 'edit', 'notes', '--slug', 'note', '--status', 'published');
    const edits = join(dir, 'edits.json');
    await writeFile(
      edits,
      JSON.stringify([
        { old: 'weaves', new: 'wove' },
        { old: 'keeps', new: 'kept' },
      ]),
    );
    await ok('post', 'edit', 'note', '--edits', edits);
    const end = join(dir, 'end.md');
    await writeFile(end, 'The end.\n');
    await ok('post', 'append', 'note', end);
    assert.equal(await contentOf('note'), 'The engine wove.\n\nThe store kept!\n\nThe end.\n');
  });

  test('a time at which it becomes public, and a link to see it before', async () => {
    const file = join(dir, 'later.md');
    await writeFile(file, '# Later\n\nText.\n');
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const sent = await ok('post', 'publish', file, '--publish', '--at', at.replace('Z', '+00:00'));
    assert.match(sent, new RegExp(`^created \\(draft until ${at}\\): `, 'm'));
    assert.match(
      await ok('post', 'list'),
      new RegExp(`^draft until ${at} +20\\S+Z +Later +http\\S+/later$`, 'm'),
    );
    assert.match(await ok('post', 'show', 'later'), new RegExp(`^becomes public +${at}$`, 'm'));
    const link = await ok('post', 'preview', 'later');
    assert.match(link, /^http:\/\/localhost:\d+\/-\/preview\/\S+\n {2}until 20/);
    assert.match(await ok('post', 'preview', 'later', '--end'), /ended|end/i);
    assert.equal((await fetch(link.split('\n')[0] ?? '')).status, 404);
    for (const [typed, ahead] of [
      ['2026-12-01T09:00', 60],
      ['+3h', 180],
      ['45m', 45],
      ['tomorrow 09:00', 60],
    ] as const) {
      const { code, err } = await run('post', 'publish', file, '--at', typed);
      const [said = ''] = /20\S+Z/.exec(err) ?? [];
      const wait = (Date.parse(said) - Date.now()) / 60_000;
      assert.ok(code === 2 && wait > ahead - 2 && wait <= ahead, `${typed}: ${err}`);
    }
    await ok('post', 'publish', file, '--publish');
    const { post } = await ada.client.lookupPost({ agent: 'ada', slug: 'later' });
    assert.deepEqual([post.status, post.publishAt], ['published', null]);
    await ada.client.deletePost(post.id);
  });

  test('what it was before: listed, compared, restored, erased', async () => {
    await ada.client.publish({ title: 'Draft', content: 'first' });
    await ok('post', 'edit', 'draft', '--old', 'first', '--new', 'second');
    await ok('post', 'edit', 'draft', '--old', 'second', '--new', 'third');
    const history = await ok('post', 'history', 'draft');
    assert.match(history, /^REVISION .*\n3 \(now\) +\S+ +changed +\+1 -1 +Draft\n2 .*\n1 +\S+ +created/);
    assert.match(await ok('post', 'diff', 'draft'), /^-second\n[^]*^\+third$/m);
    assert.match(await ok('post', 'diff', 'draft', '1'), /^-first\n[^]*^\+third$/m);
    const restored = await ok('post', 'restore', 'draft', '--revision', '1');
    assert.match(
      restored,
      /^Restored revision 1\. Updated the draft 'draft'\.\n--- [^]*\n-third\n[^]*\+first\n/,
    );
    assert.equal(await contentOf('draft'), 'first');
    await ok('post', 'edit', 'draft', '--title', 'Drafted');
    assert.match(
      await ok('post', 'history', 'draft'),
      /^5 \(now\) .*\+0 -0, title +Drafted\n4 .*\+1 -1 +Draft$/m,
    );
    await ok('post', 'history', 'draft', '--erase', 'all', '--yes');
    assert.match(await ok('post', 'history', 'draft'), /^3 +\S+ +changed +erased/m);
    const gone = await run('post', 'restore', 'draft', '--revision', '2');
    assert.equal(gone.code, 4);
    const never = await run('post', 'diff', 'draft', '70');
    assert.match(never.err, /no revision 70.*\n'masthead post history' lists those that are kept\.$/);
  });

  test('a file that has another title or slug than its post asks which is meant', async () => {
    const file = join(dir, 'file.md');
    const publish = async (text: string, ...options: string[]) => {
      await writeFile(file, text);
      return run('post', 'publish', file, '--publish', ...options);
    };
    const slugs = async () =>
      (await ada.client.listPosts({ status: 'published' })).posts.map(({ slug }) => slug);
    assert.equal((await publish('# Teh moon\n\nText.')).code, 0);
    const stood = await slugs();
    for (const options of [[], ['--dry-run']]) {
      const asked = await publish('# The moon\n\nText.', ...options);
      assert.notEqual(asked.code, 0);
      assert.match(asked.out + asked.err, /another title than its post .*\/teh-moon has: --move changes/);
    }
    assert.deepEqual(await slugs(), stood);
    assert.match((await publish('# The moon\n\nText.', '--move', '--dry-run')).out, /would update/);
    assert.match((await publish('# The moon\n\nText.', '--move')).out, /^updated: .*\/teh-moon$/m);
    const { post } = await ada.client.lookupPost({ agent: 'ada', slug: 'teh-moon' });
    assert.equal(post.title, 'The moon');

    const slugged = '---\nslug: the-moon\n---\n\n# The moon\n\nText.';
    assert.match((await publish(slugged)).err, /another slug than its post/);
    const dry = await publish(slugged, '--move', '--dry-run');
    assert.match(dry.out, /^would update: .*\/the-moon$/m);
    assert.match(dry.err, /moves here from .*\/teh-moon$/m);
    const moved = await publish(slugged, '--move');
    assert.match(moved.out, /^updated: .*\/the-moon$/m);
    assert.match(moved.err, /moves here from .*\/teh-moon$/m);
    assert.equal((await ada.client.getPost(post.id)).post.slug, 'the-moon');
    // The slug that the post had is no other one.
    const old = slugged.replace('the-moon', 'teh-moon').replace('Text', 'Words');
    assert.match((await publish(old)).out, /^updated: .*\/the-moon$/m);
    assert.equal((await slugs()).length, stood.length);
    // Only where it is asked for does the post move back, in one change with the text, and only once.
    const back = old.replace('Words', 'Its words');
    assert.match((await publish(back, '--move', '--dry-run')).out, /^would update: .*\/teh-moon$/m);
    const changes = (await ada.client.listRevisions(post.id)).total;
    assert.match((await publish(back, '--move')).out, /^updated: .*\/teh-moon$/m);
    for (const options of [[], ['--force'], ['--dry-run']])
      assert.match((await publish(back, '--move', ...options)).out, /^unchanged.*\/teh-moon$/m);
    const { revisions, total } = await ada.client.listRevisions(post.id);
    assert.deepEqual([total, revisions[0]?.slug], [changes + 1, 'teh-moon']);
    // Also after it was moved without the file.
    await ok('post', 'edit', 'teh-moon', '--slug', 'moon');
    assert.match((await publish(back)).out, /^unchanged, not sent: .*\/moon$/m);
    assert.match((await publish(back, '--move')).out, /^updated: .*\/teh-moon$/m);
    assert.match((await publish(slugged.replace('the-moon', 'moon-2'), '--new')).out, /^created: .*moon-2$/m);
    assert.equal((await slugs()).length, stood.length + 1);
    assert.equal((await run('post', 'publish', file, '--move', '--new')).code, 2);
  });

  test('a file goes to the post that it was published to, whatever its title makes of a slug', async () => {
    const [file, other] = [join(dir, 'e.md'), join(dir, 'other.md')];
    const publish = async (text: string, ...options: string[]) => {
      await writeFile(file, text);
      return run('post', 'publish', file, '--publish', ...options);
    };
    const ids = async () => (await ada.client.listPosts()).posts.map(({ id }) => id).toSorted();
    assert.equal((await publish('# Alpha\n\nOne.')).code, 0);
    const stood = await ids();
    const goes = async (slug: string, text: string, ...options: string[]) => {
      const { out, err } = await publish(text, ...options);
      assert.match(out, new RegExp(`^(?:updated|would update|unchanged): .*/${slug}$`, 'm'), err);
      assert.deepEqual(await ids(), stood);
    };
    await goes('alpha', '# Beta\n\nOne.', '--move');
    await goes('alpha', '# Beta\n\nTwo.', '--dry-run');
    await goes('alpha', '# Beta\n\nTwo.');
    await goes('alpha', '# Beta\n\nTwo.', '--force');
    await goes('alpha', '# Beta\n\nTwo again.', '--new');
    // The slug of this post was made of another file's title.
    await writeFile(other, '# Alpha\n\nElse.');
    const clash = await run('post', 'publish', file, other);
    assert.match(clash.err, /other\.md: would overwrite the post of .*e\.md/);
    await goes('gamma', '---\nslug: gamma\n---\n# Beta\n\nTwo.', '--move');
    const edited = await run('post', 'edit', 'gamma', '--old', 'Two', '--new', 'Deux');
    assert.match(
      edited.err,
      /^note: .*e\.md'?, from which the post was published, is not changed by this: see that it agrees$/,
    );
    const { slug, id } = (await ada.client.lookupPost({ agent: 'ada', slug: 'gamma' })).post;
    const [, { revision } = { revision: 0 }] = (await ada.client.listRevisions(id)).revisions;
    const undone = await run('post', 'restore', slug, '--revision', String(revision));
    assert.deepEqual([undone.code, undone.err], [0, '']);
    // A title of its own alone does not agree either.
    assert.match((await run('post', 'edit', slug, '--title', 'Other')).err, /^note: .*e\.md'?, from/);
    assert.equal((await run('post', 'edit', slug, '--title', 'Beta')).err, '');
    // What it says of the status is another matter, unless that was changed.
    const draft = '---\nstatus: draft\ntitle: Beta\n---\nTwo.';
    await writeFile(file, draft);
    await ada.client.updatePost(id, { content: 'Elsewhere.' });
    const [, { revision: former } = { revision: 0 }] = (await ada.client.listRevisions(id)).revisions;
    const taken = await run('post', 'restore', slug, '--revision', String(former));
    assert.deepEqual([taken.code, taken.err], [0, '']);
    assert.match(
      (await run('post', 'edit', slug, '--old', 'Two', '--new', 'Deux')).err,
      /see that it agrees/,
    );
    assert.equal((await run('post', 'edit', slug, '--old', 'Deux', '--new', 'Two')).err, '');
    await writeFile(file, draft.replace('status: draft', 'draft: true'));
    assert.equal((await run('post', 'edit', slug, '--status', 'draft')).err, '');
    assert.match((await run('post', 'edit', slug, '--status', 'published')).err, /see that it agrees/);
    await goes('gamma', '# Beta\n\nThree.');

    // The title of another post would find that one.
    await writeFile(other, '# Delta\n\nElse.');
    await ok('post', 'publish', other);
    const asked = await publish('# Delta\n\nThree.');
    assert.match(asked.err, /another title than its post .*\/gamma has, and now names your post .*\/delta: /);
    assert.equal(await contentOf('delta'), 'Else.');

    // Titles that make one slug have a post each.
    const chinese = [join(dir, 'tide-12.md'), join(dir, 'sea-12.md')] as const;
    await writeFile(chinese[0], '# 潮汐 12\n\nOne.');
    await ok('post', 'publish', chinese[0]);
    await writeFile(chinese[1], '# 海洋 12\n\nTwo.');
    assert.match(await ok('post', 'publish', ...chinese), /^created.*sea-12\.md -> .*\/12-[0-9a-f]+$/m);

    const { post } = await ada.client.lookupPost({ agent: 'ada', slug: 'gamma' });
    await ada.client.deletePost(post.id);
    const tried = await publish('# Beta\n\nFour.', '--dry-run');
    assert.match(tried.out, /^would create: .*\/beta$/m);
    assert.match(tried.err, /has been deleted, so another would be made; 'post trash'/);
    const both = await run('post', 'publish', file, other, '--dry-run');
    assert.match(both.out, /^2 documents, nothing stored: 1 would be created, 1 unchanged\. /m);
    const second = await publish('# Beta\n\nFour.');
    assert.match(second.out, /^created: .*\/beta$/m);
    assert.match(
      second.err,
      /the post that this file was before has been deleted, so another was made; 'post trash'/,
    );
  });

  test('says what is missing or wrong before it asks the service', async () => {
    const cases: [args: string[], message: RegExp][] = [
      [['edit', 'note', '--old', 'x'], /--old and --new belong together, and not to --edits/],
      [['edit', 'note'], /say what to change: --old and --new, --edits, --title, --slug or --status/],
      [['edit', 'note', '--status', 'public'], /--status is draft or published/],
      [['edit', 'note', '--edits', 'f', '--new', 'x'], /--old and --new belong together, and not to --edits/],
      [['edit', 'note', '--edits', 'f', '--all'], /each edit has its own 'all'/],
      [['restore', 'note', '--slug', 'x', '--revision', '1'], /--slug does not go with --revision/],
      [['restore', 'note', '--if-match', 'x'], /--if-match needs --revision/],
      [['restore', 'note', '--revision', 'x'], /'x' is no revision/],
      [['diff', 'note', 'x'], /'x' is no revision/],
      [['history', 'note', '--erase', '0'], /'0' is no revision/],
    ];
    for (const [args, message] of cases) {
      const { code, err } = await run('post', ...args);
      assert.deepEqual([code, message.test(err)], [2, true], err);
    }
    const unread = join(dir, 'unread.json');
    await writeFile(unread, '{"old": "x"}');
    for (const [file, message] of [
      [unread, /holds no list of edits\. It should be \[/],
      [join(dir, 'none'), /cannot be read/],
    ] as const)
      assert.match((await run('post', 'edit', 'note', '--edits', file)).err, message);
    assert.match(await ok('post', 'append', '--help'), /post append <post> \[file\]/);
  });
});
