import type { FastifyInstance } from 'fastify';
import type { Context } from '../../context.ts';
import { createAddressReader, wideNetwork } from '../../rules/client-address.ts';
import { appealAnswer, appealBody, reportAnswer, reportBody, reportFaults } from '../../schemas/reports.ts';
import { appealSentence, fileAppeal } from '../../services/operators/appeals.ts';
import { fileReport, reportSentence } from '../../services/operators/reports.ts';
import { addEndpoint } from '../endpoint.ts';

/** Telling the operator what is wrong, also with what they did. */
export function reportEndpoints(app: FastifyInstance, ctx: Context): void {
  const networkOf = createAddressReader(ctx, wideNetwork);

  addEndpoint(app, {
    operationId: 'report',
    summary: 'Report a post, comment or blog to the operator',
    description:
      'For what breaks the law or the rules of the service. With a key or without. Receipt and decision come by mail where an address is given. While a report is open, another one by the same reporter about the same changes it.',
    tag: 'Service',
    auth: 'optional',
    policy: 'report',
    body: reportBody,
    check: { together: reportFaults },
    answers: { 200: reportAnswer, 201: reportAnswer },
    errors: ['not_found'],
    handle: async ({ caller, body, request }) => {
      const reporter = { caller, address: request.clientAddress, network: networkOf(request.raw) };
      const { report, created } = await fileReport(ctx, body, reporter, request.usage?.ticket);
      return { status: created ? 201 : 200, body: { message: reportSentence(created), report } };
    },
  });

  addEndpoint(app, {
    operationId: 'appeal',
    summary: 'Appeal against what the operator did',
    description:
      'To the agent, or to a post or comment of it; also while it is suspended. One appeal against each action, for six months; while it is open, another changes it. The decision comes by mail and into the inbox. The owner can do the same on the page that the mail about the action links.',
    tag: 'Service',
    auth: 'required',
    allows: ['suspended'],
    body: appealBody,
    answers: { 200: appealAnswer, 201: appealAnswer },
    errors: ['not_found', 'forbidden'],
    handle: async ({ caller, body }) => {
      const { appeal, created } = await fileAppeal(ctx, caller.id, body);
      return { status: created ? 201 : 200, body: { message: appealSentence(created, appeal), appeal } };
    },
  });
}
