import type { DatabaseConfig } from '../../config/config.ts';
import type { ServersFound } from '../../db/postgres/postgres-examine.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';

/** How far apart the clocks of this machine and the database may be, ms. */
const clocksMayDiffer = 5_000;
/** What a replica may not have replayed yet before readers get old pages from elsewhere, ms. */
const mostLag = 5_000;

/** Asks the servers of DATABASE_URL and DATABASE_REPLICA_URLS. */
export async function askServers(
  database: Extract<DatabaseConfig, { urls: unknown }>,
): Promise<ServersFound> {
  const { examineServers } = await import('../../db/postgres/postgres-examine.ts');
  return examineServers(database);
}

/** What is to be said of the servers of PostgreSQL: their clock, their archive, and how far replicas are behind. */
export function examineServersFound(found: ServersFound, now: number): Finding[] {
  const apart = Math.round(Math.abs(found.now - now) / 1_000);
  const clock: Finding =
    apart * 1_000 <= clocksMayDiffer
      ? { what: 'database clock', state: 'ok', detail: 'agrees with that of this machine' }
      : {
          what: 'database clock',
          state: 'look',
          detail: `differs from that of this machine by ${apart} s`,
          mend: 'timedatectl set-ntp true   (on both machines)',
        };
  return [clock, examineArchive(found.archiving), ...found.replicas.map(examineReplica)];
}

function examineArchive({ on, lastAt, failedAt }: ServersFound['archiving']): Finding {
  const what = 'backup';
  if (!on)
    return {
      what,
      state: 'look',
      detail:
        'PostgreSQL archives no log (archive_mode is off); whether dumps are made cannot be seen from here',
      mend: 'docs/backups.md: a dump each night, or archive_mode = on',
    };
  if (failedAt !== null && failedAt > (lastAt ?? 0))
    return {
      what,
      state: 'wrong',
      detail: `PostgreSQL could not archive its log at ${new Date(failedAt).toISOString()}, and fills its disk until it can`,
      mend: "psql -c 'select * from pg_stat_archiver'; see archive_command and PostgreSQL's log",
    };
  const since = lastAt === null ? 'nothing yet' : `the last piece at ${new Date(lastAt).toISOString()}`;
  return { what, state: 'ok', detail: `PostgreSQL archives its log: ${since}` };
}

function examineReplica({ address, lag, fault }: ServersFound['replicas'][number]): Finding {
  const what = 'replica';
  const mend = `psql 'postgres://${address}' -c 'select * from pg_stat_wal_receiver'`;
  if (fault !== null || lag === null) return { what, state: 'wrong', detail: `${address}: ${fault}`, mend };
  if (lag <= mostLag) return { what, state: 'ok', detail: `${address} is ${Math.round(lag)} ms behind` };
  const seconds = Math.round(lag / 1_000);
  return { what, state: 'look', detail: `${address} is ${seconds} s behind, and is not used`, mend };
}
