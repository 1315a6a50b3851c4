import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { createSearchProcesses } from '../../src/db/sqlite/sqlite-search.ts';
import { catalogue, type ErrorCode } from '../../src/errors.ts';
import { parseSearch } from '../../src/rules/search/search-terms.ts';
import { createLog } from '../../src/platform/log.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  startInstance,
  type Instance,
} from '../support/instance.ts';
import { quickLoad } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { openSqlite } from '../support/sqlite-file.ts';

const env = { TRUST_PROXY: 'loopback' };

const from = (address: string) => ({ 'x-forwarded-for': address });
const search = (instance: Instance, q: string, address = '203.0.113.1', more = '') =>
  instance.call('GET', `/api/search?q=${encodeURIComponent(q)}${more}`, { headers: from(address) });

/** Every way to search: its status, the refusal's code, and what is left of the address's limit. */
const ways = {
  api: async (instance: Instance, q: string) => {
    const answer = await search(instance, q);
    return { answer, status: answer.status, code: answer.at('code'), hint: answer.at('hint') };
  },
  page: async (instance: Instance, q: string) => {
    const headers = { ...from('203.0.113.1'), accept: 'application/json' };
    const answer = await instance.call('GET', `/search?q=${encodeURIComponent(q)}`, { headers });
    const { code, hint }: { code?: unknown; hint?: unknown } =
      answer.status === 200 ? {} : JSON.parse(answer.text);
    return { answer, status: answer.status, code, hint };
  },
  mcp: async (instance: Instance, q: string) => {
    const answer = await instance.call('POST', '/mcp', {
      headers: { ...from('203.0.113.1'), accept: 'application/json, text/event-stream' },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'search', arguments: { q } },
      },
    });
    const { code, hint }: { code?: ErrorCode; hint?: unknown } = JSON.parse(
      String(answer.at('result.content.0.text')),
    );
    return { answer, status: code === undefined ? 200 : catalogue[code].status, code, hint };
  },
};

/**
 * Holds searches up before they are run; `begun` has the first word of each in order. Meanwhile content counts as
 * unchanged, since a process on PostgreSQL also learns of its own a moment later, unless the test makes `changes`.
 */
function holdSearches(instance: Instance, { changes = false } = {}) {
  const { engine } = instance.ctx();
  const { findNewest } = engine;
  const publicVersion = engine.publicVersion.bind(engine);
  const version = publicVersion();
  if (!changes) Object.assign(engine, { publicVersion: () => version });
  const begun: string[] = [];
  const signals: AbortSignal[] = [];
  const gate = Promise.withResolvers<void>();
  Object.assign(engine, {
    findNewest: async (...call: Parameters<typeof findNewest>) => {
      begun.push(call[0][0]?.all[0]?.terms[0] ?? '');
      signals.push(call[3]);
      await gate.promise;
      return findNewest(...call);
    },
  });
  return {
    begun,
    signals,
    /** Resolves once so many were begun; fails where some are not, as of searches that are refused. */
    async hasBegun(count: number): Promise<void> {
      const deadline = Date.now() + 20_000;
      while (begun.length < count) {
        assert.ok(Date.now() < deadline, `of ${count} searches only ${begun.join(', ') || 'none'} began`);
        await new Promise(setImmediate);
      }
    },
    /** Lets these and all later ones run; content still counts as unchanged. */
    open: gate.resolve,
    /** The same, and content counts as it is. */
    release() {
      Object.assign(engine, { publicVersion });
      gate.resolve();
    },
  };
}

describeInstances('searches under load', { variants: ['subdomain'], env }, (the) => {
  test('beginnings of fewer than 3 letters, and exclusions alone, are refused with what to do, wherever one searches', async () => {
    for (const way of Object.values(ways)) {
      for (const q of [
        'a*',
        'wombat ab*',
        '-ab* wombat',
        '"wombat b"*',
        'é*',
        '-wombat',
        '-"two words" -wom*',
      ]) {
        const { status, code, hint } = await way(the(), q);
        assert.deepEqual([status, code], [400, 'invalid_input'], q);
        assert.match(String(hint), /letters|Words must/, q);
      }
      assert.equal((await way(the(), 'wom*')).status, 200);
    }
  });

  test('the same search is joined, and its answer kept until content changes', async () => {
    const { client } = await the().agent('Joined');
    await client.publish({ title: 'One', content: 'tungsten', status: 'published' });
    const held = holdSearches(the());
    const asked = Array.from({ length: 5 }, (_, n) => search(the(), 'tungsten', `203.0.113.${n + 10}`));
    await held.hasBegun(1);
    held.open();
    for (const answer of await Promise.all(asked)) assert.equal(assertOk(answer).at('total'), 1);
    assert.equal((await search(the(), 'tungsten')).at('posts.0.votes.score'), 0);
    assert.deepEqual(held.begun, ['tungsten']);
    held.release();
    await client.publish({ title: 'Two', content: 'tungsten', status: 'published' });
    assert.equal((await search(the(), 'tungsten')).at('total'), 2);
    const { posts } = await the().client().search('tungsten');
    const other = await the().agent('Voter');
    await other.client.vote(posts[0]?.id ?? '', 1);
    assert.equal((await search(the(), 'tungsten')).at('posts.0.votes.score'), 1);
  });

  test('a search that began before a change is not the answer of one that came after it', async () => {
    const { client } = await the().agent('Between');
    const held = holdSearches(the(), { changes: true });
    const before = search(the(), 'rhenium', '203.0.113.1');
    await held.hasBegun(1);
    const waiting = search(the(), 'hafnium', '203.0.113.1');
    await client.publish({ title: 'New', content: 'rhenium hafnium', status: 'published' });
    const after = search(the(), 'rhenium', '203.0.113.2');
    await held.hasBegun(2);
    // What has not begun yet will find the change, so it is joined.
    const joined = search(the(), 'hafnium', '203.0.113.3');
    await held.hasBegun(Math.min(3, the().ctx().engine.searchesAtOnce));
    held.release();
    await before;
    assert.equal((await after).at('total'), 1);
    for (const answer of await Promise.all([waiting, joined])) assert.equal(answer.at('total'), 1);
    assert.deepEqual(held.begun, ['rhenium', 'rhenium', 'hafnium']);
    assert.equal((await search(the(), 'rhenium', '203.0.113.3')).at('total'), 1);
  });

  test('addresses take turns, and one of them may have 16 searches at once, wherever it searches', async (t) => {
    const held = holdSearches(the());
    const { mock: found } = t.mock.method(the().ctx().searches, 'find');
    const many = Array.from({ length: 17 }, (_, n) => search(the(), `busy${n}`));
    // One is refused, so sixteen are under way.
    assertProblem(await Promise.race(many), 'unavailable');
    const others = search(the(), 'other', '203.0.113.2');
    await held.hasBegun(2);
    assert.deepEqual([held.begun.length, held.begun[1]], [2, 'other']);
    const before = found.callCount();
    const joined = search(the(), held.begun[0] ?? '');
    // Calls on new connections keep no order.
    while (found.callCount() === before) await new Promise(setImmediate);
    const left = new Set<unknown>();
    for (const [name, way] of Object.entries(ways)) {
      const { answer, status, code } = await way(the(), `more-${name}`);
      assert.deepEqual([status, code], [503, 'unavailable'], name);
      if (name !== 'mcp') assert.equal(answer.headers['retry-after'], '1');
      left.add(answer.headers['x-ratelimit-remaining']);
    }
    assert.equal(left.size, 1, 'a refusal was counted');
    held.release();
    for (const answer of [await others, await joined]) assertOk(answer);
    const answered = (await Promise.all(many)).filter(({ status }) => status === 200);
    assert.equal(answered.length, 16);
  });

  test('what nobody waits for any more is ended, or never begun', async () => {
    const held = holdSearches(the());
    const running = leaver(the(), 'gone0');
    await held.hasBegun(1);
    const waiting = leaver(the(), 'gone1');
    const shared = leaver(the(), 'shared');
    const staying = search(the(), 'shared', '203.0.113.9');
    await held.hasBegun(2);
    assert.deepEqual(held.begun, ['gone0', 'shared']);
    for (const client of [shared, waiting, running]) client.destroy();
    while (held.signals[0]?.aborted !== true) await new Promise(setImmediate);
    assert.equal(held.signals[1]?.aborted, false, 'somebody still waits');
    held.release();
    assertOk(await staying);
    assertOk(await search(the(), 'last', '203.0.113.9'));
    assert.ok(!held.begun.includes('gone1'));
  });
});

test('SQLite ends a search that takes too long, or whose client has left, while others search', async () => {
  const instance = await startInstance({ env });
  try {
    const { client } = await instance.agent('Quick');
    await client.publish({ title: 'Found', content: 'osmium', status: 'published' });
    addHeavyTexts(join(instance.dataDir, 'masthead.db'));
    const heavy = search(instance, heavyQuery, '203.0.113.1');
    while (searchProcesses().length === 0) await new Promise(setImmediate);
    assertOk(await search(instance, 'osmium', '203.0.113.2'));
    const refused = assertProblem(await heavy, 'unavailable');
    assert.match(String(refused.at('detail')), /longer than 500 ms/);
    assert.match(String(refused.at('hint')), /rarer words/);
    assert.equal(refused.headers['retry-after'], '1');
    // For a moment its address is refused, so that it cannot end one process after another.
    assertProblem(await search(instance, heavyQuery, '203.0.113.1', '&limit=2'), 'unavailable');
    assertOk(await search(instance, 'osmium', '203.0.113.3', '&limit=3'));

    const before = searchProcesses();
    const left = leaver(instance, `${encodeURIComponent(heavyQuery)}&limit=3`, '203.0.113.4');
    while (processorTime(before) < 20) await delay(5);
    left.destroy();
    while (before.every((pid) => searchProcesses().includes(pid))) await delay(5);
    assertOk(await search(instance, 'osmium', '203.0.113.5', '&limit=4'));
  } finally {
    await instance.close();
  }
  assert.deepEqual(searchProcesses(), [], 'ended with the service');
});

test('searches wait for a process where several have just ended, and are refused where none begins', async () => {
  const folder = scratchFolder('search');
  const file = join(folder, 'some.db');
  openSqlite(file).close();
  const ask = async (processes: ReturnType<typeof createSearchProcesses>) =>
    processes.search([], new AbortController().signal);
  const sound = createSearchProcesses(file, createLog('silent'));
  for (let n = 0; n < 3; n++) {
    assert.deepEqual(await ask(sound), { matches: [], by: 0 });
    for (const pid of searchProcesses()) {
      process.kill(pid, 'SIGKILL');
      // Until this process has taken notice.
      while (existsSync(`/proc/${pid}`)) await delay(5);
    }
  }
  await sound.close();
  const broken = createSearchProcesses(join(folder, 'missing.db'), createLog('silent'));
  await assert.rejects(ask(broken), { code: 'unavailable' });
  await broken.close();
});

test('of two processes the one that gets no more queries is ended, also where it was started first', async () => {
  const file = join(scratchFolder('search'), 'some.db');
  openSqlite(file).close();
  const processes = createSearchProcesses(file, createLog('silent'));
  const count = (upTo: number) => {
    const asked = { text: counting, parameters: [upTo], query: parseSearch('any') };
    return processes.search([asked], new AbortController().signal);
  };
  try {
    await count(1);
    const [first = 0] = searchProcesses();
    // The second is started behind those that wait for the first.
    while (searchProcesses().length < 2)
      await Promise.all(Array.from({ length: 8 }, async () => count(300_000)));
    // The process that is given back last gets the next query, and so all that follow.
    const before = processorTime([first]);
    await count(500_000);
    const firstIsNext = processorTime([first]) > before;
    const lengths = firstIsNext ? [1, 500_000] : [500_000, 1];
    await Promise.all(lengths.map(async (length) => count(length)));
    for (let n = 0; searchProcesses().length === 2; n++) {
      assert.ok(n < 150, 'both are kept');
      await count(1);
      await delay(100);
    }
    assert.ok(!searchProcesses().includes(first));
  } finally {
    await processes.close();
  }
});

/** Finds nothing in a time that grows with its parameter. */
const counting = `
  with recursive counted (n) as (select 1 union all select n + 1 from counted where n < ?)
  select n as doc from counted where n < 0`;

test('a process in which nothing else is under way lives until its search processes have ended', async () => {
  const file = join(scratchFolder('search'), 'some.db');
  openSqlite(file).close();
  const script = `
    import { createSearchProcesses } from ${JSON.stringify(new URL('../../src/db/sqlite/sqlite-search.ts', import.meta.url).href)};
    const searches = createSearchProcesses(${JSON.stringify(file)}, { error: console.error });
    const busy = setInterval(() => undefined, 1_000);
    await searches.search([], new AbortController().signal);
    clearInterval(busy);
    await searches.close();
    console.log('closed');`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: quickLoad() });
  assert.equal(stdout, 'closed\n');
});

test('PostgreSQL ends a search that takes too long, or whose client has left', async () => {
  const instance = await startInstance({ engine: 'postgres', env });
  const { database } = instance.ctx().config;
  assert.equal(database.engine, 'postgres');
  const other = new Client(database.urls[0]);
  try {
    await other.connect();
    await other.query('begin; lock table post_search in access exclusive mode');
    const refused = assertProblem(await search(instance, 'osmium'), 'unavailable');
    assert.match(String(refused.at('detail')), /longer than 500 ms/);
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%post_search%'`;
    const isWaiting = async () => {
      // Within a transaction it would show the same for ever.
      await other.query('select pg_stat_clear_snapshot()');
      return (await other.query(waiting)).rows.length > 0;
    };
    let left = leaver(instance, 'osmium', '203.0.113.10');
    // On a busy machine it may be ended before it is seen: then another takes its place.
    for (let n = 11; !(await isWaiting()); await delay(1))
      if (left.hasAnswer()) left = leaver(instance, 'osmium', `203.0.113.${n++}`);
    left.destroy();
    while (await isWaiting()) await delay(1);
    await other.query('rollback');
    assertOk(await search(instance, 'osmium', '203.0.113.3'));
  } finally {
    await other.end();
    await instance.close();
  }
});

/** Texts that take long to search for a phrase, beside the posts. */
function addHeavyTexts(file: string): void {
  const database = openSqlite(file);
  try {
    const add = database.prepare(`insert into post_search (rowid, title, tags, text) values (?, '', '', ?)`);
    for (let n = 0; n < 100; n++) add.run(1_000_000 + n, 'a '.repeat(200_000));
  } finally {
    database.close();
  }
}

const heavyQuery = `"${'a '.repeat(13)}" -a`;

/** The processes of this one that search. */
function searchProcesses(): number[] {
  return readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
    .split(' ')
    .map(Number)
    .filter((pid) => pid > 0 && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('search-process'));
}

/** Processor time of the busiest of some processes, in ticks of 10 ms. */
function processorTime(pids: readonly number[]): number {
  return Math.max(
    ...pids.map((pid) => {
      const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
      return Number(text.slice(text.lastIndexOf(')')).split(' ')[12]);
    }),
  );
}

/** A client that asks and can leave. */
function leaver({ port }: Instance, q: string, address = '203.0.113.1') {
  let isAnswered = false;
  const client = http.get({ port, path: `/api/search?q=${q}`, headers: from(address), agent: false });
  client.on('error', () => undefined);
  client.on('response', (response) => {
    isAnswered = true;
    response.resume();
  });
  return { destroy: () => client.destroy(), hasAnswer: () => isAnswered };
}
