import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createSemaphore } from '../../admission/semaphore.ts';
import type { Context } from '../../context.ts';
import { clientLeft } from '../../http/connection.ts';
import { createAddressReader } from '../../rules/client-address.ts';
import { readPreview } from '../../services/publication/previews.ts';
import { htmlGuard } from '../cache/page.ts';
import { prefersMarkdown } from '../cache/negotiation.ts';
import { sendUncached, type PageServer } from '../cache/page-server.ts';
import { previewTwin } from '../documents/markdown.ts';
import { absoluteLinks } from '../article.ts';
import { notFound } from '../templates/failure.ts';
import { postPage } from '../templates/post.ts';
import type { Web } from './routes.ts';

const caching = 'private, no-store';
const markdown = { caching, type: 'text/markdown; charset=utf-8' };
const text = { caching, type: 'text/plain; charset=utf-8' };

/** Previews of one address that are made at once: one with 30,000 links takes some 8 MiB meanwhile. */
const mostAtOnce = 1;

/** Drafts, for whoever was sent a link: never cached, and no other site learns the address. */
export function previewRoutes(ctx: Context, chrome: Web['chrome'], pages: PageServer) {
  const clientAddress = createAddressReader(ctx);
  const within = createSemaphore(mostAtOnce);
  const guard = {
    ...htmlGuard(ctx.config, { referrer: 'no-referrer' }),
    Vary: 'Accept',
    'X-Robots-Tag': 'noindex, nofollow, noarchive',
  };

  /** What a token leads to, as it is sent; null for nothing. */
  async function read(token: string, isMarkdown: boolean): Promise<Found | null> {
    const found = await readPreview(ctx, token);
    if (found === null) return null;
    if ('movedTo' in found) return { movedTo: found.movedTo };
    const twin = `${chrome.baseUrl}/-/preview/${token}.md`;
    if (isMarkdown) return { twin, markdown: previewTwin(found) };
    const preview = { endsAt: found.endsAt, twin };
    // Its page will be below the blog, where relative links lead to other posts.
    const post = { ...found.post, html: await absoluteLinks(found.post.html, `${found.blog.url}/`, true) };
    const view = { ...found, post, preview, older: null, newer: null, related: [], comments: [] };
    return { page: postPage(chrome, view).toString() };
  }

  async function send(request: Asked, reply: FastifyReply): Promise<FastifyReply> {
    const [, token = '', ending] = /^(.*?)(\.md)?$/s.exec(request.params.token) ?? [];
    const isMarkdown = ending !== undefined || prefersMarkdown(request.headers.accept);
    const found =
      request.raw.target?.kind === 'base'
        ? await within(clientAddress(request.raw), async () => {
            if (request.raw.socket.destroyed) throw clientLeft();
            return read(token, isMarkdown);
          })
        : null;
    if (found === null) return pages.sendOther(reply, notFound(chrome), guard);
    reply.headers(guard);
    if ('movedTo' in found)
      return sendUncached(reply.header('location', found.movedTo), 302, `Moved to ${found.movedTo}\n`, text);
    if ('markdown' in found)
      return sendUncached(reply.header('content-location', found.twin), 200, found.markdown, markdown);
    return sendUncached(reply, 200, found.page, { caching });
  }

  return async (app: FastifyInstance) => {
    app.get('/-/preview/:token', async (request: Asked, reply) => send(request, reply));
  };
}

type Found =
  | { readonly movedTo: string }
  | { readonly twin: string; readonly markdown: string }
  | { readonly page: string };

type Asked = FastifyRequest<{ Params: { token: string } }>;
