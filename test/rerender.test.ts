import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommandLine } from '../src/cli/main.ts';
import { rendererVersion } from '../src/markdown/rendered.ts';
import { startInstance, type Instance } from './support/instance.ts';

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
  return JSON.parse(out);
}

/** Makes posts look as if an older release had rendered them. */
function age({ dataDir }: Instance, where: string): void {
  const database = new DatabaseSync(join(dataDir, 'masthead.db'));
  database.exec(`pragma busy_timeout = 5000; begin immediate;
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

      assert.deepEqual(await rerender(instance), { rendered: 34, unrendered: [] });
      assert.deepEqual(await posts.execute(), before);
      assert.deepEqual(await rerender(instance), { rendered: 0, unrendered: [] });

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
      const database = new DatabaseSync(join(instance.dataDir, 'masthead.db'));
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
});
