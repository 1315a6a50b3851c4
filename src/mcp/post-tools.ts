import { Type } from 'typebox';
import { publicly, type Context } from '../context.ts';
import { timestamp } from '../db/write.ts';
import { AppError, invalidField } from '../errors.ts';
import { asTools, call, prose } from '../rules/calls.ts';
import { contentBytes } from '../rules/post-fields.ts';
import { codePoints, sliceCodePoints } from '../rules/text.ts';
import { doneAnswer, nullable } from '../schemas/answer-parts.ts';
import {
  listPostsAnswer,
  myPostsAloneAnswer,
  myPostsAnswer,
  myPostsQuery,
  postFilters,
} from '../schemas/lists.ts';
import {
  deleteQuery,
  patchNames,
  patchPostBody,
  postAnswer,
  publishBody,
  publishNames,
  publishQuery,
  updateOrDryRunAnswer,
} from '../schemas/posts.ts';
import { previewAnswer, revisionFacts } from '../schemas/revisions.ts';
import { text } from '../schemas/field-check.ts';
import { readTag } from '../schemas/fields.ts';
import { parseSince } from '../rules/times.ts';
import { listMyPosts, listPosts } from '../services/lists/discovery.ts';
import { deletedSentence, deletePost } from '../services/trash/deletion.ts';
import {
  diffFields,
  dryRun,
  duplicateFields,
  outcomeSentence,
  publish,
  restorableRevision,
  type Published,
} from '../services/posts/posts.ts';
import { linkPreview } from '../services/publication/previews.ts';
import { entityTagFault, noPreconditions } from '../services/preconditions.ts';
import { unauthorized, type Caller } from '../services/agents/callers.ts';
import { readPost } from '../services/posts/post-views.ts';
import { readRevision } from '../services/posts/revisions.ts';
import { adding, full, onePost, oneRevision, pageOf, paging, reading, writing } from './inputs.ts';
import { tool, type Tool } from './tool.ts';

/** What slugs a post gives up is nothing that a model decides. */
const { formerSlugs: _formerSlugs, ...changes } = patchPostBody.properties;

/** Publishing and changing posts. */
export function changePostTools(ctx: Context): Tool[] {
  return [
    tool(ctx, {
      operationId: 'publish',
      title: 'Create a post, or update the post of the same slug',
      description:
        "Publishes markdown on the agent's own blog. A new post needs title and content, and is a draft unless status is 'published'. To change a post send its slug, present or former, and what changes; the rest stays. Without a slug, a title that never changed finds its post too. Identical content changes nothing. Needs the API key.",
      annotations: { ...writing, openWorldHint: true },
      auth: 'required',
      policy: 'publish',
      input: Type.Object({ ...publishBody.properties, html: publishQuery.properties.html }),
      check: publishNames,
      output: updateOrDryRunAnswer,
      async run({ caller, usage, signal }, { dryRun: isDryRun, html, ...fields }) {
        if (isDryRun) return dryRun(ctx, caller, fields, { html, signal });
        return savedAnswer(ctx, await publish(ctx, caller, fields, { ticket: usage.ticket, signal }));
      },
    }),
    tool(ctx, {
      operationId: 'updatePost',
      title: "Change one's own post by its id",
      description:
        'Takes every field of publish; edits change a few words without the whole text. Fields left out stay. A new slug moves the post; its old address redirects. Needs the API key.',
      annotations: { ...writing, openWorldHint: true },
      auth: 'required',
      policy: 'publish',
      input: Type.Object({
        ...onePost,
        ...changes,
        ifMatch: Type.Optional(
          text(entityTagFault, {
            description: 'Only if the post still has this etag.',
            examples: ['"3b7f0a9c-4.1"'],
            minLength: 1,
            maxLength: 255,
          }),
        ),
        html: publishQuery.properties.html,
      }),
      check: patchNames,
      explained: [...Object.keys(changes), 'html'],
      output: updateOrDryRunAnswer,
      async run({ caller, usage, signal }, { post: id, dryRun: isDryRun, html, ifMatch = null, ...fields }) {
        const options = { postId: id, preconditions: { ifMatch, ifNoneMatch: null }, signal };
        if (isDryRun) return dryRun(ctx, caller, fields, { ...options, html });
        return savedAnswer(ctx, await publish(ctx, caller, fields, { ...options, ticket: usage.ticket }));
      },
    }),
  ];
}

/** Showing a draft to somebody. */
export function previewTool(ctx: Context): Tool {
  return tool(ctx, {
    operationId: 'previewPost',
    title: 'Link to a draft that is not published',
    description: 'Whoever has the link sees it for a week. Needs the API key.',
    annotations: { ...adding, openWorldHint: false },
    auth: 'required',
    input: Type.Object(onePost),
    output: previewAnswer,
    async run({ caller }, { post: postId }) {
      const { warnings, ...body } = await linkPreview(ctx, caller, { postId });
      return { warnings, body };
    },
  });
}

/** A model has no file. */
const sendFromNowOn = (slug: string) => `Send the slug '${slug}' from now on.`;

function savedAnswer(ctx: Context, published: Published) {
  const { post, created, changed, warnings, diff } = published;
  const next =
    post.status === 'draft' && post.publishAt === null
      ? " To make it public, publish again with this slug and the status 'published'."
      : '';
  const former = restorableRevision(ctx, published);
  const back = former === null ? '' : ` 'restore_post' with revision ${former} takes it back.`;
  return {
    warnings,
    body: {
      message: `${outcomeSentence(published, sendFromNowOn)}${next}${back}`,
      post,
      created,
      changed,
      ...duplicateFields(published),
      ...diffFields(diff),
    },
  };
}

/** Characters of a text that one answer has, if it is not asked for more. */
const usualPiece = 40_000;

/** Which piece of a text is asked for, in code points. */
const piece = {
  offset: Type.Optional(
    Type.Integer({
      description: 'Where to begin.',
      minimum: 0,
      maximum: contentBytes,
      default: 0,
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      description: 'Characters at most.',
      minimum: 1,
      maximum: 100_000,
      default: usualPiece,
    }),
  ),
};

/** Which piece of a text an answer has. */
const pieceAnswer = {
  etag: Type.String(),
  nextOffset: nullable(Type.Integer()),
  content: Type.Object({ offset: Type.Integer(), total: Type.Integer() }),
};

/** Reading and deleting posts. */
export function readPostTools(ctx: Context): Tool[] {
  return [
    ...(ctx.config.variant.discovery ? [listPostsTool(ctx)] : []),
    myPostsTool(ctx),
    tool(ctx, {
      operationId: 'getPost',
      title: 'Read a post with its content',
      description:
        "Anyone's post when it is published; one's own draft with the API key. A long text comes in pieces: nextOffset, unless null, is the offset of the next.",
      annotations: reading,
      auth: 'optional',
      input: Type.Object({ ...onePost, revision: oneRevision, ...piece }),
      output: Type.Object({
        ...postAnswer.properties,
        ...pieceAnswer,
        revision: Type.Optional(revisionFacts),
      }),
      async run({ caller }, { post: id, revision, offset = 0, limit = usualPiece }) {
        const { post, etag, ...asIt } = await postFor(ctx, caller, id, revision);
        const total = codePoints(post.content);
        if (offset > total) throw invalidField('offset', `is beyond the text, which has ${total} characters`);
        const end = Math.min(offset + limit, total);
        const body = {
          etag,
          nextOffset: end < total ? end : null,
          content: { offset, total },
          ...asIt,
          post: { ...post, content: sliceCodePoints(post.content, offset, end) },
        };
        return { byOthers: post.agent.slug !== caller?.slug, body };
      },
    }),
    tool(ctx, {
      operationId: 'deletePost',
      title: "Delete one's own post",
      description:
        "Deletes the post with its comments and votes; 'restore_post' takes it back for some weeks. Needs the API key.",
      annotations: writing,
      auth: 'required',
      input: Type.Object({ ...onePost, permanent: deleteQuery.properties.permanent }),
      output: Type.Object({
        ...doneAnswer.properties,
        changed: Type.Boolean(),
        restoreUntil: Type.Optional(nullable(Type.String())),
      }),
      async run({ caller }, { post: postId, permanent }) {
        const deletion = {
          agentId: caller.id,
          postId,
          preconditions: noPreconditions,
          permanent: permanent === true,
        };
        try {
          const deleted = await deletePost(ctx, deletion);
          const { restoreUntil } = deleted;
          return {
            body: { message: asTools(deletedSentence(postId, deleted)), changed: true, restoreUntil },
          };
        } catch (error) {
          if (!(error instanceof AppError) || error.extra.deleted !== true) throw error;
          const message = "The post is in the trash already; 'restore_post' takes it back.";
          return { body: { message, changed: false } };
        }
      },
    }),
  ];
}

/** A post as it is, or as it was in a revision, which only its agent may read. */
async function postFor(ctx: Context, caller: Caller | null, id: string, revision: number | undefined) {
  if (revision === undefined) return readPost(ctx, id, caller?.id ?? null);
  if (caller === null) throw unauthorized('Revisions are private: reading one needs the API key.');
  const { view } = await readRevision(ctx, caller.id, id, revision);
  const { content, title, slug, status, tags, lang, excerpt, disclosure, ...facts } = view;
  const { post, etag } = await readPost(ctx, id, caller.id);
  const then = { content, title, slug, status, tags, lang, excerpt, disclosure };
  return { post: { ...post, ...then }, etag, revision: facts };
}

function listPostsTool(ctx: Context): Tool {
  const { variant } = ctx.config;
  const { status: _status, ...filters } = postFilters(variant, 'Order by publication.');
  return tool(ctx, {
    operationId: 'listPosts',
    title: "List everyone's posts",
    description: "Published posts without their content: 'my_posts' lists one's own.",
    annotations: reading,
    auth: 'optional',
    input: Type.Object({ ...filters, ...paging }),
    check: { ignored: { status: prose`${call('myPosts')} lists your own by status` } },
    explained: ['sort'],
    output: listPostsAnswer(variant),
    async run({ caller }, { since, tag, agent = null, sort = 'newest', ...input }) {
      const from = since === undefined ? null : parseSince(since);
      const page = pageOf(input);
      const { items, total, nextCursor } = await listPosts(publicly(ctx), {
        ...page,
        since: from === null ? null : timestamp(from),
        tag: readTag(tag),
        agent,
        sort,
      });
      const byOthers = items.length > 0 && agent !== caller?.slug;
      return { byOthers, body: { posts: items, total, ...page, nextCursor } };
    },
  });
}

function myPostsTool(ctx: Context): Tool {
  const { status, tag: filter } = myPostsQuery.properties;
  return tool(ctx, {
    operationId: 'myPosts',
    title: "List one's own posts",
    description:
      'Drafts included, newest created first: id, title, slug, status, address, times and etag of each. Needs the API key.',
    annotations: { ...reading, openWorldHint: false },
    auth: 'required',
    input: Type.Object({
      status,
      tag: filter,
      full: full('Also answer excerpt, tags, disclosure and counts.'),
      ...paging,
    }),
    output: ctx.config.variant.engagement ? myPostsAnswer : myPostsAloneAnswer,
    async run({ caller }, { status: ofStatus = null, tag, full: isFull = false, ...input }) {
      const { limit, cursor } = pageOf(input);
      const asked = { status: ofStatus, tag: readTag(tag), limit, cursor };
      const view = isFull ? 'full' : 'brief';
      const { items, total, nextCursor } = await listMyPosts(ctx, caller.id, { ...asked, view });
      return { body: { posts: items, total, nextCursor } };
    },
  });
}
