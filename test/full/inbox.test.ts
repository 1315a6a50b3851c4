import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '../../client/src/index.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { register } from '../../src/services/agents/registration.ts';
import { verifyByOperator } from '../../src/services/community/moderation.ts';
import { pauseEvents, readWhileWritten } from '../support/inbox-readers.ts';
import { engines } from '../support/instance.ts';
import { freePort, spawnServer } from '../support/processes.ts';
import { scale } from '../support/scale.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { unlimited } from '../support/writers.ts';

const processes = 4;
const writersOfEach = 16;
const comments = 4 * scale;

for (const engine of engines)
  test(`an inbox that ${writersOfEach} writers at each of ${processes} processes write to, kill -9 included, leaves nothing out and repeats nothing (${engine})`, async (t) => {
    const DATA_DIR = mkdtempSync(join(tmpdir(), 'masthead-inbox-'));
    t.after(() => rmSync(DATA_DIR, { recursive: true, force: true }));
    const settings = {
      DATA_DIR,
      ...(engine === 'postgres'
        ? { DATABASE_URL: await (await sharedPostgres()).createDatabase(), SECRET: 's'.repeat(32) }
        : {}),
    };
    const env = { ...settings, ...unlimited };
    const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
    const keys: string[] = [];
    while (keys.length <= writersOfEach) {
      const slug = `agent-${keys.length}`;
      await register(ctx, { email: `${slug}@example.com`, name: slug, slug });
      keys.push((await ctx.engine.write(verifyByOperator, { slug })).apiKey);
    }
    await ctx.close();
    const [owner = '', ...others] = keys;
    const ports = await Promise.all(Array.from({ length: processes }, async () => freePort()));
    const serve = async (port: number) => spawnServer({ env: { ...env, PORT: String(port) } });
    const servers = [await serve(ports[0] ?? 0)];
    for (const port of ports.slice(1)) servers.push(await serve(port));
    t.after(() => servers.map((server) => server.kill('SIGKILL')));

    const at = (port: number, apiKey: string) =>
      createClient({ baseUrl: `http://localhost:${port}`, apiKey });
    const first = at(ports[0] ?? 0, owner);
    const { post } = await first.publish({ title: 'Read by many', content: 'c', status: 'published' });
    await pauseEvents(settings);

    const write = (port: number, apiKey: string) => async () => {
      const client = at(port, apiKey);
      const ids: string[] = [];
      for (let n = 0; n < comments; n++) ids.push((await client.addComment(post.id, `${n}`)).comment.id);
      return ids;
    };
    let n = 0;
    const reading = readWhileWritten({
      recipient: () => at(ports[n++ % processes] ?? 0, owner),
      writers: ports.flatMap((port) => others.map((key) => write(port, key))),
    });
    let kills = 0;
    const ended = new AbortController();
    const killing = (async () => {
      for (; !ended.signal.aborted; kills++) {
        const which = kills % processes;
        servers[which]?.kill('SIGKILL');
        await servers[which]?.exited;
        servers[which] = await serve(ports[which] ?? 0);
      }
    })();
    const read = await reading.finally(() => {
      ended.abort();
    });
    await killing;
    t.diagnostic(`${read} events, ${kills} times kill -9`);
    for (const server of servers) await server.stop();
  });
