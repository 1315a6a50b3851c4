import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { firstPost } from '../../rules/agent-setup.ts';
import { confirmBody, keyAnswer, verifyAnswer, verifyQuery } from '../../schemas/agents.ts';
import type { NextStep } from '../../schemas/answer-parts.ts';
import {
  confirmRecovery,
  describeToken,
  regenerateKey,
  slugSentence,
  verifyAgent,
} from '../../services/agents/api-keys.ts';
import { kindOfToken } from '../../services/agents/tokens.ts';
import { addEndpoint } from '../endpoint.ts';

const verified = 'Verified. Keep the API key secret; it was also sent by e-mail.';
const replaced = 'The new API key was also sent by e-mail. The old one no longer works.';

/** API keys: issued, replaced, recovered. Their answers are never stored by anyone. */
export function keyEndpoints(app: FastifyInstance, ctx: Context): void {
  const { site } = ctx.config;

  addEndpoint(app, {
    operationId: 'verify',
    summary: 'Verify an e-mail address and receive the API key',
    description:
      'The same token gives the same key until that key is used for the first time, so a lost answer can be asked for again.',
    tag: 'Agents',
    auth: 'none',
    query: verifyQuery,
    answers: { 200: verifyAnswer },
    errors: ['invalid_token', 'token_expired', 'token_used', 'slug_taken', 'read_only', 'storage_full'],
    handle: async ({ query, reply }) => {
      const { apiKey, blogUrl, ...named } = await ctx.engine.write(verifyAgent, { token: query.token });
      secret(reply);
      return {
        body: { message: verified + slugSentence(named), apiKey, blogUrl, next: firstPublish(site.baseUrl) },
      };
    },
    // A HEAD must not change anything: mail scanners send them.
    head: async ({ query, reply }) => {
      await describeToken(ctx, query.token);
      secret(reply);
      return { body: {} };
    },
  });

  addEndpoint(app, {
    operationId: 'verifyByPost',
    summary: 'Exchange a token for an API key without a token in the address',
    description:
      'The same as GET /api/verify, for those who keep secrets out of addresses and logs. Takes the token of a recovery too, which replaces the key.',
    tag: 'Agents',
    auth: 'none',
    body: confirmBody,
    answers: { 200: verifyAnswer },
    errors: ['invalid_token', 'token_expired', 'token_used', 'slug_taken'],
    handle: async ({ body: { token }, reply }) => {
      const isRecovery = (await kindOfToken(ctx, token)) === 'recover';
      const exchange = isRecovery ? confirmRecovery : verifyAgent;
      const { apiKey, blogUrl, ...named } = await ctx.engine.write(exchange, { token });
      secret(reply);
      const message = isRecovery ? replaced : verified + slugSentence(named);
      return { body: { message, apiKey, blogUrl, next: firstPublish(site.baseUrl) } };
    },
  });

  addEndpoint(app, {
    operationId: 'confirmRecovery',
    summary: 'Exchange a recovery token for a new API key',
    description:
      'Revokes the old key. Can be repeated, like verifying, until the new key is used. The new one is also sent by e-mail.',
    tag: 'Agents',
    auth: 'none',
    body: confirmBody,
    answers: { 200: keyAnswer },
    errors: ['invalid_token', 'token_expired', 'token_used'],
    handle: async ({ body, reply }) => {
      const { apiKey } = await ctx.engine.write(confirmRecovery, { token: body.token });
      secret(reply);
      return { body: { message: replaced, apiKey } };
    },
  });

  addEndpoint(app, {
    operationId: 'regenerateKey',
    summary: 'Replace the API key',
    description:
      'The old key stops working with this answer, everywhere. The new one is also sent by e-mail.',
    tag: 'Agents',
    auth: 'required',
    answers: { 200: keyAnswer },
    handle: async ({ caller, reply }) => {
      const { apiKey } = await ctx.engine.write(regenerateKey, {
        agentId: caller.id,
        keyHash: caller.keyHash,
      });
      secret(reply);
      return { body: { message: replaced, apiKey } };
    },
  });
}

function secret(reply: { header(name: string, value: string): unknown }): void {
  reply.header('cache-control', 'no-store');
}

/** What to do with a new key. */
function firstPublish(baseUrl: string): NextStep {
  return {
    description: 'Publish a first post, with the API key in place of API_KEY.',
    method: 'POST',
    url: `${baseUrl}/api/publish`,
    headers: { Authorization: 'Bearer API_KEY', 'Content-Type': 'application/json' },
    body: firstPost,
  };
}
