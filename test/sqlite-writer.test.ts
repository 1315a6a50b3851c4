import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import type { WriteContext } from '../src/context.ts';
import { defineWrite, type CountCall, type Outcome, type Write } from '../src/db/write.ts';
import { createDiskReserve } from '../src/db/sqlite/disk-reserve.ts';
import { createWriterThread, type Answers } from '../src/db/sqlite/sqlite-engine.ts';
import { createSqliteWriter, type Envelope } from '../src/db/sqlite/sqlite-writer.ts';
import { AppError } from '../src/errors.ts';
import { createLog } from '../src/platform/log.ts';
import { asHttp } from '../src/rules/calls.ts';
import { eraseTerms } from '../src/services/upkeep/maintenance.ts';
import { scratchFolder } from './support/scratch-folder.ts';
import { openSqlite } from './support/sqlite-file.ts';

type Input = { readonly word: string; readonly fails?: 'before' | 'after' | 'in SQL' };

const note = defineWrite('note', async (tx, { word, fails }: Input) => {
  if (fails === 'before') throw new AppError('forbidden', 'before anything was written');
  await sql`insert into words (word) values (${word})`.execute(tx.db);
  await sql`insert into found (word) values (${word})`.execute(tx.db);
  if (fails === 'after') throw new AppError('forbidden', 'after something was written');
  if (fails === 'in SQL') await sql`insert into words (word) values (${word})`.execute(tx.db);
  return word;
});

const countCall: CountCall = async (tx, { subject }) => {
  await sql`insert into calls (subject) values (${subject})`.execute(tx.db);
  return { allowed: true, remaining: 1, reset: 1 };
};

test('room on the disk that is given up while it is being taken is not taken', async () => {
  const folder = scratchFolder('reserve');
  const reserve = createDiskReserve(join(folder, 'masthead.db'));
  const take = () => {
    reserve.restore();
    reserve.restore();
  };
  take();
  reserve.release();
  await reserve.close();
  assert.deepEqual(readdirSync(folder), []);
  // There is room, so it is taken the next time.
  assert.equal(reserve.isFull(), false);
  take();
  await reserve.close();
  assert.ok(existsSync(join(folder, 'reserve')));
});

test('an operation tells other processes of many changes one by one, and of very many at once', async (t) => {
  const { database, run } = openWriter(t);
  for (const [changes, told] of [
    [200, 200],
    [20_000, 1],
  ] as const) {
    database.exec('delete from changes');
    const many = defineWrite('many', async (tx, { count }: { count: number }) => {
      for (let i = 0; i < count; i++) tx.changed(`post:${i}`);
    });
    const [answer] = (await run(many, [{ count: changes }])).flat();
    assert.deepEqual([answer?.[1].error, answer?.[1].changed.length], [undefined, changes]);
    assert.equal(database.prepare('select count(distinct tag) as n from changes').get()?.['n'], told);
  }
});

test('operations that wait for a locked database are refused together', async (t) => {
  const { database, run } = openWriter(t);
  database.exec('begin immediate');
  const commits = await run(note, [{ word: 'a' }, { word: 'b' }, { word: 'c' }]);
  assert.deepEqual(
    commits.map((answers) => answers.map(([id, { error }]) => [id, error?.code])),
    [[0, 1, 2].map((id) => [id, 'unavailable'])],
  );
});

for (const { name, inputs, stored } of [
  {
    name: 'before it wrote',
    inputs: [{ word: 'a' }, { word: 'b', fails: 'before' }, { word: 'c' }],
    stored: 'a c',
  },
  {
    name: 'after it wrote',
    inputs: [{ word: 'a' }, { word: 'b', fails: 'after' }, { word: 'c' }],
    stored: 'a c',
  },
  {
    name: 'in a statement',
    inputs: [{ word: 'a' }, { word: 'b', fails: 'in SQL' }, { word: 'c' }],
    stored: 'a c',
  },
  {
    name: 'in every way, more than once',
    inputs: [
      { word: 'a', fails: 'after' },
      { word: 'b' },
      { word: 'c', fails: 'before' },
      { word: 'd', fails: 'in SQL' },
      { word: 'e', fails: 'after' },
      { word: 'f' },
    ],
    stored: 'b f',
  },
] satisfies { name: string; inputs: Input[]; stored: string }[]) {
  test(`an operation that fails ${name} is undone alone, and its call stays counted`, async (t) => {
    const { database, run } = openWriter(t);
    const answers = (await run(note, inputs)).flat();
    assert.deepEqual(
      answers.map(([id, { value, error }]) => [id, value, error === undefined]),
      inputs.map((input, id) => ('fails' in input ? [id, undefined, false] : [id, input.word, true])),
    );
    const words = (table: string) =>
      database
        .prepare(`select word from ${table} order by word`)
        .all()
        .map(({ word }) => word)
        .join(' ');
    assert.equal(words('words'), stored);
    assert.equal(words('found'), stored);
    assert.equal(database.prepare('select count(*) as n from calls').get()?.['n'], inputs.length);
  });
}

test('a search finds a post by what it had before an operation that failed', async (t) => {
  const { database, run } = openWriter(t);
  const index = defineWrite('index', async (tx, { word, fails }: Input) => {
    await tx.searchIndex.store(tx.db, { postId: 'p', digest: '' }, { title: [word], tags: [], text: [] });
    if (fails) throw new AppError('forbidden', 'after it was indexed');
  });
  await run(index, [{ word: 'a' }, { word: 'b', fails: 'after' }]);
  const found = (word: string) => database.prepare('select rowid from post_search (?)').all(word).length;
  assert.deepEqual(['a', 'b'].map(found), [1, 0]);
});

test('posts that share a commit are written to the search index at once, each as it was stored last', async (t) => {
  const { database, run } = openWriter(t);
  type Words = { readonly post: string; readonly word: string };
  const index = defineWrite('index', (tx, { post, word }: Words) =>
    tx.searchIndex.store(tx.db, { postId: post, digest: '' }, { title: [word], tags: [], text: [] }),
  );
  const several = Array.from({ length: 20 }, (_, n) => ({ post: `p${n}`, word: `first${n}` }));
  await run(index, [...several, { post: 'p3', word: 'second' }, { post: 'p1', word: 'third' }]);
  const segments = database.prepare('select count(distinct segid) as n from post_search_idx').get()?.['n'];
  assert.equal(segments, 2);
  const found = (word: string) => database.prepare('select rowid from post_search (?)').all(word).length;
  assert.deepEqual(
    ['first0', 'first1', 'first3', 'first19', 'second', 'third'].map(found),
    [1, 0, 0, 1, 1, 1],
  );
});

test('terms are still to be erased where their post is replaced in the batch in which an erasure begins', async (t) => {
  const { database, run, runEach } = openWriter(t);
  const index = defineWrite('index', async (tx, { word }: Input) => {
    await tx.searchIndex.noteReplaced(tx.db);
    await tx.searchIndex.store(tx.db, { postId: 'p', digest: '' }, { title: [word], tags: [], text: [] });
  });
  const state = () =>
    database.prepare(`select value from meta where key = 'search_erasure'`).get()?.['value'];
  const erase = async () => {
    for (let done: unknown = false; done !== true;)
      done = (await run(eraseTerms, [{ part: 'next' }]))[0]?.[0]?.[1].value;
  };
  await run(index, [{ word: 'a' }]);
  assert.equal(state(), 'due');
  const [both] = await runEach([
    [index, { word: 'b' }],
    [eraseTerms, { part: 'first' }],
  ]);
  assert.equal(both?.length, 2);
  await erase();
  assert.equal(state(), 'due');
  await run(eraseTerms, [{ part: 'first' }]);
  await erase();
  assert.equal(state(), undefined);
});

test('posts that share a commit change the row of their agent once, before others read it', async (t) => {
  const { database, runEach } = openWriter(t);
  database.exec(`
    create table agents (id text, published_count int, moderated_count int, draft_count int, content_bytes int,
      revision_bytes int, last_published_at text);
    insert into agents values ('a', 1, 0, 0, 0, 0, null);
    create table versions (published_count int);
    create trigger changed after update on agents begin insert into versions values (new.published_count); end`);
  const none = { moderated_count: 0, draft_count: 0, content_bytes: 0, revision_bytes: 0 };
  const publish = async (tx: WriteContext) =>
    tx.addPostCounts({ ...none, id: 'a', published_count: 1, last_published_at: null }, 'last');
  const add = defineWrite('add', publish, { onlyAddsPostCounts: true });
  const addAndFail = defineWrite(
    'add and fail',
    async (tx) => {
      await publish(tx);
      throw new AppError('forbidden', 'after it was added');
    },
    { onlyAddsPostCounts: true },
  );
  const look = defineWrite('look', (tx) =>
    tx.db.selectFrom('agents').select('published_count').executeTakeFirst(),
  );
  const answers = await runEach([add, add, addAndFail, add, look, add, add].map((write) => [write, {}]));
  assert.partialDeepStrictEqual(answers.flat()[4]?.[1], { value: { published_count: 4 } });
  const versions = database.prepare('select published_count from versions').all();
  assert.deepEqual(
    versions.map((row) => row['published_count']),
    [4, 6],
  );
});

test('a writer that had to wait leaves the lock to others for as long as it held it', async (t) => {
  const { run } = openWriter(t);
  const turns: { began: number; ended: number }[] = [];
  const slow = defineWrite('slow', async () => {
    const began = performance.now();
    await delay(50);
    turns.push({ began, ended: performance.now() });
  });
  const begin = Reflect.get(DatabaseSync.prototype, 'exec');
  let isLocked = true;
  t.mock.method(DatabaseSync.prototype, 'exec', function (this: DatabaseSync, statement: string) {
    const isRefused = isLocked && statement === 'begin immediate';
    if (isRefused) isLocked = false;
    if (isRefused) throw Object.assign(new Error('database is locked'), { errcode: 5 });
    begin.call(this, statement);
  });
  await run(slow, [{}, null, {}]);
  const [first, second] = turns;
  assert.ok(first && second);
  assert.ok(second.began - first.ended >= first.ended - first.began, JSON.stringify(turns));
});

test('a commit waits for as many writes as the one before had, for a moment', async (t) => {
  const { run } = openWriter(t);
  const [a, b, c, d, e, f, g] = 'abcdefg'.split('').map((word) => ({ word }));
  const nothing = Array.from({ length: 9 }, () => null);
  const commits = await run(note, [a, b, c, null, null, d, null, e, null, null, f, null, g, ...nothing]);
  assert.deepEqual(
    commits.map((answers) => answers.map(([, { value }]) => value)),
    [['a', 'b', 'c'], ['d', 'e', 'f'], ['g']],
  );
});

test('it also waits for those that came while the one before was stored', async (t) => {
  const { run } = openWriter(t);
  const [a, b, c, d, e, f, g] = 'abcdefg'.split('').map((word) => ({ word }));
  const nothing = Array.from({ length: 9 }, () => null);
  const commits = await run(note, [
    a,
    b,
    null,
    c,
    d,
    null,
    null,
    e,
    ...nothing.slice(4),
    f,
    null,
    g,
    ...nothing,
  ]);
  assert.deepEqual(
    commits.map((answers) => answers.map(([, { value }]) => value)),
    [['a', 'b'], ['c', 'd', 'e', 'f'], ['g']],
  );
});

test('the log is emptied into the file also while others have it open', async (t) => {
  const { file, database, run } = openWriter(t);
  await run(note, [{ word: 'a' }]);
  assert.equal(statSync(`${file}-wal`).size, 0);
  assert.equal(database.prepare('select word from words').get()?.['word'], 'a');
});

test('a writer that is still starting answers what it was asked, then ends', async (t) => {
  const { file } = openWriter(t);
  const data = { file, config: { readOnly: true, variant: 'path' }, secretKey: Buffer.alloc(32) };
  const writer = createWriterThread(data, createLog('error'));
  const answer = writer.call({ name: 'none', input: null, now: 0 });
  await writer.close();
  assert.match(asHttp((await answer).error?.message ?? ''), /^The write none is missing/);
});

test('of one owner so many writes wait, and a few others come between them', async (t) => {
  const { file } = openWriter(t);
  const data = { file, config: { readOnly: true, variant: 'path' }, secretKey: Buffer.alloc(32) };
  const writer = createWriterThread(data, createLog('error'));
  const order: string[] = [];
  const call = async (owner: string) => {
    await writer.call({ name: 'none', input: null, now: 0 }, owner);
    order.push(owner);
  };
  // 100 are with the thread, and 500 wait.
  const greedy = Array.from({ length: 600 }, () => call('greedy'));
  await assert.rejects(call('greedy'), {
    code: 'unavailable',
    extra: { retryAfter: 1, uncounted: true, budget: 'writes' },
  });
  const other = [call('other'), call('other')];
  await Promise.all([...greedy, ...other]);
  const places = order.flatMap((owner, at) => (owner === 'other' ? [at] : []));
  assert.deepEqual(places, [101, 103]);
  await writer.close();
});

/** A database of its own, and how operations that wait together are run on it. */
function openWriter(t: TestContext) {
  const folder = scratchFolder('writer');
  const file = join(folder, 'masthead.db');
  const database = openSqlite(file);
  t.after(() => database.close());
  database.exec(`
    pragma journal_mode = wal;
    create table words (word text unique);
    create table calls (subject text);
    create table changes (seq integer primary key, tag text, at integer);
    create table meta (key text primary key, value text);
    create virtual table found using fts5 (word);
    create table search_docs (doc integer primary key, post_id text unique, digest text);
    create virtual table post_search using fts5 (title, tags, text, content = '', contentless_delete = 1)`);
  type Some = Write<never, unknown>;
  const runEach = async (
    units: readonly (readonly [Some, unknown] | null)[],
  ): Promise<Answers<Outcome>[]> => {
    const waiting = units.map((unit, id): Envelope | null => {
      const ticket = { policy: 'p', subject: 's', quota: 9, rate: null };
      return unit && { id, request: { name: unit[0].name, input: unit[1], now: 0, ticket } };
    });
    const operations = new Map(units.flatMap((unit) => (unit ? [[unit[0].name, unit[0]] as const] : [])));
    const context = { config: { readOnly: true } as never, secretKey: Buffer.alloc(32) };
    const writer = createSqliteWriter(file, context, operations, countCall, {
      next: () => waiting.shift() ?? undefined,
      count: () => [...waiting, null].indexOf(null),
    });
    const answers: Answers<Outcome>[] = [];
    while (waiting.length > 0) {
      const first = waiting.shift();
      if (first) answers.push(await writer.runBatch(first, () => 0));
    }
    await writer.close();
    return answers;
  };
  return {
    file,
    database,
    /** What was answered, commit by commit. Where the unit is null, nothing waits at that look. */
    runEach,
    /** The same for one operation with many inputs. */
    run: <I>(toRun: Write<I, unknown>, inputs: readonly (I | null)[]) =>
      runEach(inputs.map((input) => (input === null ? null : [toRun as Some, input]))),
  };
}
