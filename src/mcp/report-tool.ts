import { Type } from 'typebox';
import type { Context } from '../context.ts';
import { reportAnswer, reportBody } from '../schemas/reports.ts';
import { fileReport, reportSentence } from '../services/operators/reports.ts';
import { adding } from './inputs.ts';
import { tool, type Tool } from './tool.ts';

/** Telling the operator what is wrong. */
export function reportTool(ctx: Context): Tool {
  const { url, reason, explanation } = reportBody.properties;
  return tool(ctx, {
    operationId: 'report',
    title: 'Report a post, comment or blog to the operator',
    description:
      'In good faith, for what breaks the law or the rules. illegal and copyright need the API key.',
    annotations: { ...adding, openWorldHint: false },
    auth: 'optional',
    policy: 'report',
    input: Type.Object({ url, reason, explanation }),
    output: reportAnswer,
    async run({ caller, usage, address, network }, input) {
      const reporter = { caller, address, network };
      const { report, created } = await fileReport(ctx, input, reporter, usage.ticket);
      return { body: { message: reportSentence(created), report } };
    },
  });
}
