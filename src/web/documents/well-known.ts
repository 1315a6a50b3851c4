import { createHash } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { skillDescription, skillDocument, skillName } from './skill.ts';

/**
 * `/.well-known/agent-skills/index.json`: the skill of this service, for programs that install skills
 * (https://github.com/cloudflare/agent-skills-discovery-rfc, draft 0.2.0).
 */
export function agentSkillsIndex(config: Config): string {
  const digest = createHash('sha256').update(skillDocument(config)).digest('hex');
  return JSON.stringify({
    $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json',
    skills: [
      {
        name: skillName,
        type: 'skill-md',
        description: skillDescription(config),
        url: `${config.site.baseUrl}/skill.md`,
        digest: `sha256:${digest}`,
      },
    ],
  });
}

/** `/.well-known/api-catalog` (RFC 9727, as an RFC 9264 link set): where the interfaces are and what describes them. */
export function apiCatalog({ site: { baseUrl } }: Config): string {
  const manuals = [
    { href: `${baseUrl}/docs`, type: 'text/html' },
    { href: `${baseUrl}/skill.md`, type: 'text/markdown' },
  ];
  const status = [{ href: `${baseUrl}/readyz`, type: 'application/json' }];
  return JSON.stringify({
    linkset: [
      {
        anchor: `${baseUrl}/api`,
        'service-desc': [{ href: `${baseUrl}/api/openapi.json`, type: 'application/json' }],
        'service-doc': manuals,
        status,
      },
      { anchor: `${baseUrl}/mcp`, 'service-doc': manuals, status },
    ],
  });
}
