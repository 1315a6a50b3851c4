// What honest clients see while one key or address does its worst within its limits; bench/README.md says how.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { layOutPackage } from '../scripts/build.ts';
import { request } from '../test/support/http.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { attacks } from './isolation/attacks.ts';
import type { PublicPost } from './isolation/attack.ts';
import { bystanders, watch, type Place } from './isolation/bystanders.ts';
import { isolationReport, type AttackResult, type Round } from './isolation/results.ts';
import { cores, describeRun, pinned, temporaryFolder } from './machine.ts';
import { writeReport } from './report.ts';
import { startService, type Service } from './service.ts';

const { values } = parseArgs({
  options: {
    /** Attacks, by name, parted by commas; all unless told. */
    only: { type: 'string', default: Object.keys(attacks).join(',') },
    engines: { type: 'string', default: 'sqlite' },
    rounds: { type: 'string', default: '5' },
    /** Of one attack, and of the honest clients alone. */
    seconds: { type: 'string', default: '10' },
    posts: { type: 'string', default: '20000' },
    agents: { type: 'string', default: '2000' },
    out: { type: 'string', default: fileURLToPath(new URL('./isolation.md', import.meta.url)) },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const chosen = values.only.split(',').map((name) => {
  const attack = attacks[name];
  if (!attack)
    throw new Error(`there is no attack '${name}': choose from ${Object.keys(attacks).join(', ')}`);
  return { name, variant: attack.variant ?? 'subdomain' };
});
/** Agents with keys: the honest one first, then one attacker for each round of each attack. */
const keyed = 1 + rounds * Object.keys(attacks).length;

const folder = temporaryFolder('isolation');
const packageFolder = await layOutPackage(folder);
const sections: string[] = [];
let missed = false;
for (const engine of values.engines.split(',')) {
  const env = await databaseOf(engine);
  const examples = await seed(env);
  for (const variant of ['subdomain', 'path'] as const) {
    const names = chosen.filter((attack) => attack.variant === variant).map(({ name }) => name);
    if (names.length === 0) continue;
    const service = await startService(packageFolder, join(folder, engine), {
      ...env,
      VARIANT: variant,
      TRUST_PROXY: '127.0.0.1',
    });
    const results = await measureAll(service, names, examples, variant);
    await service.stop();
    const { text, met } = isolationReport(`${engine}, \`VARIANT=${variant}\``, results);
    missed ||= !met;
    sections.push(text);
    process.stdout.write(`\n${text}\n`);
  }
}
writeReport(
  values.out,
  [
    '# Isolation',
    '',
    'Written by `npm run bench:isolation`: what honest clients see while one key or address does its worst within its',
    'limits. Each cell: the median of the rounds’ p99, ms. Met: at most three times what it is alone, or 50 ms (250 ms for',
    'publishing) if that is more; no failed call; the process tree at most 300 MiB (PSS).',
    '',
    `- ${describeRun()}; server on one core, attacker and honest clients on the other; ${rounds} rounds of ${seconds} s; ${values.posts} posts, ${values.agents} agents`,
    '',
    ...sections,
  ].join('\n'),
);
process.exit(missed ? 1 : 0);

type Example = { readonly slug: string; readonly key: string };

/** Settings of the engine; a PostgreSQL stays on the server's core. */
async function databaseOf(engine: string): Promise<Record<string, string>> {
  if (engine === 'sqlite') return {};
  const cluster = await startPostgres({ fsync: true });
  process.once('exit', () => void cluster.stop());
  const [pid = ''] = readFileSync(join(cluster.dataDir, 'postmaster.pid'), 'utf8').split('\n');
  if (cores.server !== null) await promisify(execFile)('taskset', ['-acp', String(cores.server), pid]);
  return { DATABASE_URL: await cluster.createDatabase(), SECRET: 's'.repeat(32) };
}

async function seed(env: Record<string, string>): Promise<Example[]> {
  const script = fileURLToPath(new URL('../scripts/seed.ts', import.meta.url));
  const args = [script, '--agents', values.agents, '--posts', values.posts, '--keys', String(keyed)];
  const dataDir = join(folder, env['DATABASE_URL'] === undefined ? 'sqlite' : 'postgres');
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { PATH: process.env['PATH'], DATA_DIR: dataDir, QUOTA_POSTS: '100000', ...env },
    maxBuffer: 1e8,
  });
  return (JSON.parse(stdout) as { examples: Example[] }).examples;
}

async function measureAll(
  service: Service,
  names: readonly string[],
  examples: readonly Example[],
  variant: 'subdomain' | 'path',
): Promise<AttackResult[]> {
  const [honest = { slug: '', key: '' }, ...attackers] = examples;
  const watched = Object.keys(bystanders).filter((name) => variant === 'subdomain' || name !== 'search');
  const attackersOf = (name: string) => {
    const first = Object.keys(attacks).indexOf(name) * rounds;
    return attackers.slice(first, first + rounds);
  };
  const isOf = (url: string) => (agent: Example | undefined) => url.includes(`//${agent?.slug}.`);
  const posts = await publicPosts(service, honest, variant);
  const place: Place = {
    port: service.port,
    key: honest.key,
    // Some may be gone with their agent when it is stopped.
    posts: posts.filter(({ url }) => !attackersOf('deletion').some(isOf(url))),
  };
  const alone: Round[] = [];
  const results = new Map(names.map((name) => [name, [] as Round[]]));
  // What is hot is compiled, and pages are cached as they would be.
  await watch(place, watched, seconds);
  for (let round = 0; round < rounds; round++) {
    alone.push(await measureRound(service, place, watched, null));
    for (const name of names) {
      const attacker = attackersOf(name)[round];
      // It may take its own ones away.
      const others = place.posts.filter(({ url }) => !isOf(url)(attacker));
      const result = await measureRound(service, { ...place, posts: others }, watched, {
        name,
        key: attacker?.key ?? '',
        address: `203.0.113.${Object.keys(attacks).indexOf(name) * rounds + round}`,
        round,
      });
      results.get(name)?.push(result);
      process.stderr.write(`round ${round + 1}, ${name}: ${JSON.stringify(result)}\n`);
    }
  }
  return [
    { what: 'alone', rounds: alone },
    ...names.map((name) => ({ what: attacks[name]?.what ?? name, rounds: results.get(name) ?? [] })),
  ];
}

/** One attack, or none, and what the others see of it; returns when the service has come to rest. */
async function measureRound(
  service: Service,
  place: Place,
  watched: readonly string[],
  attack: { name: string; key: string; address: string; round: number } | null,
): Promise<Round> {
  let most = 0;
  const timer = setInterval(() => (most = Math.max(most, service.memory())), 200);
  try {
    const attacker = attack === null ? null : await startAttacker(service, place, attack);
    const { seen, own } = await watch(place, watched, seconds);
    const outcome = (await attacker?.stop()) ?? {};
    await untilIdle(service);
    return { seen, own, outcome, memory: most };
  } finally {
    clearInterval(timer);
  }
}

async function startAttacker(
  service: Service,
  { posts }: Place,
  { name, ...rest }: { name: string; key: string; address: string; round: number },
) {
  const script = fileURLToPath(new URL('./isolation/attacker.ts', import.meta.url));
  const attacker = JSON.stringify({ port: service.port, posts: posts.slice(0, 50), ...rest });
  const [program = '', ...args] = pinned(cores.load, ['nice', process.execPath, script, name, attacker]);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  while (!output.startsWith('begun')) await once(child.stdout, 'data');
  const exited = once(child, 'exit');
  return {
    async stop(): Promise<Record<string, number>> {
      child.kill('SIGTERM');
      await Promise.race([exited, delay(20_000)]);
      child.kill('SIGKILL');
      return JSON.parse(output.split('\n')[1] || '{}') as Record<string, number>;
    },
  };
}

/** Until the service has used no more than a tenth of a core for a second; at most a minute. */
async function untilIdle(service: Service): Promise<void> {
  for (let waited = 0; waited < 60; waited++) {
    const before = service.cpu();
    await delay(1_000);
    if (service.cpu() - before < 0.1) return;
  }
}

/** Up to 1,000 published posts: of everyone, or of the honest agent where there are no such lists. */
async function publicPosts(
  { origin, port }: Service,
  { key }: Example,
  variant: 'subdomain' | 'path',
): Promise<PublicPost[]> {
  const own = `/api/posts?limit=1000&status=published`;
  const posts: PublicPost[] = [];
  let path: string | null = variant === 'path' ? own : '/api/posts?limit=100';
  while (path !== null && posts.length < 1_000) {
    const answer = await request(origin, {
      path,
      host: `localhost:${port}`,
      headers: variant === 'path' ? { authorization: `Bearer ${key}` } : {},
    });
    const page = answer.json() as { posts?: { id: string; url: string }[]; nextCursor?: string | null };
    posts.push(...(page.posts ?? []).map(({ id, url }) => ({ id, url })));
    path = page.nextCursor ? `/api/posts?limit=100&cursor=${page.nextCursor}` : null;
  }
  if (posts.length === 0) throw new Error('there are no posts to read');
  return posts;
}
