import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql, type CompiledQuery } from 'kysely';
import { DatabaseError } from 'pg';
import { loadConfig } from '../src/config/config.ts';
import { migrations } from '../src/db/migrations/list.ts';
import { Unreachable } from '../src/db/postgres/postgres.ts';
import { Session } from '../src/db/postgres/postgres-session.ts';
import { createServer as createDatabaseServer } from '../src/db/postgres/postgres-server.ts';
import { postgresStartError } from '../src/db/postgres/postgres-start.ts';
import { defineWrite, type Ticket } from '../src/db/write.ts';
import { AppError } from '../src/errors.ts';
import { StartError } from '../src/rules/failure.ts';
import { createLog } from '../src/platform/log.ts';
import { openContext, type OpenContext } from '../src/process/open-context.ts';
import { register } from '../src/services/agents/registration.ts';
import { claimMail } from '../src/services/mail-delivery.ts';
import { whileLocked } from './support/locked.ts';
import { portOf } from './support/processes.ts';
import { scratchFolder } from './support/scratch-folder.ts';
import { query } from './support/postgres.ts';
import { sharedPostgres } from './support/shared-postgres.ts';

let dataDir: string;
let url: string;
const lines: string[] = [];

before(async () => {
  dataDir = scratchFolder('postgres');
});

function open(at: string, { existing = false, env = {}, patience = 60_000 } = {}): Promise<OpenContext> {
  const settings = { DATA_DIR: dataDir, SECRET: 's'.repeat(32), DATABASE_URL: at, ...env };
  return openContext(loadConfig(settings), {
    existing,
    patience,
    log: createLog('debug', (line) => lines.push(line)),
  });
}

async function newDatabase(): Promise<string> {
  return (await sharedPostgres()).createDatabase();
}

describe('mail on PostgreSQL', () => {
  it('that is cancelled while another process claims it does not come back', async (t) => {
    const ctx = await open(await newDatabase());
    t.after(() => ctx.close());
    await register(ctx, { email: 'ada@agents.example', name: 'Ada', slug: 'ada' });
    const statement = 'update outbox set cancelled_at = created_at, due_at = null, sealed = null';
    const claim = { owner: 'a', limit: 1, duration: 60_000 };
    await whileLocked(ctx, { statement, waiting: 1 }, () => [ctx.engine.write(claimMail, claim)]);
    const rows = await ctx.db.selectFrom('outbox').select(['due_at', 'lease_owner']).execute();
    assert.deepEqual(rows, [{ due_at: null, lease_owner: null }]);
  });
});

describe('reads on PostgreSQL', () => {
  it('of whole texts leave connections for short ones, which wait for none of them', async (t) => {
    const server = createDatabaseServer(await newDatabase(), { on: true, onEnd: () => undefined });
    t.after(() => server.end());
    const reading = (text: string) =>
      ({ sql: text, parameters: [], query: { kind: 'RawNode' } }) as unknown as CompiledQuery;
    const slow = reading(`select pg_sleep(0.2), repeat('x', 100000) as text`);
    let answered = 0;
    const large = Array.from({ length: 12 }, async () => {
      await server.large(slow);
      answered++;
    });
    assert.deepEqual(await server.gathered(reading('select 1 as one')), [{ one: 1 }]);
    assert.ok(answered <= 2, `${answered} came first`);
    await Promise.all(large);
  });
});

describe('lists of values on PostgreSQL', () => {
  it('are one statement for every length, and hold what they are given', async (t) => {
    const ctx = await open(await newDatabase());
    t.after(() => ctx.close());
    const odd = ['', 'null', 'NULL', ' ', 'a,b', '{}', '{"a"}', `"`, `'`, '\\', '\\"', '\\N', 'a\nb', 'ä😀'];
    const keys = [...odd, ...Array.from({ length: 50 - odd.length }, (_, n) => `key ${n}`)];
    await ctx.engine.write(
      defineWrite('test.keys', async (tx): Promise<null> => {
        await tx.db
          .insertInto('meta')
          .values(keys.map((key) => ({ key, value: '' })))
          .execute();
        return null;
      }),
      null,
    );
    const asked = t.mock.method(Session.prototype, 'executeQuery');
    const meta = ctx.db.selectFrom('meta').select('key').where('value', '=', '').orderBy('key');
    const keysOf = async (rows: Promise<{ key: string }[]>) => (await rows).map(({ key }) => key);
    for (let length = 0; length <= keys.length; length++) {
      const some = keys.slice(0, length);
      const within = await keysOf(meta.where('key', 'in', some).execute());
      assert.deepEqual(new Set(within), new Set(some));
      const without = await keysOf(meta.where('key', 'not in', some).execute());
      assert.equal(without.length, keys.length - length);
    }
    const texts = new Set(asked.mock.calls.map(({ arguments: [{ sql: text }] }) => text));
    const lists = [...texts].filter((text) => /= any\(|<> all\(| in \(\$/.test(text));
    assert.equal(lists.length, 2, lists.join('\n'));
  });
});

describe('starting on PostgreSQL', () => {
  it('makes the schema once, however many processes start together', async () => {
    const fresh = await newDatabase();
    const opened = await Promise.all(Array.from({ length: 4 }, () => open(fresh)));
    const steps = opened.flatMap(({ migrated }) => migrated);
    assert.deepEqual(
      steps,
      migrations.map(({ name }) => name),
    );
    const ids = await query(fresh, `select value from meta where key = 'instance_id'`);
    assert.equal(ids.length, 1);
    await Promise.all(opened.map((ctx) => ctx.close()));
    const again = await open(fresh, { existing: true });
    assert.deepEqual(again.migrated, []);
    await again.close();
  });

  it('has large texts compressed by the faster method where the server is built with it', async (t) => {
    const fresh = await newDatabase();
    const ctx = await open(fresh);
    t.after(() => ctx.close());
    const [server] = await query(
      fresh,
      `select 'lz4' = any(enumvals) as fast from pg_settings where name = 'default_toast_compression'`,
    );
    const rows = await query(
      fresh,
      `select relname || '.' || attname as name from pg_attribute join pg_class c on c.oid = attrelid
        where relkind = 'r' and attcompression = 'l' order by 1`,
    );
    assert.deepEqual(
      rows.map(({ name }) => name),
      server?.['fast'] === true
        ? ['post_bodies.content', 'post_bodies.html', 'post_bodies.text', 'post_search.terms']
        : [],
    );
  });

  const refusals: readonly {
    title: string;
    at: (url: string) => string;
    options?: Parameters<typeof open>[1];
    spoil?: (url: string) => Promise<unknown>;
    says: RegExp;
  }[] = [
    {
      title: 'an empty database where one must exist',
      at: (fresh) => fresh,
      options: { existing: true },
      says: /without tables of ours.*--existing/,
    },
    {
      title: 'an empty database in read-only mode',
      at: (fresh) => fresh,
      options: { env: { READ_ONLY: 'on' } },
      says: /without tables of ours/,
    },
    {
      title: 'a database that does not exist',
      at: (fresh) => `${fresh}_other`,
      says: /database "\w+_other" does not exist: create it/,
    },
    {
      title: 'a wrong password',
      at: (fresh) => Object.assign(new URL(fresh), { password: 'not-this-one' }).href,
      says: /refuses the user.*check name and password/,
    },
    {
      title: 'a schema newer than the program',
      at: (fresh) => fresh,
      spoil: async (fresh) => {
        await (await open(fresh)).close();
        await query(fresh, `insert into migrations (name, applied_at) values ('9999-later', '')`);
      },
      says: /newer than this program.*9999-later/,
    },
    {
      title: 'a user who may not make tables',
      at: (fresh) => Object.assign(new URL(fresh), { username: 'guest', password: 'guest' }).href,
      spoil: (fresh) =>
        query(
          fresh,
          `do $$ begin create role guest login password 'guest'; exception when duplicate_object then null; end $$`,
        ),
      says: /may not make tables/,
    },
    {
      title: 'a version that is too old',
      at: (fresh) => `${fresh}?options=-c%20search_path%3Dold%2Cpg_catalog%2Cpublic`,
      spoil: async (fresh) => {
        await query(fresh, 'create schema old');
        await query(
          fresh,
          `create function old.current_setting(name text) returns text language sql return
             case name when 'server_version_num' then '140012' when 'server_version' then '14.12'
             else pg_catalog.current_setting(name) end`,
        );
      },
      says: /PostgreSQL 14\.12 is too old: Masthead needs \d+ or later/,
    },
    {
      title: 'settings that hide warnings',
      at: (fresh) => `${fresh}?options=-c%20client_min_messages%3Derror`,
      says: /client_min_messages hides warnings/,
    },
  ];
  for (const { title, at, options, spoil, says } of refusals) {
    it(`refuses ${title} in one line without a password`, async () => {
      const fresh = await newDatabase();
      await spoil?.(fresh);
      await assert.rejects(open(at(fresh), options), (error) => {
        assert.ok(error instanceof StartError, String(error));
        assert.match(error.message, says);
        assert.doesNotMatch(error.message, /\n|postgres:\/\//);
        for (const secret of [new URL(fresh).password, 'not-this-one'])
          assert.ok(!error.message.includes(secret));
        return true;
      });
    });
  }

  it('waits for a server that is starting, and says so', async (t) => {
    const server = await startStartingServer(t, await newDatabase());
    const opened = await open(server.url);
    await opened.close();
    assert.equal(server.refused(), 2);
    const line = lines.find((each) => each.includes('waiting for the database'));
    assert.match(line ?? '', /PostgreSQL is not ready \(the database system is starting up\).*"seconds":60/);
  });

  it('says that it waits for a server that does not answer at all', async (t) => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    t.after(() => silent.close());
    const earlier = lines.length;
    const address = `postgres://a:b@127.0.0.1:${portOf(silent)}/masthead`;
    await assert.rejects(open(address, { patience: 1 }), /cannot be reached/);
    assert.match(lines.slice(earlier).join(''), /waiting for the database.*no answer yet/);
  });

  it('says what to do about a server that it does not get', () => {
    const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
    const full = Object.assign(new DatabaseError('too many clients', 0, 'error'), { code: '53300' });
    assert.match(postgresStartError(new Unreachable(null)).message, /all are standbys: promote one/);
    assert.match(
      postgresStartError(new Unreachable(refused)).message,
      /\(ECONNREFUSED\): start it, or correct/,
    );
    assert.match(postgresStartError(new Unreachable(full)).message, /no connection left.*max_connections/);
  });

  it('says that settings of the server may lose what was acknowledged', () => {
    assert.ok(lines.some((line) => line.includes('may lose') && line.includes('fsync is off')));
  });
});

/** Before a database: refuses two connections, a check and its repetition, as a server that is starting does. */
async function startStartingServer(t: TestContext, to: string) {
  const target = new URL(to);
  const message = Buffer.from('SFATAL\0C57P03\0Mthe database system is starting up\0\0');
  const length = Buffer.alloc(4);
  length.writeInt32BE(message.length + 4);
  let refused = 0;
  const server = createServer((client) => {
    client.on('error', () => undefined);
    if (refused < 2) {
      refused += 1;
      client.once('data', () => client.end(Buffer.concat([Buffer.from('E'), length, message])));
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    upstream.on('error', () => undefined);
    client.pipe(upstream).pipe(client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const { href } = Object.assign(new URL(to), { port: String(address.port) });
  return { url: href, refused: () => refused };
}

describe('the PostgreSQL engine', () => {
  let ctx: OpenContext;

  before(async () => {
    url = await newDatabase();
    ctx = await open(url);
  });
  after(() => ctx.close());

  const put = defineWrite('test.put', async (tx, key: string): Promise<'made' | 'found'> => {
    const found = await tx.db.selectFrom('meta').select('key').where('key', '=', key).executeTakeFirst();
    await meeting.reached();
    if (found) return 'found';
    await tx.db.insertInto('meta').values({ key, value: '' }).execute();
    return 'made';
  });
  const has = async (key: string) =>
    (await ctx.db.selectFrom('meta').select('key').where('key', '=', key).execute()).length === 1;
  let meeting = noMeeting();

  it('answers numbers as numbers', async () => {
    const { rows } = await sql<Record<string, unknown>>`select count(*) as count, sum(seq) as sum,
      9007199254740991::bigint as large, 0.1::double precision as part from changes where seq < 0`.execute(
      ctx.db,
    );
    assert.deepEqual({ ...rows[0] }, { count: 0, sum: null, large: Number.MAX_SAFE_INTEGER, part: 0.1 });
  });

  it('sorts text by code point, whatever the language of the database', async () => {
    for (const key of ['b', 'A', 'ä', 'a', 'Z']) await ctx.engine.write(put, key);
    const rows = await ctx.db
      .selectFrom('meta')
      .select('key')
      .where('key', 'in', ['b', 'A', 'ä', 'a', 'Z'])
      .orderBy('key')
      .execute();
    assert.deepEqual(
      rows.map(({ key }) => key),
      ['A', 'Z', 'a', 'b', 'ä'],
    );
  });

  it('changes nothing through its connections for reading', async () => {
    for (const db of [ctx.engine.reads, ctx.engine.publicReads])
      await assert.rejects(db.deleteFrom('meta').execute(), /Engine\.write/);
  });

  it('refuses a character that no text can hold as the fault of the call', async () => {
    await assert.rejects(has('a\0b'), isAppError('invalid_input'));
    await assert.rejects(ctx.engine.write(put, 'a\0b'), isAppError('invalid_input'));
  });

  it('undoes an operation that fails, and keeps the call counted', async () => {
    const fail = defineWrite('test.fail', async (tx): Promise<null> => {
      await tx.db.insertInto('meta').values({ key: 'undone', value: '' }).execute();
      throw new AppError('not_found', 'A failure of the test.');
    });
    const ticket: Ticket = { policy: 'publish', subject: 'somebody', quota: 5, rate: null };
    await assert.rejects(ctx.engine.write(fail, null, ticket), isAppError('not_found'));
    assert.equal(ticket.rate?.remaining, 4);
    assert.equal(await has('undone'), false);
    const counted = await ctx.db.selectFrom('rate_calls').selectAll().execute();
    assert.equal(counted.length, 1);
  });

  it('goes on, inside transactions and outside, when a newer release adds a column', async () => {
    const own = await open(await newDatabase());
    const wholeRow = defineWrite('test.whole-row', (tx, key: string) =>
      tx.db.selectFrom('meta').selectAll().where('key', '=', key).execute(),
    );
    const reads = () => own.db.selectFrom('meta').selectAll().where('key', '=', 'instance_id').execute();
    for (const column of [null, 'one', 'two']) {
      const { database } = own.config;
      if (column !== null && 'urls' in database)
        await query(database.urls[0] ?? '', `alter table meta add column ${column} text`);
      assert.equal((await own.engine.write(wholeRow, 'instance_id')).length, 1);
      assert.equal((await reads()).length, 1);
    }
    await own.close();
  });

  it('has statistics made of tables that were empty when it began', async () => {
    const fresh = await newDatabase();
    const own = await open(fresh);
    const rowsOf = async () => {
      const [known] = await query(fresh, `select reltuples from pg_class where relname = 'meta'`);
      return Number(known?.['reltuples']);
    };
    assert.ok((await rowsOf()) < 60);
    for (let n = 0; n < 64; n++) await own.engine.write(put, `row ${n}`);
    await own.close();
    assert.ok((await rowsOf()) >= 60);
  });

  it('tells what a commit changed before it answers', async () => {
    const heard: string[][] = [];
    ctx.engine.onCommit(({ changed }) => heard.push([...changed]));
    const change = defineWrite('test.change', async (tx): Promise<null> => {
      tx.changed('site');
      return null;
    });
    await ctx.engine.write(change, null);
    assert.deepEqual(heard, [['site']]);
  });

  it('runs an operation again that met a row made meanwhile', async () => {
    meeting = newMeeting(2);
    const outcomes = await Promise.all([ctx.engine.write(put, 'met'), ctx.engine.write(put, 'met')]);
    assert.deepEqual(outcomes.toSorted(), ['found', 'made']);
    meeting = noMeeting();
  });

  it('runs operations again that waited for each other', async () => {
    meeting = newMeeting(2);
    const both = defineWrite('test.both', async (tx, names: readonly [string, string]): Promise<null> => {
      await tx.lock(names[0]);
      // Locks travel with the next statement that is waited for.
      await sql`select 1`.execute(tx.db);
      await meeting.reached();
      await tx.lock(names[1]);
      return null;
    });
    await Promise.all([ctx.engine.write(both, ['one', 'two']), ctx.engine.write(both, ['two', 'one'])]);
    meeting = noMeeting();
  });

  it('runs an operation again whose connection was ended before its commit', async () => {
    let runs = 0;
    const interrupted = defineWrite('test.interrupted', async (tx): Promise<number> => {
      runs += 1;
      if (runs === 1) await sql`select pg_terminate_backend(pg_backend_pid())`.execute(tx.db);
      return runs;
    });
    assert.equal(await ctx.engine.write(interrupted, null), 2);
  });

  it('reads again after all its connections were ended', async () => {
    await query(
      url,
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    assert.equal(await has('met'), true);
  });

  it('goes on without prepared statements where they are lost on the way', async () => {
    const warned = () => lines.filter((line) => line.includes('prepared statements')).length;
    const forget = defineWrite('test.forget', async (tx): Promise<null> => {
      await tx.db.selectFrom('meta').select('key').where('key', '=', 'x').execute();
      if (warned() === 0) await sql`deallocate all`.execute(tx.db);
      await tx.db.selectFrom('meta').select('key').where('key', '=', 'x').execute();
      return null;
    });
    await ctx.engine.write(forget, null);
    assert.equal(warned(), 1);
  });

  const doubts: readonly { title: string; body: string }[] = [
    { title: 'whose connection is lost', body: 'perform pg_terminate_backend(pg_backend_pid())' },
    {
      title: 'that comes with a warning, as one whose standby was not waited for',
      body: `raise warning 'canceling wait for synchronous replication due to user request'`,
    },
  ];
  for (const { title, body } of doubts) {
    it(`is unavailable, never a success, for a commit ${title}`, async (t) => {
      await atCommit(t, body);
      await assert.rejects(ctx.engine.write(put, title), (error) => {
        assert.ok(isAppError('unavailable')(error));
        assert.ok(error instanceof AppError && error.extra.retryAfter !== undefined);
        return true;
      });
    });
  }

  const failures: readonly { state: string; code: string }[] = [
    { state: '53100', code: 'storage_full' },
    { state: '57014', code: 'unavailable' },
    { state: '25006', code: 'read_only' },
  ];
  for (const { state, code } of failures) {
    it(`answers ${code} when the database refuses with ${state}`, async (t) => {
      await atCommit(t, `raise exception using errcode = '${state}'`);
      await assert.rejects(ctx.engine.write(put, `refused-${state}`), isAppError(code));
      assert.equal(await has(`refused-${state}`), false);
    });
  }

  it('waits for what was handed in before it closes', async () => {
    const own = await open(url);
    const slow = defineWrite('test.slow', async (tx): Promise<string> => {
      await sql`select pg_sleep(0.2)`.execute(tx.db);
      return 'done';
    });
    const running = own.engine.write(slow, null);
    await delay(20);
    await own.close();
    assert.equal(await running, 'done');
  });

  /** Has every commit that writes to `meta` do something more, until the test ends. */
  async function atCommit(t: TestContext, body: string): Promise<void> {
    await query(
      url,
      `create function at_commit() returns trigger language plpgsql as $$ begin ${body}; return null; end $$`,
    );
    await query(
      url,
      'create constraint trigger at_commit after insert on meta deferrable initially deferred for each row execute function at_commit()',
    );
    t.after(() => query(url, 'drop function at_commit() cascade'));
  }
});

function isAppError(code: string) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.code, code);
    return true;
  };
}

type Meeting = { reached(): Promise<void> };

/** A place that nobody leaves before so many have come; whoever comes later passes. */
function newMeeting(size: number): Meeting {
  const { promise, resolve } = Promise.withResolvers<void>();
  let here = 0;
  return {
    reached() {
      here += 1;
      if (here === size) resolve();
      return promise;
    },
  };
}

function noMeeting(): Meeting {
  return { reached: async () => undefined };
}
