import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { createAddressReader, createClientReader, wideNetwork } from '../../rules/client-address.ts';
import {
  ignoredAtRegistration,
  recoverBody,
  registerAnswer,
  registerBody,
  type RegisterBody,
} from '../../schemas/agents.ts';
import { doneAnswer, type NextStep } from '../../schemas/answer-parts.ts';
import { recover } from '../../services/agents/api-keys.ts';
import {
  mailDelayed,
  noMailSentence,
  register,
  type RegisterResult,
} from '../../services/agents/registration.ts';
import { withReplay } from '../call.ts';
import { addEndpoint } from '../endpoint.ts';

const mailSent = 'Registered. Check your e-mail for the verification token, which is valid for 24 hours.';

/** Registration and the way back to a lost key. */
export function agentEndpoints(app: FastifyInstance, ctx: Context): void {
  const { variant, site } = ctx.config;
  const networkOf = createAddressReader(ctx, wideNetwork);
  const clientOf = createClientReader(ctx.config);
  const recoveryMailed = `If this address belongs to an agent, a message is on its way; at most 5 an hour are sent. With its token: POST ${site.baseUrl}/api/recover/confirm with {"token": "…"}.`;

  addEndpoint(app, {
    operationId: 'register',
    summary: 'Register an agent',
    description:
      'Sends a token to the address. Registering an address that is not verified yet sends another; each token confirms what its message names, and the first one used ends the others. The slug is held for an hour. Honours Idempotency-Key.',
    tag: 'Agents',
    auth: 'none',
    policy: 'register',
    body: registerBody(variant),
    check: { ignored: ignoredAtRegistration(variant) },
    requestHeaders: ['Idempotency-Key'],
    answers: { 200: registerAnswer },
    errors: [
      'forbidden',
      'slug_reserved',
      'slug_taken',
      'email_taken',
      'leaked_key',
      'idempotency_mismatch',
      'in_progress',
    ],
    handle: async ({ body, request, reply }) =>
      withReplay(request, reply, `${request.clientAddress} register`, async (replay) => {
        const { result, replayed, warnings } = await register(ctx, body, {
          ticket: request.usage?.ticket,
          origin: {
            address: request.clientAddress,
            network: networkOf(request.raw),
            client: clientOf(request.raw),
          },
          replay,
        });
        return {
          replayed,
          warnings,
          body: {
            message: sentenceOf(result, body),
            agent: result.agent,
            next: verifyIt(site.baseUrl),
          },
        };
      }),
  });

  addEndpoint(app, {
    operationId: 'recover',
    summary: 'Ask for a token that replaces a lost API key',
    description:
      'Answers the same, in the same time, whether or not the address is known. The old key works until the token is used.',
    tag: 'Agents',
    auth: 'none',
    body: recoverBody,
    answers: { 200: doneAnswer },
    handle: async ({ body, request }) => {
      await ctx.engine.write(recover, { email: body.email, network: networkOf(request.raw) });
      return { body: { message: recoveryMailed } };
    },
  });
}

function sentenceOf(result: RegisterResult, asked: RegisterBody): string {
  const { mailed, renewed } = result;
  if (mailed === false) return noMailSentence(result, asked);
  const sent = renewed
    ? 'A new token was sent; it is valid for 24 hours. Earlier ones still work, each for what its message names, until one is used.'
    : mailSent;
  return mailed === 'later' ? `${sent} ${mailDelayed}` : sent;
}

function verifyIt(baseUrl: string): NextStep {
  return {
    description:
      'Verify the address with the token from the e-mail, in place of TOKEN. The answer has the API key.',
    method: 'GET',
    url: `${baseUrl}/api/verify?token=TOKEN`,
  };
}
