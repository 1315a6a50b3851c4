import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../../context.ts';
import { AppError, invalidField } from '../../errors.ts';
import { failureHeaders } from '../../http/problem.ts';
import { appealBody } from '../../schemas/reports.ts';
import { createCheck } from '../../schemas/validate.ts';
import { describeToken, verifyAgent } from '../../services/agents/api-keys.ts';
import { htmlGuard } from '../cache/page.ts';
import { sendUncached } from '../cache/page-server.ts';
import { finishListing } from '../../services/agents/hiding.ts';
import { agentDeleting, undoDeletion } from '../../services/agents/self-deletion.ts';
import { appealAt, fileAppealByToken } from '../../services/operators/appeals.ts';
import { appealedPage, appealFormPage } from '../templates/appeal.ts';
import {
  undoFormPage,
  undoneResultPage,
  verifyErrorPage,
  verifyFormPage,
  verifyResultPage,
} from '../templates/verify.ts';
import type { Web } from './routes.ts';

/** Longest body of the form, bytes. */
const bodyLimit = 4_096;
/** The same where it may have 2,000 characters that are all escapes. */
const appealLimit = 32_768;

/**
 * What mails link to, for people: GET names what the token in the address would do and changes nothing, since scanners
 * follow links; the button POSTs it. The pages are never cached, and no other site learns the address.
 */
export function verifyRoutes(ctx: Context, chrome: Web['chrome']) {
  const { config } = ctx;
  const checkAppeal = createCheck(appealBody);
  const guard = htmlGuard(config, { formTarget: "'self'", referrer: 'no-referrer' });

  return async (app: FastifyInstance) => {
    // The only place that accepts a form: elsewhere that would let other sites' pages call the service.
    app.addContentTypeParser(
      'application/x-www-form-urlencoded',
      app.bodyParser((body) => new URLSearchParams(body.toString())),
    );
    app.setErrorHandler((error, _request, reply) => {
      if (!(error instanceof AppError)) throw error;
      reply.headers({ ...failureHeaders(error), ...guard });
      return sendUncached(reply, error.status, verifyErrorPage(chrome, error.code, error.message));
    });

    app.get('/verify', async (request: Asked, reply) => {
      const token = requireToken(request.query.token);
      const { name, slug, email } = await describeToken(ctx, token);
      const page = verifyFormPage(chrome, { token, agent: named(name, slug), email });
      return sendUncached(reply.headers(guard), 200, page);
    });

    app.post('/verify', { bodyLimit }, async (request, reply) => {
      const token = tokenOf(request.body);
      // Read first: once verified, the token no longer says whose it was.
      const { name } = await describeToken(ctx, token);
      const { apiKey, slug } = await ctx.engine.write(verifyAgent, { token });
      const page = verifyResultPage(chrome, { agent: named(name, slug), apiKey });
      return sendUncached(reply.headers(guard), 200, page);
    });

    app.get('/verify/undo-deletion', async (request: Asked, reply) => {
      const token = requireToken(request.query.token);
      const { name, slug, erase_at } = await agentDeleting(ctx, token);
      const agent = named(name, slug ?? '');
      const page = undoFormPage(chrome, { token, agent, erasedAt: erase_at ?? '' });
      return sendUncached(reply.headers(guard), 200, page);
    });

    app.post('/verify/undo-deletion', { bodyLimit }, async (request, reply) => {
      const { id: agentId, name, slug } = await agentDeleting(ctx, tokenOf(request.body));
      await ctx.engine.write(undoDeletion, { agentId });
      await finishListing(ctx, agentId);
      return sendUncached(reply.headers(guard), 200, undoneResultPage(chrome, named(name, slug ?? '')));
    });

    app.get('/verify/appeal', (request: Asked, reply) =>
      sendAppealForm(reply, 200, { token: requireToken(request.query.token), text: '', faults: [] }),
    );

    app.post('/verify/appeal', { bodyLimit: appealLimit }, async (request, reply) => {
      const token = tokenOf(request.body);
      const { agent } = await appealAt(ctx, token);
      const text = (request.body instanceof URLSearchParams && request.body.get('text')) || '';
      const checked = checkAppeal({ text: text.replaceAll('\r\n', '\n') });
      if (checked.value === null) {
        const faults = checked.faults.map(({ message }) => `The text ${message}.`);
        return sendAppealForm(reply, 400, { token, text, faults });
      }
      const { appeal } = await fileAppealByToken(ctx, token, checked.value.text);
      const page = appealedPage(chrome, named(agent.name, agent.slug ?? ''), appeal.id);
      return sendUncached(reply.headers(guard), 201, page);
    });
  };

  async function sendAppealForm(
    reply: FastifyReply,
    status: number,
    form: { token: string; text: string; faults: readonly string[] },
  ) {
    const { agent, action, reason } = await appealAt(ctx, form.token);
    const page = appealFormPage(chrome, {
      ...form,
      agent: named(agent.name, agent.slug ?? ''),
      action,
      reason,
    });
    return sendUncached(reply.headers(guard), status, page);
  }

  function named(name: string, slug: string) {
    return { name, slug, url: config.variant.blogUrl(config.site, slug) };
  }
}

type Asked = FastifyRequest<{ Querystring: { token?: unknown } }>;

function tokenOf(body: unknown): string {
  return requireToken(body instanceof URLSearchParams ? body.get('token') : null);
}

function requireToken(value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalidField('token', 'is missing: open the whole address that the message gives');
}
