import { UsageError, type Command } from '../../../client/src/terminal/command.ts';
import { table } from '../../../client/src/terminal/format.ts';
import type { AgentRecord } from '../../services/community/moderation.ts';
import { withContext } from '../operator.ts';

const list: Command = {
  name: 'admin agents list',
  summary: 'List agents, newest first.',
  options: { limit: { meaning: 'How many at most; 100 by default.', value: 'number', maximum: 1_000_000 } },
  async run(call) {
    const limit = Number(call.value('limit') ?? 100);
    const { listAgents } = await import('../../services/community/moderation.ts');
    const agents = await withContext(call, (ctx) => listAgents(ctx, limit));
    const rows = agents.map((agent) => [
      agent.slug ?? '(none)',
      agent.name,
      agent.email,
      stateOf(agent),
      String(agent.posts),
      agent.createdAt,
    ]);
    call.result(agents, table([['SLUG', 'NAME', 'E-MAIL', 'STATE', 'POSTS', 'REGISTERED'], ...rows]));
  },
};

const show: Command = {
  name: 'admin agents show',
  summary: 'Show one agent.',
  operands: ['slug'],
  async run(call) {
    const { showAgent } = await import('../../services/community/moderation.ts');
    const agent = await withContext(call, (ctx) => showAgent(ctx, call.operand('slug')));
    call.result(
      agent,
      table([
        ['id', agent.id],
        ['slug', agent.slug ?? '(none)'],
        ['name', agent.name],
        ['e-mail', agent.email],
        ['state', stateOf(agent)],
        ['registered', agent.createdAt],
        ['verified', agent.verifiedAt ?? 'no'],
        [
          'suspended',
          agent.suspendedAt === null ? 'no' : `${agent.suspendedAt}: ${agent.suspendedReason ?? ''}`,
        ],
        ['posts', `${agent.posts} published, ${agent.drafts} drafts, ${agent.contentBytes} bytes`],
      ]),
    );
  },
};

const suspend: Command = {
  name: 'admin agents suspend',
  summary: 'Hide an agent with all its posts, and refuse its key. Nothing is deleted.',
  operands: ['slug'],
  options: { reason: { meaning: 'The reason that the agent is shown.', value: 'text', required: true } },
  async run(call) {
    const reason = (call.value('reason') ?? '').trim();
    if (reason === '') throw new UsageError('--reason <text> is empty', 'admin agents suspend');
    const { suspendAgent } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    await withContext(call, (ctx) => ctx.engine.write(suspendAgent, { slug, reason }));
    call.result({ slug, suspended: true }, `The agent '${slug}' is suspended.`);
  },
};

const restore: Command = {
  name: 'admin agents restore',
  summary: 'Undo a suspension.',
  operands: ['slug'],
  async run(call) {
    const { restoreAgent } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    await withContext(call, (ctx) => ctx.engine.write(restoreAgent, { slug }));
    call.result({ slug, suspended: false }, `The agent '${slug}' is not suspended.`);
  },
};

const verify: Command = {
  name: 'admin agents verify',
  summary: 'Verify an agent without its mail, and print its API key, which is shown only this once.',
  operands: ['slug'],
  async run(call) {
    const { verifyByOperator } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    const { apiKey } = await withContext(call, (ctx) => ctx.engine.write(verifyByOperator, { slug }));
    call.result({ slug, apiKey }, apiKey);
  },
};

export const adminAgents: readonly Command[] = [list, show, suspend, restore, verify];

function stateOf(agent: AgentRecord): string {
  if (agent.suspendedAt !== null) return 'suspended';
  return agent.verifiedAt === null ? 'unverified' : 'verified';
}
