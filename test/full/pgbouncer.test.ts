import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { account, handOver } from '../support/postgres-programs.ts';
import { query, startPostgres } from '../support/postgres.ts';
import { freePort } from '../support/processes.ts';
import { passOnPostgres } from './support/suites.ts';

const program = '/usr/sbin/pgbouncer';
const missing = existsSync(program) ? false : 'PgBouncer is not installed: apt-get install pgbouncer';
if (missing) console.error(`SKIPPED: ${missing}`);

describe('behind a pooler in transaction mode', () => {
  it('the tests of the API, of races and of kept counts pass', { skip: missing }, async (t) => {
    const server = await startPooler(t);
    await passOnPostgres(server, [
      // What a connection keeps between transactions, or another transaction meanwhile changes, is what can differ.
      'test/api-{limits,engagement}.test.ts',
      'test/full/api-{races,lost-answers}.test.ts',
      'test/life-*.test.ts',
      'test/full/stored-counts.test.ts',
      'test/full/races.test.ts',
    ]);
  });
});

/** A PostgreSQL of its own behind a PgBouncer with fewer connections than the service opens; its address. */
async function startPooler(t: TestContext): Promise<string> {
  const cluster = await startPostgres();
  const { password } = new URL(cluster.url());
  const directory = await mkdtemp(join(tmpdir(), 'masthead-pgbouncer-'));
  const port = await freePort();
  const settings = `[databases]
* = host=127.0.0.1 port=${cluster.port} user=postgres password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 6
server_idle_timeout = 2
max_client_conn = 2000
`;
  await writeFile(join(directory, 'pgbouncer.ini'), settings);
  await handOver(directory);
  const pooler = spawn(program, ['-q', join(directory, 'pgbouncer.ini')], { ...account, stdio: 'ignore' });
  t.after(async () => {
    pooler.kill('SIGKILL');
    await cluster.stop();
    await rm(directory, { recursive: true });
  });
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  for (let tries = 0; tries < 3_000; tries++) {
    if (await query(url, 'select 1').catch(() => null)) return url;
    await delay(20);
  }
  throw new Error('PgBouncer does not answer');
}
