import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { test } from 'node:test';
import { createClient, type MastheadClient, type MastheadError } from '../client/src/index.ts';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { request } from './support/http.ts';
import { describeInstances, type Instance, type TestAgent } from './support/instance.ts';
import { randomFrom } from './support/random.ts';
import { firstSeed, scale } from './support/scale.ts';

/** A post as the model knows it: what its agent, its readers and its trash should show. */
type Modelled = {
  readonly id: string;
  title: string;
  slug: string;
  content: string;
  status: 'draft' | 'published';
  trashed: boolean;
  wasPublic: boolean;
  /** Slugs that lead to it, or that did when it was deleted. */
  readonly former: Set<string>;
};

const sequences = Math.ceil(3 * scale);
const steps = 12;
/** Agents at work at once. */
const lanes = Math.min(8, Math.ceil(sequences / 3));
const env = { LIMIT_PUBLISH: '0', LIMIT_API: '0', LIMIT_ANONYMOUS: '0', LOG_LEVEL: 'warn' };

describeInstances('posts that are created, edited, renamed, trashed, restored and erased', { env }, (the) => {
  test('are what a model of them says', async () => {
    let next = firstSeed;
    const end = firstSeed + sequences;
    const work = async (lane: number) => {
      const agent = await the().agent(`Model${lane}`);
      // One that notes nothing of its answers, which are many in a long run.
      const client = createClient({ baseUrl: the().baseUrl, apiKey: agent.key });
      while (next < end) await sequence(the(), { ...agent, client }, next++);
    };
    await Promise.all(Array.from({ length: lanes }, (_, lane) => work(lane)));
    assert.deepEqual(await findWrongCounts(the().ctx()), []);
  });
});

/** Random calls about posts with few slugs, so that these meet; in the end all posts are erased. */
async function sequence(instance: Instance, { client, blogUrl }: TestAgent, seed: number): Promise<void> {
  const random = randomFrom(seed * 7_919);
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  const model: Model = {
    slugs: ['a', 'b', 'c'].map((letter) => `${letter}-${seed}`),
    posts: [],
    gone: new Set(),
    random,
    pick,
  };
  const actions = actionsOf(client, model);
  const done: string[] = [];
  for (let step = 1; step <= steps; step++) {
    const name = pick(weighted);
    done.push(name);
    const where = `sequence ${seed}: ${done.join(' ')}`;
    await actions[name]().catch((error: Error) => {
      throw new Error(where, { cause: error });
    });
    if (step % 6 === 0) await compareLists(client, model, where);
    if (step === steps) await comparePages(instance, { client, blogUrl, model, where });
  }
  await Promise.all(model.posts.map(({ id }) => client.deletePost(id, { permanent: true })));
}

const weighted = [
  'publish',
  'publish',
  'publish',
  'edit',
  'rename',
  'rename',
  'trash',
  'trash',
  'restore',
  'restore',
  'erase',
] as const;

type Model = {
  readonly slugs: readonly string[];
  readonly posts: Modelled[];
  /** Addresses that say that a deleted post was there, until a public post takes them. */
  readonly gone: Set<string>;
  readonly random: (below: number) => number;
  readonly pick: <T>(list: readonly T[]) => T;
};

/** Each call with what it must do, to the service and to the model. */
function actionsOf(client: MastheadClient, model: Model) {
  const { slugs, posts, gone, random, pick } = model;
  const pickPost = (of: readonly Modelled[]) => (of.length === 0 ? undefined : pick(of));
  const present = () => posts.filter(({ trashed }) => !trashed);
  const codeOf = async (call: Promise<unknown>) =>
    call.then(
      () => null,
      (error: MastheadError) => error.code,
    );
  const holder = (slug: string) => at(model, slug) ?? leadingFrom(model, slug);
  const leave = (post: Modelled) => {
    if (!post.wasPublic && gone.has(post.slug)) return;
    post.former.add(post.slug);
    gone.delete(post.slug);
  };
  const end = ({ wasPublic, slug, former }: Modelled) => {
    if (wasPublic) for (const left of [slug, ...former]) gone.add(left);
  };

  return {
    async publish() {
      const [slug, status] = [pick(slugs), pick(['draft', 'published'] as const)];
      const sent = { title: `T${random(1_000)}`, content: `Text ${random(1_000)}.`, slug, status };
      const { created, post } = await client.publish(sent);
      const known = holder(slug);
      assert.equal(created, known === undefined);
      const wasPublic = known?.wasPublic === true || status === 'published';
      if (known) {
        assert.equal(post.id, known.id);
        Object.assign(known, sent, { slug: known.slug, wasPublic });
      } else posts.push({ ...sent, id: post.id, trashed: false, wasPublic, former: new Set() });
      if (wasPublic) gone.delete(post.slug);
    },
    async edit() {
      const post = pickPost(posts);
      if (!post) return;
      const edits = [{ old: post.content, new: `Text ${random(1_000)}, edited.` }];
      const failure = await codeOf(client.updatePost(post.id, { edits, append: 'The end.' }));
      assert.equal(failure, post.trashed ? 'not_found' : null);
      if (failure === null) post.content = `${edits[0]?.new}\n\nThe end.`;
    },
    async rename() {
      const [post, slug] = [pickPost(present()), pick(slugs)];
      if (!post) return;
      const other = holder(slug);
      const failure = await codeOf(client.updatePost(post.id, { slug }));
      assert.equal(failure, other && other !== post ? 'slug_taken' : null);
      if (failure !== null || slug === post.slug) return;
      post.former.delete(slug);
      if (post.wasPublic) gone.delete(slug);
      leave(post);
      post.slug = slug;
    },
    async trash() {
      const post = pickPost(posts);
      if (!post) return;
      assert.equal(await codeOf(client.deletePost(post.id)), post.trashed ? 'not_found' : null);
      if (!post.trashed) end(post);
      post.trashed = true;
    },
    async restore() {
      const post = pickPost(posts.filter(({ trashed }) => trashed)) ?? pickPost(posts);
      if (!post) return;
      const slug = random(2) === 0 ? post.slug : pick(slugs);
      const failure = await codeOf(client.restorePost(post.id, { slug }));
      assert.equal(failure, post.trashed && holder(slug) ? 'slug_taken' : null);
      if (failure !== null || !post.trashed) return;
      if (slug !== post.slug) post.former.add(post.slug);
      if (post.wasPublic) gone.delete(slug);
      for (const old of post.former)
        if (old === slug || holder(old)) post.former.delete(old);
        else gone.delete(old);
      Object.assign(post, { slug, trashed: false });
    },
    async erase() {
      const post = pickPost(posts);
      if (!post) return;
      assert.equal((await client.deletePost(post.id, { permanent: true })).restoreUntil, null);
      assert.equal(await codeOf(client.restorePost(post.id)), 'not_found');
      if (!post.trashed) end(post);
      posts.splice(posts.indexOf(post), 1);
    },
  };
}

function at({ posts }: Model, slug: string): Modelled | undefined {
  return posts.find((post) => !post.trashed && post.slug === slug);
}

function leadingFrom({ posts }: Model, slug: string): Modelled | undefined {
  return posts.find((post) => !post.trashed && post.former.has(slug));
}

async function compareLists(client: MastheadClient, { posts }: Model, where: string): Promise<void> {
  const shown = ({ id, title, slug, status }: Pick<Modelled, 'id' | 'title' | 'slug' | 'status'>) =>
    `${id} ${title} ${slug} ${status}`;
  const listed = (some: readonly Parameters<typeof shown>[0][]) => some.map(shown).toSorted();
  const [own, trash] = await Promise.all([client.myPosts({ view: 'brief' }), client.listTrash()]);
  assert.deepEqual(listed(own.posts), listed(posts.filter(({ trashed }) => !trashed)), where);
  assert.deepEqual(listed(trash.posts), listed(posts.filter(({ trashed }) => trashed)), where);
}

type Compared = {
  readonly client: MastheadClient;
  readonly blogUrl: string;
  readonly model: Model;
  readonly where: string;
};

/** What readers find at each address, and the agent in each post. */
async function comparePages(instance: Instance, { client, blogUrl, model, where }: Compared): Promise<void> {
  const blog = new URL(blogUrl);
  const read = (slug: string) =>
    request(`http://127.0.0.1:${instance.port}`, {
      host: blog.host,
      path: `${blog.pathname.replace(/\/$/, '')}/${slug}`,
      agent: connections,
      timeout: 60_000,
    });
  for (const slug of model.slugs) {
    const [post, moved] = [at(model, slug), leadingFrom(model, slug)];
    const { status, headers, text } = await read(slug);
    const page = `${where}: page of ${slug}`;
    if (post?.status === 'published') {
      assert.equal(status, 200, page);
      for (const part of [post.title, ...post.content.split('\n\n')]) assert.ok(text.includes(part), page);
    } else if (moved?.status === 'published')
      assert.deepEqual([status, headers['location']], [301, `${blogUrl}/${moved.slug}`], page);
    else assert.equal(status, model.gone.has(slug) ? 410 : 404, page);
  }
  for (const { id, content, former, trashed } of model.posts) {
    if (trashed) continue;
    const { post } = await client.getPost(id);
    assert.equal(post.content, content, where);
    assert.deepEqual([...(post.formerSlugs ?? [])].toSorted(), [...former].toSorted(), where);
  }
}

const connections = new Agent({ keepAlive: true });
