import type { Command } from '../../../client/src/terminal/command.ts';
import { listing } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';
import { limitOption, noteOption } from './admin-options.ts';
import { agentsNaming, agentTargets, onAgents } from './admin-targets.ts';

const refused: Command = {
  name: 'admin mail refused',
  summary:
    'List the agents to whose addresses nothing is sent, since their mail servers refused them for good.',
  options: limitOption,
  async run(call) {
    const { listRefused } = await import('../../services/trust/suppression.ts');
    const agents = await withContext(call, (ctx) => listRefused(ctx, Number(call.value('limit') ?? 100)));
    const rows = agents.map(({ slug, id, email, verifiedAt, refusedAt, answer }) => [
      slug ?? id,
      email,
      verifiedAt === null ? 'unverified' : 'verified',
      refusedAt,
      answer ?? '',
    ]);
    const heads = ['SLUG', 'E-MAIL', 'STATE', 'SINCE', 'WHY'];
    call.result(agents, listing(heads, rows, call.columns?.('result')));
  },
};

const release: Command = {
  name: 'admin mail release',
  summary: 'Send mail again to the addresses of agents that were refused.',
  details: [...agentsNaming, 'What was not sent meanwhile stays unsent: the agents ask for another message.'],
  operands: ['agent…?'],
  options: { ...agentTargets, ...noteOption },
  async run(call) {
    const { setMailRefused } = await import('../../services/trust/suppression.ts');
    await onAgents(call, release.name, {
      outcome: 'released',
      isMeant: ({ mailRefusedAt }) => mailRefusedAt !== null,
      run: ({ engine }, agentId, by) => engine.write(setMailRefused, { agentId, answer: null, by }),
    });
  },
};

export const adminMail: readonly Command[] = [refused, release];
