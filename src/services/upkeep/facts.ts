import type { ReadContext, WriteContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import { backupCheckFact, lastBackupFact, type BackupCheck } from '../../db/sqlite/sqlite-backups.ts';
import { fingerprintOf } from '../../rules/secrets.ts';
import { isReadable, newestSealedMail } from '../outbox.ts';

/** A fact about the instance, of the table `meta`; null where it was never recorded. */
export async function readFact(db: ReadContext['db'], key: string): Promise<string | null> {
  const row = await db.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst();
  return row?.value ?? null;
}

/** When the last backup was completed, epoch ms; null where none was. */
export async function readLastBackup(db: ReadContext['db']): Promise<number | null> {
  const at = await readFact(db, lastBackupFact);
  return at === null ? null : Date.parse(at);
}

/** What the last check of a folder of backups found; null where none was. */
export async function readBackupCheck(db: ReadContext['db']): Promise<BackupCheck | null> {
  const noted = await readFact(db, backupCheckFact);
  return noted === null ? null : JSON.parse(noted);
}

const secretFact = 'secret_fingerprint';

/** Whether a database was served with this secret or another; `unrecorded` if new or of an older release. */
export async function secretState({
  db,
  secretKey,
}: Pick<WriteContext, 'db' | 'secretKey'>): Promise<'own' | 'other' | 'unrecorded'> {
  const recorded = await readFact(db, secretFact);
  if (recorded !== null) return recorded === fingerprintOf(secretKey) ? 'own' : 'other';
  const sealed = await newestSealedMail(db);
  return sealed === null || isReadable(secretKey, sealed) ? 'unrecorded' : 'other';
}

/** Whether the database shows that a secret was in use with it. */
export async function hasHadSecret(db: ReadContext['db']): Promise<boolean> {
  return (await readFact(db, secretFact)) !== null || (await newestSealedMail(db)) !== null;
}

/** Records this secret as the database's; without `replace` only if no other is. Returns whether it is recorded. */
export const recordSecret = defineWrite('secret.record', async (tx, { replace }: { replace: boolean }) => {
  await tx.lock('secret');
  const isOther = (await secretState(tx)) === 'other';
  if (isOther && !replace) return false;
  const value = fingerprintOf(tx.secretKey);
  await tx.db
    .insertInto('meta')
    .values({ key: secretFact, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute();
  // They were made with the other secret; housekeeping fills them in anew.
  if (isOther) await tx.db.updateTable('agents').set({ mailbox_key: null }).execute();
  return true;
});
