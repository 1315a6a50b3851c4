import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Static, TSchema } from 'typebox';
import { errorCodes as clientCodes } from '../client/src/errors.ts';
import { createClient, type MastheadClient } from '../client/src/index.ts';
import type * as client from '../client/src/index.ts';
import { errorCodes } from '../src/errors.ts';
import type { BlogOrder, PostOrder } from '../src/rules/orders.ts';
import type { PostFieldName } from '../src/rules/post-fields.ts';
import type { ReportReason } from '../src/rules/report-reasons.ts';
import type * as agents from '../src/schemas/agents.ts';
import type * as answerParts from '../src/schemas/answer-parts.ts';
import type * as engagement from '../src/schemas/engagement.ts';
import type * as inbox from '../src/schemas/inbox.ts';
import type * as lists from '../src/schemas/lists.ts';
import type * as media from '../src/schemas/media.ts';
import type * as posts from '../src/schemas/posts.ts';
import type * as reports from '../src/schemas/reports.ts';
import type * as revisions from '../src/schemas/revisions.ts';
import type * as service from '../src/schemas/service.ts';
import { kindsIn, variants, type InboxKind } from '../src/variant.ts';
import { inboxAnswer } from '../src/schemas/inbox.ts';
import { postProperties } from '../src/schemas/posts.ts';
import { bodySchemaOf, documentOf, operationAt, operationsOf, parametersOf } from './support/api-document.ts';
import { describeInstances } from './support/instance.ts';
import { wholePost as fieldsOfPost } from './support/whole-post.ts';

/** The client's type of each answer, by the name of its schema. */
type OfClient = {
  aboutAnswer: client.AboutAnswer;
  appealAnswer: client.AppealAnswer;
  blockAnswer: client.BlockAnswer;
  blocksAnswer: client.BlocksAnswer;
  blogsAnswer: client.BlogsAnswer;
  commentAnswer: client.CommentAnswer;
  commentsAnswer: client.CommentsAnswer;
  deleteAnswer: client.DeleteAnswer;
  deletedMeAnswer: client.DeleteMeAnswer;
  diffAnswer: client.DiffAnswer;
  doneAnswer: client.Done;
  editedCommentAnswer: client.EditedCommentAnswer;
  emptiedAnswer: client.EmptiedAnswer;
  erasedAnswer: client.ErasedAnswer;
  featuredAnswer: client.FeaturedAnswer;
  healthAnswer: client.HealthAnswer;
  inboxAnswer: client.InboxAnswer;
  keyAnswer: client.KeyAnswer;
  listPostsAnswer: client.OwnPostsAnswer | AnyPosts;
  lookupAnswer: client.LookupAnswer;
  meAnswer: client.AgentAnswer;
  mediaAnswer: client.MediaAnswer;
  mediaListAnswer: client.MediaListAnswer;
  myPostsAloneAnswer: MyPosts<client.TaggedPost>;
  myPostsAnswer: MyPosts<client.MyPost>;
  ownCommentsAnswer: client.OwnCommentsAnswer;
  ownPostsAnswer: client.OwnPostsAnswer;
  ownVotesAnswer: client.OwnVotesAnswer;
  postAnswer: client.PostAnswer;
  previewAnswer: client.PreviewAnswer;
  publishAnswer: client.PublishAnswer;
  readVoteAnswer: client.ReadVoteAnswer;
  readyAnswer: client.ReadyAnswer;
  registerAnswer: client.RegisterAnswer;
  reportAnswer: client.ReportAnswer;
  restoredAnswer: client.RestoredAnswer;
  restoredMeAnswer: client.RestoreMeAnswer;
  revisionAnswer: client.RevisionAnswer;
  revisionsAnswer: client.RevisionsAnswer;
  searchAnswer: client.SearchAnswer;
  seenAnswer: client.SeenAnswer;
  trashAnswer: client.TrashAnswer;
  updatedMediaAnswer: client.UpdatedMediaAnswer;
  uploadAnswer: client.UploadAnswer;
  verifyAnswer: client.VerifyAnswer;
  voteAnswer: client.VoteAnswer;
};

type MyPosts<Post> = client.MyPostsAnswer<client.BriefPost & Partial<Post>>;
type AnyPosts = Omit<client.DiscoverAnswer, 'posts'> & {
  posts: (client.OwnPost & Partial<client.DiscoveredPost>)[];
};

type Schemas = typeof agents &
  typeof answerParts &
  typeof engagement &
  typeof inbox &
  typeof lists &
  typeof media &
  typeof posts &
  typeof reports &
  typeof revisions &
  typeof service;

// The client throws of one that is not ready. Of a dry run and of limits it says more than the schemas.
type Apart = 'notReadyAnswer' | 'updateOrDryRunAnswer' | 'limitsAnswer';
same<Exclude<Extract<keyof Schemas, `${string}Answer`>, keyof OfClient | Apart>, never>();
same<keyof client.DryRunAnswer | 'next', keyof Answer<'updateOrDryRunAnswer'>>();
same<client.LimitsAnswer['quota'], Answer<'limitsAnswer'>['quota']>();
same<keyof client.RateLimit | 'window', keyof Answer<'limitsAnswer'>['limits'][number]>();

type Answer<Name extends keyof Schemas> = Schemas[Name] extends (variant: never) => infer Schema
  ? StaticOf<Schema>
  : StaticOf<Schemas[Name]>;
type StaticOf<Schema> = Schema extends TSchema ? Static<Schema> : never;

/** The answers in which the client's type and the schema differ. */
type Different = {
  [Name in keyof OfClient]: [OfClient[Name], Answer<Name>] extends [Answer<Name>, OfClient[Name]]
    ? never
    : Name;
}[keyof OfClient];
same<Different, never>();

same<NonNullable<client.BlogsQuery['sort']>, BlogOrder>();
same<NonNullable<client.DiscoverQuery['sort']>, PostOrder>();
same<client.InboxKind, InboxKind>();
same<client.ReportReason, ReportReason>();
same<Exclude<PostFieldName, keyof client.PostChanges>, never>();

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

test('the document names every kind of event', () => {
  const { kind } = inboxAnswer.properties.events.items.properties;
  const missing = kindsIn(variants.subdomain).filter(
    (name) => !String(Reflect.get(kind, 'description')).includes(`${name} (`),
  );
  assert.deepEqual(missing, []);
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
