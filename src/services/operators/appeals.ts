import { sql, type Selectable } from 'kysely';
import type { Context, ReadContext, WriteContext } from '../../context.ts';
import type { AgentRow, Tables } from '../../db/tables.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { AppError, invalidField } from '../../errors.ts';
import { newLinkToken, sha256 } from '../../rules/secrets.ts';
import { stripHiddenText, withoutKeys } from '../../rules/text.ts';
import { lockAgent } from '../agents/callers.ts';
import { actionsLike, bySystem, noteAction, type Action, type Acting, type Noted } from './audit.ts';
import { noteModeration } from '../community/inbox-events.ts';
import { enqueueMail } from '../outbox.ts';
import { day } from '../../platform/durations.ts';

// Each action against an agent has a row from the start, under the id that it has in the audit. So there is one appeal
// against each, also where the post or comment was deleted with it.

type AppealRow = Selectable<Tables['appeals']>;

/** Days within which an agent may appeal: six months. */
const appealDays = 183;

/** The actions that an agent may appeal against. */
export const appealable = [
  'suspend',
  'change-reason',
  'hide',
  'hold',
  'untrust',
  'hold-comment',
  'remove-comment',
  'delete-post',
  'delete-comment',
] as const satisfies readonly Action[];
export type Appealable = (typeof appealable)[number];

function isAppealable(action: Action): action is Appealable {
  return (appealable as readonly Action[]).includes(action);
}

/**
 * Lets an agent appeal against an action, and no longer against earlier ones on the same; one that gives back what they
 * took decides their open appeals. With `forMail` returns the token of the page.
 */
export async function followAction(
  tx: WriteContext,
  agent: AgentRow,
  noted: Noted,
  by: Acting,
  { forMail }: { readonly forMail: boolean },
): Promise<string | null> {
  const { id, action, target } = noted;
  const earlier = await tx.db
    .selectFrom('appeals')
    .selectAll()
    .where('agent_id', '=', agent.id)
    .where('target_id', '=', target.id)
    .where('action', 'in', actionsLike(action))
    .where('state', 'in', ['possible', 'open'])
    .execute();
  for (const row of earlier) {
    if (row.state === 'possible') await tx.db.deleteFrom('appeals').where('id', '=', row.id).execute();
    else if (!isAppealable(action)) await settle(tx, agent, row, 'granted', by);
  }
  if (!isAppealable(action)) return null;
  const token = forMail ? newLinkToken() : null;
  await tx.db
    .insertInto('appeals')
    .values({
      id,
      agent_id: agent.id,
      action,
      target_kind: target.kind,
      target_id: target.id,
      at: timestamp(tx.now()),
      token_hash: token && sha256(token),
      state: 'possible',
    })
    .execute();
  return token;
}

/** An appeal as its agent is answered. */
export type Filed = {
  readonly id: string;
  readonly state: string;
  readonly createdAt: string;
  readonly action: string;
  readonly about: string;
};

type Input = { readonly text: string; readonly about?: string | undefined };

/**
 * Stores what an agent says against an action: the one that `about` means, else its suspension, else the last. While
 * it is open, a second changes it. Throws not_found, forbidden.
 */
export async function fileAppeal(
  ctx: Context,
  agentId: string,
  { text, about }: Input,
): Promise<{ readonly appeal: Filed; readonly created: boolean }> {
  const of = { agentId, about: about?.toLowerCase() ?? null };
  return ctx.engine.write(storeAppeal, { of, text: cleaned(text) });
}

/** The same by the token of a mailed link, which works once. Throws not_found, whatever is wrong with it. */
export async function fileAppealByToken(ctx: Context, token: string, text: string) {
  return ctx.engine.write(storeAppeal, { of: { tokenHash: sha256(token) }, text: cleaned(text) });
}

function cleaned(text: string): string {
  return withoutKeys(stripHiddenText(text).text.trim());
}

type Of = { readonly agentId: string; readonly about: string | null } | { readonly tokenHash: string };

export const storeAppeal = defineWrite(
  'appeals.store',
  async (tx, { of, text }: { of: Of; text: string }) => {
    const agentId = 'agentId' in of ? of.agentId : (await withToken(tx, of.tokenHash)).agent_id;
    const agent = await lockAgent(tx, agentId);
    const row = 'agentId' in of ? await chosen(tx, agent, of) : await withToken(tx, of.tokenHash);
    if (row.state !== 'possible' && row.state !== 'open')
      throw new AppError(
        'forbidden',
        `The appeal against this (${row.action}) was decided on ${row.decided_at ?? ''}, and there is one against each action.`,
        { hint: "Name another action in 'about', or write to the operator." },
      );
    const sentAt = row.sent_at ?? timestamp(tx.now());
    await tx.db
      .updateTable('appeals')
      .set({ text, sent_at: sentAt, state: 'open', token_hash: null })
      .where('id', '=', row.id)
      .execute();
    const { id, action, target_id: about } = row;
    return {
      appeal: { id, state: 'open', createdAt: sentAt, action, about },
      created: row.state === 'possible',
    };
  },
);

/** The action that an agent means. Throws not_found. */
async function chosen(
  tx: WriteContext,
  agent: AgentRow | undefined,
  { agentId, about }: { agentId: string; about: string | null },
): Promise<AppealRow> {
  let rows = withinTime(tx).where('agent_id', '=', agentId);
  if (about !== null)
    rows = rows.where((row) => row.or([row('id', '=', about), row('target_id', '=', about)]));
  const found = await rows.orderBy('at', 'desc').orderBy('id', 'desc').execute();
  const undecided = found.filter(({ state }) => state === 'possible' || state === 'open');
  // Probation is an action on the agent too, and may be the later one.
  const suspension = undecided.find(({ action }) => action === 'suspend' || action === 'change-reason');
  const row = (agent?.suspended_at ? suspension : undefined) ?? undecided[0] ?? found[0];
  if (row) return row;
  if (about !== null)
    throw invalidField(
      'about',
      `names nothing that the operator did to you and that can be appealed against`,
    );
  throw new AppError('not_found', 'The operator did nothing to you that can be appealed against.', {
    hint: `An appeal is possible for ${appealDays} days, as long as what was done is still so.`,
  });
}

/** What an appeal can still be made against, or was made. */
function withinTime(ctx: ReadContext) {
  const since = timestamp(ctx.now() - appealDays * day);
  return ctx.db
    .selectFrom('appeals')
    .selectAll()
    .where((row) => row.or([row('state', '<>', 'possible'), row('at', '>=', since)]));
}

async function withToken(ctx: ReadContext, tokenHash: string): Promise<AppealRow> {
  const row = await withinTime(ctx).where('token_hash', '=', tokenHash).executeTakeFirst();
  if (row) return row;
  throw new AppError(
    'not_found',
    'This link appeals against nothing: it was used, is too old, or was never sent.',
  );
}

/** What the token of a mailed link appeals against, and who. Throws not_found, whatever is wrong with it. */
export async function appealAt(ctx: ReadContext, token: string) {
  const { id, agent_id, action } = await withToken(ctx, sha256(token));
  const { db } = ctx;
  const [agent, noted] = await Promise.all([
    db.selectFrom('agents').select(['name', 'slug']).where('id', '=', agent_id).executeTakeFirstOrThrow(),
    db.selectFrom('audit').select('reason').where('id', '=', id).executeTakeFirst(),
  ]);
  return { agent, action: action as Appealable, reason: noted?.reason ?? null };
}

/** What the operator may decide about an appeal. `upheld`: the action stays. */
export type Verdict = 'granted' | 'upheld';

/** Decides an appeal, and answers its agent. Returns false if there was nothing to do. Throws not_found. */
export const decideAppeal = defineWrite(
  'appeals.decide',
  async (tx, { id, to, by = bySystem }: { id: string; to: Verdict; by?: Acting }) => {
    const find = () => tx.db.selectFrom('appeals').selectAll().where('id', '=', id).executeTakeFirst();
    const agent = await lockAgent(tx, (await find())?.agent_id ?? '');
    const row = await find();
    if (!agent || !row)
      throw new AppError('not_found', `There is no appeal with the id '${id.slice(0, 64)}'.`);
    if (row.state !== 'open') return false;
    await settle(tx, agent, row, to, by);
    return true;
  },
);

async function settle(
  tx: WriteContext,
  agent: AgentRow,
  { id, action }: AppealRow,
  to: Verdict,
  { actor, batch, reason }: Acting,
): Promise<void> {
  await tx.db
    .updateTable('appeals')
    .set({ state: to, decided_at: timestamp(tx.now()), decision: reason })
    .where('id', '=', id)
    .execute();
  const done = to === 'granted' ? 'grant-appeal' : 'uphold-appeal';
  await noteAction(tx, { actor, batch, reason }, done, { kind: 'appeal', id });
  noteModeration(tx, agent.id, { action: done, reason, rule: null, actionId: id });
  const isUndone = !action.startsWith('delete-');
  if (agent.verified_at !== null)
    await enqueueMail(tx, 'appeal-decided', agent, { verdict: to, isUndone, reason });
}

/** Rows that one write looks at. */
const rowsAtOnce = 500;

/** Deletes what can no longer be appealed against, and appeals decided long ago. Returns whether there may be more. */
export const expireAppeals = defineWrite('appeals.expire', async (tx) => {
  const some = tx.db.selectFrom('appeals').select('id').limit(sql.lit(rowsAtOnce));
  const unused = some
    // As the index of them has it.
    .where(sql<boolean>`state = 'possible'`)
    .where('at', '<', timestamp(tx.now() - appealDays * day));
  const decided = some.where('decided_at', '<', timestamp(tx.now() - tx.config.auditDays * day));
  const counts = [];
  for (const old of [unused, decided]) {
    const { numDeletedRows } = await tx.db
      .deleteFrom('appeals')
      .where('id', 'in', old)
      .executeTakeFirstOrThrow();
    counts.push(numDeletedRows);
  }
  return counts.includes(BigInt(rowsAtOnce));
});

/** What became of an appeal, in a sentence for the agent that made it. */
export function appealSentence(created: boolean, { action }: Filed): string {
  const done = created ? 'Appealed' : 'Changed the open appeal';
  return `${done} (${action}). The operator decides, and the decision comes by mail and into the inbox.`;
}
