import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isErrorCode } from '../../errors.ts';
import type { OpenApiDocument } from '../../schemas/openapi.ts';
import { twinOf } from '../addresses.ts';
import { link, type Page } from '../cache/page.ts';
import { keyOf } from '../cache/page-server.ts';
import { referencePage } from '../documents/docs.ts';
import { docsIndex, docsPiece, problemsIndex, problemText, type Piece } from '../documents/pieces.ts';
import { trusted } from '../markup.ts';
import { problemPage, textPage } from '../templates/failure.ts';
import type { Web } from './routes.ts';

type Request = FastifyRequest<{ Params: { name: string } }>;

/** What an address shows: as markdown, and as HTML. */
type Forms = { readonly markdown: string; readonly page: () => Page | Promise<Page> };

/** The reference: on one page and in pieces, each as HTML and as markdown. */
export function docsRoutes(app: FastifyInstance, web: Web, document: () => OpenApiDocument): void {
  const { chrome, pages } = web;
  const { config } = web.ctx;
  const { baseUrl } = chrome;

  /** Adds an address, and the same with `.md`; `find` gets the name below it, and returns null where there is nothing. */
  function add(path: string, find: (name: string) => Forms | null): void {
    for (const url of path.includes(':') ? [path] : [path, `${path}.md`])
      app.get(url, async (request: Request, reply) => {
        const [sent = ''] = request.url.split('?');
        const here = sent.replace(/\.md$/, '');
        const name = (request.params.name ?? '').replace(/\.md$/, '');
        // The address ends with a slash: it is answered as all such are.
        if (path.includes(':') && name === '') return reply.callNotFound();
        const { page, twin } = addressOf(web, here, find(name));
        return pages.send(request, reply, sent === here ? page : twin);
      });
  }

  add('/docs', () => ({
    markdown: docsIndex(chrome.siteName, config, document()),
    page: () => ({
      type: 'html',
      body: referencePage({ ...chrome, canonicalUrl: `${baseUrl}/docs` }, config, document()),
      links: [link(`${baseUrl}/api/openapi.json`, 'describedby', 'application/json')],
    }),
  }));
  add('/docs/:name', (name) => {
    const piece = docsPiece(name, config, document());
    return piece && { ...piece, page: async () => rendered(web, `/docs/${name}`, piece) };
  });
  const problems = problemsIndex(baseUrl);
  add('/problems', () => ({ ...problems, page: async () => rendered(web, '/problems', problems) }));
  add('/problems/:name', (code) => {
    if (!isErrorCode(code)) return null;
    const canonicalUrl = `${baseUrl}/problems/${code}`;
    return {
      markdown: problemText(baseUrl, code),
      page: () => ({ type: 'html', body: problemPage({ ...chrome, canonicalUrl }, code) }),
    };
  });
}

function addressOf({ chrome: { baseUrl } }: Web, path: string, forms: Forms | null) {
  const url = twinOf(baseUrl + path, 'page');
  const readTwin = (): Page | null =>
    forms && { type: 'markdown', body: forms.markdown, links: [link(baseUrl + path, 'canonical')] };
  const twin = { key: keyOf('', `${path}.md`), read: readTwin, url };
  const read = async () => forms && { ...(await forms.page()), twin: url };
  return { page: { key: keyOf('', path), read, twin }, twin };
}

/** The HTML of a piece, made of its markdown. */
async function rendered({ ctx, chrome }: Web, path: string, { title, markdown }: Piece): Promise<Page> {
  const { baseUrl } = chrome;
  const { html } = await ctx.renderer.renderPost(markdown);
  // These links are ours, not an agent's.
  const text = trusted(html.replaceAll(' rel="ugc nofollow noopener"', ''));
  const here = { ...chrome, canonicalUrl: baseUrl + path };
  return { type: 'html', body: textPage(here, { title, text }) };
}
