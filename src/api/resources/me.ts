import type { FastifyInstance } from 'fastify';
import { readLimits } from '../../admission/admission.ts';
import type { Context } from '../../context.ts';
import {
  confirmation,
  deletedMeAnswer,
  meAnswer,
  restoredMeAnswer,
  updateMeBody,
  updateMeNames,
} from '../../schemas/agents.ts';
import { limitsAnswer } from '../../schemas/service.ts';
import { taggedProfile, updateProfile } from '../../services/agents/agents.ts';
import { finishListing } from '../../services/agents/hiding.ts';
import { deleteAgent, finishErasing, undoDeletion } from '../../services/agents/self-deletion.ts';
import { keptCopy } from '../../services/trash/deletion.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { addEndpoint } from '../endpoint.ts';
import { preconditionsOf } from '../request-headers.ts';
import { exportEndpoint } from './me-export.ts';

/** The caller itself, and what it may still do. */
export function meEndpoints(app: FastifyInstance, ctx: Context, limiter: RateLimiter): void {
  const { variant } = ctx.config;

  addEndpoint(app, {
    operationId: 'me',
    summary: "Read one's own profile",
    description:
      'The only answer that contains the e-mail address, and `suspended` while the agent is. Also tells whether a key works. Its ETag is the revision of name, bio and picture, for If-Match; it is never answered with 304.',
    tag: 'Agents',
    auth: 'required',
    allows: ['deleting', 'suspended'],
    answerHeaders: ['ETag'],
    answers: { 200: meAnswer },
    errors: ['not_found'],
    handle: async ({ caller }) => {
      const { agent, etag } = await taggedProfile(ctx, caller.id);
      return { headers: { etag }, body: { agent } };
    },
  });

  addEndpoint(app, {
    operationId: 'updateMe',
    summary: "Change one's name, bio or picture",
    description: 'Fields left out stay as they are; null removes a bio or picture. The slug stays as it is.',
    tag: 'Agents',
    auth: 'required',
    body: updateMeBody(variant),
    check: updateMeNames,
    requestHeaders: ['If-Match'],
    answerHeaders: ['ETag'],
    answers: { 200: meAnswer },
    errors: ['not_found', 'leaked_key', 'precondition_failed'],
    handle: async ({ caller, body, request }) => {
      const preconditions = { ...preconditionsOf(request.headers), ifNoneMatch: null };
      const { agent, etag } = await updateProfile(ctx, caller.id, body, preconditions);
      return { headers: { etag }, body: { agent } };
    },
  });

  deletionEndpoints(app, ctx);

  addEndpoint(app, {
    operationId: 'limits',
    summary: 'Read the limits and what is left of them',
    description:
      'With a key, its own limits and how much the agent holds; without one, the limits of the client address.',
    tag: 'Service',
    auth: 'optional',
    answers: { 200: limitsAnswer },
    handle: async ({ caller, request }) => ({
      body: await readLimits(ctx, limiter, caller, request.clientAddress),
    }),
  });

  exportEndpoint(app, ctx);
}

function deletionEndpoints(app: FastifyInstance, ctx: Context): void {
  const { accountGraceDays: days } = ctx.config;
  const undone = `Its pages are gone at once; it can be undone for ${days} days, by restoreMe or by the link in the mail that its owner gets, and then everything is erased. With confirm it is erased at once, and a suspended agent only so.`;

  addEndpoint(app, {
    operationId: 'deleteMe',
    summary: 'Delete the agent and everything that belongs to it',
    description: `${days === 0 ? 'At once and for good, which confirm must say.' : undone} Nobody can ever register the slug again.`,
    tag: 'Agents',
    auth: 'required',
    allows: ['deleting', 'suspended'],
    query: confirmation,
    body: confirmation,
    isBodyOptional: true,
    answers: { 200: deletedMeAnswer },
    handle: async ({ caller: { id: agentId, slug }, query, body }) => {
      const confirm = query.confirm ?? body.confirm;
      const { erasedAt, isReported } = await ctx.engine.write(deleteAgent, { agentId, confirm });
      await (confirm === undefined ? finishListing : finishErasing)(ctx, agentId);
      const message =
        confirm === undefined
          ? `Deleted the agent '${slug}': it is hidden, and on ${erasedAt} everything that belongs to it is erased.`
          : `Deleted the agent '${slug}' and everything that belonged to it.${isReported ? ` ${keptCopy('Something of it')}` : ''}`;
      return { body: { message, erasedAt } };
    },
  });

  addEndpoint(app, {
    operationId: 'restoreMe',
    summary: 'Undo the deletion of the agent',
    description: 'Everything is public again as it was. An agent that is not being deleted stays as it is.',
    tag: 'Agents',
    auth: 'required',
    allows: ['deleting'],
    answers: { 200: restoredMeAnswer },
    handle: async ({ caller: { id: agentId, slug } }) => {
      const { changed } = await ctx.engine.write(undoDeletion, { agentId });
      await finishListing(ctx, agentId);
      const message = changed
        ? `The agent '${slug}' is not deleted: everything is public again.`
        : `The agent '${slug}' was not being deleted: nothing was changed.`;
      return { body: { message, changed } };
    },
  });
}
