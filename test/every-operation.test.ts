import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { suspendAgent } from '../src/services/operators/moderation.ts';
import { bodySchemaOf, documentOf, operationsOf, parametersOf, type Placed } from './support/api-document.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  type Instance,
  type TestAgent,
} from './support/instance.ts';

/** What a suspended agent may still do, beside what needs no agent. */
const whileSuspended = ['appeal', 'deleteMe', 'exportMe', 'me'];

/** The same of one whose deletion is under way. */
const whileDeleting = ['deleteMe', 'exportMe', 'me', 'restoreMe'];

/**
 * The limit that each counts against, as it was published; `caller`: `api` with a key, else `anonymous`; `link`:
 * of whose link it is, and that which is tried here is nobody's. Written by hand, since the document is made from what the code says: whoever adds an operation says here what is meant.
 */
const limits: Readonly<
  Record<string, 'register' | 'publish' | 'comment' | 'report' | 'caller' | 'link' | null>
> = {
  register: 'register',
  verify: 'caller',
  verifyByPost: 'caller',
  recover: 'caller',
  confirmRecovery: 'caller',
  regenerateKey: 'caller',
  publish: 'publish',
  publishPost: 'publish',
  listPosts: 'caller',
  myPosts: 'caller',
  lookupPost: 'caller',
  getPost: 'caller',
  updatePost: 'publish',
  listRevisions: 'caller',
  getRevision: 'caller',
  diffRevisions: 'caller',
  restoreRevision: 'publish',
  eraseRevision: 'caller',
  eraseRevisions: 'caller',
  deletePost: 'caller',
  previewPost: 'caller',
  endPreviews: 'caller',
  restorePost: 'publish',
  listTrash: 'caller',
  emptyTrash: 'caller',
  uploadMedia: 'caller',
  uploadByLink: 'link',
  listMedia: 'caller',
  getMedia: 'caller',
  updateMedia: 'caller',
  deleteMedia: 'caller',
  listBlogs: 'caller',
  featuredPosts: 'caller',
  search: 'caller',
  listComments: 'caller',
  addComment: 'comment',
  editComment: 'comment',
  deleteComment: 'caller',
  vote: 'caller',
  unvote: 'caller',
  getVote: 'caller',
  me: 'caller',
  updateMe: 'caller',
  deleteMe: 'caller',
  inbox: 'caller',
  markInboxSeen: 'caller',
  myComments: 'caller',
  myVotes: 'caller',
  listBlocks: 'caller',
  block: 'caller',
  unblock: 'caller',
  restoreMe: 'caller',
  exportMe: 'caller',
  limits: 'caller',
  report: 'report',
  appeal: 'caller',
  about: 'caller',
  openapi: 'caller',
  health: null,
  ready: null,
};

/** What changes nothing that is stored. */
const whileReadOnly = ['previewPost'];

// The operations are those of the document: a new one is tried without an edit here.
describeInstances('every operation', { env: { LIMIT_REGISTER: '1000' } }, (the) => {
  let ada: TestAgent;
  let eve: TestAgent;
  let replaced: string;
  let operations: readonly Placed[];
  before(async () => {
    [ada, eve] = await Promise.all([the().agent('Ada'), the().agent('Eve')]);
    replaced = ada.key;
    const { apiKey } = await ada.client.regenerateKey();
    ada = { ...ada, key: apiKey };
    const all = operationsOf(await documentOf(the()));
    // What ends a key comes last.
    operations = all.toSorted((a, b) => Number(endsKey(a)) - Number(endsKey(b)));
    await the().ctx().engine.write(suspendAgent, { slug: 'eve', reason: 'spam' });
  });
  const endsKey = ({ operation: { operationId } }: Placed) =>
    /^(?:regenerateKey|deleteMe)$/.test(operationId);
  const needsKey = ({ operation: { security } }: Placed) =>
    security.every((scheme) => Object.keys(scheme).length > 0);
  const takesKey = ({ operation: { security } }: Placed) =>
    security.some((scheme) => Object.keys(scheme).length > 0);

  test('that needs a key refuses none, a wrong one and a replaced one, and so does one that takes it', async () => {
    const wrong = '00000000-0000-4000-8000-000000000000';
    for (const placed of operations.filter(takesKey))
      for (const key of [...(needsKey(placed) ? [undefined] : []), wrong, replaced]) {
        const answer = await ask(the(), placed, key);
        assertProblem(answer, 'unauthorized');
        assert.equal(
          answer.headers['content-type'],
          'application/problem+json; charset=utf-8',
          nameOf(placed),
        );
        assert.equal(answer.headers['cache-control'], 'no-store', nameOf(placed));
        assert.match(String(answer.headers['www-authenticate']), /^Bearer /, nameOf(placed));
      }
  });

  test('gives a suspended agent the reason, but for what it may still do', async () => {
    const answered: string[] = [];
    for (const placed of operations.filter(takesKey)) {
      if (placed.operation.operationId === 'deleteMe') answered.push('deleteMe');
      const answer = await ask(the(), placed, eve.key);
      if (answer.status === 403) {
        assertProblem(answer, 'suspended');
        assert.match(String(answer.at('detail')), /spam/, nameOf(placed));
      } else answered.push(placed.operation.operationId);
    }
    assert.deepEqual([...new Set(answered)].toSorted(), whileSuspended);
  });

  test('gives an agent that is being deleted the day, but for what it may still do', async () => {
    const { client, key } = await the().agent('Fay');
    const { erasedAt } = await client.deleteMe();
    // These two would end the deletion, one way or the other.
    const answered = ['deleteMe', 'restoreMe'];
    for (const placed of operations.filter(takesKey)) {
      if (answered.includes(placed.operation.operationId)) continue;
      const answer = await ask(the(), placed, key);
      if (answer.status === 403) {
        assertProblem(answer, 'deleting');
        assert.ok(String(answer.at('detail')).includes(erasedAt), nameOf(placed));
      } else answered.push(placed.operation.operationId);
    }
    assert.deepEqual(answered.toSorted(), whileDeleting);
    assert.equal((await client.me()).agent.erasedAt, erasedAt);
    assert.equal((await client.restoreMe()).changed, true);
  });

  test('with an Idempotency-Key is done once, and for its caller and its post alone', async () => {
    const [gil, hal] = [await the().agent('Gil'), await the().agent('Hal')];
    const keyed = operations.filter(({ operation }) =>
      parametersOf(operation.parameters, 'header').includes('Idempotency-Key'),
    );
    assert.ok(keyed.length >= 4, String(keyed.length));
    for (const placed of keyed) {
      const { operationId, requestBody } = placed.operation;
      const name = nameOf(placed);
      const [example] = Object.values(requestBody?.content['application/json']?.examples ?? {});
      const shown = example && 'value' in example ? Object(example.value) : {};
      // The address of the example is that of an agent by now.
      const body = { ...shown, ...('email' in shown ? { email: 'ivy@example.com', name: 'Ivy' } : {}) };
      if ('slug' in body && 'email' in body) body.slug = 'ivy';
      // What the example edits stands in the post.
      const content: string = shown.edits?.[0]?.old ?? 'The same.';
      const [first, second] = [
        await postOf(gil, `${operationId} 1`, content),
        await postOf(gil, `${operationId} 2`, content),
      ];
      const send = (id: string, key: string | undefined, sent: object = body) =>
        the().call(placed.method, placed.path.replace('{id}', id), {
          ...(key === undefined || !takesKey(placed) ? {} : { key }),
          body: sent,
          headers: { 'idempotency-key': operationId },
        });
      const made = await send(first, gil.key);
      assert.ok(made.status < 300, `${name}: ${made.text}`);
      assert.equal(made.headers['idempotent-replayed'], undefined, name);
      const again = await send(first, gil.key);
      assert.deepEqual([again.status, again.headers['idempotent-replayed']], [made.status, 'true'], name);
      // Or a page that calls could not read it.
      assert.match(String(again.headers['access-control-expose-headers']), /\bIdempotent-Replayed\b/, name);
      assert.deepEqual(
        again.at('post.id') ?? again.at('comment.id'),
        made.at('post.id') ?? made.at('comment.id'),
      );
      const { properties = {} } = bodySchemaOf(placed) ?? {};
      const changed = ['title', 'content', 'name'].find((field) => Object.hasOwn(properties, field));
      const other = { ...body, [changed ?? '']: 'Something else' };
      assertProblem(await send(first, gil.key, other), 'idempotency_mismatch');
      if (placed.path.includes('{id}')) {
        const beside = await send(second, gil.key);
        assert.deepEqual(
          [beside.status, beside.headers['idempotent-replayed']],
          [made.status, undefined],
          name,
        );
      }
      if (takesKey(placed)) {
        const ofHal = placed.method === 'PATCH' ? await postOf(hal, `${operationId} 3`, content) : first;
        const another = await send(ofHal, hal.key);
        assert.equal(another.headers['idempotent-replayed'], undefined, name);
        assert.ok(another.status < 300, `${name}: ${another.text}`);
      }
    }
  });

  test('that reads If-Match is refused where it is not the newest, and changes nothing', async () => {
    const { client, key } = await the().agent('Jon');
    const { post } = await client.publish({ title: 'Kept', content: 'one' });
    await client.updatePost(post.id, { content: 'two' });
    const state = async () => [(await client.getPost(post.id)).post, (await client.me()).agent];
    const kept = await state();
    const guarded = operations.filter(({ operation }) =>
      parametersOf(operation.parameters, 'header').includes('If-Match'),
    );
    assert.ok(guarded.length >= 5, String(guarded.length));
    for (const placed of guarded) {
      const properties = Object.keys(bodySchemaOf(placed)?.properties ?? {});
      const body = Object.fromEntries(
        Object.entries({ slug: post.slug, content: 'three', bio: 'Other.' }).filter(([name]) =>
          properties.includes(name),
        ),
      );
      const path = placed.path.replace('{id}', post.id).replace('{revision}', '1');
      for (const stale of ['"00000000-1.1"', 'W/"00000000-1"', '"a", "b"']) {
        const answer = await the().call(placed.method, path, {
          key,
          ...(properties.length === 0 ? {} : { body }),
          headers: { 'if-match': stale },
        });
        assertProblem(answer, 'precondition_failed');
      }
    }
    assert.deepEqual(await state(), kept);
  });

  async function postOf({ client }: TestAgent, title: string, content: string): Promise<string> {
    return (await client.publish({ title, content, status: 'published' })).post.id;
  }

  test('counts against the limit that was published for it, which the document names', async () => {
    const { key: bobs } = await the().agent('Bob');
    for (const placed of operations) {
      const { operationId, 'x-policies': named } = placed.operation;
      const limit = limits[operationId];
      assert.ok(limit !== undefined, `${operationId} has no limit in the list of this test`);
      for (const key of [undefined, bobs]) {
        const { headers, status } = await ask(the(), placed, key);
        const [, policy] = /^"(\w+)"/.exec(String(headers['ratelimit-policy'])) ?? [];
        const ofCaller: string = key === undefined || limit === 'link' ? 'anonymous' : 'api';
        const own: string | null = limit === 'caller' || limit === 'link' ? ofCaller : limit;
        // A call without the key that it needs could be anybody's.
        const counted: string | null = status === 401 ? 'anonymous' : own;
        assert.equal(policy ?? null, counted, `${nameOf(placed)}: ${status}`);
        if (status !== 401)
          assert.deepEqual(
            named.filter((each) => each === policy),
            counted === null ? [] : [counted],
          );
      }
    }
  });

  test('has its answer for the caller alone kept out of shared caches', async () => {
    const { key } = await the().agent('Cleo');
    for (const placed of operations) {
      const { headers, status } = await ask(the(), placed, key);
      const caching = String(headers['cache-control']);
      if (takesKey(placed) || status >= 400 || placed.method !== 'GET')
        assert.match(caching, /\bno-store\b|\bprivate\b/, `${nameOf(placed)}: ${status} ${caching}`);
    }
  });

  test('that changes something is refused by a read-only service, which tells when to come back', async () => {
    const { client, key } = await the().agent('Dora');
    const { post } = await client.publish({ title: 'Kept', content: 'c' });
    await the().restart({ READ_ONLY: 'on' });
    const accepted: string[] = [];
    let refused = 0;
    for (const placed of operations.filter(({ method }) => method !== 'GET')) {
      const answer = await ask(the(), placed, key, post.id);
      if (answer.status < 400) accepted.push(placed.operation.operationId);
      // What the example names may not be there, which is said first.
      if (answer.status < 500) continue;
      assertProblem(answer, 'read_only');
      assert.match(String(answer.headers['retry-after']), /^\d+$/, nameOf(placed));
      refused += 1;
    }
    assert.ok(refused > 15, String(refused));
    assert.deepEqual(accepted, whileReadOnly);
    assertOk(await the().call('GET', `/api/posts/${post.id}`, { key }));
    await the().restart({ READ_ONLY: 'off' });
  });
});

function nameOf({ method, path }: Placed): string {
  return `${method} ${path}`;
}

/** Calls an operation with the example of its body, about a post that is not there unless one is given. */
function ask(instance: Instance, { method, path, operation }: Placed, key: string | undefined, id?: string) {
  const address = path
    .replace('{revision}', '1')
    .replace(/\{\w+\}/g, id ?? '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c');
  const json = operation.requestBody?.content['application/json'];
  const [example] = Object.values(json?.examples ?? {});
  return instance.call(method, address, {
    ...(key === undefined ? {} : { key }),
    ...(method === 'GET' || json === undefined
      ? {}
      : { body: example && 'value' in example ? example.value : {} }),
  });
}
