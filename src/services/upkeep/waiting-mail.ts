import type { Context, ReadContext } from '../../context.ts';
import type { OutgoingMail } from '../../mail/mailer.ts';
import { unseal } from '../../rules/secrets.ts';

type SealedMail = { readonly id: string; readonly sealed: string };

/** A message of the outbox, or null where another secret sealed it. */
export function openMail(secretKey: Buffer, { id, sealed }: SealedMail): OutgoingMail | null {
  const text = unseal(secretKey, sealed, `outbox:${id}`);
  if (text === null) return null;
  const mail: OutgoingMail = JSON.parse(text);
  return mail;
}

/** The message that was queued last of those that wait, or null. */
export async function newestSealedMail(db: ReadContext['db']): Promise<SealedMail | null> {
  const [newest] = await sealedMail(db).orderBy('created_at', 'desc').limit(1).execute();
  return newest ?? null;
}

/** How many of the messages that wait another secret has sealed. */
export async function countUnreadableMail(ctx: Pick<Context, 'db' | 'secretKey'>): Promise<number> {
  const waiting = await sealedMail(ctx.db).execute();
  return waiting.filter((mail) => openMail(ctx.secretKey, mail) === null).length;
}

function sealedMail(db: ReadContext['db']) {
  return db
    .selectFrom('outbox')
    .select(['id', 'sealed'])
    .where('due_at', 'is not', null)
    .where('sealed', 'is not', null)
    .$narrowType<{ sealed: string }>();
}

/** How many messages wait for a mail server: also those whose route nobody noted, since files wait for nothing. */
export async function countMailForSmtp(ctx: ReadContext): Promise<number> {
  const { count } = await ctx.db
    .selectFrom('outbox')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('due_at', 'is not', null)
    .where((row) => row.or([row('route', 'is', null), row('route', '<>', 'folder')]))
    .executeTakeFirstOrThrow();
  return count;
}
