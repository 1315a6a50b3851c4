import { UsageError, type Call, type Options } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import type { Context } from '../../context.ts';
import type { Acting } from '../../services/community/audit.ts';
import type { AgentFilter, AgentRecord } from '../../services/community/operator-lists.ts';
import { withContext } from '../operator.ts';
import { acting, agentOptions, readAgentFilter, readNames } from './admin-options.ts';

/** What a command that takes many agents is given. */
export const agentTargets: Options = {
  ...agentOptions('All'),
  'dry-run': { meaning: 'Show which agents those are, and change nothing.' },
};

/** The same where their owners are written to. */
export const mailedTargets: Options = {
  ...agentTargets,
  mail: { meaning: 'Write to the owners of many agents too; of one it is always done.' },
};

/** How those are named, for the help. */
export const agentsNaming = [
  'Agents are named by slug, id or e-mail address, one a line on standard input with -, or chosen by options, which then',
  'all have to hold. The answer names the batch, which admin undo takes back.',
];

/** What a command does to each agent. */
export type Work = {
  readonly isMeant: (agent: AgentRecord, isNamed: boolean) => boolean;
  /** False where there was nothing to do. */
  readonly run: (ctx: Context, agentId: string, by: Acting) => Promise<unknown>;
};

/** Does what is meant to the agents that a command names or chooses. */
export async function onAgents(
  call: Call,
  command: string,
  outcome: string,
  { isMeant, run }: Work,
): Promise<void> {
  const { runEach } = await import('../../services/community/batches.ts');
  const { batch, ...named } = acting(call, command);
  const filter = readChoice(call, command);
  const isDry = call.has('dry-run');
  const { agents, done } = await withContext(call, async (ctx) => {
    const isNamed = call.operands.length > 0;
    const meant = (await chosen(ctx, call, filter)).filter((agent) => isMeant(agent, isNamed));
    const ids = isDry ? [] : meant.map(({ id }) => id);
    const mails = ids.length === 1 || call.has('mail') ? ({ mails: true } as const) : {};
    const by = { ...named, batch, ...mails };
    return { agents: meant, ...(await runEach(ids, (id) => run(ctx, id, by))) };
  });
  const facts = {
    batch: done === 0 ? null : batch,
    [outcome]: done,
    agents: agents.map(({ id, slug }) => ({ id, slug })),
  };
  const heads = ['SLUG', 'E-MAIL', 'POSTS', 'REGISTERED'];
  const rows = agents.map((each) => [each.slug ?? each.id, each.email, String(each.posts), each.createdAt]);
  if (isDry)
    return call.result(facts, table([heads, ...rows], { width: call.columns?.('result') }), [
      `${agents.length} agents would be ${outcome}. Nothing was changed.`,
    ]);
  const all = `${done} ${done === 1 ? 'agent is' : 'agents are'} ${outcome}.`;
  call.result(facts, done === 0 ? all : `${all} To undo it: ${call.program} admin undo ${batch}`);
}

/** Agents chosen at once: more are another command. */
const mostChosen = 1_000_000;

/** What the options choose; undefined where agents are named. Throws UsageError where neither is, or both are. */
function readChoice(call: Call, command: string): Omit<AgentFilter, 'limit'> | undefined {
  const filter = readAgentFilter(call, command);
  const isNamed = call.operands.length > 0;
  if (!filter && !isNamed)
    throw new UsageError(
      'name agents, or choose them by --domain, --from-mailbox, --text or --created-since',
      command,
    );
  if (filter && isNamed) throw new UsageError('name agents or choose them, not both', command);
  return filter;
}

async function chosen(
  ctx: Context,
  { operands }: Call,
  filter: Omit<AgentFilter, 'limit'> | undefined,
): Promise<AgentRecord[]> {
  const { listAgents, showAgent } = await import('../../services/community/operator-lists.ts');
  if (filter) return listAgents(ctx, { limit: mostChosen, ...filter });
  const agents = new Map<string, AgentRecord>();
  for (const name of await readNames(operands)) {
    const agent = await showAgent(ctx, name);
    agents.set(agent.id, agent);
  }
  return [...agents.values()];
}
