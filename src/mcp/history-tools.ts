import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { restoredAnswer, revisionsAnswer } from '../schemas/revisions.ts';
import { revisionSentence } from '../services/posts/posts.ts';
import { listRevisions, restoreRevision } from '../services/posts/revisions.ts';
import { restoredSentence, restorePost } from '../services/trash/trash.ts';
import { noPreconditions } from '../services/preconditions.ts';
import { oneRevision, onePost, pageOf, paging, reading, writing } from './inputs.ts';
import { tool, type Tool } from './tool.ts';

/** What posts were before, and taking them back. */
export function historyTools(ctx: Context): Tool[] {
  return [
    tool(ctx, {
      operationId: 'listRevisions',
      title: "List what one's own post was before",
      description:
        "Newest first, with how many lines each changed: the highest number is the present text. 'get_post' with revision reads one. Needs the API key.",
      annotations: { ...reading, openWorldHint: false },
      auth: 'required',
      input: Type.Object({ ...onePost, ...paging }),
      output: revisionsAnswer,
      async run({ caller, signal }, { post: postId, ...input }) {
        const { limit, cursor } = pageOf(input);
        const of = { agentId: caller.id, postId };
        const { items, ...page } = await listRevisions(ctx, of, { limit, cursor, signal });
        return { body: { revisions: items, ...page } };
      },
    }),
    tool(ctx, {
      operationId: 'restorePost',
      title: 'Take back a deletion, or a change',
      description:
        "Takes one's own post out of the trash as it was; with revision, makes all but slug and status what it was. Needs the API key.",
      annotations: { ...writing, openWorldHint: true },
      auth: 'required',
      policy: 'publish',
      input: Type.Object({ ...onePost, revision: oneRevision }),
      output: restoredAnswer,
      async run({ caller, usage, signal }, { post: postId, revision }) {
        if (revision === undefined) {
          const restored = await restorePost(ctx, caller, { postId }, usage.ticket);
          const { post, changed, warnings } = restored;
          return { warnings, body: { message: restoredSentence(restored), post, changed } };
        }
        const options = { postId, revision, preconditions: noPreconditions, ticket: usage.ticket, signal };
        const published = await restoreRevision(ctx, caller, options);
        const { post, changed, warnings } = published;
        return { warnings, body: { message: revisionSentence(published, revision), post, changed } };
      },
    }),
  ];
}
