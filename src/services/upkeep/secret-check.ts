import type { Kysely } from 'kysely';
import type { WriteContext } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import type { Tables } from '../../db/tables.ts';
import { fingerprintOf } from '../../rules/secrets.ts';
import { newestSealedMail, openMail } from '../outbox.ts';
import { readFact } from './facts.ts';

const factName = 'secret_fingerprint';

/** Whether a database was served with this secret or another; `unrecorded` if new or of an older release. */
export async function secretState({
  db,
  secretKey,
}: Pick<WriteContext, 'db' | 'secretKey'>): Promise<'own' | 'other' | 'unrecorded'> {
  const recorded = await readFact(db, factName);
  if (recorded !== null) return recorded === fingerprintOf(secretKey) ? 'own' : 'other';
  const sealed = await newestSealedMail(db);
  return sealed === null || openMail(secretKey, sealed) !== null ? 'unrecorded' : 'other';
}

/** Whether the database shows that a secret was in use with it. */
export async function hasHadSecret(db: Kysely<Tables>): Promise<boolean> {
  return (await readFact(db, factName)) !== null || (await newestSealedMail(db)) !== null;
}

/** Records this secret as the database's; without `replace` only if no other is. Returns whether it is recorded. */
export const recordSecret = defineWrite('secret.record', async (tx, { replace }: { replace: boolean }) => {
  await tx.lock('secret');
  if (!replace && (await secretState(tx)) === 'other') return false;
  const value = fingerprintOf(tx.secretKey);
  await tx.db
    .insertInto('meta')
    .values({ key: factName, value })
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value }))
    .execute();
  return true;
});
