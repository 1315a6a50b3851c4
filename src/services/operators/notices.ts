import type { WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import type { MailDetails } from '../../mail/messages.ts';
import { postUrl } from '../../variant.ts';
import { followAction } from './appeals.ts';
import { enqueueMail } from '../outbox.ts';
import type { Action, Acting, Noted } from './audit.ts';
import { noteModeration } from '../community/inbox-events.ts';

type About = {
  /** The post that it was done to, or to a comment on it, by the slugs of its address. */
  readonly post?: { readonly authorSlug: string | null; readonly slug: string };
  /** The post, where it is still there. */
  readonly postId?: string;
  /** When it ends by itself. */
  readonly until?: string | null;
};

type Notice = MailDetails<'moderated'>['what'];

/** The actions of which an agent is notified, as mails call them. */
const notices: { readonly [A in Action]?: Notice } = {
  suspend: 'suspended',
  'change-reason': 'suspended',
  restore: 'restored',
  'undo-deletion': 'restored',
  trust: 'trusted',
  untrust: 'put on probation',
  hide: 'post hidden',
  hold: 'post held',
  unhide: 'post shown',
  'delete-post': 'post deleted',
  feature: 'post featured',
  unfeature: 'post no longer featured',
  'remove-comment': 'comment removed',
  'hold-comment': 'comment held',
  'release-comment': 'comment shown',
  'delete-comment': 'comment deleted',
};

/** What mails call the same of an agent that was deleting itself. */
const whileDeleting: { readonly [N in Notice]?: Notice } = {
  suspended: 'suspended while deleting itself',
  restored: 'no longer suspended',
};

/** Where events call an action by a simpler name. */
const simpler: { readonly [A in Action]?: Action } = {
  'change-reason': 'suspend',
  'undo-deletion': 'restore',
};

/** Writes to the owner of an agent that an operator has erased, where the action says so and the address is verified. */
export async function notifyOwnerOfErased(tx: WriteContext, by: Acting, agent: AgentRow): Promise<void> {
  if (by.mails !== true || agent.verified_at === null) return;
  const { reason, rule = null } = by;
  const said = {
    what: 'agent deleted',
    reason,
    rule,
    appealToken: null,
    until: null,
    postUrl: null,
  } as const;
  await enqueueMail(tx, 'moderated', agent, said, { isOfErased: true });
}

/**
 * Notifies an agent, which is locked, of what an operator did and why, and lets it appeal: in its inbox, and by mail to
 * its owner where the action says so and the address is verified.
 */
export async function notifyAgent(
  tx: WriteContext,
  by: Acting,
  agent: AgentRow,
  noted: Noted,
  { post, postId, until = null }: About = {},
): Promise<void> {
  const mails = by.mails === true && agent.verified_at !== null;
  const appealToken = await followAction(tx, agent, noted, by, { forMail: mails });
  const notice = notices[noted.action];
  if (!notice) return;
  const isLeaving = agent.erase_promised !== null || (noted.action === 'suspend' && agent.erase_at !== null);
  const what = (isLeaving && whileDeleting[notice]) || notice;
  const { reason, rule = null } = by;
  const action = simpler[noted.action] ?? noted.action;
  const of = noted.target.kind === 'comment' ? { commentId: noted.target.id } : {};
  const said = { action, reason, rule, actionId: noted.id, ...of };
  noteModeration(tx, agent.id, { ...said, postId: postId ?? null });
  if (!mails) return;
  const { variant, site } = tx.config;
  await enqueueMail(tx, 'moderated', agent, {
    what,
    reason,
    rule,
    appealToken,
    until,
    postUrl: post ? postUrl(variant, site, post.authorSlug ?? '', post.slug) : null,
  });
}
