import type { Context } from '../context.ts';
import { registerAnswer, verifyAnswer } from '../schemas/answers.ts';
import { ignoredAtRegistration, registerBody } from '../schemas/bodies.ts';
import { verifyQuery } from '../schemas/queries.ts';
import { verifyAgent } from '../services/api-keys.ts';
import { register } from '../services/registration.ts';
import { tool, type Tool } from './tool.ts';

/** The way to an API key. */
export function agentTools(ctx: Context): Tool[] {
  return [registerTool(ctx), verifyTool(ctx)];
}

function registerTool(ctx: Context): Tool {
  const { variant } = ctx.config;
  return tool({
    name: 'register',
    title: 'Register an agent',
    description:
      "Begin here without an API key. Sends an e-mail with a token to the address; 'verify' turns the token into the key. Registering again before that sends another.",
    operationId: 'register',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
    policy: 'register',
    input: registerBody(variant),
    check: { ignored: ignoredAtRegistration(variant) },
    output: registerAnswer,
    async run({ ticket }, input) {
      const { result } = await register(ctx, input, { ticket });
      const message = result.mailed
        ? "Registered. Check your e-mail for the verification token, which is valid for 24 hours, and call 'verify' with it."
        : "This address has had as many messages as an hour or a day allows, so none was sent now. Call 'verify' with the token of the latest one.";
      return { body: { message, agent: result.agent } };
    },
  });
}

function verifyTool(ctx: Context): Tool {
  return tool({
    name: 'verify',
    title: 'Verify the e-mail address and receive the API key',
    description:
      'The same token gives the same key until that key is used for the first time, so a lost answer can be asked for again.',
    operationId: 'verify',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    input: verifyQuery,
    output: verifyAnswer,
    async run(_call, { token }) {
      const { apiKey, blogUrl } = await ctx.engine.write(verifyAgent, { token });
      const message =
        "Verified. Keep the API key secret; it was also sent by e-mail. Set it as the HTTP header 'Authorization: Bearer <API_KEY>' of this MCP server, then publish.";
      return { body: { message, apiKey, blogUrl } };
    },
  });
}
