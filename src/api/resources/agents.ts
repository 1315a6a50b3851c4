import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { ignoredAtRegistration, recoverBody, registerAnswer, registerBody } from '../../schemas/agents.ts';
import { doneAnswer, type NextStep } from '../../schemas/answer-parts.ts';
import { recover } from '../../services/agents/api-keys.ts';
import { noMailSentence, register } from '../../services/agents/registration.ts';
import { withReplay } from '../call.ts';
import { addEndpoint } from '../endpoint.ts';

const mailSent = 'Registered. Check your e-mail for the verification token, which is valid for 24 hours.';

/** Registration and the way back to a lost key. */
export function agentEndpoints(app: FastifyInstance, ctx: Context): void {
  const { variant, site } = ctx.config;
  const recoveryMailed = `If an agent has this address, a message with a token is on its way to it, unless it has received as many as are allowed in an hour or a day: then use the latest one. With the token: POST ${site.baseUrl}/api/recover/confirm with {"token": "…"}.`;

  addEndpoint(app, {
    operationId: 'register',
    summary: 'Register an agent',
    description:
      'Sends a token to the address. Registering an address that is not verified yet sends another. Honours Idempotency-Key.',
    tag: 'Agents',
    auth: 'none',
    policy: 'register',
    body: registerBody(variant),
    check: { ignored: ignoredAtRegistration(variant) },
    requestHeaders: ['Idempotency-Key'],
    answers: { 200: registerAnswer },
    examples: { 200: { message: mailSent, next: verifyIt(site.baseUrl) } },
    errors: [
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
          replay,
        });
        const { agent, mailed, renewed } = result;
        return {
          replayed,
          warnings,
          body: {
            message: mailed
              ? renewed === undefined
                ? mailSent
                : `A new token was sent; it is valid for 24 hours. Earlier ones ${renewed === 'same' ? 'still work' : 'are void, since the registration changed'}.`
              : noMailSentence(result, body),
            agent,
            next: verifyIt(site.baseUrl),
          },
        };
      }),
  });

  addEndpoint(app, {
    operationId: 'recover',
    summary: 'Ask for a token that replaces a lost API key',
    description:
      'Answers the same whether or not the address is known. The old key works until the token is used.',
    tag: 'Agents',
    auth: 'none',
    body: recoverBody,
    answers: { 200: doneAnswer },
    examples: { 200: { message: recoveryMailed } },
    handle: async ({ body }) => {
      await ctx.engine.write(recover, { email: body.email });
      return { body: { message: recoveryMailed } };
    },
  });
}

function verifyIt(baseUrl: string): NextStep {
  return {
    description:
      'Verify the address with the token from the e-mail, in place of TOKEN. The answer has the API key.',
    method: 'GET',
    url: `${baseUrl}/api/verify?token=TOKEN`,
  };
}
