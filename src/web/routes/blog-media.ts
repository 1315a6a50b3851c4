import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { matchesEtag } from '../../http/etag.ts';
import { untilRead } from '../../http/parser.ts';
import { pictureBytesSent } from '../../platform/measured.ts';
import { createPictureStore } from '../../media/picture-store.ts';
import { AppError } from '../../errors.ts';
import { picturePath } from '../../rules/media/media-names.ts';
import type { Blog } from '../../services/lists/discovery.ts';
import { findBlog } from '../../services/lists/pages.ts';
import { pictureNamed, type PictureRow } from '../../services/media/pictures.ts';
import { picturesUnavailable } from '../../services/media/uploads.ts';
import { removedSentence } from '../../services/posts/moderation-state.ts';
import { refusedPicture } from '../../services/trust/source-blocks.ts';
import { avatarSvg } from '../avatar.ts';
import { strictTransport, type Absent } from '../cache/page.ts';
import { gone, notFound, removed } from '../templates/failure.ts';
import type { Web } from './routes.ts';

/** Seconds that a picture may be shown without asking again: its name never stands for another, but it may be deleted. */
const maxAge = 86_400;

/**
 * Answers a request for a picture of a blog. Throws unavailable where its file cannot be read. Pages show the agent's
 * own one as it was chosen: where it cannot be had, an image gets the drawn mark with the failure, and nothing is broken.
 */
export async function sendPicture(
  web: Web,
  request: FastifyRequest,
  reply: FastifyReply,
  at: { readonly slug: string; readonly name: string },
): Promise<FastifyReply> {
  const blog = await findBlog(web.ctx, at.slug);
  const hasMark = blog !== null && typeof blog === 'object' && isAvatar(blog, at.name) && isForImage(request);
  const found = await find(web, blog, at.name);
  if ('kind' in found)
    return hasMark
      ? sendMark(web, request, reply, { slug: at.slug, status: found.status })
      : web.pages.sendOther(reply, found);
  const { row, indexed } = found;
  const headers = headersOf(web, row, indexed);
  if (matchesEtag(request.headers['if-none-match'] ?? '', headers.ETag)) {
    await takeOver(reply);
    reply.raw.writeHead(304, { 'X-Request-Id': request.id, ...headers }).end();
    return reply;
  }
  const file = await openWhole(web, row).catch((error: unknown) => {
    if (hasMark && error instanceof AppError) return null;
    throw error;
  });
  if (file === null) return sendMark(web, request, reply, { slug: at.slug, status: 503 });
  await takeOver(reply);
  reply.raw.writeHead(200, {
    'X-Request-Id': request.id,
    'Content-Type': row.type,
    'Content-Length': row.bytes,
    ...headers,
  });
  if (request.method === 'HEAD') {
    await file.close();
    reply.raw.end();
    return reply;
  }
  const stream = file.createReadStream();
  // A client that leaves ends it; nobody reads what is wrong then. One that leaves with its last byte may look the same.
  await pipeline(stream, reply.raw).catch(() => undefined);
  pictureBytesSent.value += stream.bytesRead;
  return reply;
}

async function find(
  { ctx, chrome }: Web,
  blog: Awaited<ReturnType<typeof findBlog>>,
  name: string,
): Promise<Absent | { readonly row: PictureRow; readonly indexed: boolean }> {
  if (blog === null) return notFound(chrome);
  if (typeof blog === 'string') return gone(chrome, blog);
  const row = await pictureNamed(ctx, blog.id, name);
  if (!row) return notFound(chrome, blog);
  const refused = await refusedPicture(ctx, [row.sha256, row.sent_sha256]);
  return refused
    ? removed(chrome, removedSentence(refused.reason), blog, 'picture')
    : { row, indexed: blog.indexed };
}

function isAvatar({ avatarUrl, url }: Blog, name: string): boolean {
  return avatarUrl === `${url}/${picturePath(name)}`;
}

/** Whether a page asks, which shows the body of a failure too if it is an image. */
function isForImage({ headers }: FastifyRequest): boolean {
  return headers['sec-fetch-dest'] === 'image' || /^image\//i.test(headers.accept ?? '');
}

/** Takes an answer from Fastify, when it is its client's turn: a part of a body may wait for that. */
async function takeOver(reply: FastifyReply): Promise<void> {
  await untilRead(reply.request.raw.socket);
  reply.hijack();
}

async function sendMark(
  { ctx }: Web,
  { id, method }: FastifyRequest,
  reply: FastifyReply,
  { slug, status }: { readonly slug: string; readonly status: number },
): Promise<FastifyReply> {
  const mark = Buffer.from(avatarSvg(slug));
  await takeOver(reply);
  reply.raw.writeHead(status, {
    'X-Request-Id': id,
    'Content-Type': 'image/svg+xml',
    'Content-Length': mark.length,
    'Cache-Control': 'no-store',
    ...guard(ctx),
  });
  reply.raw.end(method === 'HEAD' ? undefined : mark);
  return reply;
}

function headersOf({ ctx }: Web, { sha256 }: PictureRow, indexed: boolean) {
  return {
    'Cache-Control': `public, max-age=${maxAge}`,
    ETag: `"${sha256.slice(0, 32)}"`,
    ...(indexed ? {} : { 'X-Robots-Tag': 'noindex' }),
    ...guard(ctx),
  };
}

function guard({ config }: Web['ctx']) {
  return {
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; sandbox",
    'Cross-Origin-Resource-Policy': 'cross-origin',
    ...strictTransport(config),
  };
}

async function openWhole({ ctx }: Web, { sha256, bytes }: PictureRow): Promise<FileHandle> {
  const file = await createPictureStore(ctx.config.media.dir)
    .read(sha256)
    .catch(() => null);
  if (file === null) throw picturesUnavailable();
  const { size } = await file.stat();
  if (size === bytes) return file;
  await file.close();
  throw picturesUnavailable();
}
