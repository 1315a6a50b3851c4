// A folder of 1,000 files under the published limits of variant B: npm exec -- node bench/publish-folder.ts
// 100 posts an hour: the clock of the service runs HASTE times as fast as the real one, and so do the waits of the
// command line (hasty-waits.ts); nothing else is changed. The command is stopped, killed (-9) at random moments and started
// again. Ends with exit code 1 where a post is missing, doubled or out of order. Writes publish-folder.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createClient } from '../client/src/index.ts';
import { loadConfig } from '../src/config/config.ts';
import { awaitNewestMail } from '../src/mail/stored-mail.ts';
import { createLog } from '../src/platform/log.ts';
import { startServer } from '../src/server.ts';
import { describeRun, temporaryFolder } from './machine.ts';
import { writeReport } from './report.ts';

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '1000' },
    kills: { type: 'string', default: '20' },
    /** How much faster than the real one the clock runs. */
    haste: { type: 'string', default: '150' },
    /** Longest time, ms, between a start and its kill. */
    longest: { type: 'string', default: '12000' },
    out: { type: 'string', default: new URL('./publish-folder.md', import.meta.url).pathname },
  },
});
const [files, kills, haste, longest] = [values.files, values.kills, values.haste, values.longest].map(
  Number,
) as [number, number, number, number];

const home = temporaryFolder('folder');
const folder = join(home, 'posts');
const dataDir = join(home, 'data');
mkdirSync(folder);
const titles = Array.from({ length: files }, (_, n) => `Post ${n + 1} of many`);
for (const [n, title] of titles.entries())
  writeFileSync(join(folder, `${String(n).padStart(4, '0')}.md`), `# ${title}\n\nText of number ${n + 1}.\n`);

const began = Date.now();
const now = (): number => began + (Date.now() - began) * haste;
const answers = new Map<number, number>();
const server = await startServer(
  loadConfig({ DATA_DIR: dataDir, PORT: '0', VARIANT: 'path', LOG_REQUESTS: 'all' }),
  {
    now,
    log: createLog('info', (line) => {
      const { route = '', status = 0 } = JSON.parse(line) as { route?: string; status?: number };
      if (route === '/api/publish') answers.set(status, (answers.get(status) ?? 0) + 1);
    }),
  },
);
const baseUrl = `http://127.0.0.1:${server.port}`;
const apiKey = await newKey();
const client = createClient({ baseUrl, apiKey });

const cli = fileURLToPath(new URL('../client/src/cli.ts', import.meta.url));
const hasty = new URL('./hasty-waits.ts', import.meta.url).href;
const counts = { starts: 0, killed: 0, waits: 0 };

/** When a run gets a signal. */
type Moment = {
  readonly signal?: NodeJS.Signals;
  readonly after?: number;
  readonly atLine?: number;
  readonly atWait?: boolean;
};
/** Posts after which it is killed at the latest. */
const mostLines = 40;

const first = await publish('--no-wait');
const stopped = await publish('', { signal: 'SIGINT', atWait: true });
while (counts.killed < kills) {
  // Half of them while it publishes: by far the most time it waits.
  const moment =
    counts.killed % 2 === 0
      ? { after: Math.random() * longest }
      : { atLine: 1 + Math.floor(Math.random() * mostLines) };
  const ended = await publish('', { signal: 'SIGKILL', ...moment });
  if (ended !== 'SIGKILL') break;
  counts.killed++;
}
const last = await publish('');
const seconds = Math.round((Date.now() - began) / 1_000);
const hours = ((now() - began) / 3_600_000).toFixed(1);

const posts: { title: string; slug: string; status: string }[] = [];
for await (const post of client.iteratePosts({ limit: 1000 })) posts.unshift(post);
const found = posts.map(({ title }) => title);
const doubled = found.length - new Set(found).size;
const missing = titles.filter((title) => !found.includes(title)).length;
const misplaced = found.filter((title, n) => title !== titles[n]).length;
const isPublic = posts.every(({ status }) => status === 'published');
await server.close();

const text = [
  `# A folder of ${files} files under published limits`,
  '',
  'Written by `npm exec -- node bench/publish-folder.ts`: `masthead-agent post publish` of a folder, with the limits that variant B',
  `publishes (100 posts and 1,000 other calls an hour). The clock of the service runs ${haste} times as fast as the real one, and`,
  'so do the waits of the command line for a `Retry-After`; all else, time limits included, is as shipped.',
  '',
  `- ${describeRun()}`,
  `- ${hours} hours by the clock of the service, ${seconds} s by the real one`,
  '',
  '| what | seen |',
  '|---|---|',
  `| posts, in ${files} files | ${posts.length} |`,
  `| missing; doubled; out of the order of the files | ${missing}; ${doubled}; ${misplaced} |`,
  `| starts of the command | ${counts.starts} |`,
  `| of which stopped by --no-wait, with exit code | ${first} |`,
  `| stopped by Ctrl-C, with exit code | ${stopped} |`,
  `| killed by SIGKILL, half at a random moment, half after a random number of posts | ${counts.killed} |`,
  `| exit code of the last | ${last} |`,
  `| waits for a limit; lines on them | ${answers.get(429) ?? 0}; ${counts.waits} |`,
  `| posts sent again after a kill | ${(answers.get(201) ?? 0) + (answers.get(200) ?? 0) - posts.length} |`,
  '',
].join('\n');
process.stdout.write(text);
writeReport(values.out, text);
const isRight =
  posts.length === files && missing + doubled + misplaced === 0 && isPublic && counts.killed === kills;
process.exit(isRight && first === 3 && stopped === 130 && last === 0 ? 0 : 1);

/** Runs the command until it ends, or a signal is sent, after so many ms or posts; returns its exit code or that signal. */
async function publish(
  option: string,
  { signal, after = Infinity, atLine = Infinity, atWait = false }: Moment = {},
): Promise<number | NodeJS.Signals> {
  counts.starts++;
  const args = ['post', 'publish', folder, '--publish', ...(option === '' ? [] : [option])];
  const child = spawn(process.execPath, ['--import', hasty, cli, ...args], {
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      MASTHEAD_URL: baseUrl,
      MASTHEAD_API_KEY: apiKey,
      HASTE: values.haste,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  let lines = 0;
  child.stdout.setEncoding('utf8').on('data', (data: string) => {
    lines += data.match(/^(?:created|updated|unchanged):/gm)?.length ?? 0;
    if (signal && lines >= atLine) child.kill(signal);
  });
  child.stderr.setEncoding('utf8').on('data', (data: string) => {
    const waits = data.match(/Waiting \d/g)?.length ?? 0;
    counts.waits += waits;
    if (signal && atWait && waits > 0) child.kill(signal);
    errors = (errors + data).slice(-1_000);
  });
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const controller = new AbortController();
  if (signal && after !== Infinity) {
    await Promise.race([closed, delay(after, null, controller)]);
    child.kill(signal);
  }
  const [code, by] = await closed;
  controller.abort();
  process.stdout.write(`${option} ${signal ?? ''} -> ${code ?? by}: ${errors.trim().split('\n').at(-1)}\n`);
  return code ?? by ?? 1;
}

async function newKey(): Promise<string> {
  const visitor = createClient({ baseUrl });
  await visitor.register({ name: 'Measured', email: 'measured@example.org' });
  const mail = await awaitNewestMail(join(dataDir, 'mail'), { holdingToken: true }, 30_000);
  return (await visitor.verify(mail?.token ?? '')).apiKey;
}
