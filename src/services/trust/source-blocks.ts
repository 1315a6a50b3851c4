import type { ReadContext, WriteContext } from '../../context.ts';
import type { Tables } from '../../db/tables.ts';
import { prepared } from '../../db/prepared.ts';
import { defineWrite, timestamp } from '../../db/write.ts';
import type { ParsedAddress } from '../../rules/email.ts';
import { uuidv7 } from '../../rules/secrets.ts';
import {
  blockOfText,
  blocksRegistration,
  type BlockKind,
  type SourceBlock,
  type Written,
} from '../../rules/source-blocks.ts';
import { bySystem, noteAction, type Acting } from '../operators/audit.ts';

type By = { readonly by?: Acting };

/** Blocks a source in the form that `parseBlock` gives it. Returns whether it was not blocked already. */
export const blockSource = defineWrite(
  'trust.block',
  async (tx, { kind, value, by = bySystem }: SourceBlock & By): Promise<boolean> => {
    await tx.lock('source-blocks');
    const found = await tx.db
      .selectFrom('source_blocks')
      .select(['id', 'ended_at'])
      .where('kind', '=', kind)
      .where('value', '=', value)
      .executeTakeFirst();
    if (found && found.ended_at === null) return false;
    const id = found?.id ?? uuidv7(tx.now());
    const row = { reason: by.reason, created_at: timestamp(tx.now()), by: by.actor, ended_at: null };
    if (found) await tx.db.updateTable('source_blocks').set(row).where('id', '=', id).execute();
    else
      await tx.db
        .insertInto('source_blocks')
        .values({ id, kind, value, ...row })
        .execute();
    await noteAction(tx, by, 'block', { kind: 'block', id });
    return true;
  },
);

/** Lifts a block, or puts it back. Returns false if there was nothing to do. */
export const setSourceBlock = defineWrite(
  'trust.set-block',
  async (tx, { id, isOn, by = bySystem }: By & { id: string; isOn: boolean }): Promise<boolean> => {
    await tx.lock('source-blocks');
    const { numUpdatedRows } = await tx.db
      .updateTable('source_blocks')
      .set({ ended_at: isOn ? null : timestamp(tx.now()) })
      .where('id', '=', id)
      .where('ended_at', isOn ? 'is not' : 'is', null)
      .executeTakeFirstOrThrow();
    if (numUpdatedRows === 0n) return false;
    await noteAction(tx, by, isOn ? 'block' : 'unblock', { kind: 'block', id });
    return true;
  },
);

/** What is blocked, the newest first. */
export async function listSourceBlocks(
  { db }: ReadContext,
  kinds: readonly BlockKind[],
): Promise<Tables['source_blocks'][]> {
  return blocksOf(db, kinds).execute();
}

function blocksOf(db: ReadContext['db'], kinds: readonly BlockKind[]) {
  return db
    .selectFrom('source_blocks')
    .selectAll()
    .where('ended_at', 'is', null)
    .where('kind', 'in', kinds)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc');
}

/** Asked for with each post and comment. */
const blocksOfTexts = prepared((db) => blocksOf(db, ['phrase', 'link-host']).compile());

/** Whether nobody may register from a client's address. */
export async function isClientBlocked(ctx: ReadContext, client: string): Promise<boolean> {
  const blocks = await listSourceBlocks(ctx, ['address']);
  return blocks.some((block) => blocksRegistration(block, { emailKey: '', mailboxKey: '', client }));
}

/** Whether nobody may register with an e-mail address. */
export async function isAddressBlocked(
  ctx: ReadContext,
  { key, mailboxKey }: ParsedAddress,
): Promise<boolean> {
  const blocks = await listSourceBlocks(ctx, ['email', 'email-domain']);
  return blocks.some((block) => blocksRegistration(block, { emailKey: key, mailboxKey, client: null }));
}

/** The reason for which the operator does not allow a file, by its hashes; null where it is allowed. */
export async function refusedPicture(
  { db }: ReadContext,
  hashes: readonly string[],
): Promise<{ readonly reason: string | null } | null> {
  const block = await db
    .selectFrom('source_blocks')
    .select('reason')
    .where('kind', '=', 'media')
    .where('value', 'in', hashes)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  return block ?? null;
}

const askedAhead = 'source-blocks';

/** `isUnsent`: asked in this turn, so that who asks now would have the same answer. */
type Ahead = { readonly answer: ReturnType<typeof blocksOfTexts>; isUnsent: boolean };

/** Asks ahead for what {@link holdFor} needs; what waits already may have the answer too, since it is a later one. */
export function askBlocksAhead({ db, batchCache }: Pick<WriteContext, 'db' | 'batchCache'>): void {
  if ((batchCache.get(askedAhead) as Ahead | undefined)?.isUnsent) return;
  const ahead: Ahead = { answer: blocksOfTexts(db, {}), isUnsent: true };
  ahead.answer.catch(() => undefined);
  queueMicrotask(() => (ahead.isUnsent = false));
  batchCache.set(askedAhead, ahead);
}

/** The id of the block for which what was written is held back; null where it is not. */
export async function holdFor(ctx: ReadContext, written: Written): Promise<string | null> {
  const ahead = ctx.batchCache?.get(askedAhead) as Ahead | undefined;
  const blocks = await (ahead?.answer ?? blocksOfTexts(ctx.db, {}));
  return blockOfText(blocks, written)?.id ?? null;
}
