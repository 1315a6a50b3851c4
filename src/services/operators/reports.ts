import { sql, type Selectable } from 'kysely';
import type { Context, WriteContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { defineWrite, timestamp, type Ticket } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { mailboxKeyOf, parseEmail } from '../../rules/email.ts';
import { keyedHash, uuidv7 } from '../../rules/secrets.ts';
import { stripHiddenText, withoutKeys } from '../../rules/text.ts';
import { namedReasons, type ReportReason } from '../../rules/report-reasons.ts';
import type { ReportBody } from '../../schemas/reports.ts';
import { findAgent, lockCaller, type Caller } from '../agents/callers.ts';
import { bySystem, noteAction, type Acting } from './audit.ts';
import { mailboxIsFull, mailboxOf, mailBudget } from '../limits/mail-limits.ts';
import { enqueueMail } from '../outbox.ts';
import {
  openReports,
  reportTarget,
  snapshotOf,
  type ReportedOf,
  type ReportTarget,
} from './report-targets.ts';
import { day } from '../../platform/durations.ts';

/** Who reports: an agent, or somebody at a client address. */
export type Reporter = {
  readonly caller: Caller | null;
  readonly address: string;
  /** The wider network around it, by which mail is bounded. */
  readonly network: string;
};

/** A report as its reporter is answered. */
export type Filed = { readonly id: string; readonly state: string; readonly createdAt: string };

type Input = Omit<ReportBody, 'goodFaith'>;

/**
 * Stores a report for the operator; one that the same reporter made of the same is changed as long as it is open. Throws
 * not_found, invalid_input, rate_limited.
 */
export async function fileReport(
  ctx: Context,
  input: Input,
  { caller, address, network }: Reporter,
  ticket?: Ticket,
): Promise<{ readonly report: Filed; readonly created: boolean }> {
  const target = await reportTarget(ctx, input.url);
  const { name, email } = await nameOf(ctx, input, caller);
  const mailbox = email === null ? '' : mailboxKeyOf(email);
  const report = {
    target,
    reporter: caller ? `agent:${caller.id}` : keyedHash(ctx.secretKey, 'reporter', `${address} ${mailbox}`),
    agentId: caller?.id ?? null,
    name: name && withoutKeys(stripHiddenText(name).text),
    email,
    reason: input.reason,
    explanation: withoutKeys(stripHiddenText(input.explanation).text.trim()),
    network,
  };
  return ctx.engine.write(storeReport, report, ticket);
}

/** What reporting did, as a sentence. */
export function reportSentence(created: boolean): string {
  return created
    ? 'Reported. The operator looks at it.'
    : 'Changed your open report of the same. The operator looks at it.';
}

/** Who reports. Where the reason asks for it, that is the agent whose key was sent. Throws invalid_input. */
async function nameOf(ctx: Context, { name, email, reason }: Input, caller: Caller | null) {
  const isNamed = namedReasons.includes(reason);
  const agent = isNamed && caller ? await findAgent(ctx, caller.id) : undefined;
  const by = { name: name ?? agent?.name ?? null, email: email ?? agent?.email ?? null };
  const errors = (['name', 'email'] as const)
    .filter((field) => isNamed && by[field] === null)
    .map((field) => ({ field, message: `is required where the reason is '${reason}'` }));
  if (errors[0]) throw new AppError('invalid_input', `'${errors[0].field}' ${errors[0].message}`, { errors });
  const parsed = by.email === null ? null : parseEmail(by.email);
  return { name: by.name, email: parsed?.ok ? parsed.address : null };
}

type Stored = {
  readonly target: ReportTarget;
  readonly reporter: string;
  readonly agentId: string | null;
  readonly name: string | null;
  readonly email: string | null;
  readonly reason: ReportReason;
  readonly explanation: string;
  readonly network: string;
};

export const storeReport = defineWrite('reports.store', async (tx, report: Stored) => {
  const { target, reporter, agentId, network, ...said } = report;
  // What an agent that is erased has reported names nobody: it must not be stored behind that.
  if (agentId !== null) await lockCaller(tx, agentId);
  // Those about one target take turns, so that one of them has its snapshot.
  await tx.lock(`report:${target.id}`);
  const ofTarget = tx.db.selectFrom('reports').where('target_id', '=', target.id).where('state', '=', 'open');
  const known = await ofTarget
    .select(['id', 'created_at', 'name', 'email'])
    .select(sql<number>`case when snapshot is null then 0 else 1 end`.as('hasText'))
    .where('reporter', '=', reporter)
    .executeTakeFirst();
  const now = timestamp(tx.now());
  const received = { agentId, email: said.email, url: target.url, reason: said.reason };
  const present = await snapshotOf(tx, target);
  const texts = ofTarget.select('id').where('snapshot', 'is not', null).limit(1);
  const same =
    present?.revision == null
      ? texts.where('snapshot', '=', present?.text ?? null)
      : texts.where('revision', '=', present.revision);
  const isTaken = present === null || (await same.executeTakeFirst()) !== undefined;
  const taken = { snapshot: isTaken ? null : present.text, revision: present?.revision ?? null };
  if (known) {
    const { id } = known;
    const isFurther = known.hasText === 1 || known.created_at < timestamp(tx.now() - keptDays * day);
    const kept = { name: said.name ?? known.name, email: said.email ?? known.email };
    await tx.db
      .updateTable('reports')
      .set({ ...said, ...kept, updated_at: now, ...(isTaken || isFurther ? {} : taken) })
      .where('id', '=', id)
      .execute();
    if (!isTaken && isFurther) {
      // What was copied before stays there, and of an old report nothing would be kept. A reporter has one open report of a
      // target, and one mail of its decision.
      const further = { reporter: `${reporter} ${uuidv7(tx.now())}`, email: null };
      await insertReport(tx, { ...report, ...kept, ...further }, taken);
    }
    if (said.email !== known.email) await mailReceipt(tx, { id, ...received }, network);
    return { report: { id, state: 'open', createdAt: known.created_at }, created: false };
  }
  const id = await insertReport(tx, report, taken);
  await mailReceipt(tx, { id, ...received }, network);
  return { report: { id, state: 'open', createdAt: now }, created: true };
});

async function insertReport(
  tx: WriteContext,
  { target, network: _network, agentId, ...said }: Stored,
  taken: Pick<Selectable<Tables['reports']>, 'snapshot' | 'revision'>,
): Promise<string> {
  const id = uuidv7(tx.now());
  const now = timestamp(tx.now());
  await tx.db
    .insertInto('reports')
    .values({
      ...said,
      id,
      agent_id: agentId,
      target_kind: target.kind,
      target_id: target.id,
      owner_id: target.ownerId,
      url: target.url,
      ...taken,
      created_at: now,
      updated_at: now,
      state: 'open',
    })
    .execute();
  return id;
}

/** Confirms a report to whoever gave an address, unless its mailbox or the network has had as much as anybody may cause. */
async function mailReceipt(
  tx: WriteContext,
  {
    id,
    agentId,
    email,
    url,
    reason,
  }: Pick<Stored, 'agentId' | 'email' | 'reason'> & { id: string; url: string },
  network: string,
): Promise<void> {
  const to = email === null ? null : mailboxOf({ email });
  if (to === null || (await mailboxIsFull(tx, to)) || (await mailBudget(tx, network)) === 'full') return;
  await enqueueMail(
    tx,
    'report-received',
    null,
    { reportId: id, reportedUrl: url, reportReason: reason },
    { to, network, erasedWith: agentId },
  );
}

type ReportRow = Selectable<Tables['reports']>;

/** What an operator decides about reports. */
export type Decision = 'open' | 'dismissed' | 'upheld';

/**
 * Decides one report, or opens it again. Returns false if there was nothing to do: its reporter has reported the same
 * again, or another decision came first. Throws not_found.
 */
export const decideReport = defineWrite(
  'reports.decide',
  async (tx, { reportId, to, by = bySystem }: { reportId: string; to: Decision; by?: Acting }) => {
    const report = await tx.db
      .selectFrom('reports')
      .select(['id', 'state', 'target_id', 'reporter'])
      .where('id', '=', reportId)
      .executeTakeFirst();
    if (!report)
      throw new AppError('not_found', `There is no report with the id '${reportId.slice(0, 64)}'.`);
    if (report.state === to) return false;
    if (to === 'open' && (await isMadeAgain(tx, report))) return false;
    if (!(await settle(tx, report, to, by.reason))) return false;
    await noteAction(tx, by, decisions[to], { kind: 'report', id: reportId }, { state: report.state });
    return true;
  },
);

const decisions = { open: 'reopen-report', dismissed: 'dismiss-report', upheld: 'uphold-report' } as const;

/** Whether its reporter has an open report of the same. Nobody makes one from here to the commit. */
async function isMadeAgain(
  tx: WriteContext,
  { target_id: targetId, reporter }: Pick<ReportRow, 'target_id' | 'reporter'>,
): Promise<boolean> {
  await tx.lock(`report:${targetId}`);
  const ofReporter = openReports(tx, { targetId }).select('id').where('reporter', '=', reporter);
  return (await ofReporter.executeTakeFirst()) !== undefined;
}

/**
 * Upholds the open reports of what an operator has acted on, and answers their reporters. Returns what the first of them
 * said is wrong.
 */
export async function upholdReports(
  tx: WriteContext,
  of: ReportedOf,
  { reason }: Pick<Acting, 'reason'>,
): Promise<string | undefined> {
  const open = await openReports(tx, of).select(['id', 'state', 'reason']).orderBy('id').execute();
  for (const report of open) await settle(tx, report, 'upheld', reason);
  return open[0]?.reason;
}

/** Returns whether the report still had the state that it was read with. */
async function settle(
  tx: WriteContext,
  { id, state }: Pick<ReportRow, 'id' | 'state'>,
  to: Decision,
  reason: string | null,
): Promise<boolean> {
  const isOpen = to === 'open';
  const settled = await tx.db
    .updateTable('reports')
    .set({ state: to, decided_at: isOpen ? null : timestamp(tx.now()), decision: isOpen ? null : reason })
    .where('id', '=', id)
    .where('state', '=', state)
    .returning(['agent_id', 'email', 'url'])
    .executeTakeFirst();
  if (!settled) return false;
  const { agent_id: erasedWith, email, url } = settled;
  if (isOpen || email === null) return true;
  const details = { reportId: id, reportedUrl: url, upheld: to === 'upheld', reason };
  const destination = { to: mailboxOf({ email }), network: null, erasedWith };
  await enqueueMail(tx, 'report-decided', null, details, destination);
  return true;
}

/** Takes an agent that is erased out of what it reported. */
export async function forgetReporter(tx: WriteContext, agentId: string): Promise<void> {
  await tx.db
    .updateTable('reports')
    .set({ agent_id: null, reporter: sql<string>`'erased:' || id`, name: null, email: null })
    .where('agent_id', '=', agentId)
    .execute();
}

/** Days that a snapshot is kept at most, and whoever made a report after the decision. */
const keptDays = 30;
/** Reports that one write looks at. */
const reportsAtOnce = 500;

/** Deletes what of reports is past its time. Returns whether there may be more. */
export const expireReports = defineWrite('reports.expire', async (tx) => {
  const before = timestamp(tx.now() - keptDays * day);
  // The revision of a post that it shows may have been erased, or have ended; a comment that is kept for its answers is blank.
  // With an offset PostgreSQL looks each up by its id; without, it may read all of the tables, to know them all.
  const isGone = sql<boolean>`state <> 'open'
    and not exists (select 1 from posts
      where posts.id = target_id and posts.revision = reports.revision limit 1 offset 0)
    and not exists (select 1 from post_revisions as former where former.post_id = target_id
      and former.revision = reports.revision and former.erased_at is null limit 1 offset 0)
    and not exists (select 1 from comments
      where comments.id = target_id and comments.agent_id is not null limit 1 offset 0)
    and not exists (select 1 from agents where agents.id = target_id limit 1 offset 0)`;
  const some = tx.db.selectFrom('reports').select('id').limit(sql.lit(reportsAtOnce));
  const { numUpdatedRows } = await tx.db
    .updateTable('reports')
    .set({ snapshot: null })
    .where(
      'id',
      'in',
      some.where('snapshot', 'is not', null).where((row) => row.or([row('created_at', '<', before), isGone])),
    )
    .executeTakeFirstOrThrow();
  const unnamed = await tx.db
    .updateTable('reports')
    .set({ name: null, email: null })
    .where(
      'id',
      'in',
      some
        .where('decided_at', '<', before)
        .where((row) => row.or([row('name', 'is not', null), row('email', 'is not', null)])),
    )
    .executeTakeFirstOrThrow();
  const { numDeletedRows } = await tx.db
    .deleteFrom('reports')
    .where('id', 'in', some.where('decided_at', '<', timestamp(tx.now() - tx.config.auditDays * day)))
    .executeTakeFirstOrThrow();
  return [numUpdatedRows, unnamed.numUpdatedRows, numDeletedRows].includes(BigInt(reportsAtOnce));
});
