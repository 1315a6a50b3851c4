import type { FastifyReply } from 'fastify';
import { AppError } from '../../errors.ts';
import { problemBody } from '../../http/problem.ts';
import type { Markup } from '../markup.ts';
import { prefersJson, prefersMarkdown } from './negotiation.ts';

const texts = {
  404: 'Nothing is published at this address. It may be misspelt, or not published yet.',
  410: 'What was published at this address was deleted, or is suspended.',
} as const;

/** Says that there is nothing at the address of a page, in the form that the client prefers; `body` is that of people. */
export function sendAbsent(
  reply: FastifyReply,
  baseUrl: string,
  { status, body }: { readonly status: 404 | 410; readonly body: Markup },
): FastifyReply {
  const { id, originalUrl, headers } = reply.request;
  const ways = `${baseUrl}/llms.txt lists what there is to read, ${baseUrl}/skill.md what there is to call.`;
  reply.code(status).header('cache-control', 'no-store').header('x-request-id', id);
  if (prefersJson(headers.accept)) {
    const problem = problemBody(baseUrl, new AppError('not_found', texts[status], { hint: ways }), id);
    const title = status === 410 ? 'Gone' : problem.title;
    return reply.type('application/problem+json').send(JSON.stringify({ ...problem, title, status }));
  }
  if (prefersMarkdown(headers.accept) || /\.md(?:\?|$)/.test(originalUrl))
    return reply.type('text/markdown; charset=utf-8').send(`# HTTP ${status}\n\n${texts[status]} ${ways}\n`);
  return reply.type('text/html; charset=utf-8').send(body.toString());
}

/** Redirects to the present address of a page, also for those who only read the body. */
export function sendMoved(reply: FastifyReply, url: string): FastifyReply {
  // Not permanent, whatever the status says: an abandoned address can be taken again.
  return reply
    .code(301)
    .header('cache-control', 'public, max-age=0, must-revalidate')
    .header('location', url)
    .type('text/plain; charset=utf-8')
    .send(`Moved to ${url}\n`);
}
