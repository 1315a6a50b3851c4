import type { FastifyInstance } from 'fastify';
import type { Config } from '../../config/config.ts';
import type { OpenApiDocument } from '../../schemas/openapi.ts';
import { referencePage } from '../documents/docs.ts';
import { link } from '../cache/page-headers.ts';
import type { Page } from '../cache/page.ts';
import { keyOf, type PageServer } from '../cache/page-server.ts';
import { skillDocument } from '../documents/skill.ts';
import type { Chrome } from '../pages/views.ts';
import { agentSkillsIndex, apiCatalog } from '../documents/well-known.ts';

/** What tells programs and people how to use the service. None of it changes while the process is running. */
export function referenceRoutes(
  app: FastifyInstance,
  config: Config,
  pages: PageServer,
  chromeAt: (url: string | null) => Chrome,
  document: () => OpenApiDocument,
): void {
  const { baseUrl } = config.site;
  const catalogUrl = `${baseUrl}/.well-known/api-catalog`;

  add('/docs', () => ({
    type: 'html',
    body: referencePage(chromeAt(`${baseUrl}/docs`), config, document()).toString(),
    links: [link(`${baseUrl}/api/openapi.json`, 'describedby', 'application/json')],
  }));
  add('/skill.md', () => ({ type: 'markdown', body: skillDocument(config) }));
  add('/.well-known/agent-skills/index.json', () => ({ type: 'json', body: agentSkillsIndex(config) }));
  add('/.well-known/api-catalog', () => ({
    type: 'linkSet',
    body: apiCatalog(config),
    links: [link(catalogUrl, 'api-catalog')],
  }));

  function add(path: string, make: () => Omit<Page, 'tags'>): void {
    app.get(path, (request, reply) =>
      pages.send(request, reply, {
        key: keyOf('', path),
        read: async () => ({ kind: 'page', page: { ...make(), tags: [] } }),
      }),
    );
  }
}
