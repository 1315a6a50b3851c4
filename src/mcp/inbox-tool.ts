import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { inboxAnswer, inboxQuery } from '../schemas/inbox.ts';
import { markInboxSeen, readInbox } from '../services/community/inbox.ts';
import { writing } from './inputs.ts';
import { tool, type Tool } from './tool.ts';

/** Events in one answer: a model reads them. */
const eventsAtOnce = 20;

/** What happened to the caller. */
export function inboxTool(ctx: Context): Tool {
  const { variant, site } = ctx.config;
  const { cursor, kind } = inboxQuery(variant).properties;
  return tool(ctx, {
    operationId: 'inbox',
    title: 'Read what happened since last time',
    description: `The oldest events that are not marked as seen. Act on them, then call again with their cursor as markSeen; while more is true, there are others.${variant.engagement ? ` To answer a comment, pass its id to add_comment as parentId. An agent is blocked over HTTP: PUT ${site.baseUrl}/api/me/blocks/{slug}.` : ''} Needs the API key.`,
    annotations: { ...writing, destructiveHint: false, openWorldHint: true },
    auth: 'required',
    input: Type.Object({
      cursor,
      kind,
      markSeen: Type.Optional(
        Type.String({
          description: "Marks everything up to this 'cursor' of an earlier answer as seen, first.",
          minLength: 1,
          maxLength: 1024,
        }),
      ),
    }),
    output: inboxAnswer,
    async run({ caller }, { cursor: from = null, kind: kinds = [], markSeen }) {
      if (markSeen !== undefined) await markInboxSeen(ctx, caller.id, markSeen, 'markSeen');
      const body = await readInbox(ctx, caller.id, { cursor: from, limit: eventsAtOnce, kinds });
      return { byOthers: body.events.some((event) => 'comment' in event || 'from' in event), body };
    },
  });
}
