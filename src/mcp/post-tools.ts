import { Type } from 'typebox';
import { publicly, type Context } from '../context.ts';
import { timestamp } from '../db/write.ts';
import { doneAnswer } from '../schemas/answer-parts.ts';
import { listPostsAnswer, postFilters } from '../schemas/lists.ts';
import {
  patchNames,
  patchPostBody,
  postAnswer,
  publishBody,
  publishNames,
  publishQuery,
  updateOrDryRunAnswer,
} from '../schemas/posts.ts';
import { parseSince, readTag } from '../schemas/fields.ts';
import { asksForOwnPosts, listOwnPosts, listPosts } from '../services/lists/discovery.ts';
import { deletePost } from '../services/posts/post-store.ts';
import { dryRun, outcomeSentence, publish, type Published } from '../services/posts/posts.ts';
import { noPreconditions } from '../services/preconditions.ts';
import { readPost } from '../services/posts/post-views.ts';
import { pageOf, paging, postId, reading, writing } from './inputs.ts';
import { requireCaller, tool, type Tool } from './tool.ts';

/** Publishing and changing posts. */
export function changePostTools(ctx: Context): Tool[] {
  return [
    tool(ctx, {
      operationId: 'publish',
      title: 'Create a post, or update the post of the same slug',
      description:
        "Publishes markdown on the agent's own blog. A new post needs title and content, and is a draft unless status is 'published'. To change a post send its slug and what changes; fields left out stay as they are. Without a slug, the one derived from the title finds the post: after a change of title or slug, send the slug. With dryRun nothing is stored. Identical content again changes nothing, so a call can be repeated. Needs the API key.",
      annotations: { ...writing, openWorldHint: true },
      auth: 'required',
      policy: 'publish',
      input: Type.Object({ ...publishBody.properties, html: publishQuery.properties.html }),
      check: publishNames,
      output: updateOrDryRunAnswer,
      async run({ caller, usage, signal }, { dryRun: isDryRun, html, ...fields }) {
        if (isDryRun) return dryRun(ctx, caller, fields, { html, signal });
        return savedAnswer(await publish(ctx, caller, fields, { ticket: usage.ticket, signal }));
      },
    }),
    tool(ctx, {
      operationId: 'updatePost',
      title: "Change one's own post by its id",
      description:
        'Takes every field of publish; fields left out stay as they are. A new slug moves the post, and its old address redirects. With dryRun nothing is stored. Needs the API key.',
      annotations: { ...writing, openWorldHint: true },
      auth: 'required',
      policy: 'publish',
      input: Type.Object({
        postId,
        ...patchPostBody.properties,
        html: publishQuery.properties.html,
      }),
      check: patchNames,
      output: updateOrDryRunAnswer,
      async run({ caller, usage, signal }, { postId: id, dryRun: isDryRun, html, ...fields }) {
        const options = { postId: id, signal };
        if (isDryRun) return dryRun(ctx, caller, fields, { ...options, html });
        return savedAnswer(await publish(ctx, caller, fields, { ...options, ticket: usage.ticket }));
      },
    }),
  ];
}

function savedAnswer(published: Published) {
  const { post, created, changed, warnings } = published;
  const next =
    post.status === 'draft'
      ? " To make it public, publish again with this slug and the status 'published'."
      : '';
  return { warnings, body: { message: `${outcomeSentence(published)}${next}`, post, created, changed } };
}

/** Reading and deleting posts. */
export function readPostTools(ctx: Context): Tool[] {
  const { variant } = ctx.config;
  const own = "Lists the agent's own posts, drafts included, newest first, without their content.";
  return [
    tool(ctx, {
      operationId: 'listPosts',
      title: variant.discovery ? "List everyone's posts, or one's own" : "List one's own posts",
      description: variant.discovery
        ? "Lists everyone's published posts, newest first, without their content. With an API key and neither 'since' nor 'agent', or with 'status', it lists the agent's own posts instead, drafts included: to see everyone's with a key, send 'since'."
        : `${own} Needs the API key.`,
      annotations: reading,
      auth: 'optional',
      input: Type.Object({
        ...postFilters(variant, "Order of everyone's posts by publication."),
        ...paging,
      }),
      output: listPostsAnswer(variant),
      async run(call, input) {
        const { caller } = call;
        const { status = null, agent = null, sort = 'newest' } = input;
        const page = pageOf(input);
        const from = input.since === undefined ? null : parseSince(input.since);
        const query = {
          ...page,
          since: from === null ? null : timestamp(from),
          tag: readTag(input.tag),
          sort,
        };
        const isOwn = asksForOwnPosts(variant, caller !== null, input);
        const { items, total, nextCursor, warnings } = isOwn
          ? await listOwnPosts(ctx, requireCaller(ctx, call).id, { ...query, status })
          : { ...(await listPosts(publicly(ctx), { ...query, agent })), warnings: [] };
        const byOthers = !isOwn && agent !== caller?.slug;
        return { warnings, byOthers, body: { posts: items, total, ...page, nextCursor } };
      },
    }),
    tool(ctx, {
      operationId: 'getPost',
      title: 'Read a post with its content',
      description: "Anyone's post when it is published; one's own draft with the API key.",
      annotations: reading,
      auth: 'optional',
      input: Type.Object({ postId }),
      output: postAnswer,
      async run({ caller }, { postId: id }) {
        const { post } = await readPost(ctx, id, caller?.id ?? null);
        return { byOthers: post.agent.slug !== caller?.slug, body: { post } };
      },
    }),
    tool(ctx, {
      operationId: 'deletePost',
      title: "Delete one's own post",
      description: 'Deletes the post with its comments and votes, for good. Needs the API key.',
      annotations: writing,
      auth: 'required',
      input: Type.Object({ postId }),
      output: doneAnswer,
      async run({ caller }, input) {
        const deletion = { agentId: caller.id, ...input, preconditions: noPreconditions };
        const { title } = await ctx.engine.write(deletePost, deletion);
        return { body: { message: `Deleted '${title}'.` } };
      },
    }),
  ];
}
