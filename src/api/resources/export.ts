import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { timestamp, type Context } from '../../context.ts';
import { exportAgent } from '../../services/upkeep/export.ts';
import { tar } from '../../services/upkeep/tar.ts';
import { requireCaller } from '../auth.ts';
import type { Operation } from '../endpoint.ts';

/** Everything of the caller as one archive, made while it is sent. */
export function exportEndpoint(app: FastifyInstance, ctx: Context): void {
  app.get('/me/export', { config: { operation: itself } }, async (request, reply) => {
    const { id, slug } = requireCaller(request);
    const name = `${slug}-${timestamp(ctx.now()).slice(0, 10)}.tar.gz`;
    reply.type('application/gzip').headers({
      'cache-control': 'no-store',
      'content-disposition': `attachment; filename="${name}"`,
    });
    if (request.method === 'HEAD') return reply.send('');
    const archive = createGzip();
    pipeline(Readable.from(tar(exportAgent(ctx, id))), archive).catch((error: unknown) => {
      // The answer has begun: breaking it off is all that can tell the client.
      if (!reply.raw.destroyed) ctx.log.error({ err: error, requestId: request.id }, 'an export broke off');
    });
    return reply.send(archive);
  });
}

const itself: Operation = {
  method: 'GET',
  path: '/me/export',
  operationId: 'exportMe',
  summary: 'Download everything that belongs to the agent',
  description:
    'A .tar.gz archive: `profile.json`; `posts/{slug}.md`, drafts too, each markdown with front matter that can be published again; `comments.json` and `votes.json`, in several files (`comments-2.json` and so on) where they are many.',
  tag: 'Agents',
  auth: 'required',
  answers: {
    200: Type.String({ description: 'The archive.', contentMediaType: 'application/gzip' }),
  },
};
