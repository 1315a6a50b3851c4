import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { beginUsage, finishUsage, requireWithinLimit, usageHeaders } from '../../admission/admission.ts';
import type { Context } from '../../context.ts';
import { AppError } from '../../errors.ts';
import { failureHeaders, publicFields } from '../../http/problem.ts';
import { createAddressReader, wideNetwork } from '../../rules/client-address.ts';
import { reportBody, reportFaults } from '../../schemas/reports.ts';
import { createCheck, throwIfFaulty } from '../../schemas/validate.ts';
import type { RateLimiter } from '../../services/limits/rate-limiter.ts';
import { fileReport } from '../../services/operators/reports.ts';
import { htmlGuard } from '../cache/page.ts';
import { sendUncached } from '../cache/page-server.ts';
import { reportedPage, reportFormPage, type ReportForm } from '../templates/report.ts';
import type { Web } from './routes.ts';

/** Longest body of the form, bytes: an explanation may be all escapes. */
const bodyLimit = 32_768;

/** The page by which people report something: GET shows the form, POST stores the report. No script is needed. */
export function reportRoutes(ctx: Context, limiter: RateLimiter, chrome: Web['chrome']) {
  const guard = htmlGuard(ctx.config, { formTarget: "'self'" });
  const addressOf = createAddressReader(ctx);
  const networkOf = createAddressReader(ctx, wideNetwork);
  const check = createCheck(reportBody, { together: reportFaults });

  async function report(request: FastifyRequest, reply: FastifyReply, form: URLSearchParams) {
    const address = addressOf(request.raw);
    const usage = await beginUsage(ctx, limiter, 'report', address);
    try {
      requireWithinLimit(usage);
      const checked = check(sentOf(form));
      throwIfFaulty(checked);
      const reporter = { caller: null, address, network: networkOf(request.raw) };
      return (await fileReport(ctx, checked.value, reporter, usage.ticket)).report;
    } finally {
      await finishUsage(ctx, usage);
      reply.headers(usageHeaders(usage));
    }
  }

  return async (app: FastifyInstance) => {
    app.addContentTypeParser(
      'application/x-www-form-urlencoded',
      app.bodyParser((body) => new URLSearchParams(body.toString())),
    );

    app.get('/-/report', async (request: FastifyRequest<{ Querystring: { url?: unknown } }>, reply) => {
      const { url } = request.query;
      const form = { ...emptyForm, url: typeof url === 'string' ? url.slice(0, 2048) : '' };
      return sendUncached(reply.headers(guard), 200, reportFormPage(chrome, form, []));
    });

    app.post('/-/report', { bodyLimit }, async (request, reply) => {
      const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
      try {
        const { id } = await report(request, reply, form);
        const page = reportedPage(chrome, { id, url: form.get('url') ?? '' });
        return sendUncached(reply.headers(guard), 201, page);
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        reply.headers({ ...failureHeaders(error), ...guard });
        return sendUncached(reply, error.status, reportFormPage(chrome, typed(form), faultsOf(error)));
      }
    });
  };
}

const emptyForm: ReportForm = { url: '', reason: '', explanation: '', name: '', email: '' };

function typed(form: URLSearchParams): ReportForm {
  const of = (name: keyof ReportForm) => form.get(name) ?? '';
  return {
    url: of('url'),
    reason: of('reason'),
    explanation: of('explanation'),
    name: of('name'),
    email: of('email'),
  };
}

/** The fields of the API. One that was left empty was not sent. */
function sentOf(form: URLSearchParams): Readonly<Record<string, unknown>> {
  const given = Object.entries(typed(form)).filter(([, value]) => value.trim() !== '');
  return { ...Object.fromEntries(given), goodFaith: form.get('goodFaith') === 'true' };
}

/** What people read of a refusal: each fault, by what the form calls the field. */
function faultsOf(error: AppError): string[] {
  const { errors = [] } = error.extra;
  return errors.length === 0
    ? [publicFields(error).detail]
    : errors.map(({ field, message }) => `${labels[field] ?? field} ${message}.`);
}

const labels: Readonly<Record<string, string>> = {
  url: 'The address',
  reason: 'What is wrong',
  explanation: 'The explanation',
  name: 'Your name',
  email: 'Your e-mail address',
  goodFaith: 'The box about good faith',
};
