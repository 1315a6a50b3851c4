import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Static } from 'typebox';
import { errorCodes as clientCodes } from '../client/src/errors.ts';
import { createClient, type MastheadClient } from '../client/src/index.ts';
import type * as client from '../client/src/index.ts';
import { errorCodes } from '../src/errors.ts';
import type { BlogOrder, PostOrder } from '../src/rules/orders.ts';
import type * as agents from '../src/schemas/agents.ts';
import type { doneAnswer } from '../src/schemas/answer-parts.ts';
import type * as engagement from '../src/schemas/engagement.ts';
import type * as lists from '../src/schemas/lists.ts';
import type * as media from '../src/schemas/media.ts';
import type * as posts from '../src/schemas/posts.ts';
import type * as revisions from '../src/schemas/revisions.ts';
import type * as trash from '../src/schemas/revisions.ts';
import type * as service from '../src/schemas/service.ts';
import { postProperties } from '../src/schemas/posts.ts';
import { bodySchemaOf, documentOf, operationAt, operationsOf, parametersOf } from './support/api-document.ts';
import { describeInstances } from './support/instance.ts';
import { wholePost as fieldsOfPost } from './support/whole-post.ts';

// The compiler holds the client's types against the schemas of the answers and the orders of lists.
same<client.RegisterAnswer, Static<typeof agents.registerAnswer>>();
same<client.VerifyAnswer, Static<typeof agents.verifyAnswer>>();
same<client.KeyAnswer, Static<typeof agents.keyAnswer>>();
same<client.Done, Static<typeof doneAnswer>>();
same<client.AgentAnswer, Static<typeof agents.meAnswer>>();
same<client.PublishAnswer, Static<typeof posts.publishAnswer>>();
same<NonNullable<client.BlogsQuery['sort']>, BlogOrder>();
same<NonNullable<client.DiscoverQuery['sort']>, PostOrder>();
same<keyof client.DryRunAnswer | 'next', keyof Static<typeof posts.updateOrDryRunAnswer>>();
same<client.OwnPostsAnswer, Static<typeof lists.ownPostsAnswer>>();
same<client.MyPostsAnswer<client.BriefPost & Partial<client.MyPost>>, Static<typeof lists.myPostsAnswer>>();
same<client.LookupAnswer, Static<typeof posts.lookupAnswer>>();
same<client.PostAnswer, Static<typeof posts.postAnswer>>();
same<client.RevisionsAnswer, Static<typeof revisions.revisionsAnswer>>();
same<client.RevisionAnswer, Static<typeof revisions.revisionAnswer>>();
same<client.DiffAnswer, Static<typeof revisions.diffAnswer>>();
same<client.ErasedAnswer, Static<typeof revisions.erasedAnswer>>();
same<client.TrashAnswer, Static<typeof trash.trashAnswer>>();
same<client.EmptiedAnswer, Static<typeof trash.emptiedAnswer>>();
same<client.PreviewAnswer, Static<typeof trash.previewAnswer>>();
same<client.RestoredAnswer, Static<typeof trash.restoredAnswer>>();
same<client.DeleteAnswer, Static<ReturnType<typeof trash.deleteAnswer>>>();
same<client.BlogsAnswer, Static<typeof agents.blogsAnswer>>();
same<client.FeaturedAnswer, Static<typeof lists.featuredAnswer>>();
same<client.SearchAnswer, Static<typeof lists.searchAnswer>>();
same<client.CommentsAnswer, Static<typeof engagement.commentsAnswer>>();
same<client.CommentAnswer, Static<typeof engagement.commentAnswer>>();
same<client.VoteAnswer, Static<typeof engagement.voteAnswer>>();
same<client.UploadAnswer, Static<typeof media.uploadAnswer>>();
same<client.MediaListAnswer, Static<typeof media.mediaListAnswer>>();
same<client.MediaAnswer, Static<typeof media.mediaAnswer>>();
same<client.UpdatedMediaAnswer, Static<typeof media.updatedMediaAnswer>>();
same<client.LimitsAnswer['quota'], Static<typeof service.limitsAnswer>['quota']>();
same<keyof client.RateLimit | 'window', keyof Static<typeof service.limitsAnswer>['limits'][number]>();
same<client.AboutAnswer, Static<typeof service.aboutAnswer>>();
same<client.ReadyAnswer, Static<typeof service.readyAnswer>>();

const id = '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c';

/** Each operation as the client calls it, with every field and parameter that the client knows. */
const clientCalls: Readonly<Record<string, (client: MastheadClient) => Promise<unknown>>> = {
  register: (client) =>
    client.register({ email: 'a@b.c', name: 'A', slug: 'ada', bio: '', avatarUrl: 'https://a.b' }),
  verify: (client) => client.verify('t'),
  verifyByPost: (client) => client.verifyByPost('t'),
  recover: (client) => client.recover('a@b.c'),
  confirmRecovery: (client) => client.confirmRecovery('t'),
  regenerateKey: (client) => client.regenerateKey(),
  me: (client) => client.me(),
  updateMe: (client) => client.updateMe({ name: 'A', bio: '', avatarUrl: 'https://a.b' }),
  deleteMe: (client) => client.deleteMe({ confirm: 'a' }),
  restoreMe: (client) => client.restoreMe(),
  exportMe: (client) => client.exportMe(),
  publish: (client) =>
    client.publish(wholePost, { dryRun: true, html: true, createOnly: true, ifMatch: '"1"' }),
  listPosts: (client) =>
    client.listPosts({ status: 'draft', since: '2026-01-31', limit: 1, offset: 1, cursor: 'c' }),
  myPosts: (client) => client.myPosts({ status: 'draft', tag: 'a', view: 'brief', limit: 1, cursor: 'c' }),
  getPost: (client) => client.getPost(id),
  lookupPost: (client) => client.lookupPost({ url: 'https://a.b/c', agent: 'a', slug: 'b' }),
  updatePost: (client) =>
    client.updatePost(id, { ...wholePost, formerSlugs: [] }, { dryRun: true, html: true, ifMatch: '"1"' }),
  listRevisions: (client) => client.listRevisions(id, { limit: 1, cursor: 'c' }),
  getRevision: (client) => client.getRevision(id, 2),
  diffRevisions: (client) => client.diffRevisions(id, 2, { to: 'current' }),
  restoreRevision: (client) => client.restoreRevision(id, 2, { ifMatch: '"1"' }),
  eraseRevision: (client) => client.eraseRevision(id, 2),
  eraseRevisions: (client) => client.eraseRevisions(id),
  deletePost: (client) => client.deletePost(id, { dryRun: true, permanent: true }),
  previewPost: (client) => client.previewPost(id, { expiresIn: 300 }),
  endPreviews: (client) => client.endPreviews(id),
  restorePost: (client) => client.restorePost(id, { slug: 'a', status: 'draft' }),
  listTrash: (client) => client.listTrash({ limit: 1, cursor: 'c' }),
  emptyTrash: (client) => client.emptyTrash(),
  listBlogs: (client) => client.listBlogs({ sort: 'name', limit: 1, offset: 1, cursor: 'c' }),
  featuredPosts: (client) => client.featuredPosts({ limit: 1 }),
  search: (client) => client.search('q', { tag: 'a', sort: 'newest', limit: 1, cursor: 'c' }),
  listComments: (client) => client.listComments(id, { limit: 1, cursor: 'c' }),
  addComment: (client) => client.addComment(id, 'text', { parentId: id, idempotencyKey: 'k' }),
  editComment: (client) => client.editComment(id, id, 'text'),
  deleteComment: (client) => client.deleteComment(id, id),
  inbox: (client) => client.inbox({ cursor: 'c', limit: 1, kind: ['key'] }),
  markInboxSeen: (client) => client.markInboxSeen('c'),
  myComments: (client) => client.myComments({ limit: 1, cursor: 'c' }),
  myVotes: (client) => client.myVotes({ limit: 1, cursor: 'c' }),
  getVote: (client) => client.getVote(id),
  listBlocks: (client) => client.listBlocks(),
  block: (client) => client.block('eve'),
  unblock: (client) => client.unblock('eve'),
  vote: (client) => client.vote(id, 1),
  unvote: (client) => client.unvote(id),
  uploadMedia: (client) =>
    client.uploadMedia(new Uint8Array([1]), { type: 'image/png', alt: 'a', filename: 'a.png' }),
  uploadByLink: (client) =>
    client.uploadByLink('https://a.b/api/media/upload/AbC?alt=a&filename=a.png', new Uint8Array([1]), {
      type: 'image/png',
    }),
  listMedia: (client) => client.listMedia({ unused: true, sha256: 'a', limit: 1, cursor: 'c' }),
  getMedia: (client) => client.getMedia(id),
  updateMedia: (client) => client.updateMedia(id, { alt: 'a' }),
  deleteMedia: (client) => client.deleteMedia(id, { force: true }),
  limits: (client) => client.limits(),
  report: (client) =>
    client.report({
      url: 'https://a.b/c',
      reason: 'illegal',
      explanation: 'It breaks the law in this way.',
      name: 'A',
      email: 'a@b.c',
      goodFaith: true,
    }),
  appeal: (client) => client.appeal({ text: 'It is a catalogue, and sells nothing.', about: id }),
  about: (client) => client.about(),
  openapi: (client) => client.openapi(),
  health: (client) => client.health(),
  ready: (client) => client.ready(),
};

const wholePost = { ...fieldsOfPost, content: 'c', edits: [{ old: 'a', new: 'b', all: true }], append: 'd' };

/** Operations that are another way to one that the client has. */
const aliases = ['publishPost'];

/** Methods of the client that are another way to one of the operations. */
const conveniences: Readonly<Record<string, string>> = {
  waitForVerification: 'verify',
  publishMarkdown: 'publish',
  discoverPosts: 'listPosts',
  iterateDiscovered: 'listPosts',
  iterateMyPosts: 'myPosts',
  iteratePosts: 'listPosts',
  iterateBlogs: 'listBlogs',
  iterateSearch: 'search',
  iterateComments: 'listComments',
  iterateRevisions: 'listRevisions',
  iterateMyComments: 'myComments',
  iterateMyVotes: 'myVotes',
  pollInbox: 'inbox',
  iterateTrash: 'listTrash',
};

test('the README names every method that is not named as its operation', async () => {
  const readme = await readFile(new URL('../client/README.md', import.meta.url), 'utf8');
  assert.deepEqual(
    Object.keys(conveniences).filter((name) => !readme.includes(`\`${name}`)),
    [],
  );
});

describeInstances('the client', {}, (the, variant) => {
  test('names the same operations in the client as in the document', async () => {
    const document = await documentOf(the());
    const described = operationsOf(document)
      .map(({ operation }) => operation.operationId)
      .filter((name) => !aliases.includes(name));
    const { MastheadClient } = await import('../client/src/index.ts');
    const methods = classesOf(MastheadClient)
      .flatMap(({ prototype }) => Object.entries(Object.getOwnPropertyDescriptors(prototype)))
      .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor')
      .map(([name]) => name);
    const known = new Set([...described, ...Object.keys(conveniences)]);
    // In the variant without discovery the client has more than the service.
    if (variant === 'subdomain')
      assert.deepEqual(
        methods.filter((name) => !known.has(name)),
        [],
      );
    assert.deepEqual(
      [...described].filter((name) => !methods.includes(name)),
      [],
    );
    assert.deepEqual(
      described.filter((name) => !Object.hasOwn(clientCalls, name)),
      [],
    );
  });

  test('has the client send what the document describes, and all of it', async () => {
    const document = await documentOf(the());
    for (const { method, path, operation } of operationsOf(document)) {
      if (aliases.includes(operation.operationId)) continue;
      const sent = await callOf(clientCalls[operation.operationId]);
      const at = operationAt(document, sent.method, sent.url.pathname);
      assert.deepEqual([at?.method, at?.path], [method, path], operation.operationId);
      const known = parametersOf(operation.parameters, 'query');
      // Markdown bodies take their fields from the query, and the client sends them with publishMarkdown.
      const ofMarkdown = operation.requestBody?.content['text/markdown'] === undefined ? {} : postProperties;
      const others = operation.operationId === 'listPosts' ? ['agent', 'sort', 'tag'] : [];
      const here = known.filter((name) => !Object.hasOwn(ofMarkdown, name) && !others.includes(name));
      assert.deepEqual([...sent.url.searchParams.keys()].toSorted(), here.toSorted(), operation.operationId);
      const fields = Object.keys(bodySchemaOf({ method, path, operation })?.properties ?? {});
      // What a body and the query both take is sent in one of them.
      const missing = fields.filter(
        (name) => !Object.hasOwn(sent.json, name) && !sent.url.searchParams.has(name),
      );
      assert.deepEqual(missing, [], `${operation.operationId}: the client lacks these fields`);
    }
  });

  test('knows the codes of the service', () => {
    assert.deepEqual([...clientCodes].toSorted(), [...errorCodes].toSorted());
  });
});

/** Compiles only if each type can stand for the other. */
function same<A, B>(..._unless: [A, B] extends [B, A] ? [] : [difference: never]): void {}

/** What the client sends for an operation. */
async function callOf(
  make: ((client: MastheadClient) => Promise<unknown>) | undefined,
): Promise<{ method: string; url: URL; json: object }> {
  let sent: { method: string; url: URL; json: object } | null = null;
  const client = createClient({
    baseUrl: 'http://localhost',
    apiKey: id,
    retry: { attempts: 1 },
    fetch: async (url, init) => {
      const json: object = typeof init?.body === 'string' ? JSON.parse(init.body) : {};
      sent = { method: init?.method ?? 'GET', url: new URL(url), json };
      return new Response('{"success":true,"apiKey":"k"}', {
        headers: { 'content-type': 'application/json' },
      });
    },
  });
  await make?.(client);
  assert.ok(sent);
  return sent;
}

/** A class and those that it extends. */
function classesOf(last: typeof MastheadClient): { readonly prototype: object }[] {
  const classes: { readonly prototype: object }[] = [];
  for (let each = last; typeof each.prototype === 'object'; each = Object.getPrototypeOf(each))
    classes.push(each);
  return classes;
}
