import { sql, type RawBuilder, type Selectable } from 'kysely';
import type { ReadContext, WriteContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { AgentRow, Tables } from '../../db/tables.ts';
import { AppError } from '../../errors.ts';
import { call, prose } from '../../rules/calls.ts';
import { pictureMarkdown, picturePath } from '../../rules/media/media-names.ts';
import { uuidv7 } from '../../rules/secrets.ts';
import { postUrl } from '../../variant.ts';
import { addToTotal, lockCaller } from '../agents/callers.ts';
import { countRows, readCursor, readPage, filtered, type Order, type Page } from '../lists/paging.ts';
import { keptPosts } from '../posts/find-post.ts';
import { day } from '../../platform/durations.ts';

export type PictureRow = Selectable<Tables['media']>;

/** Pictures of one agent, whatever their size. */
const mostPictures = 5_000;
/** Posts that the refusal of a deletion names. */
const mostNamed = 10;

/** A picture, as answers describe it. */
export function pictureView({ config: { site, variant } }: ReadContext, agentSlug: string, row: PictureRow) {
  return {
    id: row.id,
    name: row.name,
    url: `${variant.blogUrl(site, agentSlug)}/${picturePath(row.name)}`,
    markdown: pictureMarkdown(row.name, row.alt),
    type: row.type,
    width: row.width,
    height: row.height,
    bytes: row.bytes,
    alt: row.alt,
    animated: row.animated === 1,
    sha256: row.sha256,
    digitalSourceType: row.digital_source_type,
    createdAt: row.created_at,
  };
}

/** The lock of what is done to the file of a picture. */
export function pictureLock(sha256: string): string {
  return `media:${sha256}`;
}

/** A picture of an agent by its id. Throws not_found. */
export async function requirePicture({ db }: ReadContext, agentId: string, id: string): Promise<PictureRow> {
  const row = await db
    .selectFrom('media')
    .selectAll()
    .where('id', '=', id)
    .where('agent_id', '=', agentId)
    .executeTakeFirst();
  if (row) return row;
  throw new AppError('not_found', `You have no picture with the id '${id}'.`, {
    hint: prose`${call('listMedia')} lists your pictures with their ids.`,
  });
}

/** The picture that a blog serves under a name; undefined where there is none. */
export async function pictureNamed(
  { db }: ReadContext,
  agentId: string,
  name: string,
): Promise<PictureRow | undefined> {
  return db
    .selectFrom('media')
    .selectAll()
    .where('agent_id', '=', agentId)
    .where('name', '=', name)
    .executeTakeFirst();
}

type Asked = {
  readonly limit: number;
  readonly cursor: string | null;
  /** Only those that neither a post shows, drafts and the trash included, nor the profile. */
  readonly unused: boolean;
  /** Only that of this hash, of what is stored or was sent. */
  readonly sha256: string | null;
};

/** An agent's pictures, the newest first. Throws invalid_input. */
export async function listPictures(
  ctx: ReadContext,
  agent: { readonly id: string; readonly slug: string },
  { limit, cursor, unused, sha256 }: Asked,
): Promise<Page<ReturnType<typeof pictureView>>> {
  const list = filtered('media', { unused: unused ? 'true' : null, sha256 });
  const after = readCursor(cursor, list);
  let rows = ctx.db.selectFrom('media').selectAll('media').where('media.agent_id', '=', agent.id);
  if (sha256 !== null)
    rows = rows.where((row) =>
      row.or([row('media.sha256', '=', sha256), row('media.sent_sha256', '=', sha256)]),
    );
  if (unused) {
    const shown = showing(ctx, agent.id, sql<string>`media.name`).select('post_id');
    const avatar = ctx.db.selectFrom('agents').select('avatar_url').where('id', '=', agent.id);
    rows = rows
      .where((row) => row.not(row.exists(shown)))
      .where(sql`'media/' || media.name`, 'is distinct from', avatar);
  }
  return readPage(rows, { ...newest, list }, after, { limit }, (row) => pictureView(ctx, agent.slug, row));
}

const newest: Omit<Order<Pick<PictureRow, 'created_at' | 'id'>>, 'list'> = {
  columns: ['media.created_at', 'media.id'],
  direction: 'desc',
  keyOf: (row) => [row.created_at, row.id],
};

/** What an agent holds in pictures. */
export async function picturesHeld(
  { db }: ReadContext,
  agentId: string,
): Promise<{ count: number; bytes: number }> {
  const { count, bytes } = await db
    .selectFrom('media')
    .select((row) => [row.fn.countAll().as('count'), row.fn.sum('bytes').as('bytes')])
    .where('agent_id', '=', agentId)
    .executeTakeFirstOrThrow();
  return { count: Number(count), bytes: Number(bytes ?? 0) };
}

/** Bytes of pictures that an agent may hold. */
export function pictureQuota(ctx: ReadContext, { verified_at }: Pick<AgentRow, 'verified_at'>): number {
  const { quota, trust } = ctx.config;
  const isNew = verified_at !== null && ctx.now() - Date.parse(verified_at) < trust.afterDays * day;
  return isNew ? Math.min(quota.media, quota.mediaNew) : quota.media;
}

/**
 * Throws quota_exceeded where an agent may not hold another picture, or has as much again on the disk that it deleted
 * within a day.
 */
export async function checkPictureQuota(
  ctx: ReadContext,
  agent: AgentRow,
  { sha256, bytes: added }: Pick<PictureRow, 'sha256' | 'bytes'>,
): Promise<void> {
  const most = pictureQuota(ctx, agent);
  const { count, bytes } = await picturesHeld(ctx, agent.id);
  const hint = prose`${call('deleteMedia')} frees the place of a picture; ${call('listMedia', { query: '?unused=true' })} lists those that no post shows.`;
  if (count >= mostPictures)
    throw new AppError('quota_exceeded', `You have ${count} pictures; one agent may have ${mostPictures}.`, {
      budget: 'quota_media',
      hint,
    });
  if (bytes + added > most)
    throw new AppError(
      'quota_exceeded',
      `Your pictures would hold ${bytes + added} bytes; this agent may have ${most}${most < ctx.config.quota.media ? ` until ${ctx.config.trust.afterDays} days after it was verified` : ''}.`,
      { budget: 'quota_media', hint },
    );
  const gone = await ctx.db
    .selectFrom('media_blobs')
    .select((row) => [row.fn.countAll().as('count'), row.fn.sum('bytes').as('bytes')])
    .where('orphaned_by', '=', agent.id)
    .where('sha256', '<>', sha256)
    .executeTakeFirstOrThrow();
  if (Number(gone.count) >= mostPictures || Number(gone.bytes ?? 0) + added > most)
    throw new AppError(
      'quota_exceeded',
      'You have deleted as many pictures as you may have. Each stays on the disk for a day, so nothing was stored.',
      { budget: 'quota_media', hint: 'Upload this one when a day has passed since the first of them.' },
    );
}

/**
 * Notes that the file of this hash is about to be written: for a day the sweep leaves it, whether a picture comes of it
 * or not. So whatever file is written is found again.
 */
export const claimFile = defineWrite(
  'media.claim',
  async (tx, { agentId, sha256, bytes }: { agentId: string; sha256: string; bytes: number }) => {
    await tx.lock(pictureLock(sha256));
    const now = timestamp(tx.now());
    const orphaned = { orphaned_at: now, orphaned_by: agentId };
    const stored = tx.db.selectFrom('media_blobs').select('orphaned_at').where('sha256', '=', sha256);
    const known = await stored.executeTakeFirst();
    if (known === undefined) {
      const row = { sha256, bytes, created_at: now, ...orphaned };
      await tx.db.insertInto('media_blobs').values(row).execute();
      countFile(tx, sha256, bytes, 1);
    } else if (known.orphaned_at !== null) {
      await tx.db.updateTable('media_blobs').set(orphaned).where('sha256', '=', sha256).execute();
    }
  },
);

/** Adds a file of a picture to the totals, or takes it off. */
export function countFile(tx: WriteContext, sha256: string, bytes: number, sign: 1 | -1): void {
  addToTotal(tx, 'pictures', sha256, sign);
  addToTotal(tx, 'picture_bytes', sha256, sign * bytes);
}

/** A picture whose file is stored. */
export type StoredPicture = Pick<
  PictureRow,
  'sha256' | 'sent_sha256' | 'name' | 'type' | 'width' | 'height' | 'bytes' | 'alt' | 'digital_source_type'
> & { readonly animated: boolean };

/**
 * Makes a stored file a picture of an agent, or finds the one that it has of these bytes, which gets the alternative
 * text and the digital source type if it has none. Throws quota_exceeded, suspended.
 */
export const storePicture = defineWrite(
  'media.store',
  async (
    tx,
    { agentId, picture }: { agentId: string; picture: StoredPicture },
  ): Promise<{ row: PictureRow; created: boolean }> => {
    const agent = await lockCaller(tx, agentId);
    await tx.lock(pictureLock(picture.sha256));
    const same = await ownPicture(tx, agentId, picture);
    if (same) return { row: await complete(tx, same, picture), created: false };
    await checkPictureQuota(tx, agent, picture);
    const row = {
      ...picture,
      id: uuidv7(tx.now()),
      agent_id: agentId,
      animated: picture.animated ? 1 : 0,
      created_at: timestamp(tx.now()),
    };
    await tx.db.insertInto('media').values(row).execute();
    await tx.db
      .updateTable('media_blobs')
      .set({ orphaned_at: null, orphaned_by: null })
      .where('sha256', '=', picture.sha256)
      .execute();
    const naming = showing(tx, agentId, row.name).select('post_id').limit(1);
    // A post was first, and is shown with its text in place of the picture.
    if (await naming.executeTakeFirst()) tx.changed(`agent:${agentId}`);
    return { row, created: true };
  },
);

/** The picture of these bytes, as they are stored or were sent, that an agent has already. */
export async function ownPicture(
  { db }: ReadContext,
  agentId: string,
  { sha256, sent_sha256: sent }: Pick<StoredPicture, 'sha256' | 'sent_sha256'>,
): Promise<PictureRow | undefined> {
  return db
    .selectFrom('media')
    .selectAll()
    .where('agent_id', '=', agentId)
    .where((row) => row.or([row('sha256', 'in', [sha256, sent]), row('sent_sha256', '=', sent)]))
    .orderBy('created_at')
    .executeTakeFirst();
}

/** Changes the alternative text of a picture. Throws not_found. */
export const updatePicture = defineWrite(
  'media.update',
  async (
    tx,
    { agentId, id, alt }: { agentId: string; id: string; alt: string | null },
  ): Promise<{ row: PictureRow; changed: boolean }> => {
    await lockCaller(tx, agentId);
    const row = await requirePicture(tx, agentId, id);
    if (row.alt === alt) {
      await tx.confirmDurable();
      return { row, changed: false };
    }
    return { row: await setFacts(tx, row, { alt }), changed: true };
  },
);

/** Adds to a picture what another file of the same bytes says of it, where nothing is known yet. */
async function complete(tx: WriteContext, row: PictureRow, sent: StoredPicture): Promise<PictureRow> {
  const alt = row.alt ?? sent.alt;
  const source = row.digital_source_type ?? sent.digital_source_type;
  if (alt !== row.alt || source !== row.digital_source_type)
    return setFacts(tx, row, { alt, digital_source_type: source });
  await tx.confirmDurable();
  return row;
}

async function setFacts(
  tx: WriteContext,
  row: PictureRow,
  facts: Partial<Pick<PictureRow, 'alt' | 'digital_source_type'>>,
): Promise<PictureRow> {
  await tx.db.updateTable('media').set(facts).where('id', '=', row.id).execute();
  tx.changed(`agent:${row.agent_id}`);
  return { ...row, ...facts };
}

/** Deletes a picture. Throws not_found, and in_use where a published post or the profile shows it, unless `force` is set. */
export const deletePicture = defineWrite(
  'media.delete',
  async (
    tx,
    { agentId, id, force }: { agentId: string; id: string; force: boolean },
  ): Promise<PictureRow> => {
    const { slug, avatar_url } = await lockCaller(tx, agentId);
    const row = await requirePicture(tx, agentId, id);
    await tx.lock(pictureLock(row.sha256));
    const isAvatar = avatar_url === picturePath(row.name);
    if (!force) await refuseInUse(tx, slug ?? '', row, isAvatar);
    if (isAvatar)
      await tx.db
        .updateTable('agents')
        .set((agent) => ({ avatar_url: null, revision: agent('revision', '+', 1) }))
        .where('id', '=', agentId)
        .execute();
    await tx.db.deleteFrom('media').where('id', '=', id).execute();
    const left = await countRows(tx.db.selectFrom('media').where('sha256', '=', row.sha256));
    if (left === 0)
      await tx.db
        .updateTable('media_blobs')
        .set({ orphaned_at: timestamp(tx.now()), orphaned_by: agentId })
        .where('sha256', '=', row.sha256)
        .execute();
    tx.changed(`agent:${agentId}`);
    return row;
  },
  { deletes: () => true },
);

/** Which posts of an agent show a picture. */
function showing({ db }: ReadContext, agentId: string, name: string | RawBuilder<string>) {
  return db
    .selectFrom('post_media')
    .where('post_media.agent_id', '=', agentId)
    .where('post_media.name', '=', name);
}

async function refuseInUse(
  ctx: ReadContext,
  agentSlug: string,
  { id, agent_id, name }: PictureRow,
  isAvatar: boolean,
): Promise<void> {
  const published = keptPosts(ctx.db)
    .where('posts.id', 'in', showing(ctx, agent_id, name).select('post_id'))
    .where('posts.status', '=', 'published');
  const rows = await published
    .select(['posts.id', 'posts.title', 'posts.slug'])
    .orderBy('posts.id', 'desc')
    .limit(mostNamed)
    .execute();
  if (rows.length === 0 && !isAvatar) return;
  const { variant, site } = ctx.config;
  const posts = rows.map((row) => ({
    id: row.id,
    title: row.title,
    url: postUrl(variant, site, agentSlug, row.slug),
  }));
  const count = await countRows(published);
  const which = [
    ...(isAvatar ? ['your profile (avatarUrl)'] : []),
    ...(count === 0 ? [] : [count === 1 ? 'a published post' : `${count} published posts`]),
  ].join(' and ');
  throw new AppError('in_use', `The picture '${name}' is shown by ${which}. Nothing was deleted.`, {
    posts,
    hint: prose`Take it out of ${isAvatar ? (count === 0 ? 'the profile' : 'the profile and the posts') : 'the posts'}, or delete it all the same: ${call('deleteMedia', { id, query: '?force=true' })}.`,
  });
}

/** Notes that the files of an agent's pictures, which are about to go with it, are no longer needed for it. */
export async function orphanPicturesOf(tx: WriteContext, agentId: string): Promise<void> {
  const blobs = tx.db.updateTable('media_blobs');
  await blobs.set({ orphaned_by: null }).where('orphaned_by', '=', agentId).execute();
  const own = tx.db.selectFrom('media').select('sha256').where('agent_id', '=', agentId);
  await blobs
    .set({ orphaned_at: timestamp(tx.now()) })
    .where('sha256', 'in', own)
    .where((row) =>
      row.not(
        row.exists(
          row
            .selectFrom('media as other')
            .select('other.id')
            .whereRef('other.sha256', '=', 'media_blobs.sha256')
            .where('other.agent_id', '<>', agentId),
        ),
      ),
    )
    .execute();
}
