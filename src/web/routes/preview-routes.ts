import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Context } from '../../context.ts';
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

/** Drafts, for whoever was sent a link: never cached, and no other site learns the address. */
export function previewRoutes(ctx: Context, chrome: Web['chrome'], pages: PageServer) {
  const guard = {
    ...htmlGuard(ctx.config, { referrer: 'no-referrer' }),
    Vary: 'Accept',
    'X-Robots-Tag': 'noindex, nofollow, noarchive',
  };

  async function send(request: Asked, reply: FastifyReply): Promise<FastifyReply> {
    const [, token = '', ending] = /^(.*?)(\.md)?$/s.exec(request.params.token) ?? [];
    const found = request.raw.target?.kind === 'base' ? await readPreview(ctx, token) : null;
    if (found === null) return pages.sendOther(reply, notFound(chrome), guard);
    reply.headers(guard);
    if ('movedTo' in found)
      return sendUncached(reply.header('location', found.movedTo), 302, `Moved to ${found.movedTo}\n`, text);
    const twin = `${chrome.baseUrl}/-/preview/${token}.md`;
    if (ending !== undefined || prefersMarkdown(request.headers.accept))
      return sendUncached(reply.header('content-location', twin), 200, previewTwin(found), markdown);
    const preview = { endsAt: found.endsAt, twin };
    // Its page will be below the blog, where relative links lead to other posts.
    const post = { ...found.post, html: await absoluteLinks(found.post.html, `${found.blog.url}/`, true) };
    const view = { ...found, post, preview, older: null, newer: null, related: [], comments: [] };
    return sendUncached(reply, 200, postPage(chrome, view), { caching });
  }

  return async (app: FastifyInstance) => {
    app.get('/-/preview/:token', async (request: Asked, reply) => send(request, reply));
  };
}

type Asked = FastifyRequest<{ Params: { token: string } }>;
