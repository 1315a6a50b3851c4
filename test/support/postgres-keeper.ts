import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type Socket, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from './postgres.ts';

/** The database that migrated ones are copies of. */
export const template = 'migrated';

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

/** Test files are processes with one parent, the runner. A name after a NUL is no file, so none is left over. */
export function nameFor(runner: number): string {
  return `\0masthead-postgres-${process.getuid?.()}-${runner}`;
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
  // Fails, and so ends this process, when another has the name: before anything large is loaded.
  await once(keeper, 'listening');
  const cluster = import('./postgres.ts').then(({ startPostgres }) => startPostgres({ settings }));
  const answer = prepare(cluster).catch((error: unknown) => String(error));

  while (users.size > 0 || (existsSync(`/proc/${runner}`) && Date.now() - lastLeft < 10_000))
    await delay(200);
  keeper.close();
  await (await cluster).stop();
}

/** The address of the cluster, once it has the database that migrated ones are copies of. */
async function prepare(cluster: Promise<Cluster>): Promise<string> {
  const [{ query }, { migratePostgres }] = await Promise.all([
    import('./postgres.ts'),
    import('./templates.ts'),
  ]);
  const started = await cluster;
  await query(started.url(), `create database ${template}`);
  await migratePostgres(started.url(template));
  return started.url();
}

if (import.meta.main) await keep(Number(process.argv[2]));
