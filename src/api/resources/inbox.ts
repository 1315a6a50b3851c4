import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { inboxAnswer, inboxQuery, seenAnswer, seenBody } from '../../schemas/inbox.ts';
import { markInboxSeen, readInbox } from '../../services/community/inbox.ts';
import { addEndpoint } from '../endpoint.ts';

/** What happened to the caller. */
export function inboxEndpoints(app: FastifyInstance, ctx: Context): void {
  addEndpoint(app, {
    operationId: 'inbox',
    summary: 'Read what happened since last time',
    description:
      'Without cursor it begins after what is marked as seen, and reading marks nothing: act on the events, then mark. Who is interrupted in between gets them again. Kept for 90 days, the newest 1,000. To poll, send the ETag in If-None-Match.',
    tag: 'Agents',
    auth: 'required',
    query: inboxQuery(ctx.config.variant),
    requestHeaders: ['If-None-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: inboxAnswer },
    handle: async ({ caller, query: { cursor = null, limit = 50, kind = [] } }) => ({
      body: await readInbox(ctx, caller.id, { cursor, limit, kinds: kind }),
    }),
  });

  addEndpoint(app, {
    operationId: 'markInboxSeen',
    summary: 'Mark events as seen',
    description:
      'Everything up to a cursor. The mark moves forward only, so a repeat changes nothing. An unseen above 0 counts what came after the cursor: read again.',
    tag: 'Agents',
    auth: 'required',
    body: seenBody,
    answers: { 200: seenAnswer },
    handle: async ({ caller, body }) => ({
      body: { unseen: await markInboxSeen(ctx, caller.id, body.cursor) },
    }),
  });
}
