import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import { Client } from 'pg';
import { loadConfig } from '../../src/config/config.ts';
import { Flight, rowsTogether } from '../../src/db/postgres/postgres-flight.ts';
import { mostWriting } from '../../src/db/postgres/postgres-server.ts';
import { Session } from '../../src/db/postgres/postgres-session.ts';
import { preparedChange } from '../../src/db/prepared.ts';
import { defineWrite, type Ticket } from '../../src/db/write.ts';
import type { Context } from '../../src/context.ts';
import { AppError } from '../../src/errors.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext, type OpenContext } from '../../src/process/open-context.ts';
import { preparePost, type PostFields } from '../../src/services/posts/post-input.ts';
import { savePost, type Saved } from '../../src/services/posts/post-store.ts';
import { noPreconditions } from '../../src/services/preconditions.ts';
import { startInstance } from '../support/instance.ts';
import { query } from '../support/postgres.ts';
import { randomFrom } from '../support/random.ts';
import { scale } from '../support/scale.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';

const about = () => 'one agent';

describe('writes that share a transaction on PostgreSQL', () => {
  let dataDir: string;
  let url: string;
  let ctx: OpenContext;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'masthead-batches-'));
    url = await (await sharedPostgres()).createDatabase();
    ctx = await open(dataDir, url);
    await query(url, 'create table ledger (id text)');
  });
  after(async () => {
    await ctx.close();
    await rm(dataDir, { recursive: true });
  });

  it('are committed together when they wait for the same agent', async (t) => {
    // A batch takes no more after 25 ms, which pass at once on a busy machine.
    const now = performance.now();
    t.mock.method(performance, 'now', () => now);
    const gate = Promise.withResolvers<void>();
    const put = defineWrite(
      'test.put',
      async (tx, key: string) => {
        await tx.db.insertInto('meta').values({ key, value: '' }).execute();
        if (key === 'first') await gate.promise;
      },
      { about },
    );
    const keys = ['first', ...Array.from({ length: 20 }, (_, i) => `later-${i}`)];
    const writes = keys.map((key) => ctx.engine.write(put, key));
    gate.resolve();
    await Promise.all(writes);
    const rows = await query(
      url,
      `select count(*)::int as rows, count(distinct xmin::text)::int as commits from meta where key ~ '^(first|later)'`,
    );
    assert.deepEqual(rows, [{ rows: 21, commits: 1 }]);
  });

  it('are committed together when they wait for a connection, whatever agent they are about', async (t) => {
    const now = performance.now();
    t.mock.method(performance, 'now', () => now);
    const free = holdConnections(ctx);
    const ids = Array.from({ length: 20 }, () => randomUUID());
    const writes = ids.map((id, i) => ctx.engine.write(note, { id, agent: `agent-${i}` }));
    free();
    await Promise.all(writes);
    const rows = await query(
      url,
      'select count(*)::int as rows, count(distinct xmin::text)::int as commits from ledger where id = any($1)',
      [ids],
    );
    assert.deepEqual(rows, [{ rows: 20, commits: 1 }]);
  });

  it('ask at once where they lock different things, and take back alone what is refused', async (t) => {
    const free = holdConnections(ctx);
    const ids = Array.from({ length: 12 }, () => randomUUID());
    let runs = 0;
    const steps = 5;
    const read = defineWrite(
      'test.read',
      async ({ db }, { id, refused }: { id: string; refused: boolean }) => {
        runs++;
        for (let n = 0; n < steps; n++)
          await db.selectFrom('meta').select('key').where('key', '=', id).execute();
        put(db, { id });
        if (refused) throw new AppError('forbidden', 'One of them is.');
      },
      { about: ({ id }) => id, locks: ({ id }) => [`ledger:${id}`] },
    );
    const flights = t.mock.method(Flight.prototype, 'submit');
    const writes = Promise.allSettled(
      ids.map((id, n) => ctx.engine.write(read, { id, refused: n % 3 === 1 })),
    );
    free();
    const refused = (await writes).map(({ status }) => status === 'rejected');
    assert.deepEqual(
      refused,
      ids.map((_, n) => n % 3 === 1),
    );
    assert.equal(runs, ids.length);
    // Each by itself would need as many, and what goes on besides has some.
    assert.ok(flights.mock.callCount() < ids.length * steps, `${flights.mock.callCount()} round trips`);
    const rows = await query(url, 'select id from ledger where id = any($1)', [ids]);
    assert.deepEqual(
      rows.map(({ id }) => String(id)).toSorted(),
      ids.filter((_, n) => !refused[n]).toSorted(),
    );
  });

  it('run one after another where they lock the same, whatever they are about', async () => {
    const free = holdConnections(ctx);
    const agents = Array.from({ length: 40 }, (_, n) => `sharer-${n}`);
    const increment = defineWrite(
      'test.increment',
      async ({ db }, { agent }: { agent: string }) => {
        const { rows } = await sql<{ value: string }>`select value from meta where key = 'shared'`.execute(
          db,
        );
        const value = String(Number(rows[0]?.value ?? 0) + 1);
        await sql`insert into meta (key, value) values ('shared', ${value})
          on conflict (key) do update set value = excluded.value`.execute(db);
        return agent;
      },
      { about: ({ agent }) => agent, locks: ({ agent }) => [`agent:${agent}`, 'shared'] },
    );
    const writes = agents.map((agent) => ctx.engine.write(increment, { agent }));
    free();
    assert.deepEqual(await Promise.all(writes), agents);
    assert.deepEqual(await query(url, `select value from meta where key = 'shared'`), [
      { value: String(agents.length) },
    ]);
  });

  it('go on without one that waits for a lock of another process', async (t) => {
    const other = new Client(url);
    await other.connect();
    t.after(() => other.end());
    await other.query(`select pg_advisory_lock(hashtextextended('agent:agent-2', 0))`);
    const free = holdConnections(ctx);
    const ids = Array.from({ length: 5 }, () => randomUUID());
    const writes = ids.map((id, i) => ctx.engine.write(note, { id, agent: `agent-${i}` }));
    free();
    await Promise.all(writes.filter((_, i) => i !== 2));
    const stored = async () => (await query(url, 'select id from ledger where id = any($1)', [ids])).length;
    assert.equal(await stored(), 4);
    await other.query('select pg_advisory_unlock_all()');
    await writes[2];
    assert.equal(await stored(), 5);
  });

  it('go on beside agents whose locks another process has, however few connections are for them', async (t) => {
    const other = new Client(url);
    await other.connect();
    t.after(() => other.end());
    const ids = Array.from({ length: 3 }, () => randomUUID());
    for (const id of ids.slice(1))
      await other.query('select pg_advisory_lock(hashtextextended($1, 0))', [`agent:${id}`]);
    const held = ids.slice(1).map((id) => ctx.engine.write(note, { id, agent: id }));
    await ctx.engine.write(note, { id: ids[0] ?? '', agent: 'free' });
    await other.query('select pg_advisory_unlock_all()');
    await Promise.all(held);
    const rows = await query(url, 'select id from ledger where id = any($1)', [ids]);
    assert.equal(rows.length, 3);
  });

  it('leave connections to others while they want a lock that somebody else has', async (t) => {
    const holder = new Client(url);
    await holder.connect();
    t.after(() => holder.end());
    await holder.query(`begin; select pg_advisory_xact_lock(hashtextextended('scarce', 0))`);
    const take = defineWrite('test.take', async (tx, { agentId }: { agentId: string }) => {
      await tx.lock(`own ${agentId}`);
      await tx.lock('scarce');
      await sql`insert into ledger (id) values (${agentId})`.execute(tx.db);
    });
    const ids = Array.from({ length: 3 * mostWriting }, () => randomUUID());
    const taking = ids.map((agentId) => ctx.engine.write(take, { agentId }));
    await ctx.engine.write(note, { id: randomUUID(), agent: 'bystander' });
    const wait = `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted`;
    const waiting = async () => Number((await query(url, wait))[0]?.['n']);
    while ((await waiting()) === 0) await delay(10);
    assert.ok((await waiting()) < mostWriting);
    await holder.query('commit');
    await Promise.all(taking);
    const stored = await query(url, 'select id from ledger where id = any($1)', [ids]);
    assert.deepEqual(stored.map(({ id }) => String(id)).toSorted(), ids.toSorted());
  });

  it('keep the place before a lock that they have waited for, however late they come to it', async (t) => {
    const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    // Where it fails, nothing would end otherwise.
    t.after(() => gates.forEach(({ resolve }) => resolve()));
    const held = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    const hold = defineWrite('test.hold-popular', async (tx, n: number) => {
      await tx.lock('popular');
      held[n]?.resolve();
      await gates[n]?.promise;
    });
    let runs = 0;
    const [first, second, come] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    const late = defineWrite('test.late', async (tx) => {
      (++runs === 1 ? first : second)?.resolve();
      if (runs === 2) await come?.promise;
      await tx.lock('popular');
    });
    const writes = [0, 1].map((n) => ctx.engine.write(hold, n));
    await Promise.all(held.slice(0, 2).map(({ promise }) => promise));
    writes.push(ctx.engine.write(late, undefined));
    await first?.promise;
    // Meanwhile it has been given back, and waits.
    await ctx.engine.write(note, { id: randomUUID(), agent: 'bystander' });
    writes.push(ctx.engine.write(hold, 2));
    // On a busy machine it may come to the lock when the first has left, and rightly have it before the late one.
    void held[2]?.promise.then(() => runs < 2 && gates[2]?.resolve());
    await ctx.engine.write(note, { id: randomUUID(), agent: 'bystander' });
    gates[0]?.resolve();
    await second?.promise;
    await ctx.engine.write(note, { id: randomUUID(), agent: 'bystander' });
    come?.resolve();
    for (const { resolve } of gates) resolve();
    await Promise.all(writes);
    assert.equal(runs, 2);
  });

  it('take their locks in one order in all processes, so that none meet in a deadlock', async () => {
    const processes = [ctx, await open(dataDir, url), await open(dataDir, url)];
    const random = numbers(11);
    await Promise.all(
      processes.flatMap((each) =>
        Array.from({ length: 24 }, async () => {
          for (let i = 0; i < 12 * scale; i++) {
            const agent = `agent-${Math.floor(random() * 12)}`;
            await each.engine.write(note, { id: randomUUID(), agent });
          }
        }),
      ),
    );
    const [row] = await query(
      url,
      'select deadlocks::int from pg_stat_database where datname = current_database()',
    );
    assert.deepEqual(row, { deadlocks: 0 });
    await Promise.all(processes.slice(1).map((each) => each.close()));
  });

  it(
    'are each stored or undone alone, as a model says, however they fail',
    { timeout: 9_999_999 },
    async () => {
      const batches = 400 * scale;
      const model = new Map<string, number>();
      const calls = new Map<string, number>();
      const random = numbers(20_261_123);
      const stored = async () =>
        (await query(url, `select key, value from meta where key like 'key-%'`)).map(
          ({ key, value }) => [String(key), Number(value)] as const,
        );
      const counted = async () =>
        (
          await query(
            url,
            `select subject, count(*)::int as n, max(n)::int as last from rate_calls where policy = 'test' group by subject`,
          )
        ).map(({ subject, n, last }) => {
          assert.equal(n, last);
          return [String(subject), Number(n)] as const;
        });
      for (let batch = 0; batch < batches; batch++) {
        const steps = Array.from({ length: 1 + Math.floor(random() * 16) }, (): Step => {
          const key = `key-${Math.floor(random() * 8)}`;
          return {
            key,
            by: 1 + Math.floor(random() * 9),
            ends: ends[Math.floor(random() * ends.length)] ?? 'well',
          };
        });
        const outcomes = await Promise.allSettled(
          steps.map((input) => ctx.engine.write(step, input, newTicket(input.key))),
        );
        // A machine so busy that connections are given up: what was stored is not this test's question.
        if (outcomes.some(isUnavailable)) {
          model.clear();
          for (const [key, value] of await stored()) model.set(key, value);
          for (const [key, n] of await counted()) calls.set(key, n);
          continue;
        }
        for (const [i, { key, by, ends: how }] of steps.entries()) {
          const outcome = outcomes[i];
          // What the database refuses for good is no call that was answered: it is not counted.
          if (how !== 'in SQL' && how !== 'in SQL, unseen') calls.set(key, (calls.get(key) ?? 0) + 1);
          if (how === 'well') {
            model.set(key, (model.get(key) ?? 0) + by);
            assert.deepEqual(outcome, { status: 'fulfilled', value: model.get(key) }, `${batch}: ${key}`);
          } else {
            assert.equal(outcome?.status, 'rejected');
            assert.equal(
              outcome.reason instanceof AppError ? outcome.reason.code : 'other',
              how.startsWith('in SQL') ? 'other' : how === 'by a character' ? 'invalid_input' : 'forbidden',
            );
          }
        }
      }
      assert.deepEqual(Object.fromEntries(await stored()), Object.fromEntries(model));
      assert.deepEqual(Object.fromEntries(await counted()), Object.fromEntries(calls));
    },
  );

  it('are all stored or all unsure when connections are cut, and none is stored twice', async (t) => {
    const proxy = await startDatabaseProxy(url, numbers(7));
    t.after(() => proxy.close());
    const own = await open(dataDir, proxy.url);
    const known = { stored: new Set<string>(), not: new Set<string>() };
    proxy.cut(0.08);
    await Promise.all(
      Array.from({ length: 8 }, async (_, client) => {
        for (let i = 0; i < 60 * scale; i++) {
          const id = randomUUID();
          await own.engine.write(note, { id, agent: `agent-${client % 7}` }).then(
            () => known.stored.add(id),
            (error: unknown) => {
              assert.ok(error instanceof AppError && error.code === 'unavailable', String(error));
              if (!/may be or not/.test(error.message)) known.not.add(id);
            },
          );
        }
      }),
    );
    proxy.cut(0);
    await own.close();
    assert.ok(proxy.cuts() > 20 && known.stored.size > 100, `${proxy.cuts()} cuts`);
    const rows = await query(url, 'select id, count(*)::int as times from ledger group by id');
    const times = new Map(rows.map(({ id, times: n }) => [String(id), Number(n)]));
    assert.deepEqual(
      {
        lost: [...known.stored].filter((id) => !times.has(id)),
        doubled: [...times].filter(([, n]) => n > 1),
        storedAllTheSame: [...known.not].filter((id) => times.has(id)),
      },
      { lost: [], doubled: [], storedAllTheSame: [] },
    );
  });
});

it('posts that share a transaction count what they add to their agent, once and in order', async (t) => {
  const instance = await startInstance({ engine: 'postgres', env: { QUOTA_POSTS: '3' } });
  t.after(() => instance.close());
  const { client } = await instance.agent('Ada');
  await client.me();
  const ctx = instance.ctx();
  const { id: agentId } = await ctx.db.selectFrom('agents').select('id').executeTakeFirstOrThrow();
  // A batch takes no more after 25 ms, which pass at once on a busy machine.
  const now = performance.now();
  t.mock.method(performance, 'now', () => now);
  const gate = Promise.withResolvers<void>();
  const hold = defineWrite('test.hold', async () => gate.promise, { about: () => agentId });
  const save = (fields: PostFields) => savingOf(ctx, agentId, fields);
  const inputs = [
    await save({ title: 'One', content: '1', status: 'published' }),
    await save({ title: 'Two', content: '22', status: 'published' }),
    // What the call before it has published last.
    await save({ slug: 'two', status: 'draft' }),
    await save({ title: 'Three', content: '333' }),
    await save({ title: 'Four', content: '4444' }),
  ];
  const asked = t.mock.method(Session.prototype, 'executeQuery');
  const holding = ctx.engine.write(hold, undefined);
  const saving = Promise.allSettled(inputs.map((input) => ctx.engine.write(savePost, input)));
  gate.resolve();
  await holding;
  const codes = (await saving).map((one) => (one.status === 'fulfilled' ? 'stored' : one.reason.code));
  assert.deepEqual(codes, ['stored', 'stored', 'stored', 'stored', 'quota_exceeded']);
  const ofAgent = ({ arguments: [{ sql: text }] }: (typeof asked.mock.calls)[number]) =>
    text.startsWith('select * from "agents"');
  // First, and after the change, which is not added at the end.
  assert.equal(asked.mock.calls.filter(ofAgent).length, 2);
  const { rows } = await sql`select published_count, draft_count, content_bytes,
    last_published_at = (select max(listed_at) from posts) as latest,
    (select count(distinct xmin::text) from posts) as commits
    from agents where id = ${agentId}`.execute(ctx.db);
  assert.deepEqual(
    { ...(rows[0] as object) },
    { published_count: 1, draft_count: 2, content_bytes: 6, latest: true, commits: 1 },
  );
});

it('posts that begin a transaction together ask once for what is blocked, and are added together', async (t) => {
  const instance = await startInstance({ engine: 'postgres' });
  t.after(() => instance.close());
  const { client } = await instance.agent('Ada');
  await client.me();
  const ctx = instance.ctx();
  const { id: agentId } = await ctx.db.selectFrom('agents').select('id').executeTakeFirstOrThrow();
  const titles = ['One', 'Two', 'Three', 'Four', 'Five'];
  const inputs = await Promise.all(
    titles.map((title) =>
      savingOf(ctx, agentId, { title, content: title, tags: ['all'], status: 'published' }),
    ),
  );
  const asked = t.mock.method(Session.prototype, 'executeQuery');
  const free = holdConnections(ctx);
  const saving = inputs.map((input) => ctx.engine.write(savePost, input));
  free();
  const saved = await Promise.all(saving);
  assert.deepEqual(
    saved.map(({ result }) => result.post.title),
    titles,
  );
  const ofBlocks = asked.mock.calls.filter(({ arguments: [{ sql: text }] }) =>
    text.startsWith('select * from "source_blocks"'),
  );
  assert.equal(ofBlocks.length, 1);
  // The number of the statement in its transaction that added the row.
  for (const table of ['posts', 'post_bodies', 'post_tags', 'search_docs', 'post_search']) {
    const { rows } = await sql<{ statements: number }>`
      select count(distinct cmin::text)::int as statements from ${sql.table(table)}`.execute(ctx.db);
    assert.deepEqual(rows, [{ statements: 2 }], table);
  }

  const long = await Promise.all(
    titles.map((title) =>
      savingOf(ctx, agentId, { title: `Long ${title}`, content: `${title}. `.repeat(100_000) }),
    ),
  );
  // A batch takes no more after 25 ms.
  const now = performance.now();
  t.mock.method(performance, 'now', () => now);
  const freeAgain = holdConnections(ctx);
  const savingLong = long.map((input) => ctx.engine.write(savePost, input));
  freeAgain();
  await Promise.all(savingLong);
  const { rows } = await sql<{ bodies: number; posts: number }>`
    select count(distinct b.cmin::text)::int as bodies, count(distinct p.cmin::text)::int as posts
    from posts as p join post_bodies as b on b.post_id = p.id where p.content_bytes > 300000`.execute(ctx.db);
  // In a message of several texts all would be in memory once more.
  assert.deepEqual(rows, [{ bodies: titles.length, posts: 2 }]);
});

it('rows of several writes come together, and what one of them handed over stays in its order', () => {
  const adding = [() => 'posts', () => 'bodies', () => 'tags'];
  for (let seed = 1; seed <= 200; seed++) {
    const below = randomFrom(seed * 7919);
    const handed = Array.from({ length: 30 }, (_, number) => ({
      number,
      write: below(4),
      does: below(20) === 0 ? 'select' : adding[below(adding.length)],
    }));
    const sent = rowsTogether(handed).flat();
    const numbersOf = (of: typeof handed) => of.map(({ number }) => number);
    assert.deepEqual(
      numbersOf(sent).toSorted((a, b) => a - b),
      numbersOf(handed),
    );
    for (let write = 0; write < 4; write++) {
      const own = sent.filter((one) => one.write === write);
      assert.deepEqual(
        numbersOf(own),
        numbersOf(own).toSorted((a, b) => a - b),
      );
    }
    for (const { does, number } of handed)
      if (does === 'select') assert.equal(sent[number]?.number, number, 'nothing passes a statement');
  }
  const post = (write: number) => adding.map((does) => ({ does, write }));
  assert.deepEqual(
    rowsTogether([1, 2, 3].flatMap(post)).map((some) => some.map(({ write }) => write)),
    adding.map(() => [1, 2, 3]),
  );
});

it('posts that share a transaction come out as those that are stored one after another', async (t) => {
  const instance = await startInstance({ engine: 'postgres', env: { MAIL_BUDGET: '0' } });
  t.after(() => instance.close());
  const ctx = instance.ctx();
  // A batch takes no more after 25 ms, which pass at once on a busy machine.
  const now = performance.now();
  t.mock.method(performance, 'now', () => now);
  const register = async (name: string) => {
    await (await instance.agent(name)).client.me();
    const { id } = await ctx.db
      .selectFrom('agents')
      .select('id')
      .where('name', '=', name)
      .executeTakeFirstOrThrow();
    return id;
  };
  const other = await register('Beside');
  for (let seed = 1; seed <= Math.ceil(24 * scale); seed++) {
    const below = randomFrom(seed * 7919);
    const pick = <T>(values: readonly T[]) => values[below(values.length)] as T;
    const calls = Array.from({ length: 12 }, (): Saving => {
      const title = pick(['One', 'ONE', 'One!', 'Two', 'Three']);
      const content = pick(['same', 'other', 'third']);
      const status = pick(['published', 'draft'] as const);
      const slug = pick(['one', 'two', 'three']);
      const whole = { title, content, status, slug };
      return pick<Saving>([
        { sent: { title, content, status } },
        { sent: whole },
        { sent: whole, isNew: true },
        { sent: { slug, status } },
        { sent: { slug }, isOfFirst: true },
        { sent: { slug, formerSlugs: [] } },
      ]);
    });
    const outcomes = async (name: string, isShared: boolean) => {
      const agentId = await register(`${name}${seed}`);
      const first = await savingOf(ctx, agentId, { title: 'One', content: 'first' });
      const { result: saved } = await ctx.engine.write(savePost, first);
      const moved = { ...(await savingOf(ctx, agentId, { slug: 'two' })), postId: saved.post.id };
      await ctx.engine.write(savePost, moved);
      const inputs = [];
      for (const { sent, isNew, isOfFirst } of calls) {
        const preconditions = isNew ? { ...noPreconditions, ifNoneMatch: '*' } : noPreconditions;
        const aim = { postId: isOfFirst ? saved.post.id : null, preconditions };
        inputs.push({ ...(await savingOf(ctx, agentId, sent)), ...aim });
      }
      const beside = await savingOf(ctx, other, { title: 'Beside', content: 'beside' });
      const saving: Promise<unknown>[] = [];
      for (const input of inputs) {
        // When those of another agent are done, these take their places, and ask ahead while one before them is at work.
        for (let turns = isShared ? below(8) : 0; turns > 0; turns--) {
          saving.push(ctx.engine.write(savePost, beside).then(() => null));
          await new Promise(setImmediate);
        }
        const one = ctx.engine.write(savePost, input).then(
          ({ result }) => result,
          (error: AppError) => error.code,
        );
        saving.push(one);
        if (!isShared) await one;
      }
      const done = (await Promise.all(saving)).filter((one) => one !== null);
      const found = done.map((one) => (typeof one === 'string' ? one : outlineOf(one as Saved)));
      const stored = await sql`select slug, title, status, revision, content_hash from posts
        where agent_id = ${agentId} order by slug`.execute(ctx.db);
      return { found, stored: stored.rows };
    };
    assert.deepEqual(await outcomes('Shared', true), await outcomes('Single', false), `seed ${seed}`);
  }
});

/** A call that saves a post: one that must be new, or the first one of its agent. */
type Saving = { readonly sent: PostFields; readonly isNew?: boolean; readonly isOfFirst?: boolean };

/** What a call did, without ids and times. */
function outlineOf({
  post,
  created,
  changed,
  was,
  tookOver,
  foundBy,
  movedFrom,
  duplicateOf,
  sameTitle,
}: Saved) {
  const { slug, title, status } = post;
  const others = { duplicateOf: duplicateOf?.slug, sameTitle: sameTitle?.slug };
  return { slug, title, status, created, changed, was, tookOver, foundBy, movedFrom, ...others };
}

it('publishing takes four round trips to PostgreSQL at most', async (t) => {
  const instance = await startInstance({ engine: 'postgres' });
  const { database } = instance.ctx().config;
  assert.ok(database.engine === 'postgres');
  const proxy = await startDatabaseProxy(database.urls[0] ?? '', numbers(1));
  t.after(() => instance.close().finally(() => proxy.close()));
  await instance.restart({ DATABASE_URL: proxy.url });
  const ada = await instance.agent('Ada');
  const trips: number[] = [];
  for (let i = 0; i < 12; i++) {
    const earlier = proxy.trips();
    await ada.client.publish({ title: `Post ${i}`, content: 'c', tags: ['t'], status: 'published' });
    trips.push(proxy.trips() - earlier);
  }
  // Others are of what goes on beside: looks for changes and for the primary.
  assert.ok(Math.min(...trips) <= 4, trips.join(' '));
});

const ends = [
  'well',
  'well',
  'well',
  'before',
  'after',
  'in SQL',
  'in SQL, unseen',
  'by a character',
] as const;
type Step = { readonly key: string; readonly by: number; readonly ends: (typeof ends)[number] };

/** Adds to a number that it has read; fails at one place or another. */
const step = defineWrite(
  'test.step',
  async (tx, { key, by, ends: how }: Step): Promise<number> => {
    await tx.lock(key);
    if (how === 'before') throw new AppError('forbidden', 'before anything was changed');
    const row = await tx.db.selectFrom('meta').select('value').where('key', '=', key).executeTakeFirst();
    const value = Number(row?.value ?? 0) + by;
    storeValue(tx.db, { key, value: String(value) });
    if (how === 'by a character') storeValue(tx.db, { key: 'a\0b', value: '' });
    if (how === 'in SQL, unseen') divide(tx.db, { by: 0 });
    if (how === 'in SQL') await sql`select 1 / 0`.execute(tx.db);
    if (how === 'after') {
      await tx.db.selectFrom('meta').select('key').where('key', '=', key).execute();
      throw new AppError('forbidden', 'after something was changed');
    }
    return value;
  },
  { about: ({ key }) => key, locks: ({ key }) => [`rate:test:${key}`, key] },
);

const storeValue = preparedChange((db, row: { key: string; value: string }) =>
  db
    .insertInto('meta')
    .values(row)
    .onConflict((conflict) => conflict.column('key').doUpdateSet({ value: row.value }))
    .compile(),
);

const divide = preparedChange((db, { by }: { by: number }) =>
  sql`select 1 / cast(${by} as integer)`.compile(db),
);

const put = preparedChange((db, { id }: { id: string }) =>
  sql`insert into ledger (id) values (${id})`.compile(db),
);

/** The input of {@link savePost} for what a call sends. */
async function savingOf(ctx: Context, agentId: string, fields: PostFields) {
  const aim = { postId: null, preconditions: noPreconditions };
  const { sent } = await preparePost(ctx, agentId, fields, {
    ...aim,
    isMeantAgain: false,
    signal: undefined,
  });
  return { ...aim, agentId, sent, replay: null, noted: { warnings: [], diff: null } };
}

const note = defineWrite(
  'test.note',
  async (tx, { id, agent }: { id: string; agent: string }) => {
    await tx.lock(`agent:${agent}`);
    await sql`insert into ledger (id) values (${id})`.execute(tx.db);
  },
  { about: ({ agent }) => agent, locks: ({ agent }) => [`agent:${agent}`] },
);

/** Uses every connection for writing, until what it returns is called. */
function holdConnections({ engine }: Pick<OpenContext, 'engine'>): () => void {
  const gate = Promise.withResolvers<void>();
  const hold = defineWrite('test.hold', () => gate.promise);
  for (let i = 0; i < mostWriting; i++) void engine.write(hold, null);
  return gate.resolve;
}

function isUnavailable(outcome: PromiseSettledResult<unknown>): boolean {
  return (
    outcome.status === 'rejected' &&
    outcome.reason instanceof AppError &&
    outcome.reason.code === 'unavailable'
  );
}

function newTicket(subject: string): Ticket {
  return { policy: 'test', subject, quota: 1_000_000_000, rate: null };
}

function open(dataDir: string, url: string): Promise<OpenContext> {
  const settings = { DATA_DIR: dataDir, SECRET: 's'.repeat(32), DATABASE_URL: url };
  return openContext(loadConfig(settings), { existing: false, log: createLog('error', () => undefined) });
}

/** Numbers from 0 to below 1, the same for the same seed: a linear congruential generator, Knuth's constants. */
function numbers(seed: number): () => number {
  let state = BigInt(seed);
  return () => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) & 0xffff_ffff_ffff_ffffn;
    return Number(state >> 11n) / 2 ** 53;
  };
}

/** A proxy before a database that counts round trips, and cuts connections at what the client sends. */
async function startDatabaseProxy(url: string, random: () => number) {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let trips = 0;
  let cuts = 0;
  let probability = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    let isAsking = false;
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    client.on('data', (data) => {
      if (!isAsking) trips += 1;
      isAsking = true;
      const isCut = random() < probability;
      if (isCut) cuts += 1;
      // Before the server gets it, or before the client hears of it.
      const isUnsent = isCut && random() < 0.5;
      if (isUnsent) client.destroy();
      else upstream.write(data);
      if (isCut) upstream.once('data', () => client.destroy());
    });
    upstream.on('data', (data) => {
      isAsking = false;
      if (!client.destroyed) client.write(data);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return {
    url: Object.assign(new URL(url), { port: String(address.port) }).href,
    trips: () => trips,
    cuts: () => cuts,
    /** From now on, cuts with this probability at each message. */
    cut(to: number): void {
      probability = to;
    },
    close(): void {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
