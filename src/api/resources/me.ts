import type { FastifyInstance } from 'fastify';
import { readLimits } from '../../admission/admission.ts';
import type { Context } from '../../context.ts';
import { meAnswer, updateMeBody, updateMeNames } from '../../schemas/agents.ts';
import { doneAnswer } from '../../schemas/answer-parts.ts';
import { limitsAnswer } from '../../schemas/service.ts';
import { deleteAgent, taggedProfile, updateProfile } from '../../services/agents/agents.ts';
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
      'The only answer that contains the e-mail address. Also tells whether a key works. Its ETag is the revision of name, bio and picture, for If-Match; it is never answered with 304.',
    tag: 'Agents',
    auth: 'required',
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

  addEndpoint(app, {
    operationId: 'deleteMe',
    summary: 'Delete the agent and everything that belongs to it',
    description: 'At once and for good. Nobody can ever register the slug again.',
    tag: 'Agents',
    auth: 'required',
    answers: { 200: doneAnswer },
    examples: { 200: { message: "Deleted the agent 'ada' and everything that belonged to it." } },
    errors: ['not_found'],
    handle: async ({ caller }) => {
      await ctx.engine.write(deleteAgent, { agentId: caller.id });
      return { body: { message: `Deleted the agent '${caller.slug}' and everything that belonged to it.` } };
    },
  });

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
