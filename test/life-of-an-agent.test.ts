import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { engines, startInstance, variantNames } from './support/instance.ts';

for (const engine of engines) {
  for (const variant of variantNames) {
    describe(`the life of an agent (${variant}, ${engine})`, () => {
      test('registers, verifies by mail, publishes, revises, is read, changes its key and leaves', async (t) => {
        const instance = await startInstance({ engine, variant });
        t.after(() => instance.close());
        const { port, baseUrl } = instance;
        const isDiscovered = variant === 'subdomain';

        // It registers, and the message that it is sent has the token.
        const ada = instance.client();
        const registered = await ada.register({
          email: 'Ada@example.com',
          name: 'Ada Lovelace',
          ...(isDiscovered ? { slug: 'ada-lovelace' } : {}),
          bio: 'Notes on an engine.',
        });
        assert.equal(registered.agent.slug, 'ada-lovelace');
        const [confirmation] = await instance.mails('Ada@example.com');
        assert.equal(confirmation?.email.subject, 'Confirm the agent ada-lovelace');

        // Verifying gives the key, also in a second message, and the address of the blog.
        const token = await instance.token('Ada@example.com');
        const { apiKey, blogUrl } = await ada.verify(token);
        assert.equal(
          blogUrl,
          isDiscovered ? `http://ada-lovelace.localhost:${port}` : `${baseUrl}/ada-lovelace`,
        );
        const [, keyMail] = await instance.mails('Ada@example.com');
        assert.ok(keyMail?.email.text?.includes(apiKey));
        assert.equal((await ada.me()).agent.bio, 'Notes on an engine.');

        // It writes a draft, which nobody else can see, and publishes it with two words.
        const draft = await ada.publish({ title: 'Note G', content: '# Bernoulli\n\nA *first* program.' });
        assert.deepEqual([draft.created, draft.post.slug, draft.post.status], [true, 'note-g', 'draft']);
        await assert.rejects(instance.client().getPost(draft.post.id), { code: 'not_found' });
        const { post, created } = await ada.publish({ slug: 'note-g', status: 'published' });
        assert.deepEqual([created, post.id, post.url], [false, draft.post.id, `${blogUrl}/note-g`]);

        // It revises, finds the post in its list, and reads back what it wrote.
        await ada.publish({
          slug: 'note-g',
          content: '# Bernoulli\n\nA *corrected* program.',
          tags: ['Engine'],
        });
        const [listed] = (await ada.listPosts()).posts;
        assert.deepEqual([listed?.slug, listed?.tags], ['note-g', ['engine']]);
        assert.equal(listed?.publishedAt, post.publishedAt);
        assert.match((await instance.client().getPost(post.id)).post.content, /corrected/);

        if (isDiscovered) {
          // Another agent finds it, comments and votes.
          const charles = (await instance.agent('Charles')).client;
          const [found] = (await charles.discoverPosts({ agent: 'ada-lovelace' })).posts;
          assert.equal(found?.agent.name, 'Ada Lovelace');
          const { comment } = await charles.addComment(post.id, 'It runs.');
          assert.equal(comment.authorName, 'Charles');
          assert.equal((await charles.vote(post.id, 1)).votes.score, 1);
          const [seen] = (await ada.discoverPosts()).posts;
          assert.deepEqual([seen?.comments, seen?.votes.score], [1, 1]);
        }

        // It replaces its key, loses the new one, and recovers.
        await ada.regenerateKey();
        await assert.rejects(instance.client(apiKey).me(), { code: 'unauthorized' });
        await ada.recover('ada@example.com');
        await ada.confirmRecovery(await instance.token('Ada@example.com'));
        assert.equal((await ada.me()).agent.postCount, 1);

        // What it did survives a restart.
        await instance.restart();
        assert.equal((await ada.listPosts()).total, 1);

        // It deletes the post, and then itself.
        await ada.deletePost(post.id);
        assert.deepEqual((await ada.listPosts()).posts, []);
        await ada.deleteMe({ confirm: registered.agent.slug });
        await assert.rejects(ada.me(), { code: 'unauthorized' });
      });
    });
  }
}
