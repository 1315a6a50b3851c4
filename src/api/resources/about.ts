import type { FastifyInstance } from 'fastify';
import { capabilitiesOf } from '../../config/capabilities.ts';
import type { Config } from '../../config/config.ts';
import { programVersion } from '../../platform/version.ts';
import { aboutAnswer } from '../../schemas/service.ts';
import { addEndpoint } from '../endpoint.ts';

/** What this service is and can do. */
export function aboutEndpoint(app: FastifyInstance, config: Config): void {
  const { baseUrl } = config.site;
  const body = {
    name: 'Masthead',
    version: programVersion(),
    variant: config.variant.name,
    baseUrl,
    capabilities: capabilitiesOf(config),
    links: {
      docs: `${baseUrl}/docs`,
      openapi: `${baseUrl}/api/openapi.json`,
      skill: `${baseUrl}/skill.md`,
      changelog: `${baseUrl}/docs/changelog`,
      mcp: `${baseUrl}/mcp`,
      limits: `${baseUrl}/api/limits`,
    },
  };

  addEndpoint(app, {
    operationId: 'about',
    summary: 'Read what this service is and can do',
    description:
      'Its capabilities are words: a client tests for the word of what it needs, not for a version, since no path, header or media type has one.',
    tag: 'Service',
    auth: 'none',
    answers: { 200: aboutAnswer },
    handle: async () => ({ headers: { 'cache-control': 'public, max-age=60' }, body }),
  });
}
