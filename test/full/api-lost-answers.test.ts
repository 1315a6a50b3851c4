import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { createClient } from '../../client/src/index.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { describeInstances, type Instance } from '../support/instance.ts';
import { randomFrom } from '../support/random.ts';
import { scale } from '../support/scale.ts';

const posts = 40 * scale;
const edits = 100 * scale;

describeInstances(
  'a client that repeats what got no answer',
  { variants: ['subdomain'], env: { LIMIT_PUBLISH: '0', LIMIT_COMMENT: '0' } },
  (the) => {
    test('makes nothing twice while 3 of 10 answers are lost', async (t) => {
      const instance = the();
      const { key } = await instance.agent('Ada');
      const { client, proxy } = await losingClient(t, instance, { key, seed: 1 });

      for (let i = 0; i < posts; i++) {
        const { post } = await client.publish({ title: `Post ${i}`, content: 'c', status: 'published' });
        await client.addComment(post.id, `Comment ${i}`);
        await client.vote(post.id, 1);
        await client.register({ email: `agent-${i}@example.com`, name: 'A', slug: `agent-${i}` });
      }
      assert.ok(proxy.counts.cut > posts, `${proxy.counts.cut} answers were cut`);
      const direct = instance.client(key);
      assert.equal((await direct.listPosts({ limit: 1 })).total, posts);
      for await (const post of direct.iterateDiscovered({ limit: 20 }))
        assert.deepEqual([post.comments, post.votes.score], [1, 1]);
      assert.equal((await instance.mails()).filter(({ to }) => to[0]?.startsWith('agent-')).length, posts);
    });

    test('edits a post as a model does while 3 of 10 answers are lost, and another changes it', async (t) => {
      const instance = the();
      const { key } = await instance.agent('Eve');
      const { client, proxy } = await losingClient(t, instance, { key, seed: 2 });
      const random = randomFrom(3);
      const content = Array.from({ length: 50 }, (_, i) => `Line ${i}.`);
      let tail = '';
      const { post } = await client.publish({ title: 'Edited', content: content.join('\n') });
      for (let i = 0; i < edits; i++) {
        const at = random(content.length);
        const [old, replacement] = [content[at] ?? '', `Line ${at}, for the ${i}th time.`];
        content[at] = replacement;
        const edited = client.updatePost(post.id, { edits: [{ old, new: replacement }] });
        // Another process of the agent's, whose change comes between the attempts of this one.
        const titled = client.updatePost(post.id, { title: `Edited ${i}` });
        await Promise.all([edited, titled]);
        if (i % 10 > 1) continue;
        await client.updatePost(post.id, { append: 'The end.' });
        tail += '\n\nThe end.';
      }
      assert.ok(proxy.counts.cut > edits / 2, `${proxy.counts.cut} answers were cut`);
      const { post: edited } = await instance.client(key).getPost(post.id);
      assert.equal(edited.content, content.join('\n') + tail);
    });
  },
);

/** A client behind a proxy that cuts 3 of 10 answers; it repeats what got none, without a pause. */
async function losingClient(
  t: TestContext,
  instance: Instance,
  { key, seed }: { key: string; seed: number },
) {
  const proxy = await startCuttingProxy({ target: instance.port, share: 0.3, seed });
  t.after(() => proxy.close());
  await instance.restart({ ALSO_HOSTS: `127.0.0.1:${proxy.port}` });
  const client = createClient({
    baseUrl: proxy.baseUrl,
    apiKey: key,
    retry: { attempts: 100 },
    sleep: async () => undefined,
  });
  return { client, proxy };
}
