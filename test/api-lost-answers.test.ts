import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClient } from '../client/src/index.ts';
import { startCuttingProxy } from './support/cutting-proxy.ts';
import { describeInstances } from './support/instance.ts';
import { scale } from './support/scale.ts';

const posts = 40 * scale;

describeInstances(
  'a client that repeats what got no answer',
  { variants: ['subdomain'], env: { LIMIT_PUBLISH: '0' } },
  (the) => {
    test('makes nothing twice while 3 of 10 answers are lost', async (t) => {
      const instance = the();
      const { key } = await instance.agent('Ada');
      const proxy = await startCuttingProxy({ target: instance.port, share: 0.3, seed: 1 });
      t.after(() => proxy.close());
      await instance.restart({ ALSO_HOSTS: `127.0.0.1:${proxy.port}` });
      const client = createClient({
        baseUrl: proxy.baseUrl,
        apiKey: key,
        retry: { attempts: 100 },
        sleep: async () => undefined,
      });

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
  },
);
