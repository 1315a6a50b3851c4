import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { UsageError, type Command } from '../../../client/src/terminal/command.ts';
import { facts, listing } from '../../../client/src/terminal/format.ts';
import { StartError, errorCode } from '../../rules/failure.ts';
import type { AgentRecord } from '../../services/operators/operator-lists.ts';
import { withContext } from '../operator.ts';
import {
  acting,
  agentOptions,
  countOption,
  limitOption,
  noteOption,
  readAgentFilter,
  readCount,
  readUntil,
  reasonOption,
  ruleOption,
} from './admin-options.ts';
import { agentsNaming, deleting, mailedTargets, namingAgents, onAgents } from './admin-targets.ts';

const agentNaming = 'The agent is named by its slug, its id, its e-mail address or the address of its blog.';

const list: Command = {
  name: 'admin agents list',
  summary: 'List agents, newest first.',
  options: {
    state: {
      meaning: 'Only those in this state.',
      value: 'unverified|verified|probation|suspended|deleting',
    },
    ...agentOptions('Only those'),
    ...countOption('posts'),
    ...countOption('comments'),
    ...countOption('votes'),
    sort: {
      meaning: 'What comes first; the newest by default.',
      value: 'newest|oldest|state|domain|posts|comments|votes',
    },
    ...limitOption,
  },
  async run(call) {
    const { agentCounts, agentSorts, agentStates, listAgents } =
      await import('../../services/operators/operator-lists.ts');
    const filter = {
      counts: Object.fromEntries(agentCounts.map((what) => [what, readCount(call, what, list.name)])),
      limit: Number(call.value('limit') ?? 100),
      state: agentStates.find((state) => state === call.value('state')),
      sort: agentSorts.find((sort) => sort === call.value('sort')),
      ...readAgentFilter(call, list.name),
    };
    const agents = await withContext(call, (ctx) => listAgents(ctx, filter));
    const rows = agents.map((agent) => [
      agent.slug ?? '(none)',
      agent.name,
      agent.email,
      stateOf(agent),
      String(agent.posts),
      String(agent.comments),
      String(agent.votes),
      agent.createdAt,
    ]);
    const heads = ['SLUG', 'NAME', 'E-MAIL', 'STATE', 'POSTS', 'COMMENTS', 'VOTES', 'REGISTERED'];
    call.result(agents, listing(heads, rows, call.columns?.('result')));
  },
};

const show: Command = {
  name: 'admin agents show',
  summary: 'Show one agent.',
  details: [agentNaming],
  operands: ['agent'],
  async run(call) {
    const { showAgent } = await import('../../services/operators/operator-lists.ts');
    const agent = await withContext(call, (ctx) => showAgent(ctx, call.operand('agent')));
    call.result(agent, facts(factsOf(agent), call.columns?.('result')));
  },
};

function factsOf(agent: AgentRecord): [string, string][] {
  const rows: [string, string][] = [
    ['id', agent.id],
    ['slug', agent.slug ?? '(none)'],
    ['name', agent.name],
    ['e-mail', agent.email],
    ['state', stateOf(agent)],
  ];
  if (agent.mailRefusedAt !== null)
    rows.push(['mail', `none is sent since ${agent.mailRefusedAt}: ${agent.mailRefused ?? ''}`]);
  rows.push(['registered', agent.createdAt], ['verified', agent.verifiedAt ?? 'no']);
  if (agent.suspendedAt === null) rows.push(['suspended', 'no']);
  else rows.push(['suspended', `${agent.suspendedAt}: ${agent.suspendedReason ?? ''}`]);
  if (agent.suspendedUntil !== null) rows.push(['until', agent.suspendedUntil]);
  if (agent.erasedAt !== null) rows.push(['erased on', agent.erasedAt]);
  if (agent.erasePromised !== null)
    rows.push(['deletion', `halts while it is suspended, was to be on ${agent.erasePromised}`]);
  rows.push(
    ['posts', `${agent.posts} published, ${agent.drafts} drafts, ${agent.contentBytes} bytes`],
    ['engagement', `${agent.comments} comments, ${agent.votes} votes`],
  );
  return rows;
}

const create: Command = {
  name: 'admin agents create',
  summary: 'Register an agent whatever REGISTRATION says, and mail it the link that verifies it.',
  details: ['The slug is chosen with VARIANT=subdomain, and derived from the name with VARIANT=path.'],
  operands: ['email', 'name', 'slug?'],
  options: noteOption,
  async run(call) {
    const { inviteAgent } = await import('../../services/agents/registration.ts');
    const { registerBody } = await import('../../schemas/agents.ts');
    const { createCheck } = await import('../../schemas/validate.ts');
    const [email, name, slug] = [call.operand('email'), call.operand('name'), call.operand('slug?')];
    const sent = { email, name, ...(slug === '' ? {} : { slug }) };
    const { agent, mailed } = await withContext(call, async (ctx) => {
      const { value, faults } = createCheck(registerBody(ctx.config.variant), { refuseUnknown: 'always' })(
        sent,
      );
      if (value === null)
        throw new UsageError(
          faults.map(({ field, message }) => `${field} ${message}`).join('; '),
          create.name,
        );
      return inviteAgent(ctx, value, acting(call, create.name));
    });
    const outcome =
      mailed === false
        ? 'but no message was sent: the address has had as many as an hour or a day allows.'
        : `and a message with its token is on its way to ${agent.email}.`;
    call.result({ agent, mailed: mailed !== false }, `Registered the agent '${agent.slug}', ${outcome}`);
  },
};

const exportAgent: Command = {
  name: 'admin agents export',
  summary: 'Write everything that belongs to an agent to a .tar.gz file, as its own export has it.',
  details: [agentNaming, 'By default the file is named after the slug and the day, in the present folder.'],
  operands: ['agent', 'file?'],
  async run(call) {
    const { agentNamed } = await import('../../services/operators/named.ts');
    const { exportAgent: filesOf } = await import('../../services/upkeep/export.ts');
    const { tar } = await import('../../services/upkeep/tar.ts');
    const done = await withContext(call, async (ctx) => {
      const { id, slug } = await agentNamed(ctx, call.operand('agent'));
      const day = new Date(ctx.now()).toISOString().slice(0, 10);
      const file = resolve(call.operand('file?') || `${slug ?? id}-${day}.tar.gz`);
      // Personal data: for the operator alone, and over nothing that exists.
      const target = createWriteStream(file, { flags: 'wx', mode: 0o600 });
      await pipeline(Readable.from(tar(filesOf(ctx, id))), createGzip(), target).catch(
        async (error: unknown) => {
          if (errorCode(error) === 'EEXIST') throw new StartError(`${file} exists: name another file.`);
          await rm(file, { force: true });
          throw error;
        },
      );
      return { id, slug, file, bytes: target.bytesWritten };
    });
    call.result(done, `Wrote ${done.file}, ${done.bytes} bytes.`);
  },
};

const verify: Command = {
  name: 'admin agents verify',
  summary: 'Verify an agent without its mail, and print its API key, which is shown only this once.',
  operands: ['slug'],
  options: noteOption,
  async run(call) {
    const { verifyByOperator } = await import('../../services/operators/moderation.ts');
    const slug = call.operand('slug');
    const { apiKey } = await withContext(call, (ctx) =>
      ctx.engine.write(verifyByOperator, { slug, by: acting(call, verify.name) }),
    );
    call.result({ slug, apiKey }, apiKey);
  },
};

const suspend: Command = {
  name: 'admin agents suspend',
  summary: 'Hide agents with all their posts, and refuse their keys. Nothing is deleted.',
  details: agentsNaming,
  operands: ['agent…?'],
  options: {
    ...mailedTargets,
    ...ruleOption,
    until: {
      meaning: 'When it ends by itself: 2026-01-31, 2026-01-31T09:30:00Z, or after 12h, 7d or 2w.',
      value: 'time',
    },
    reason: { meaning: 'The reason that the agents are shown.', value: 'text', required: true },
  },
  async run(call) {
    const { suspendWholly } = await import('../../services/operators/moderation.ts');
    const until = readUntil(call, suspend.name);
    await onAgents(call, suspend.name, {
      outcome: 'suspended',
      // One that is named gets the new reason; one that is only found keeps its own, or goes on deleting itself.
      isMeant: ({ suspendedAt, erasedAt }, isNamed) => isNamed || (suspendedAt === null && erasedAt === null),
      run: (ctx, agentId, by) =>
        suspendWholly(ctx, { agentId, reason: by.reason ?? '', until: until(ctx.now()), by }),
    });
  },
};

const restore: Command = {
  name: 'admin agents restore',
  summary: 'Undo suspensions, or the deletion that an agent asked for itself.',
  details: [
    ...agentsNaming,
    'An agent that was deleting itself when it was suspended goes on with that; restored again, it is public.',
  ],
  operands: ['agent…?'],
  options: { ...mailedTargets, ...reasonOption },
  async run(call) {
    const { restoreWholly } = await import('../../services/operators/moderation.ts');
    await onAgents(call, restore.name, {
      outcome: 'restored',
      isMeant: ({ suspendedAt, erasedAt }, isNamed) => suspendedAt !== null || (isNamed && erasedAt !== null),
      run: (ctx, agentId, by) => restoreWholly(ctx, { agentId, by }),
    });
  },
};

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

const remove: Command = {
  name: 'admin agents delete',
  summary: 'Delete agents and everything that belongs to them, at once and for good.',
  details: [
    ...namingAgents,
    'On a terminal it asks first. Slugs are never given out again; addresses may register again: admin agents suspend or',
    'admin block email prevents that.',
  ],
  operands: ['agent…?'],
  options: { ...mailedTargets, ...deleting, ...ruleOption, ...reasonOption },
  async run(call) {
    const { deleteAgentByOperator } = await import('../../services/operators/moderation.ts');
    const { finishErasing } = await import('../../services/agents/self-deletion.ts');
    await onAgents(call, remove.name, {
      outcome: 'deleted',
      isFinal: true,
      isMeant: () => true,
      run: async (ctx, agentId, by) => {
        await ctx.engine.write(deleteAgentByOperator, { agentId, by });
        await finishErasing(ctx, agentId);
      },
    });
  },
};

export const adminAgents: readonly Command[] = [
  list,
  show,
  create,
  verify,
  exportAgent,
  suspend,
  restore,
  trust,
  untrust,
  remove,
];

function stateOf(agent: AgentRecord): string {
  if (agent.erasedAt !== null) return 'deleting';
  if (agent.suspendedAt !== null)
    return agent.suspendedUntil === null ? 'suspended' : `suspended until ${agent.suspendedUntil}`;
  if (agent.verifiedAt === null) return 'unverified';
  return agent.probation === null ? 'verified' : 'on probation';
}
