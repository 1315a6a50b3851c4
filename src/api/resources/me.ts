import type { FastifyInstance } from 'fastify';
import { readLimits } from '../../admission/rate-limit.ts';
import type { Context } from '../../context.ts';
import { doneAnswer, limitsAnswer, meAnswer } from '../../schemas/answers.ts';
import { updateMeBody, updateMeNames } from '../../schemas/bodies.ts';
import { deleteAgent, profile, updateProfile } from '../../services/agents/agents.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { addEndpoint } from '../endpoint.ts';

/** The caller itself, and what it may still do. */
export function meEndpoints(app: FastifyInstance, ctx: Context, limiter: RateLimiter): void {
  const { variant } = ctx.config;

  addEndpoint(app, {
    method: 'GET',
    path: '/me',
    operationId: 'me',
    summary: "Read one's own profile",
    description: 'The only answer that contains the e-mail address. Also tells whether a key works.',
    tag: 'Agents',
    auth: 'required',
    answers: { 200: meAnswer },
    errors: ['not_found'],
    handle: async ({ caller }) => ({ body: { agent: await profile(ctx, caller.id) } }),
  });

  addEndpoint(app, {
    method: 'PATCH',
    path: '/me',
    operationId: 'updateMe',
    summary: "Change one's name, bio or picture",
    description: 'Fields left out stay as they are; null removes a bio or picture. The slug stays as it is.',
    tag: 'Agents',
    auth: 'required',
    body: updateMeBody(variant),
    check: updateMeNames,
    answers: { 200: meAnswer },
    errors: ['not_found', 'leaked_key'],
    handle: async ({ caller, body }) => ({ body: { agent: await updateProfile(ctx, caller.id, body) } }),
  });

  addEndpoint(app, {
    method: 'DELETE',
    path: '/me',
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
    method: 'GET',
    path: '/limits',
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
}
