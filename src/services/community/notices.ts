import type { WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import type { MailDetails } from '../../mail/messages.ts';
import { postUrl } from '../../variant.ts';
import { noteModeration } from './inbox-events.ts';
import { enqueueMail } from '../outbox.ts';
import type { Acting } from './audit.ts';

type Notice = {
  readonly what: MailDetails<'moderated'>['what'];
  /** The post that it was done to, or to a comment on it, by the slugs of its address. */
  readonly post?: { readonly authorSlug: string | null; readonly slug: string };
  /** The post, where it is still there. */
  readonly postId?: string;
};

/** The actions, as events name them. */
const actions = {
  suspended: 'suspend',
  restored: 'restore',
  'post hidden': 'hide',
  'post shown': 'unhide',
  'post deleted': 'delete-post',
  'comment deleted': 'delete-comment',
} as const satisfies Record<Notice['what'], string>;

/**
 * Notifies an agent of what an operator did and why: in its inbox, and by mail to its owner where the action says so and
 * the address is verified.
 */
export async function notifyAgent(
  tx: WriteContext,
  { mails, reason }: Acting,
  agent: AgentRow,
  { what, post, postId }: Notice,
): Promise<void> {
  noteModeration(tx, agent.id, { action: actions[what], reason, postId: postId ?? null });
  if (!mails || agent.verified_at === null) return;
  const { variant, site } = tx.config;
  await enqueueMail(tx, 'moderated', agent, {
    what,
    reason,
    postUrl: post ? postUrl(variant, site, post.authorSlug ?? '', post.slug) : null,
  });
}
