import { sql, type RawBuilder } from 'kysely';
import type { Context, ReadContext } from '../../context.ts';
import { gaugeOf, type Family } from '../../platform/metrics.ts';
import { readTotal } from '../lists/discovery.ts';
import { readBackupCheck, readLastBackup } from './facts.ts';

/** What the database alone knows, for those who watch the service: read when they ask. Null where it cannot be read. */
export async function readStoredMetrics(ctx: Context): Promise<Family[] | null> {
  try {
    const [mail, reports, appeals, backupAt, pictures, pictureBytes, check] = await Promise.all([
      waitingMail(ctx),
      openReports(ctx),
      openAppeals(ctx),
      readLastBackup(ctx.db),
      readTotal(ctx, 'pictures'),
      readTotal(ctx, 'picture_bytes'),
      readBackupCheck(ctx.db),
    ]);
    return [
      gaugeOf('masthead_mail_waiting', 'Messages that are neither delivered nor given up.', mail.count),
      gaugeOf(
        'masthead_mail_oldest_seconds',
        'Age of the oldest of them; 0 where none waits.',
        ageOf(ctx, mail),
      ),
      gaugeOf('masthead_reports_open', 'Reports that nobody has decided.', reports.count),
      gaugeOf(
        'masthead_reports_oldest_seconds',
        'Age of the oldest of them; 0 where none is open.',
        ageOf(ctx, reports),
      ),
      gaugeOf('masthead_appeals_open', 'Appeals that nobody has decided.', appeals.count),
      gaugeOf(
        'masthead_appeals_oldest_seconds',
        'Age of the oldest of them; 0 where none is open.',
        ageOf(ctx, appeals),
      ),
      gaugeOf(
        'masthead_pictures',
        'Files of pictures that are stored; one that several agents have is one.',
        pictures,
      ),
      gaugeOf('masthead_picture_bytes', 'Bytes of those files.', pictureBytes),
      // Backups of PostgreSQL are its own.
      ...('file' in ctx.config.database
        ? [
            gaugeOf(
              'masthead_last_backup_timestamp_seconds',
              'When the last masthead backup was complete; 0 where none was.',
              (backupAt ?? 0) / 1000,
            ),
            gaugeOf(
              'masthead_backup_faulty',
              'Whether the last masthead verify-backup of a folder found a fault.',
              check !== null && check.fault !== null ? 1 : 0,
            ),
          ]
        : []),
    ];
  } catch (error) {
    ctx.log.debug({ err: error }, 'what is stored could not be measured');
    return null;
  }
}

/** How many there are, and when the first was created. */
export type Waiting = { readonly count: number; readonly oldest: string | null };

async function waiting(
  { db }: ReadContext,
  table: 'outbox' | 'reports' | 'appeals',
  at: 'created_at' | 'sent_at',
  isWaiting: RawBuilder<unknown>,
): Promise<Waiting> {
  const [time, rowsOf] = [sql.ref(at), sql.table(table)];
  type Row = { count: number | string; oldest: string | null };
  const counted = sql<Row>`select count(*) as count, min(${time}) as oldest from ${rowsOf} where ${isWaiting}`;
  const { rows } = await counted.execute(db);
  const [{ count, oldest } = { count: 0, oldest: null }] = rows;
  return { count: Number(count), oldest };
}

function waitingMail(ctx: ReadContext): Promise<Waiting> {
  return waiting(ctx, 'outbox', 'created_at', sql`due_at is not null`);
}

/** As the index of those that wait has them: a row may have a long snapshot before what is asked. */
export function openReports(ctx: ReadContext): Promise<Waiting> {
  return waiting(ctx, 'reports', 'created_at', sql`state = 'open' and created_at > ''`);
}

/** The same: all open ones, since each was sent. */
export function openAppeals(ctx: ReadContext): Promise<Waiting> {
  return waiting(ctx, 'appeals', 'sent_at', sql`state = 'open' and sent_at > ''`);
}

/** Seconds; 0 where there is none. */
function ageOf(ctx: Context, { oldest }: Waiting): number {
  return oldest === null ? 0 : Math.max(0, ctx.now() - Date.parse(oldest)) / 1000;
}
