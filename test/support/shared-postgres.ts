import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type Socket, connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { env } from './postgres-programs.ts';
import { type Cluster, type Databases, createDatabase, query, startPostgres } from './postgres.ts';
import { quickLoad, unref } from './processes.ts';
import { migratePostgres } from './templates.ts';

/** The databases of the cluster that tests share. */
type SharedDatabases = Databases & {
  /** Creates a database that has every schema step, and returns its address. */
  createMigrated(): Promise<string>;
};

let shared: Promise<SharedDatabases> | undefined;

/** The database that migrated ones are copies of. */
const template = 'migrated';

/**
 * Settings of the cluster, which never has to recover. Autovacuum would start a process for one of its hundreds of
 * databases several times a second, and statistics that come at a time of its own make plans differ.
 */
const settings = {
  autovacuum: 'off',
  full_page_writes: 'off',
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
};

/**
 * The cluster that all test files of one run share, each test with a database of its own. The first to ask
 * has it started, in a process that ends after the last of them: nobody has to give it back. With
 * `TEST_POSTGRES=postgres://…` it is the server at that address, e.g. a pooler.
 */
export function sharedPostgres(): Promise<SharedDatabases> {
  return (shared ??= join());
}

function databasesOf(server: string, migrated?: string): SharedDatabases {
  return {
    url: (database = 'postgres') => Object.assign(new URL(server), { pathname: database }).href,
    createDatabase: () => createDatabase(server),
    createMigrated: () => createDatabase(server, migrated),
  };
}

async function join(): Promise<SharedDatabases> {
  const given = process.env['TEST_POSTGRES'];
  // There, the service runs the steps when it starts.
  if (given !== undefined) return databasesOf(given);
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    const said = await ask(nameFor(process.ppid));
    if (said?.startsWith('postgres:')) {
      return databasesOf(said, template);
    }
    if (said) throw new Error(said);
    // Nobody is there yet. If several test files start a keeper now, one gets the name and the others end.
    const args = [fileURLToPath(import.meta.url), String(process.ppid)];
    unref(
      spawn(process.execPath, args, { env: { ...env, ...quickLoad() }, stdio: 'ignore', detached: true }),
    );
    await delay(200);
  }
  throw new Error('the shared PostgreSQL did not start within a minute');
}

/** Test files are processes with one parent, the runner. A name after a NUL is no file, so none is left over. */
function nameFor(runner: number): string {
  return `\0masthead-postgres-${process.getuid?.()}-${runner}`;
}

/** Waits for what the keeper says, and stays connected: that keeps the cluster. */
function ask(name: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  let said = '';
  const socket = connect(name);
  socket.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (!said.endsWith('\0')) return;
    socket.unref();
    resolve(said.slice(0, -1));
  });
  socket.on('error', () => resolve(undefined));
  socket.on('close', () => resolve(undefined));
  return promise;
}

/**
 * The process that keeps the cluster while a test file is connected, and up to ten seconds more while the
 * runner may start another.
 */
async function keep(runner: number): Promise<void> {
  const users = new Set<Socket>();
  let lastLeft = Date.now();
  const keeper = createServer((socket) => {
    users.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => {
      users.delete(socket);
      lastLeft = Date.now();
    });
    void answer.then((text) => socket.resume().write(`${text}\0`));
  });
  keeper.listen(nameFor(runner));
  // Fails, and so ends this process, when another has the name.
  await once(keeper, 'listening');
  const cluster = startPostgres({ settings });
  const answer = prepare(cluster).catch((error: unknown) => String(error));

  while (users.size > 0 || (existsSync(`/proc/${runner}`) && Date.now() - lastLeft < 10_000))
    await delay(200);
  keeper.close();
  await (await cluster).stop();
}

/** The address of the cluster, once it has the database that migrated ones are copies of. */
async function prepare(cluster: Promise<Cluster>): Promise<string> {
  const started = await cluster;
  await query(started.url(), `create database ${template}`);
  await migratePostgres(started.url(template));
  return started.url();
}

if (import.meta.main) await keep(Number(process.argv[2]));
