// Whether memory grows under load, by hand: node bench/soak.ts --minutes 60
// Everything that the service does, at once, for as long; what is stored stays about as much. Every minute a line
// with the memory of the process tree and its open descriptors, then the verdict; bench/README.md says more.
import { once } from 'node:events';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { layOutPackage } from '../scripts/build.ts';
import { request, type Answer } from '../test/support/http.ts';
import { article } from './article.ts';
import { median } from './compare.ts';
import { describeMachine, freePort, temporaryFolder } from './machine.ts';
import { writeReport } from './report.ts';
import { seed, startService, type Service } from './service.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    /** More than the page cache holds, so that it is full and turning over. */
    posts: { type: 'string', default: '5000' },
    /** Calls a second; 0: as fast as they are answered. */
    rate: { type: 'string', default: '0' },
    /** Asks every minute what the main heap holds after a collection, which takes memory itself, and gives some back. */
    heap: { type: 'boolean', default: false },
    /** Where to write the results; nowhere when empty. */
    out: { type: 'string', default: new URL('./soak.md', import.meta.url).pathname },
  },
});
const minutes = Number(values.minutes);
const posts = Number(values.posts);
const connections = 32;
/** Ms: longer than a busy machine takes. */
const timeout = 60_000;
/** Clients as the limits know them. */
const clients = 5_000;
const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
const rate = Number(values.rate);
/** By how much the last quarter of the run may lie above the second, MiB and descriptors: figures waver. */
const mayGrow = { memory: 8, heap: 3, descriptors: 4 };
/** MiB that the process tree may take at any time. */
const mostMemory = 300;

const folder = temporaryFolder('soak');
const packageFolder = await layOutPackage(folder);
const { dataDir, apiKey } = await seed(packageFolder, join(folder, 'data'), posts);
const inspectorPort = values.heap ? await freePort() : null;
const service = await startService(packageFolder, dataDir, {
  ...(inspectorPort === null ? {} : { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` }),
  TRUST_PROXY: '127.0.0.1',
});
const heap = inspectorPort === null ? null : await openInspector(inspectorPort);
const known = await someIds(service);
const calls = { made: 0, refused: 0, failed: 0 };
/** What failed, and how often. */
const failures = new Map<string, number>();
const samples: { memory: number; heap: number; descriptors: number }[] = [];
let most = 0;

const end = new AbortController();
const loops = Array.from({ length: connections }, () => loop(service));
const watching = setInterval(() => (most = Math.max(most, service.memory())), 1_000);
process.stdout.write('minute  memory MiB  heap MiB  descriptors     calls       4xx    failed\n');
for (let minute = 1; minute <= minutes; minute++) {
  await delay(60_000);
  const heapInUse = (await heap?.used()) ?? 0;
  const sample = { memory: service.memory(), heap: heapInUse, descriptors: service.descriptors() };
  samples.push(sample);
  const columns = [
    sample.memory.toFixed(1).padStart(12),
    sample.heap.toFixed(1).padStart(10),
    String(sample.descriptors).padStart(13),
    ...[calls.made, calls.refused, calls.failed].map((count) => String(count).padStart(10)),
  ];
  process.stdout.write(`${String(minute).padStart(6)}${columns.join('')}\n`);
}
clearInterval(watching);
end.abort();
await Promise.all(loops);
heap?.close();
await service.stop();

// Filling caches and compiling what is hot are not growth: the first quarter is left out.
const quarter = Math.floor(samples.length / 4);
const growth = (of: keyof typeof mayGrow) =>
  median(samples.slice(-quarter).map((sample) => sample[of])) -
  median(samples.slice(quarter, 2 * quarter).map((sample) => sample[of]));
const rows = [
  ['most memory of the process tree', `${Math.round(most)} MiB`, `≤ ${mostMemory} MiB`, most <= mostMemory],
  ...(['memory', 'heap', 'descriptors'] as const)
    .filter((of) => of !== 'heap' || heap !== null)
    .map((of) => {
      const grown = growth(of);
      return [
        `${of}, last quarter to second`,
        signed(grown),
        `≤ +${mayGrow[of]}`,
        grown <= mayGrow[of],
      ] as const;
    }),
  ['failed calls', `${calls.failed} of ${calls.made}`, '0', calls.failed === 0],
] as const;
const text = [
  '# Soak',
  '',
  'Written by `node bench/soak.ts`: everything at once, for as long as it says. Growth is from the median of the second',
  'quarter of the run to that of the last.',
  '',
  ...describeMachine()
    .slice(0, 2)
    .map((line) => `- ${line}`),
  `- ${new Date().toISOString().slice(0, 10)}, ${minutes} minutes, ${posts} posts, ${rate === 0 ? 'as fast as it answers' : `${rate} calls a second`}: ${Math.round(calls.made / (60 * minutes))}/s, ${calls.refused} answered 4xx`,
  '',
  '| | | goal | |',
  '|---|---|---|---|',
  ...rows.map(([what, is, goal, met]) => `| ${what} | ${is} | ${goal} | ${met ? 'met' : '**missed**'} |`),
  '',
  ...[...failures].map(([what, count]) => `- failed ${count} times: ${what}`),
].join('\n');
process.stdout.write(`${quarter === 0 ? 'Too few minutes for a verdict: at least four.' : text}\n`);
if (quarter > 0) writeReport(values.out, text);
process.exit(quarter > 0 && rows.every(([, , , met]) => met) ? 0 : 1);

async function loop(to: Service): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  while (!end.signal.aborted) {
    const outcome = await anyCall(to, agent).then(
      (answer) => (answer.status < 500 ? answer.status : `${answer.status} ${String(answer.at('code'))}`),
      (error: Error) => error.message,
    );
    calls.made++;
    if (typeof outcome === 'string') {
      calls.failed++;
      failures.set(outcome, (failures.get(outcome) ?? 0) + 1);
    } else if (outcome >= 400) calls.refused++;
    if (rate > 0) await delay((Math.random() * 2 * 1000 * connections) / rate);
  }
  agent.destroy();
}

/** One call of any kind, reads more often than writes. */
function anyCall({ origin, port }: Service, agent: Agent): Promise<Answer> {
  const n = below(posts);
  const blog = `agent-${n % 10}.localhost:${port}`;
  const key = { authorization: `Bearer ${apiKey}` };
  const get = (path: string, options: { host?: string; headers?: Record<string, string> } = {}) =>
    request(origin, {
      agent,
      timeout,
      path,
      host: options.host ?? `localhost:${port}`,
      headers: {
        'x-forwarded-for': `10.0.${below(clients) >> 8}.${below(256)}`,
        'accept-encoding': ['br', 'gzip', 'zstd', 'identity'][below(4)] ?? '',
        ...options.headers,
      },
    });
  const post = (path: string, body: object, headers: Record<string, string> = key) =>
    request(origin, {
      agent,
      timeout,
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const kind = below(100);
  if (kind < 35) return get(`/post-${n}`, { host: blog });
  if (kind < 40) return get(`/post-${n}.md`, { host: blog });
  if (kind < 45)
    return get(['/', '/feed.xml', '/rss.xml', '/feed.json', '/tags/measured'][below(5)] ?? '/', {
      host: blog,
    });
  if (kind < 48) return get(['/', '/docs', '/llms.txt', '/sitemap.xml'][below(4)] ?? '/');
  if (kind < 53) return get(`/nothing-${below(1e9)}`, { host: blog });
  if (kind < 63) return get('/api/posts?limit=50', { headers: key });
  if (kind < 68) return get(`/api/posts?since=2020-01-01&limit=20`);
  if (kind < 73) return get(`/api/search?q=${article(n).slice(0, 12).split(' ')[0]}+group`);
  if (kind < 74) return get(`/search?q=word${below(1e9)}`);
  if (kind < 76) return post('/mcp', listTools, { accept: 'application/json, text/event-stream' });
  if (kind < 77) return anyChange(post, get, known[below(known.length)] ?? '');
  if (kind < 79) return post('/api/register', newAgent(below(1e9)));
  if (kind < 82) return get('/api/me', { headers: { authorization: `Bearer ${crypto.randomUUID()}` } });
  return post('/api/publish', {
    slug: `post-${n - (n % 10)}`,
    title: `Measured post ${n}`,
    content: article(below(1e6)),
    status: below(10) === 0 ? 'draft' : 'published',
    tags: ['measured'],
  });
}

/** What is done less often: comments and their removal, votes, edits, dry runs of long texts, an export. */
function anyChange(
  post: (path: string, body: object) => Promise<Answer>,
  get: (path: string, options: { headers: Record<string, string> }) => Promise<Answer>,
  id: string,
): Promise<Answer> {
  const kind = below(100);
  if (kind < 25) return post(`/api/posts/${id}/comments`, { content: article(below(1e6)).slice(0, 1_500) });
  if (kind < 50) return post(`/api/posts/${id}/vote`, { vote: below(2) === 0 ? 1 : -1 });
  if (kind < 75)
    return post('/api/publish?dryRun=true', { title: 'Long', content: article(kind).repeat(60) });
  if (kind < 98)
    return post('/api/publish', { slug: 'long', title: 'Long', content: article(kind).repeat(60) });
  return get('/api/me/export', { headers: { authorization: `Bearer ${apiKey}` } });
}

/** Ids of public posts. */
async function someIds({ origin }: Service): Promise<string[]> {
  const answer = await request(origin, { path: '/api/posts?limit=100' });
  return (answer.json() as { posts: { id: string }[] }).posts.map(({ id }) => id);
}

function newAgent(n: number): object {
  return { name: `Agent ${n}`, slug: `soak-${n}`, email: `soak-${n}@example.org` };
}

function below(limit: number): number {
  return Math.floor(Math.random() * limit);
}

function signed(value: number): string {
  return `${value < 0 ? '-' : '+'}${Math.abs(value).toFixed(1)}`;
}

/** Asks the main thread by Node's inspector what its heap holds, MiB. */
async function openInspector(port: number) {
  const [target] = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as [
    { webSocketDebuggerUrl: string },
  ];
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await once(socket, 'open');
  let lastId = 0;
  const ask = async (method: string): Promise<{ readonly usedSize?: number }> => {
    const id = ++lastId;
    socket.send(JSON.stringify({ id, method }));
    for (;;) {
      const [message] = (await once(socket, 'message')) as [{ data: string }];
      const answer = JSON.parse(message.data) as { id?: number; result: { usedSize?: number } };
      if (answer.id === id) return answer.result;
    }
  };
  return {
    async used(): Promise<number> {
      await ask('HeapProfiler.collectGarbage');
      const { usedSize = Number.NaN } = await ask('Runtime.getHeapUsage');
      return usedSize / 2 ** 20;
    },
    close: () => socket.close(),
  };
}
