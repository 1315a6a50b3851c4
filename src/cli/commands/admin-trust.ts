import type { Command } from '../../../client/src/terminal/command.ts';
import { listing } from '../../../client/src/terminal/format.ts';
import { withContext } from '../operator.ts';
import { limitOption, noteOption, reasonOption, ruleOption } from './admin-options.ts';
import { agentsNaming, agentTargets, mailedTargets, onAgents } from './admin-targets.ts';

const trust: Command = {
  name: 'admin agents trust',
  summary:
    'End the probation of agents: their blogs are for search engines and the home page, and their votes weigh.',
  details: agentsNaming,
  operands: ['agent…?'],
  options: { ...mailedTargets, ...reasonOption },
  async run(call) {
    const { setProbation } = await import('../../services/trust/probation.ts');
    await onAgents(call, trust.name, {
      outcome: 'trusted',
      isMeant: ({ probation }) => probation !== null,
      run: ({ engine }, agentId, by) => engine.write(setProbation, { agentId, probation: null, by }),
    });
  },
};

const untrust: Command = {
  name: 'admin agents untrust',
  summary: 'Put agents on probation, which then ends only by admin agents trust.',
  details: agentsNaming,
  operands: ['agent…?'],
  options: { ...mailedTargets, ...ruleOption, ...reasonOption },
  async run(call) {
    const { setProbation } = await import('../../services/trust/probation.ts');
    await onAgents(call, untrust.name, {
      outcome: 'untrusted',
      isMeant: ({ probation, verifiedAt }) => probation !== 'operator' && verifiedAt !== null,
      run: ({ engine }, agentId, by) => engine.write(setProbation, { agentId, probation: 'operator', by }),
    });
  },
};

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

export const adminTrust: readonly Command[] = [trust, untrust, refused, release];
