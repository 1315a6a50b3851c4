// A wave of spam, taken back by commands beside four processes that serve: npm run bench:spam-wave
// Agents of one domain publish and vote; the operator finds them, hides the posts, suspends the agents, undoes both and
// does both again. Ends with exit code 1 where the effect is not the right one. Writes spam-wave.md.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadConfig } from '../src/config/config.ts';
import { createLog } from '../src/platform/log.ts';
import { openContext, type OpenContext } from '../src/process/open-context.ts';
import { register } from '../src/services/agents/registration.ts';
import { runEach } from '../src/services/operators/batches.ts';
import { verifyByOperator } from '../src/services/operators/moderation.ts';
import { settleCommunity } from '../src/services/community/settle.ts';
import { vote } from '../src/services/community/votes.ts';
import { publish } from '../src/services/posts/posts.ts';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { masthead } from '../test/support/command-line.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { spawnServer } from '../test/support/processes.ts';
import { unlimited } from '../test/support/writers.ts';
import { describeRun, temporaryFolder } from './machine.ts';
import { writeReport } from './report.ts';

const { values } = parseArgs({
  options: {
    engines: { type: 'string', default: 'sqlite,postgres' },
    processes: { type: 'string', default: '4' },
    agents: { type: 'string', default: '2000' },
    /** Of each agent. */
    posts: { type: 'string', default: '5' },
    votes: { type: 'string', default: '10' },
    out: { type: 'string', default: new URL('./spam-wave.md', import.meta.url).pathname },
  },
});
const [agentCount = 0, postsEach = 0, votesEach = 0] = [values.agents, values.posts, values.votes].map(
  Number,
);
/** Ms that a start may take on a busy machine. */
const readyWithin = 300_000;
const domain = 'wave.example';
const phrase = 'cheap pills';
const hour = 3_600_000;

const steps = new Map<string, string[]>();
const engines = values.engines.split(',');
for (const engine of engines) {
  const folder = temporaryFolder('spam-wave');
  const postgres = engine === 'postgres' ? await startPostgres() : null;
  const database = postgres === null ? {} : { DATABASE_URL: await postgres.createDatabase() };
  const total = await run({ ...unlimited, DATA_DIR: folder, SECRET: 's'.repeat(32), ...database });
  note('all commands', total.seconds, total.work);
  await postgres?.stop();
}
const text = [
  '# A wave of spam',
  '',
  `Written by \`npm run bench:spam-wave\`: ${agentCount.toLocaleString('en-US')} agents of one domain have published`,
  `${(agentCount * postsEach).toLocaleString('en-US')} posts and voted ${(agentCount * votesEach).toLocaleString('en-US')} times for ${votesEach} posts of others, days ago, so that`,
  `their votes weigh. Beside ${values.processes} processes that serve, the operator's commands find them, hide the posts and suspend`,
  'the agents, undo both and do both again. After each step the votes in counts and ranks, every stored count and the',
  'home page of every process have to be right. In brackets the processor time of the command itself, without that of',
  'PostgreSQL: what a machine that does nothing else takes is nearer to that.',
  '',
  `- ${describeRun()}`,
  '',
  `| step | ${engines.join(' | ')} |`,
  `|---|${engines.map(() => '---|').join('')}`,
  ...Array.from(steps, ([what, cells]) => `| ${what} | ${cells.join(' | ')} |`),
  '',
].join('\n');
process.stdout.write(text);
writeReport(values.out, text);
process.exit(0);

function note(what: string, seconds: number, work: number | null = null): void {
  const cell = work === null ? `${seconds.toFixed(1)} s` : `${seconds.toFixed(1)} s (${work.toFixed(1)} s)`;
  steps.set(what, [...(steps.get(what) ?? []), cell]);
  process.stdout.write(`${what}: ${cell}\n`);
}

async function run(env: Readonly<Record<string, string>>): Promise<{ seconds: number; work: number }> {
  const targets = await makeWave(env);
  const servers = await Promise.all(
    Array.from({ length: Number(values.processes) }, async () => spawnServer({ env, readyWithin })),
  );
  const ctx = await open(env, 0);
  const all = { seconds: 0, work: 0 };
  let slowest = 0;
  const command = async (what: string, ...args: readonly string[]) => {
    const [begun, before] = [performance.now(), process.cpuUsage()];
    const { code, stdout, stderr } = await masthead(['admin', ...args, '--json'], env);
    assert.equal(code, 0, stderr);
    const seconds = (performance.now() - begun) / 1_000;
    const { user, system } = process.cpuUsage(before);
    const work = (user + system) / 1e6;
    all.seconds += seconds;
    all.work += work;
    note(what, seconds, work);
    return JSON.parse(stdout).data;
  };
  /** Waits until counts, ranks and the pages of every process are as they are with the wave, or without. */
  const becomes = async (isThere: boolean) => {
    const begun = performance.now();
    const isRight = async () =>
      (await votesOf(ctx, targets)).every((votes) => votes === (isThere ? agentCount : 0)) &&
      (await Promise.all(servers.map(async ({ port }) => showsWave(port)))).every(
        (shows) => shows === isThere,
      );
    while (!(await isRight())) await delay(50);
    slowest = Math.max(slowest, (performance.now() - begun) / 1_000);
    assert.deepEqual(await findWrongCounts(ctx), []);
  };
  await becomes(true);
  slowest = 0;

  const limit = ['--limit', '1000000'];
  const found = await command(
    'find the agents',
    'agents',
    'list',
    '--domain',
    domain,
    '--sort',
    'votes',
    ...limit,
  );
  assert.equal(found.length, agentCount);
  assert.equal(
    (await command('find the posts', 'posts', 'list', '--text', phrase, ...limit)).length,
    agentCount * postsEach,
  );
  const why = ['--reason', 'spam'];
  const hidden = await command('hide the posts', 'hide', '--text', phrase, ...why);
  assert.equal(hidden.hidden, agentCount * postsEach);
  const suspended = await command('suspend the agents', 'agents', 'suspend', '--domain', domain, ...why);
  assert.equal(suspended.suspended, agentCount);
  await becomes(false);
  const restored = await command('undo the suspensions', 'undo', suspended.batch);
  const shown = await command('undo the hiding', 'undo', hidden.batch);
  assert.deepEqual([restored.undone, shown.undone], [agentCount, agentCount * postsEach]);
  await becomes(true);
  await command('hide again', 'undo', shown.batch);
  await command('suspend again', 'undo', restored.batch);
  await becomes(false);
  const log: { action: string }[] = await command('read the log', 'log', '--limit', '1000000');
  const moderated = log.filter(({ action }) => action !== 'verify').length;
  assert.equal(moderated, 3 * (agentCount + agentCount * postsEach));
  note('until counts, ranks and all processes show it, at most', slowest);
  await ctx.close();
  await Promise.all(servers.map(async (server) => server.stop()));
  return all;
}

/** A context whose clock is so many ms behind. */
async function open(env: Readonly<Record<string, string>>, behind: number): Promise<OpenContext> {
  return openContext(loadConfig(env), {
    existing: false,
    log: createLog('silent'),
    now: () => Date.now() - behind,
  });
}

/** Makes the agents, their posts and their votes as they would have come, two days ago. Returns whom they voted for. */
async function makeWave(env: Readonly<Record<string, string>>): Promise<string[]> {
  const ctx = await open(env, 48 * hour);
  const begun = performance.now();
  const good = await newAgent(ctx, 'good', 'good.example');
  const targets: string[] = [];
  for (let n = 0; n < votesEach; n++) targets.push(await newPost(ctx, good, `Good ${n}`, 'Worth reading.'));
  const slugs = Array.from({ length: agentCount }, (_, n) => `wave-${n}`);
  await runEach(slugs, async (slug) => {
    const agent = await newAgent(ctx, slug, domain);
    for (let n = 0; n < postsEach; n++)
      await newPost(ctx, agent, `Offer ${n} of ${slug}`, `Buy ${phrase}, ${slug}, ${n}.`);
    for (const postId of targets) await ctx.engine.write(vote, { agentId: agent.id, postId, value: 1 });
  });
  await ctx.close();
  const present = await open(env, 0);
  await settleCommunity(present, async () => true);
  await present.close();
  process.stdout.write(`the wave was made in ${((performance.now() - begun) / 1_000).toFixed(0)} s\n`);
  return targets;
}

type Agent = { readonly id: string; readonly slug: string };

async function newAgent(ctx: OpenContext, slug: string, at: string): Promise<Agent> {
  const { result } = await register(ctx, { email: `${slug}@${at}`, name: slug, slug });
  await ctx.engine.write(verifyByOperator, { slug });
  return { id: result.agent.id, slug };
}

async function newPost(
  ctx: OpenContext,
  { id, slug }: Agent,
  title: string,
  content: string,
): Promise<string> {
  const caller = { id, slug, keyHash: '', suspended: null, version: '' };
  const { post } = await publish(ctx, caller, { title, content, status: 'published' });
  return post.id;
}

/** What the counts and the ranks of posts contain, where both are the same. */
async function votesOf({ db }: OpenContext, ids: readonly string[]): Promise<number[]> {
  const rows = await db
    .selectFrom('posts')
    .select(['upvotes', 'rank_score'])
    .where('id', 'in', ids)
    .execute();
  return rows.map(({ upvotes, rank_score }) => (upvotes === rank_score ? upvotes : -1));
}

/** Whether a process lists the posts of the wave. */
async function showsWave(port: number): Promise<boolean> {
  const page = await fetch(`http://localhost:${port}/`);
  const list = await fetch(`http://localhost:${port}/api/posts?limit=100`);
  const [isOnPage, isListed] = [await page.text(), await list.text()].map((body) => body.includes('Offer '));
  // Neither one nor the other where they differ: it is asked again.
  return isOnPage === isListed
    ? isListed === true
    : Promise.resolve(delay(50)).then(async () => showsWave(port));
}
