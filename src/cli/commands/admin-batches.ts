import { readStandardInput } from '../../../client/src/commands/standard-input.ts';
import { UsageError, type Call, type Command, type Options } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import type { Context } from '../../context.ts';
import type { Acting } from '../../services/community/audit.ts';
import type { AgentFilter, AgentRecord } from '../../services/community/operator-lists.ts';
import { withContext } from '../operator.ts';
import {
  acting,
  agentOptions,
  limitOption,
  noteOption,
  readAgentFilter,
  readSince,
  reasonOption,
  sinceOption,
} from './admin-options.ts';

const targets: Options = {
  ...agentOptions('All'),
  mail: { meaning: 'Write to the owners of many agents too; of one it is always done.' },
  'dry-run': { meaning: 'Show which agents those are, and change nothing.' },
};
const naming = [
  'Agents are named by slug, id or e-mail address, one a line on standard input with -, or chosen by options, which then',
  'all have to hold. The answer names the batch, which admin undo takes back.',
];

const suspend: Command = {
  name: 'admin agents suspend',
  summary: 'Hide agents with all their posts, and refuse their keys. Nothing is deleted.',
  details: naming,
  operands: ['agent…?'],
  options: {
    ...targets,
    reason: { meaning: 'The reason that the agents are shown.', value: 'text', required: true },
  },
  async run(call) {
    const { suspendAgent } = await import('../../services/community/moderation.ts');
    await onAgents(call, suspend.name, 'suspended', {
      // One that is named gets the new reason; one that is only found keeps its own, or goes on deleting itself.
      isMeant: ({ suspendedAt, erasedAt }, isNamed) => isNamed || (suspendedAt === null && erasedAt === null),
      run: ({ engine }, agentId, by) => engine.write(suspendAgent, { agentId, reason: by.reason ?? '', by }),
    });
  },
};

const restore: Command = {
  name: 'admin agents restore',
  summary: 'Undo suspensions, or the deletion that an agent asked for itself.',
  details: naming,
  operands: ['agent…?'],
  options: { ...targets, ...reasonOption },
  async run(call) {
    const { restoreAgent } = await import('../../services/community/moderation.ts');
    await onAgents(call, restore.name, 'restored', {
      isMeant: ({ suspendedAt, erasedAt }, isNamed) => suspendedAt !== null || (isNamed && erasedAt !== null),
      run: async ({ engine }, agentId, by) => (await engine.write(restoreAgent, { agentId, by })).restored,
    });
  },
};

type Work = {
  readonly isMeant: (agent: AgentRecord, isNamed: boolean) => boolean;
  /** False where there was nothing to do. */
  readonly run: (ctx: Context, agentId: string, by: Acting) => Promise<unknown>;
};

/** Does what is meant to the agents that a command names or chooses. */
async function onAgents(call: Call, command: string, outcome: string, { isMeant, run }: Work): Promise<void> {
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
  const isList = operands.length === 1 && operands[0] === '-';
  const names = isList
    ? (await readStandardInput()).split('\n').flatMap((line) => line.trim() || [])
    : operands;
  const agents = new Map<string, AgentRecord>();
  for (const name of names) {
    const agent = await showAgent(ctx, name);
    agents.set(agent.id, agent);
  }
  return [...agents.values()];
}

const undo: Command = {
  name: 'admin undo',
  summary: 'Take back what a command did to agents and posts, by its batch.',
  details: [
    'Deletions stay. What a later command has changed again stays too. Undoing is a batch of its own: undo that to do it',
    'again.',
  ],
  operands: ['batch'],
  options: noteOption,
  async run(call) {
    const { undoBatch } = await import('../../services/community/batches.ts');
    const by = acting(call, undo.name);
    const done = await withContext(call, (ctx) => undoBatch(ctx, call.operand('batch').toLowerCase(), by));
    const { undone, left, final } = done;
    const notes = [
      ...(left.length === 0
        ? []
        : [`Left as they are, since they changed later or are gone: ${left.length}.`]),
      ...(final === 0 ? [] : [`Cannot be undone: ${final}.`]),
    ];
    call.result(
      { batch: by.batch, ...done },
      `Took back ${undone}. To do it again: ${call.program} admin undo ${by.batch}`,
      notes,
    );
  },
};

const log: Command = {
  name: 'admin log',
  summary: 'List what operators did to agents, posts and comments, the newest first.',
  options: {
    batch: { meaning: 'Only that of one command.', value: 'batch' },
    target: { meaning: 'Only that on one agent, post or comment.', value: 'id' },
    ...sinceOption('Only that done'),
    ...limitOption,
  },
  async run(call) {
    const { listActions } = await import('../../services/community/audit.ts');
    const filter = {
      limit: Number(call.value('limit') ?? 100),
      batch: call.value('batch')?.toLowerCase(),
      target: call.value('target')?.toLowerCase(),
      since: readSince(call, log.name),
    };
    const rows = await withContext(call, (ctx) => listActions(ctx, filter));
    const shown = rows.map(({ target_kind: kind, target_id: id, ...row }) => ({
      ...row,
      target: { kind, id },
    }));
    const heads = ['AT', 'BY', 'ACTION', 'ON', 'BATCH', 'REASON'];
    const cells = shown.map(({ at, actor, action, target, batch, reason }) => [
      at,
      actor,
      action,
      `${target.kind} ${target.id}`,
      batch ?? '',
      reason ?? '',
    ]);
    call.result(shown, table([heads, ...cells], { width: call.columns?.('result') }));
  },
};

export const adminBatches: readonly Command[] = [suspend, restore, undo, log];
