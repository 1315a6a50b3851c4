import type { Context, ReadContext, WriteContext } from '../../context.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import { createPictureStore, pictureBytes, removePicture } from '../../media/picture-store.ts';
import { day } from '../../platform/durations.ts';
import { errorCode, errorMessage } from '../../rules/failure.ts';
import { countFile, pictureLock } from './pictures.ts';

/** How long a file that no picture is stored in stays, ms. */
const orphansKeptFor = day;
/** Files that one write notes or removes. */
const filesAtOnce = 20;

/**
 * Notes files that the database does not know of, as an older backup leaves them, and those that no picture is stored in any
 * more, as agents leave them that are erased at the same moment. {@link removeOrphaned} removes them a day later.
 */
export async function sweepFiles(ctx: Context, between: () => Promise<boolean>): Promise<void> {
  const pictures = createPictureStore(ctx.config.media.dir);
  let files = 0;
  try {
    await pictures.removeDrafts(ctx.now() - orphansKeptFor);
    for await (const hashes of pictures.all()) {
      const unknown = await unknownFiles(ctx, hashes);
      for (let at = 0; at < unknown.length; at += filesAtOnce) {
        const some = unknown.slice(at, at + filesAtOnce);
        files += await ctx.engine.write(noteUnknown, { hashes: some });
      }
      const left = await leftFiles(ctx, hashes);
      if (left.length > 0) await ctx.engine.write(noteLeft, { hashes: left });
      if (!(await between())) break;
    }
  } catch (error) {
    // No picture was ever stored, or the disk is not there: whoever uses the folder says so.
    if (errorCode(error) === undefined) throw error;
    ctx.log.debug({ err: error }, 'the folder of pictures was not swept');
  } finally {
    if (files > 0)
      ctx.log.warn({ files }, 'files of pictures that the database does not know are removed in a day');
  }
}

/** Of some files those of which the database says nothing. */
export async function unknownFiles(
  { db }: Pick<ReadContext, 'db'>,
  hashes: readonly string[],
): Promise<string[]> {
  if (hashes.length === 0) return [];
  const rows = await db.selectFrom('media_blobs').select('sha256').where('sha256', 'in', hashes).execute();
  const known = new Set(rows.map(({ sha256 }) => sha256));
  return hashes.filter((hash) => !known.has(hash));
}

/**
 * Notes files of which the database says nothing; returns how many. They stay for a day, however old they are: the database
 * may be an older backup on trial, and they another's.
 */
export const noteUnknown = defineWrite(
  'media.note-unknown',
  async (tx, { hashes }: { hashes: readonly string[] }): Promise<number> => {
    const now = timestamp(tx.now());
    let noted = 0;
    for (const sha256 of hashes.toSorted()) {
      await tx.lock(pictureLock(sha256));
      const blob = tx.db.selectFrom('media_blobs').select('sha256').where('sha256', '=', sha256);
      const bytes = pictureBytes(tx.config.media.dir, sha256);
      if (bytes === null || (await blob.executeTakeFirst()) !== undefined) continue;
      const row = { sha256, bytes, created_at: now, orphaned_at: now, orphaned_by: null };
      await tx.db.insertInto('media_blobs').values(row).execute();
      countFile(tx, sha256, bytes, 1);
      noted++;
    }
    return noted;
  },
  { deletes: () => true },
);

/** Of some files those that no picture is stored in, which is not noted. */
async function leftFiles({ db }: Pick<ReadContext, 'db'>, hashes: readonly string[]): Promise<string[]> {
  if (hashes.length === 0) return [];
  const rows = await db
    .selectFrom('media_blobs')
    .select('sha256')
    .where('sha256', 'in', hashes)
    .where('orphaned_at', 'is', null)
    .where('sha256', 'not in', db.selectFrom('media').select('sha256').where('sha256', 'in', hashes))
    .execute();
  return rows.map(({ sha256 }) => sha256);
}

/** Notes files that no picture is stored in. {@link removeOrphaned} takes that back of those that get one meanwhile. */
export const noteLeft = defineWrite(
  'media.note-left',
  async (tx, { hashes }: { hashes: readonly string[] }) => {
    for (const sha256 of (await leftFiles(tx, hashes)).toSorted()) {
      await tx.db
        .updateTable('media_blobs')
        .set({ orphaned_at: timestamp(tx.now()) })
        .where('sha256', '=', sha256)
        .where('orphaned_at', 'is', null)
        .execute();
    }
  },
  { deletes: () => true },
);

/**
 * Removes files in which no picture has been stored for a day, each under its lock: whoever is about to write the file
 * again notes that under the same lock first. Returns whether there may be more, and why the first was not removed that
 * could not be: such a file is tried again a day later, and holds up no other.
 */
export const removeOrphaned = defineWrite(
  'media.sweep',
  async (tx): Promise<{ more: boolean; failed: string | null }> => {
    const due = timestamp(tx.now() - orphansKeptFor);
    const rows = await tx.db
      .selectFrom('media_blobs')
      .select('sha256')
      .where('orphaned_at', '<=', due)
      .orderBy('orphaned_at')
      .limit(filesAtOnce)
      .execute();
    let failed: string | null = null;
    // In one order, so that two processes cannot deadlock.
    for (const hash of rows.map(({ sha256 }) => sha256).toSorted()) {
      const reason = await removeIfOrphaned(tx, hash, due);
      failed ??= reason;
    }
    return { more: rows.length === filesAtOnce, failed };
  },
  { deletes: () => true },
);

/** Returns why the file could not be removed, or null. */
async function removeIfOrphaned(tx: WriteContext, sha256: string, due: string): Promise<string | null> {
  await tx.lock(pictureLock(sha256));
  if (await isShown(tx, sha256)) {
    // An agent was erased at the moment when another one sent the same bytes.
    const shown = { orphaned_at: null, orphaned_by: null };
    await tx.db.updateTable('media_blobs').set(shown).where('sha256', '=', sha256).execute();
    return null;
  }
  const removed = await tx.db
    .deleteFrom('media_blobs')
    .where('sha256', '=', sha256)
    .where('orphaned_at', '<=', due)
    .returningAll()
    .executeTakeFirst();
  if (removed === undefined) return null;
  try {
    removePicture(tx.config.media.dir, sha256);
  } catch (error) {
    const kept = { ...removed, orphaned_at: timestamp(tx.now()) };
    await tx.db.insertInto('media_blobs').values(kept).execute();
    return errorMessage(error);
  }
  countFile(tx, sha256, removed.bytes, -1);
  return null;
}

async function isShown({ db }: WriteContext, sha256: string): Promise<boolean> {
  const row = await db.selectFrom('media').select('id').where('sha256', '=', sha256).executeTakeFirst();
  return row !== undefined;
}
