import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { nameFor, template } from './postgres-keeper.ts';
import { env } from './postgres-programs.ts';
import { type Databases, createDatabase } from './postgres.ts';
import { isRunning, quickLoad, unref } from './processes.ts';

/** The databases of the cluster that tests share. */
type SharedDatabases = Databases & {
  /** Creates a database that has every schema step, and returns its address. */
  createMigrated(): Promise<string>;
};

let shared: Promise<SharedDatabases> | undefined;

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
  let started: ChildProcess | undefined;
  while (Date.now() < deadline) {
    const said = await ask(nameFor(process.ppid));
    if (said?.startsWith('postgres:')) return databasesOf(said, template);
    if (said) throw new Error(said);
    // Nobody is there yet. If several test files start a keeper now, one gets the name and the others end.
    if (!started || !isRunning(started)) started = startKeeper();
    await delay(50);
  }
  throw new Error('the shared PostgreSQL did not start within a minute');
}

function startKeeper(): ChildProcess {
  const args = [fileURLToPath(new URL('postgres-keeper.ts', import.meta.url)), String(process.ppid)];
  const keeper = spawn(process.execPath, args, {
    env: { ...env, ...quickLoad() },
    stdio: 'ignore',
    detached: true,
  });
  unref(keeper);
  return keeper;
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
