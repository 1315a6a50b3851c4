import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommandLine } from '../../src/cli/main.ts';
import { rendererVersion } from '../../src/markdown/rendered.ts';
import { startInstance, type Instance } from '../support/instance.ts';
import { openSqlite } from '../support/sqlite-file.ts';

/** Runs the command as an operator would, beside the running server. */
async function rerender({ dataDir }: Instance): Promise<unknown> {
  let out = '';
  const code = await runCommandLine(['rerender', '--json'], {
    env: { DATA_DIR: dataDir },
    out: (line) => {
      out += line;
    },
    err: assert.fail,
  });
  assert.equal(code, 0);
  return JSON.parse(out).data;
}

/** Makes posts look as if an older release had rendered them. */
function age({ dataDir }: Instance, where: string): void {
  const database = openSqlite(join(dataDir, 'masthead.db'));
  database.exec(`begin immediate;
    update posts set renderer_version = ${rendererVersion - 1}, words = 0,
      excerpt = iif(excerpt_given, excerpt, 'Old.') where ${where};
    update post_bodies set html = '<p>Old.</p>', text = 'Old.', headings = '[]'
      where post_id in (select id from posts where ${where});
    commit`);
  database.close();
}

describe('masthead rerender', () => {
  test('renders what an older release rendered, beside a server, and changes nothing else', async () => {
    const instance = await startInstance();
    try {
      const { client, blogUrl } = await instance.agent('Ada');
      for (let i = 0; i < 34; i++)
        await client.publish({ title: `Post ${i}`, content: `The *text* ${i}.`, status: 'published' });
      const draft = await client.publish({ title: 'Draft', content: 'A peccary.', excerpt: 'Given.' });
      const posts = instance
        .ctx()
        .db.selectFrom('posts')
        .innerJoin('post_bodies', 'post_id', 'id')
        .selectAll()
        .orderBy('id');
      const before = await posts.execute();
      age(instance, `title <> 'Post 7'`);

      assert.deepEqual(await rerender(instance), { rendered: 34, comments: 0, unrendered: [] });
      // Where the excerpt was another, the ETag must be too.
      for (const row of before)
        if (row.title !== 'Post 7' && row.excerpt_given === 0)
          Object.assign(row, { revision: 2, cause: 'changed' });
      assert.deepEqual(await posts.execute(), before);
      assert.deepEqual(await rerender(instance), { rendered: 0, comments: 0, unrendered: [] });

      const { host } = new URL(blogUrl);
      while (!(await instance.call('GET', '/post-3', { host })).text.includes('The <em>text</em> 3.'))
        await delay(50);
      const found = await client.search('text', { limit: 1 });
      assert.equal(found.total, 34);
      await client.publish({ slug: draft.post.slug, status: 'published' });
      assert.equal((await client.search('peccary')).total, 1);
    } finally {
      await instance.close();
    }
  });

  test('a post that can no longer be rendered keeps its page, and the others are rendered', async () => {
    const instance = await startInstance();
    try {
      const { client } = await instance.agent('Ada');
      const { post } = await client.publish({ title: 'Deep', content: 'x', status: 'published' });
      await client.publish({ title: 'Plain', content: 'y', status: 'published' });
      age(instance, 'true');
      const database = openSqlite(join(instance.dataDir, 'masthead.db'));
      database
        .prepare('update post_bodies set content = ? where post_id = ?')
        .run(`${'>'.repeat(60)} Deep.`, post.id);
      database.close();
      const { rendered, unrendered } = (await rerender(instance)) as {
        rendered: number;
        unrendered: { id: string }[];
      };
      assert.deepEqual([rendered, unrendered.map(({ id }) => id)], [1, [post.id]]);
    } finally {
      await instance.close();
    }
  });

  test('leaves out what readers do not see of old posts and comments, and keeps what was sent', async () => {
    const instance = await startInstance();
    try {
      const [ada, bob] = [await instance.agent('Ada'), await instance.agent('Bob')];
      const content = 'Seen.\n\n[//]: # (SECRET)';
      const { post } = await ada.client.publish({ title: 'Old', content, status: 'published' });
      await bob.client.addComment(post.id, content);
      const { etag } = (await instance.call('GET', `/api/posts/${post.id}`)).headers;
      // Its author has changed the post by the release before, which knows nothing of stretches.
      const old = 'Another [text][a b] of the post.\n\n[a b]: /c\n\nHid\u2060\u2060den.';
      const database = openSqlite(join(instance.dataDir, 'masthead.db'));
      database.prepare('update post_bodies set content = ?').run(old);
      database.exec(`update posts set renderer_version = 1, revision = revision + 1;
        update comments set unseen = null, renderer_version = null`);
      database.close();
      const read = async () => (await instance.client().getPost(post.id)).post.content;
      const before = await read();

      assert.deepEqual(await rerender(instance), { rendered: 1, comments: 1, unrendered: [] });
      while ((await read()) === before) await delay(50);
      assert.equal(await read(), 'Another [text][a] of the post.\n\n[a]: /c\n\nHidden.');
      assert.notEqual((await instance.call('GET', `/api/posts/${post.id}`)).headers['etag'], etag);
      assert.equal((await ada.client.getPost(post.id)).post.content, old);
      const comments = async (client = instance.client()) =>
        (await client.listComments(post.id)).comments.map((comment) => comment.content);
      assert.deepEqual([await comments(), await comments(bob.client)], [['Seen.\n\n'], [content]]);
    } finally {
      await instance.close();
    }
  });

  test('a post and a comment of which readers see nothing stay where they are', async () => {
    const instance = await startInstance();
    try {
      const { client } = await instance.agent('Ada');
      const { post } = await client.publish({ title: 'Empty', content: 'x', status: 'published' });
      await client.addComment(post.id, 'x');
      age(instance, 'true');
      const database = openSqlite(join(instance.dataDir, 'masthead.db'));
      database.exec(`update post_bodies set content = '[//]: # (a)';
        update comments set content = '[//]: # (a)', renderer_version = null`);
      database.close();
      assert.deepEqual(await rerender(instance), { rendered: 1, comments: 1, unrendered: [] });
      assert.equal((await instance.client().getPost(post.id)).post.content, '');
      assert.deepEqual((await instance.client().listComments(post.id)).comments[0]?.content, '');
      assert.equal((await instance.call('GET', '/empty', { host: new URL(post.url).host })).status, 200);
    } finally {
      await instance.close();
    }
  });
});
