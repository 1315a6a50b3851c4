import { errorMessage } from '../../rules/failure.ts';
import { connect } from './postgres-server.ts';

/** What the servers of a database say of themselves. */
export type ServersFound = {
  /** The primary's clock, epoch ms. */
  readonly now: number;
  readonly archiving: {
    readonly on: boolean;
    /** Of the last piece of the log that was archived, and of the last that could not be; epoch ms. */
    readonly lastAt: number | null;
    readonly failedAt: number | null;
  };
  readonly replicas: readonly ReplicaFound[];
};

/** `lag` is what it has not replayed yet, ms; `fault` is why that is not known. */
type ReplicaFound = {
  readonly address: string;
  readonly lag: number | null;
  readonly fault: string | null;
};

/** Asks the first address that answers, and each replica. Throws Unreachable, or the server's own error. */
export async function examineServers({
  urls,
  replicaUrls,
}: {
  readonly urls: readonly string[];
  readonly replicaUrls: readonly string[];
}): Promise<ServersFound> {
  const primary = await firstOf(urls);
  const row = JSON.parse(
    await ask(
      primary,
      `select json_build_object(
        'now', extract(epoch from clock_timestamp()) * 1000,
        'on', current_setting('archive_mode') <> 'off',
        'lastAt', extract(epoch from last_archived_time) * 1000,
        'failedAt', extract(epoch from last_failed_time) * 1000)::text as answer from pg_stat_archiver`,
    ),
  ) as { now: number; on: boolean; lastAt: number | null; failedAt: number | null };
  const { now, ...archiving } = row;
  return { now, archiving, replicas: await Promise.all(replicaUrls.map(lagOf)) };
}

async function firstOf(urls: readonly string[]): Promise<string> {
  let fault: unknown = null;
  for (const url of urls) {
    try {
      if ((await ask(url, `select pg_is_in_recovery()::text as answer`)) === 'false') return url;
    } catch (error) {
      fault ??= error;
    }
  }
  throw fault ?? new Error('no server of DATABASE_URL takes writes');
}

/** A replica that has replayed all that it has received is not behind, however long nothing was written. */
async function lagOf(url: string): Promise<ReplicaFound> {
  const { host, pathname } = new URL(url);
  const address = host + pathname;
  try {
    const lag = await ask(
      url,
      `select case
        when not pg_is_in_recovery() then 'primary'
        when not exists (select from pg_stat_wal_receiver) then 'no receiver'
        when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then '0'
        else coalesce(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000, 0)::text
        end as answer`,
    );
    if (lag === 'primary') return { address, lag: null, fault: 'it is no replica: it takes writes' };
    if (lag === 'no receiver')
      return { address, lag: null, fault: 'it receives nothing from a primary: see its log' };
    return { address, lag: Number(lag), fault: null };
  } catch (error) {
    return { address, lag: null, fault: `it does not answer (${errorMessage(error)})` };
  }
}

async function ask(url: string, text: string): Promise<string> {
  const { session, close } = await connect(url);
  try {
    return String(await session.ask(text));
  } finally {
    await close();
  }
}
