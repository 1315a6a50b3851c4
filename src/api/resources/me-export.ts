import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { requireCaller } from '../../admission/admission.ts';
import type { Context } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import { matchesEtag } from '../../http/etag.ts';
import { exportAgent, exportVersion } from '../../services/upkeep/export.ts';
import { createExports } from '../../services/upkeep/export-leases.ts';
import { tar } from '../../services/upkeep/tar.ts';
import type { Operation } from '../endpoint.ts';
import { hour } from '../../platform/durations.ts';

/** How often a client that takes nothing is noticed, ms, and how long it may take for the whole archive. */
const stalledAfter = 30_000;
const longestExport = hour;

/** Everything of the caller as one archive, sent while it is made. */
export function exportEndpoint(app: FastifyInstance, ctx: Context): void {
  const begin = createExports(ctx);

  app.get('/me/export', { config: { operation: exportMe } }, async (request, reply) => {
    const { id, slug } = requireCaller(request, exportMe.allows);
    const end = await begin(id, request.clientAddress);
    const version = await exportVersion(ctx, id).catch(async (error: unknown) => {
      await end(false);
      throw error;
    });
    const etag = `"${version}"`;
    reply.headers({ etag, 'cache-control': 'private, no-cache' });
    const isUnchanged = matchesEtag(request.headers['if-none-match'] ?? '', etag);
    // Before the answer, as below: who has it may ask for the next.
    if (isUnchanged || request.method === 'HEAD') await end(false);
    if (isUnchanged) return reply.code(304).send();
    const name = `${slug}-${timestamp(ctx.now()).slice(0, 10)}.tar.gz`;
    reply.type('application/gzip').header('content-disposition', `attachment; filename="${name}"`);
    // A stream, whose length is not said: an empty text would have one of 0.
    if (request.method === 'HEAD') return reply.send(Readable.from([]));
    return sendArchive(reply);

    function sendArchive(to: FastifyReply): FastifyReply {
      const archive = createGzip({ level: 1 });
      const endStalled = breakOffStalled(to);
      let ended: Promise<void> | undefined;
      const endOnce = () => (ended ??= end(true));
      // Before the last bytes: who has the whole archive may ask for the next.
      async function* files() {
        yield* tar(exportAgent(ctx, id));
        await endOnce();
      }
      pipeline(Readable.from(files()), archive)
        .catch((error: unknown) => {
          // The answer has begun: breaking it off is all that can tell the client.
          if (!to.raw.destroyed) ctx.log.error({ err: error, requestId: request.id }, 'an export broke off');
        })
        .finally(() => {
          endStalled();
          void endOnce();
        });
      return to.send(archive);
    }
  });
}

/** Breaks an answer off whose client takes nothing, or too long. Returns the function that ends the watch. */
function breakOffStalled({ raw }: FastifyReply): () => void {
  const began = performance.now();
  let sent = -1;
  const watch = setInterval(() => {
    const { bytesWritten = 0 } = raw.socket ?? {};
    if (bytesWritten === sent || performance.now() - began > longestExport) raw.destroy();
    sent = bytesWritten;
  }, stalledAfter).unref();
  return () => clearInterval(watch);
}

const exportMe: Operation = {
  operationId: 'exportMe',
  summary: 'Download everything that belongs to the agent',
  description:
    'A .tar.gz archive: `profile.json`; `posts/{slug}.md`, drafts too, each markdown with front matter that can be published again, and beside it former texts that are kept (`posts/{slug}.revisions/`); `comments.json` and `votes.json`, in several files (`comments-2.json` and so on) where they are many; `blocks.json`; with pictures `media/` and `media.json`, and the same files once more below `posts/`, without taking more room, so that posts show them in the unpacked folder. One at a time and 10 in 24 hours; with `If-None-Match`, what has not changed is 304 and not counted among those.',
  tag: 'Agents',
  auth: 'required',
  allows: ['deleting', 'suspended'],
  requestHeaders: ['If-None-Match'],
  answerHeaders: ['ETag'],
  answers: {
    200: Type.String({ description: 'The archive.', contentMediaType: 'application/gzip' }),
  },
};
