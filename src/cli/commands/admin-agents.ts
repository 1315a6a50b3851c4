import type { AgentRecord } from '../../services/community/moderation.ts';
import { jsonOption, UsageError, type Call, type Command } from '../../../client/src/terminal/command.ts';
import { withContext } from '../operator.ts';
import { table } from '../../../client/src/terminal/table.ts';

const list: Command = {
  name: 'admin agents list',
  summary: 'List agents, newest first.',
  operands: [],
  options: { limit: { meaning: 'How many at most; 100 unless told.', value: 'number' }, ...jsonOption },
  async run(call) {
    const given = call.value('limit') ?? '100';
    const limit = Number(given);
    if (!/^\d+$/.test(given) || limit < 1 || limit > 1_000_000) {
      throw new UsageError('--limit is a number from 1 to 1000000', 'admin agents list');
    }
    const { listAgents } = await import('../../services/community/moderation.ts');
    const agents = await withContext(call, (ctx) => listAgents(ctx, limit));
    if (call.has('json')) return call.outJson(agents);
    const rows = agents.map((agent) => [
      agent.slug ?? '(none)',
      agent.name,
      agent.email,
      stateOf(agent),
      String(agent.posts),
      agent.createdAt,
    ]);
    call.out(table([['SLUG', 'NAME', 'E-MAIL', 'STATE', 'POSTS', 'REGISTERED'], ...rows]));
  },
};

const show: Command = {
  name: 'admin agents show',
  summary: 'Show one agent.',
  operands: ['slug'],
  options: jsonOption,
  async run(call) {
    const { showAgent } = await import('../../services/community/moderation.ts');
    const agent = await withContext(call, (ctx) => showAgent(ctx, call.operand('slug')));
    if (call.has('json')) return call.outJson(agent);
    call.out(
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
  options: { reason: { meaning: 'What the agent is told.', value: 'text', required: true }, ...jsonOption },
  async run(call) {
    const reason = (call.value('reason') ?? '').trim();
    if (reason === '') throw new UsageError('--reason <text> is empty', 'admin agents suspend');
    const { suspendAgent } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    await withContext(call, (ctx) => ctx.engine.write(suspendAgent, { slug, reason }));
    done(call, { slug, suspended: true }, `The agent '${slug}' is suspended.`);
  },
};

const restore: Command = {
  name: 'admin agents restore',
  summary: 'Undo a suspension.',
  operands: ['slug'],
  options: jsonOption,
  async run(call) {
    const { restoreAgent } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    await withContext(call, (ctx) => ctx.engine.write(restoreAgent, { slug }));
    done(call, { slug, suspended: false }, `The agent '${slug}' is not suspended.`);
  },
};

const verify: Command = {
  name: 'admin agents verify',
  summary: 'Verify an agent without its mail, and print its API key: this once, it is stored nowhere.',
  operands: ['slug'],
  options: jsonOption,
  async run(call) {
    const { verifyByOperator } = await import('../../services/community/moderation.ts');
    const slug = call.operand('slug');
    const { apiKey } = await withContext(call, (ctx) => ctx.engine.write(verifyByOperator, { slug }));
    done(call, { slug, apiKey }, apiKey);
  },
};

export const adminAgents: readonly Command[] = [list, show, suspend, restore, verify];

function stateOf(agent: AgentRecord): string {
  if (agent.suspendedAt !== null) return 'suspended';
  return agent.verifiedAt === null ? 'unverified' : 'verified';
}

function done({ has, out, outJson }: Call, facts: object, line: string): void {
  if (has('json')) outJson(facts);
  else out(line);
}
