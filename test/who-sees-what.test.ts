import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moderatePost } from '../src/services/operators/post-moderation.ts';
import { restoreAgent, suspendAgent } from '../src/services/operators/moderation.ts';
import { describeInstances, type Instance, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';

/** What can be done to a post that was published, and taken back: by its owner, or by the operator. */
const steps = ['withdraw', 'trash', 'hide', 'hold'] as const;
type Step = (typeof steps)[number];
const byOwner: ReadonlySet<Step> = new Set(['withdraw', 'trash']);

/** What is known of one post: what was done to it, and not taken back. */
type Subject = { readonly id: string; readonly slug: string; readonly url: string; readonly done: Set<Step> };

/** A post has one state from the operator, the last one. */
function note(done: Set<Step>, step: Step): void {
  if (!byOwner.has(step)) for (const other of ['hide', 'hold'] as const) done.delete(other);
  done.add(step);
}

describeInstances('of posts in every two states, of an agent that is hidden and comes back', {}, (the) => {
  test('everybody sees what is public, and nobody else what is not', async () => {
    const [owner, stranger] = [await the().agent('Ada'), await the().agent('Bea')];
    const subjects = new Map<Subject, readonly [Step, Step]>();
    for (const pair of steps.flatMap((first) => steps.map((second) => [first, second] as const))) {
      const title = pair.join(' then ');
      const { post } = await owner.client.publish({ title, content: 'Zebras graze.', status: 'published' });
      subjects.set({ ...post, done: new Set() }, pair);
    }
    const all = [...subjects.keys()];
    const look = (isHidden = false) => assertSeen(the(), { owner, stranger, all, isHidden });
    const doEach = async (nth: 0 | 1, isMeant: (step: Step) => boolean) => {
      for (const [subject, pair] of subjects)
        if (isMeant(pair[nth])) await take(the(), owner, subject, pair[nth]);
    };
    await doEach(0, () => true);
    await look();
    const { engine } = the().ctx();
    await engine.write(suspendAgent, { agentId: owner.id, reason: 'a look' });
    await doEach(1, (step) => !byOwner.has(step));
    await look(true);
    await engine.write(restoreAgent, { agentId: owner.id });
    await look();
    await doEach(1, (step) => byOwner.has(step));
    await look();
    await owner.client.deleteMe();
    for (const subject of all)
      if (subject.done.delete('hide') || subject.done.delete('hold'))
        await engine.write(moderatePost, { postId: subject.id, to: null });
    await look(true);
    await owner.client.restoreMe();
    await look();
    for (const { id, done } of all) {
      if (done.delete('trash')) await owner.client.restorePost(id);
      if (done.delete('withdraw')) await owner.client.updatePost(id, { status: 'published' });
    }
    await look();
    assert.ok(all.every(({ done }) => done.size === 0));
  });
});

async function take(instance: Instance, { client }: TestAgent, subject: Subject, step: Step): Promise<void> {
  const { id, done } = subject;
  if (step === 'withdraw') {
    // What is in the trash cannot be changed.
    if (done.has('trash')) return;
    await client.updatePost(id, { status: 'draft' });
  } else if (step === 'trash') {
    if (done.has('trash')) return;
    await client.deletePost(id);
  } else {
    const to = { state: step === 'hide' ? 'hidden' : 'held', reason: 'a look' } as const;
    await instance.ctx().engine.write(moderatePost, { postId: id, to });
  }
  note(done, step);
}

type Look = {
  readonly owner: TestAgent;
  readonly stranger: TestAgent;
  readonly all: readonly Subject[];
  readonly isHidden: boolean;
};

/** Every read that shows posts, by everybody who can read, shows the public ones and no others. */
async function assertSeen(instance: Instance, { owner, stranger, all, isHidden }: Look): Promise<void> {
  const isPublic = ({ done }: Subject) => !isHidden && done.size === 0;
  const wanted = all.filter(isPublic).map(({ id }) => id);
  for (const subject of all) {
    const { id, url, done } = subject;
    const said = `${url}: ${[...done].join(' ')}${isHidden ? ' of a hidden agent' : ''}`;
    for (const key of [undefined, stranger.key]) {
      const { status } = await instance.call('GET', `/api/posts/${id}`, key === undefined ? {} : { key });
      assert.equal(status === 200, isPublic(subject), `${said}: ${status}`);
    }
    for (const address of [url, `${url}.md`])
      assert.equal((await open(instance, address)).status === 200, isPublic(subject), `${said}: ${address}`);
    const { status } = await instance.call('GET', `/api/posts/${id}`, { key: owner.key });
    assert.equal(status, isHidden ? 403 : done.has('trash') ? 404 : 200, said);
  }
  // Some titles begin as others do.
  const shownIn = (text: string) =>
    all
      .filter(({ id, url }) => text.includes(id) || new RegExp(`${url}(?![\\w-])`).test(text))
      .map(({ id }) => id);
  const lists = [
    ...['/feed.json', '/feed.xml', '/rss.xml', '/sitemap.xml', '', '/-/archive', '/llms.txt'].map(
      (name) => `${owner.blogUrl}${name}`,
    ),
    ...(instance.variant === 'subdomain'
      ? [
          `${instance.baseUrl}/api/posts?agent=${owner.slug}&limit=100`,
          `${instance.baseUrl}/api/search?q=zebras&limit=50`,
        ]
      : []),
  ];
  for (const address of lists)
    assert.deepEqual(shownIn((await open(instance, address)).text), wanted, address);
}
