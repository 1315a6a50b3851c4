import { sql } from 'kysely';
import type { ReadContext, WriteContext } from '../../context.ts';
import { preparedChange, preparedInsert } from '../../db/prepared.ts';
import { timestamp } from '../../db/write.ts';
import type { AgentRow, Cause, PostRow, Tables } from '../../db/tables.ts';
import type { Plan } from './post-plan.ts';
import { day } from '../../platform/durations.ts';

/** Former revisions of one post that are kept at most. */
const mostRevisions = 50;

/** Former texts that one statement takes away where an agent has more than its quota. */
const textsAtOnce = 100;

/** What makes the next revision of a post. */
export function causeOf(
  existing: PostRow | null,
  { status, slug }: Pick<PostRow, 'status' | 'slug'>,
  restores = false,
): Cause {
  if (!existing) return 'created';
  if (restores) return 'restored';
  if (status !== existing.status) return status === 'published' ? 'published' : 'unpublished';
  return slug === existing.slug ? 'changed' : 'renamed';
}

/** What made the present revision of a post. */
export function presentCause({ cause, revision }: Pick<PostRow, 'cause' | 'revision'>): Cause {
  return cause ?? (revision === 1 ? 'created' : 'changed');
}

/**
 * Keeps the former state of a post that is about to change, before its text is replaced. Returns the bytes that its
 * agent's former texts take more.
 */
export function keepRevision(
  tx: WriteContext,
  { existing, next, contentChanged }: Pick<Plan, 'existing' | 'next' | 'contentChanged'>,
): number {
  if (!existing || tx.config.revisionDays === 0) return 0;
  const row = {
    post_id: existing.id,
    revision: existing.revision,
    agent_id: existing.agent_id,
    at: existing.updated_at,
    replaced_at: next.updated_at,
    cause: presentCause(existing),
    title: existing.title,
    slug: existing.slug,
    status: existing.status,
    tags: existing.tags,
    lang: existing.lang,
    excerpt: existing.excerpt,
    excerpt_given: existing.excerpt_given,
    disclosure: existing.disclosure,
    edit_hash: existing.edit_hash,
    bytes: existing.content_bytes,
  };
  if (contentChanged) insertWithText(tx.db, row);
  else insertWithoutText(tx.db, [row]);
  // Revisions are numbered one by one, so that nothing need be counted.
  const upTo = existing.revision - mostRevisions;
  if (upTo > 0) forgetRevisions(tx, { agentId: existing.agent_id, postId: existing.id, upTo });
  return contentChanged ? existing.content_bytes : 0;
}

type KeptRow = Omit<Tables['post_revisions'], 'content' | 'erased_at'>;

const insertWithoutText = preparedInsert('post_revisions');

/** The text never leaves the database. */
const insertWithText = preparedChange((db, row: KeptRow) =>
  db
    .insertInto('post_revisions')
    .values({
      ...row,
      content: (body) => body.selectFrom('post_bodies').select('content').where('post_id', '=', row.post_id),
    })
    .compile(),
);

type Oldest = { agentId: string; postId: string; upTo: number };

/** Deletes the revisions of a post up to a number, and takes their texts out of the quota of its agent. */
export function forgetRevisions(tx: WriteContext, oldest: Oldest): void {
  giveBack(tx.db, oldest);
  deleteUpTo(tx.db, oldest);
}

const giveBack = preparedChange((db, { agentId, postId, upTo }: Oldest) =>
  db
    .updateTable('agents')
    .set((agent) => ({
      revision_bytes: agent(
        'revision_bytes',
        '-',
        agent
          .selectFrom('post_revisions')
          .select(sql<number>`coalesce(sum(bytes), 0)`.as('bytes'))
          .where('post_id', '=', postId)
          .where('revision', '<=', upTo)
          .where('content', 'is not', null),
      ),
    }))
    .where('id', '=', agentId)
    .compile(),
);

const deleteUpTo = preparedChange((db, { postId, upTo }: Oldest) =>
  db.deleteFrom('post_revisions').where('post_id', '=', postId).where('revision', '<=', upTo).compile(),
);

/**
 * Lets the oldest texts of an agent go until the rest is within its quota; `added` were kept in this write. A revision
 * without a text of its own would show another's once that is gone, so those before it go too.
 */
export async function fitRevisions(tx: WriteContext, agent: AgentRow, added: number): Promise<void> {
  const most = tx.config.quota.revisions;
  if (added === 0 || agent.revision_bytes + added <= most) return;
  for (let held = await countRevisionBytes(tx, agent.id); held > most;) {
    const texts = await tx.db
      .selectFrom('post_revisions')
      .select(['post_id as postId', 'revision as upTo', 'bytes'])
      .where('agent_id', '=', agent.id)
      .where('content', 'is not', null)
      .orderBy('replaced_at')
      .orderBy('post_id')
      .orderBy('revision')
      .limit(textsAtOnce)
      .execute();
    if (texts.length === 0) return;
    for (const { postId, upTo, bytes } of texts) {
      if (held <= most) return;
      forgetRevisions(tx, { agentId: agent.id, postId, upTo });
      held -= bytes;
    }
  }
}

/** Counts the bytes of an agent's former texts anew, and returns them. */
export async function countRevisionBytes(tx: WriteContext, agentId: string): Promise<number> {
  const counted = await tx.db
    .updateTable('agents')
    .set({
      revision_bytes: sql<number>`(select coalesce(sum(bytes), 0) from post_revisions
        where agent_id = ${agentId} and content is not null)`,
    })
    .where('id', '=', agentId)
    .returning('revision_bytes')
    .executeTakeFirst();
  return counted?.revision_bytes ?? 0;
}

/** When a revision must have been replaced to be kept still; nothing ages out of a service that is read-only. */
export function oldestKept(ctx: ReadContext): string {
  return ctx.config.readOnly ? '' : timestamp(ctx.now() - ctx.config.revisionDays * day);
}
