import type { WriteContext } from '../../context.ts';
import type { AgentRow } from '../../db/tables.ts';
import type { MailDetails } from '../../mail/messages.ts';
import { postUrl } from '../../variant.ts';
import { enqueueMail } from '../outbox.ts';
import type { Acting } from './audit.ts';

type Notice = {
  readonly what: MailDetails<'moderated'>['what'];
  /** The post that it was done to, or to a comment on it, by the slugs of its address. */
  readonly post?: { readonly authorSlug: string | null; readonly slug: string };
};

/** Writes to the owner of an agent what an operator did and why, where the action says so and the address is verified. */
export async function mailOwner(
  tx: WriteContext,
  { mails, reason }: Acting,
  agent: AgentRow,
  { what, post }: Notice,
): Promise<void> {
  if (!mails || agent.verified_at === null) return;
  const { variant, site } = tx.config;
  await enqueueMail(tx, 'moderated', agent, {
    what,
    reason,
    postUrl: post ? postUrl(variant, site, post.authorSlug ?? '', post.slug) : null,
  });
}
