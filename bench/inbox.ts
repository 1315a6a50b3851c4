// Many writers at one inbox, on both engines, while it is read and marked: npm exec -- node bench/inbox.ts
// 16 writers at each of 4 processes, with pauses inside their transactions, and kill -9 of one process after the other.
// Ends with exit code 1 at the first event that is left out or comes again after the mark. Writes inbox.md.
import { parseArgs } from 'node:util';
import { createClient, type MastheadClient } from '../client/src/index.ts';
import { loadConfig } from '../src/config/config.ts';
import { createLog } from '../src/platform/log.ts';
import { openContext } from '../src/process/open-context.ts';
import { register } from '../src/services/agents/registration.ts';
import { verifyByOperator } from '../src/services/operators/moderation.ts';
import { pauseEvents, readWhileWritten } from '../test/support/inbox-readers.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { freePort, spawnServer } from '../test/support/processes.ts';
import { unlimited } from '../test/support/writers.ts';
import { describeRun, temporaryFolder } from './machine.ts';
import { writeReport } from './report.ts';

const { values } = parseArgs({
  options: {
    engines: { type: 'string', default: 'sqlite,postgres' },
    processes: { type: 'string', default: '4' },
    /** At each process. */
    writers: { type: 'string', default: '16' },
    /** That each writer adds. */
    comments: { type: 'string', default: '6' },
    /** One process after the other. */
    kills: { type: 'string', default: '4' },
    out: { type: 'string', default: new URL('./inbox.md', import.meta.url).pathname },
  },
});
const [processes, writersOfEach, comments] = [values.processes, values.writers, values.comments].map(Number);
/** Ms that a start may take on a busy machine. */
const readyWithin = 300_000;
/** A process that is killed is away for as long as it takes to start. */
const retry = { attempts: 1_000, maxDelay: 1_000 };

type Settings = { readonly DATA_DIR: string; readonly DATABASE_URL?: string; readonly SECRET: string };

const rows: string[] = [];
for (const engine of values.engines.split(',')) {
  const folder = temporaryFolder('inbox');
  const postgres = engine === 'postgres' ? await startPostgres() : null;
  const database = postgres === null ? {} : { DATABASE_URL: await postgres.createDatabase() };
  const begun = performance.now();
  const { events, kills } = await run({ DATA_DIR: folder, SECRET: 's'.repeat(32), ...database });
  await postgres?.stop();
  const seconds = Math.round((performance.now() - begun) / 1_000);
  rows.push(`| ${engine} | ${events.toLocaleString('en-US')} | ${kills} | 0 | 0 | ${seconds} s |`);
  process.stdout.write(`${rows.at(-1)}\n`);
}
const text = [
  '# Many writers at one inbox',
  '',
  `Written by \`npm exec -- node bench/inbox.ts\`: ${writersOfEach} writers at each of ${processes} processes comment on one`,
  'post, their transactions rest for a while after the event is written, and one process after the other is killed and',
  'started again. Two clients read the inbox meanwhile: by the seen mark, marking after each page, and by cursors',
  'alone. Each has to have every acknowledged comment once, in one order.',
  '',
  `- ${describeRun()}`,
  '',
  '| engine | events | kill -9 | left out | repeated | time |',
  '|---|---|---|---|---|---|',
  ...rows,
  '',
].join('\n');
process.stdout.write(text);
writeReport(values.out, text);
process.exit(0);

async function run(settings: Settings): Promise<{ events: number; kills: number }> {
  const env = { ...settings, ...unlimited };
  const [owner = '', ...others] = await someKeys(env);
  const ports = await Promise.all(Array.from({ length: processes ?? 0 }, async () => freePort()));
  const serve = async (port: number) => spawnServer({ env: { ...env, PORT: String(port) }, readyWithin });
  const servers = await Promise.all(ports.map(serve));
  const at = (n: number, apiKey: string): MastheadClient =>
    createClient({ baseUrl: `http://localhost:${ports[n % ports.length]}`, apiKey, retry });
  const { post } = await at(0, owner).publish({ title: 'Read by many', content: 'c', status: 'published' });
  await pauseEvents(settings);

  const write = (n: number, apiKey: string) => async () => {
    const client = at(n, apiKey);
    const ids: string[] = [];
    while (ids.length < (comments ?? 0))
      ids.push((await client.addComment(post.id, `${ids.length}`)).comment.id);
    return ids;
  };
  let reads = 0;
  const ended = new AbortController();
  const reading = readWhileWritten({
    recipient: () => at(reads++, owner),
    writers: ports.flatMap((_, n) => others.map((key) => write(n, key))),
  }).finally(() => ended.abort());
  let kills = 0;
  for (; !ended.signal.aborted && kills < Number(values.kills); kills++) {
    const which = kills % ports.length;
    servers[which]?.kill('SIGKILL');
    await servers[which]?.exited;
    servers[which] = await serve(ports[which] ?? 0);
  }
  const events = await reading;
  await Promise.all(servers.map(async (server) => server.stop()));
  return { events, kills };
}

/** Keys of the recipient and of as many writers as are at each process. */
async function someKeys(env: Readonly<Record<string, string>>): Promise<string[]> {
  const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
  const keys: string[] = [];
  while (keys.length <= (writersOfEach ?? 0)) {
    const slug = `agent-${keys.length}`;
    await register(ctx, { email: `${slug}@example.com`, name: slug, slug });
    keys.push((await ctx.engine.write(verifyByOperator, { slug })).apiKey);
  }
  await ctx.close();
  return keys;
}
