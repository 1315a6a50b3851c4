import type { Context } from '../../context.ts';
import { gaugeOf, type Family } from '../../platform/metrics.ts';
import { readLastBackup } from './facts.ts';

/** What the database alone knows, for those who watch the service: read when they ask. Null where it cannot be read. */
export async function readStoredMetrics(ctx: Context): Promise<Family[] | null> {
  try {
    const [mail, backupAt] = await Promise.all([waitingMail(ctx), readLastBackup(ctx.db)]);
    const oldest = mail.oldest === null ? 0 : Math.max(0, ctx.now() - Date.parse(mail.oldest)) / 1000;
    return [
      gaugeOf('masthead_mail_waiting', 'Messages that are neither delivered nor given up.', mail.count),
      gaugeOf('masthead_mail_oldest_seconds', 'Age of the oldest of them; 0 where none waits.', oldest),
      // Backups of PostgreSQL are its own.
      ...('file' in ctx.config.database
        ? [
            gaugeOf(
              'masthead_last_backup_timestamp_seconds',
              'When the last masthead backup was complete; 0 where none was.',
              (backupAt ?? 0) / 1000,
            ),
          ]
        : []),
    ];
  } catch (error) {
    ctx.log.debug({ err: error }, 'what is stored could not be measured');
    return null;
  }
}

async function waitingMail({ db }: Context): Promise<{ count: number; oldest: string | null }> {
  const row = await db
    .selectFrom('outbox')
    .select((select) => [select.fn.countAll().as('count'), select.fn.min('created_at').as('oldest')])
    .where('due_at', 'is not', null)
    .executeTakeFirstOrThrow();
  return { count: Number(row.count), oldest: row.oldest };
}
