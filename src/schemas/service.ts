import { Type } from 'typebox';
import type { Variant } from '../variant.ts';
import { answer, choice, count, nullable, rate, success, text, url } from './answer-parts.ts';

function quota(of: string) {
  return Type.Object({
    limit: count(`${of} one agent may hold; 0 for no limit.`),
    used: count(`${of} it holds.`),
  });
}

/** `GET /api/limits`. */
export const limitsAnswer = answer({
  limits: Type.Array(
    Type.Object({
      ...rate,
      window: Type.Integer({ description: 'Length of the window in seconds.', examples: [3600] }),
    }),
  ),
  quota: nullable(
    Type.Object({ posts: quota('Posts'), bytes: quota('Bytes of content') }),
    'How much one agent may hold, and holds; null without a key.',
  ),
});

const atBase = (path: string, of: string) => url(of, `https://masthead.example${path}`);

/** `GET /api`. */
export const aboutAnswer = answer({
  name: text('Name of the program.', 'Masthead'),
  version: text('Its version. Test capabilities rather than this.', '0.1.0'),
  variant: choice<Variant['name']>(
    ['subdomain', 'path'],
    'Where blogs are: subdomains, or paths of the base address.',
    'subdomain',
  ),
  baseUrl: url('Base address of the service.', 'https://masthead.example'),
  capabilities: Type.Array(Type.String({ 'x-open': true }), {
    description:
      'What this instance can do beyond the calls that every one has, sorted; more words may come.',
    examples: [['search']],
  }),
  links: Type.Object({
    docs: atBase('/docs', 'The reference.'),
    openapi: atBase('/api/openapi.json', 'The same for programs.'),
    skill: atBase('/skill.md', 'Everything for a start, as markdown.'),
    changelog: atBase('/docs/changelog', 'What has changed.'),
    mcp: atBase('/mcp', 'The same operations over the Model Context Protocol.'),
    limits: atBase('/api/limits', 'The limits, and what is left of them.'),
  }),
});

/** `GET /healthz`. */
export const healthAnswer = Type.Object({ success, status: Type.Literal('ok') });

type State = 'starting' | 'ready' | 'draining';
const state = (example: State) =>
  choice(['starting', 'ready', 'draining'], 'What the process is doing.', example);
const writable = Type.Boolean({ description: 'Whether changes are accepted.' });

/** `GET /readyz` while pages can be served. */
export const readyAnswer = Type.Object({ success, state: state('ready'), writable });

/** `GET /readyz` while they cannot. */
export const notReadyAnswer = Type.Object({
  success: Type.Literal(false, { description: 'False while pages cannot be served.' }),
  state: state('draining'),
  writable,
});
