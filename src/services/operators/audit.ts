import type { ReadContext, WriteContext } from '../../context.ts';
import { timestamp } from '../../db/write.ts';
import type { Tables } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { uuidv7 } from '../../rules/secrets.ts';

/** Who acts, why, and with which other actions. */
export type Acting = {
  /** `cli:` and the user of the operating system, or `system`. */
  readonly actor: string;
  readonly reason: string | null;
  /** What the actions of one command have in common. */
  readonly batch: string | null;
  /** The action that this one takes back, unless a later one has changed the same. */
  readonly undoes?: string;
  /** By which rule, in a word as reports have it; else that of the open report. */
  readonly rule?: string | undefined;
  /** The owner of the agent is written to. */
  readonly mails?: true;
};

/** Nobody in particular. */
export const bySystem: Acting = { actor: 'system', reason: null, batch: null };

/** What has a phrase or link that an operator has blocked. */
export const bySourceBlock: Acting = {
  ...bySystem,
  reason: 'It has a phrase or a link that the operator looks at before others see it.',
};

/** Every action, and what of its target it changes: of these a later one stands. Null where nothing takes it back. */
export const actions = {
  invite: null,
  verify: null,
  suspend: 'suspension',
  'change-reason': 'suspension',
  restore: 'suspension',
  'undo-deletion': null,
  trust: 'trust',
  untrust: 'trust',
  'release-mail': 'mail',
  'refuse-mail': 'mail',
  hide: 'moderation',
  hold: 'moderation',
  unhide: 'moderation',
  'dismiss-report': 'report',
  'uphold-report': 'report',
  'reopen-report': 'report',
  'delete-agent': null,
  'delete-post': null,
  'delete-comment': null,
  'hold-comment': 'comment-hold',
  'release-comment': 'comment-hold',
  'remove-comment': 'comment-hold',
  block: 'block',
  unblock: 'block',
  feature: 'feature',
  unfeature: 'feature',
  'grant-appeal': null,
  'uphold-appeal': null,
} as const satisfies Record<string, string | null>;

export type Action = keyof typeof actions;
/** The actions that can be taken back. */
export type Reversible = { [A in Action]: (typeof actions)[A] extends null ? never : A }[Action];

type Target = { readonly kind: Tables['audit']['target_kind']; readonly id: string };

/** An action that was done. */
export type Noted = { readonly id: string; readonly action: Action; readonly target: Target };

/**
 * Notes an action in its own transaction, by ids and the operator's reason alone: texts and addresses may be erased.
 * Throws precondition_failed where a later action has changed what this one takes back.
 */
export async function noteAction(
  tx: WriteContext,
  { actor, reason, batch, rule, undoes }: Acting,
  action: Action,
  target: Target,
  was: Readonly<Record<string, string | null>> = {},
): Promise<Noted> {
  const data = { ...was, ...(rule === undefined ? {} : { rule }) };
  if (undoes !== undefined && (await latestAction(tx, action, target.id)) !== undoes)
    throw new AppError('precondition_failed', 'A later action has changed this again.');
  const id = uuidv7(tx.now());
  await tx.db
    .insertInto('audit')
    .values({
      id,
      at: timestamp(tx.now()),
      actor,
      action,
      target_kind: target.kind,
      target_id: target.id,
      reason,
      batch,
      data: Object.keys(data).length === 0 ? null : JSON.stringify(data),
    })
    .execute();
  return { id, action, target };
}

/** The actions that change of a target what this one changes. */
export function actionsLike(action: Action): string[] {
  return Object.entries(actions).flatMap(([name, what]) => (what === actions[action] ? name : []));
}

/** The last action that changed of a target what this one changes. */
async function latestAction({ db }: ReadContext, action: Action, targetId: string): Promise<string | null> {
  const latest = await db
    .selectFrom('audit')
    .select('id')
    .where('target_id', '=', targetId)
    .where('action', 'in', actionsLike(action))
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return latest?.id ?? null;
}

export type AuditFilter = {
  readonly limit: number;
  readonly batch?: string | undefined;
  /** Id of an agent, post or comment. */
  readonly target?: string | undefined;
  readonly since?: string | undefined;
};

/** Actions that a filter leaves, the newest first. */
export async function listActions({ db }: ReadContext, { limit, batch, target, since }: AuditFilter) {
  let rows = db.selectFrom('audit').selectAll();
  if (batch !== undefined) rows = rows.where('batch', '=', batch);
  if (target !== undefined) rows = rows.where('target_id', '=', target);
  if (since !== undefined) rows = rows.where('at', '>=', since);
  return rows.orderBy('at', 'desc').orderBy('id', 'desc').limit(limit).execute();
}
