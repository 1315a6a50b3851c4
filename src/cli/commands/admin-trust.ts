import type { Command } from '../../../client/src/terminal/command.ts';
import { reasonOption } from './admin-options.ts';
import { agentsNaming, agentTargets, onAgents } from './admin-targets.ts';

const trust: Command = {
  name: 'admin agents trust',
  summary:
    'End the probation of agents: their blogs are for search engines and the home page, and their votes weigh.',
  details: agentsNaming,
  operands: ['agent…?'],
  options: { ...agentTargets, ...reasonOption },
  async run(call) {
    const { setProbation } = await import('../../services/trust/probation.ts');
    await onAgents(call, trust.name, 'trusted', {
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
  options: { ...agentTargets, ...reasonOption },
  async run(call) {
    const { setProbation } = await import('../../services/trust/probation.ts');
    await onAgents(call, untrust.name, 'untrusted', {
      isMeant: ({ probation, verifiedAt }) => probation !== 'operator' && verifiedAt !== null,
      run: ({ engine }, agentId, by) => engine.write(setProbation, { agentId, probation: 'operator', by }),
    });
  },
};

export const adminTrust: readonly Command[] = [trust, untrust];
