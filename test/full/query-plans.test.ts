import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { Client } from 'pg';
import type { Engine } from '../../src/db/database.ts';
import type { Write, Ticket } from '../../src/db/write.ts';
import { revive } from '../../src/db/write.ts';
import { asSent } from '../../src/db/postgres/postgres-flight.ts';
import { Session } from '../../src/db/postgres/postgres-session.ts';
import { createSqliteWriter } from '../../src/db/sqlite/sqlite-writer.ts';
import { readStoredMetrics } from '../../src/services/upkeep/stored-metrics.ts';
import { sweep } from '../../src/services/upkeep/maintenance.ts';
import { allowsCertificate } from '../../src/services/agents/certificates.ts';
import { settleCommunity } from '../../src/services/community/settle.ts';
import { expireReports } from '../../src/services/operators/reports.ts';
import { listReports } from '../../src/services/operators/report-lists.ts';
import { publishDue } from '../../src/services/publication/due.ts';
import { expire } from '../../src/services/upkeep/expiry.ts';
import { endProbations } from '../../src/services/trust/probation.ts';
import { eraseDue } from '../../src/services/agents/self-deletion.ts';
import { indexRenamed } from '../../src/services/posts/renamed.ts';
import { purgeTrash } from '../../src/services/trash/erasure.ts';
import { restoreAgent, suspendAgent } from '../../src/services/operators/moderation.ts';
import { writes } from '../../src/services/writes.ts';
import { countCall } from '../../src/services/limits/rate-window.ts';
import { blogOrderNames } from '../../src/rules/orders.ts';
import { startInstance, type Instance, type TestAgent } from '../support/instance.ts';
import { onFixture, settingsOf } from '../support/fixtures.ts';
import { openSqlite } from '../support/sqlite-file.ts';

/** Small whatever the service holds: a row for each process, fact, or shard of a counter. */
const small = ['meta', 'counters', 'processes', 'migrations', 'sqlite_sequence'];

/** Sorted by a count, which no index has: the tags of one blog, as many as its quota of posts allows. */
const sorted = /^select "tag", count\(\*\) as "posts" from "post_tags" where "agent_id" = /;

test('every query of the service finds its rows by an index (sqlite)', { timeout: 100_000 }, async () => {
  const mocked = mock.method(DatabaseSync.prototype, 'prepare');
  const instance = await startInstance({ engine: 'sqlite', env: manyCalls });
  // Without the schema's steps, which may read whole tables.
  mocked.mock.resetCalls();
  await instance.restart();
  const file = join(instance.dataDir, 'masthead.db');
  const database = openSqlite(file, { readOnly: true });
  let closeWriter: () => Promise<void> = async () => undefined;
  try {
    const agents = await twoAgents(instance);
    closeWriter = writeHere(instance.ctx().engine, file, instance);
    await live(instance, agents);
    const texts = new Set(mocked.mock.calls.map((call) => call.arguments[0]));
    mocked.mock.restore();
    const faults: string[] = [];
    const asked = [...texts].filter((text) => /^(?:select|with|insert|update|delete)\b/.test(text));
    assert.ok(asked.length > 100, `only ${asked.length} queries were seen`);
    for (const text of asked) {
      if (/\blimit \?(?! \+ 0)/.test(text)) faults.push(`planned anew at each run\n    ${text}`);
      const plan = database.prepare(`explain query plan ${text}`).all();
      for (const { detail } of plan) {
        const fault = sqliteFault(String(detail), text);
        if (fault !== null) faults.push(`${fault}\n    ${text}`);
      }
    }
    for (const [which, how] of fromIndexes) {
      const meant = asked.filter((text) => which.test(text));
      assert.ok(meant.length > 0, String(which));
      for (const text of meant) {
        const plan = database.prepare(`explain query plan ${text}`).all();
        if (!plan.some(({ detail }) => String(detail).includes(how))) faults.push(`not ${how}\n    ${text}`);
      }
    }
    assert.deepEqual(faults, []);
  } finally {
    mocked.mock.restore();
    database.close();
    await closeWriter();
    await instance.close();
  }
});

const alike = /^select.*"content_hash" = .*"title_hash" = /s;
const byTrashedSlug = /^select.*"trashed_slug" = /s;

/**
 * What reads no row of a report or comment, where a text of up to 512 or 8 KiB stands before what is asked, and no post of
 * the trash in vain.
 */
const fromIndexes = [
  [/^update "reports" set "snapshot"/, 'reports USING COVERING INDEX reports_snapshots'],
  [/^select count\(\*\).* from "reports"/, 'reports USING COVERING INDEX reports_waiting'],
  [/^select "comments"."created_at" as "first"/, 'comments USING COVERING INDEX comments_of_post'],
  [/^select coalesce\(comments.* as "first"/, 'comments USING COVERING INDEX comments_of_thread'],
  [alike, 'posts USING INDEX posts_kept_content (agent_id=? AND content_hash=?)'],
  [alike, 'posts USING INDEX posts_kept_title (agent_id=? AND title_hash=?)'],
  [
    byTrashedSlug,
    'posts USING COVERING INDEX posts_trashed_slugs (agent_id=? AND trashed_slug=? AND trashed_at>?)',
  ],
] as const;

function sqliteFault(detail: string, text: string): string | null {
  const [, table = '', how = ''] = /^SCAN (\S+)(.*)/.exec(detail) ?? [];
  // Rows of a subquery or of constants; what a full-text index gives.
  const isDerived =
    table.startsWith('(') ||
    text.includes(`) as ${table}\n`) ||
    text.includes(`) as "${table}"`) ||
    text.includes(`with recursive ${table} (`) ||
    /CONSTANT ROW|VALUES CLAUSE|VIRTUAL TABLE INDEX/.test(detail);
  if (table !== '' && !isDerived && !small.includes(table)) {
    // In the order of an index, or of the row number that is its key, and no further than it takes.
    if (!/\blimit\b/.test(text)) return `${detail} to its end`;
    if (how === '' && !text.includes('order by "seq"')) return detail;
  }
  return detail.endsWith('USE TEMP B-TREE FOR ORDER BY') && isPage(text) ? detail : null;
}

/** Operations run on a connection of this thread, where they can be watched; returns how to close it. */
function writeHere(engine: Engine, file: string, instance: Instance): () => Promise<void> {
  const { config, secretKey } = instance.ctx();
  const nothing = { next: () => undefined, count: () => 0 };
  const writer = createSqliteWriter(file, { config, secretKey }, writes, countCall, nothing);
  let last: Promise<unknown> = Promise.resolve();
  async function write<I, O>({ name }: Write<I, O>, input: I, ticket?: Ticket): Promise<O> {
    const uncounted = ticket && ticket.rate === null ? ticket : undefined;
    const request = { name, input, now: instance.clock.now(), ticket: uncounted };
    const written = last.then(() => writer.runBatch({ id: 1, request }, () => performance.now()));
    last = written;
    const [[, outcome] = []] = await written;
    assert.ok(outcome);
    if (uncounted && outcome.rate) uncounted.rate = outcome.rate;
    if (outcome.error) throw revive(outcome.error);
    return outcome.value as O;
  }
  engine.write = write;
  return () => writer.close();
}

test('every query of the service finds its rows by an index (postgres)', { timeout: 100_000 }, async () => {
  const mocked = mock.method(Session.prototype, 'executeQuery');
  const sent = mock.method(Session.prototype, 'send');
  const instance = await startInstance({ engine: 'postgres', env: manyCalls });
  mocked.mock.resetCalls();
  await instance.restart();
  const { database } = instance.ctx().config;
  assert.equal(database.engine, 'postgres');
  const client = new Client({ connectionString: database.urls[0] });
  try {
    await live(instance, await twoAgents(instance));
    const queries = new Map([
      ...mocked.mock.calls.map(({ arguments: [query] }) => [query.sql, query.parameters] as const),
      ...sent.mock.calls.map(({ arguments: [text, values = []] }) => [text, values] as const),
    ]);
    mocked.mock.restore();
    await client.connect();
    // Tables are small here, so that reading all of one is the quickest: what is left of it with this is needed.
    await client.query('set enable_seqscan = off; set enable_sort = off; set enable_bitmapscan = on');
    const faults: string[] = [];
    const asked = [...queries].filter(
      ([text]) => /^(?:select|with|insert|update|delete)\b/.test(text) && !/pg_|current_setting/.test(text),
    );
    assert.ok(asked.length > 100, `only ${asked.length} queries were seen`);
    for (const [text, values] of asked) {
      const { rows } = await client.query({ text: `explain (format json) ${text}`, values: [...values] });
      for (const fault of postgresFaults(rows[0]['QUERY PLAN'][0].Plan, text))
        faults.push(`${fault}\n    ${text}`);
    }
    assert.deepEqual(faults, []);
  } finally {
    mocked.mock.restore();
    await client.end();
    await instance.close();
  }
});

/** The queries of an instance so far, each with the values that it last had. */
type Asked = { forget(): void; queries(): Map<string, readonly unknown[]> };

/** Looks at what an instance on PostgreSQL asks, with a client of the same database. */
async function onPostgres(
  { env = {} }: { readonly env?: Readonly<Record<string, string>> },
  look: (instance: Instance, client: Client, asked: Asked) => Promise<void>,
): Promise<void> {
  const instance = await startInstance({ engine: 'postgres', env });
  const { database } = instance.ctx().config;
  assert.equal(database.engine, 'postgres');
  const client = new Client({ connectionString: database.urls[0] });
  const mocked = mock.method(Session.prototype, 'executeQuery');
  const queries = () =>
    new Map(mocked.mock.calls.map(({ arguments: [query] }) => [query.sql, query.parameters] as const));
  try {
    await client.connect();
    await look(instance, client, { forget: () => mocked.mock.resetCalls(), queries });
  } finally {
    mocked.mock.restore();
    await client.end();
    await instance.close();
  }
}

test('a deleted answer reads little of its thread, however long (postgres)', async () => {
  await onPostgres({}, async (instance, client, asked) => {
    const [ada, grace] = await twoAgents(instance);
    const { post } = await ada.client.publish({ title: 'Post', content: 'x', status: 'published' });
    const root = await ada.client.addComment(post.id, 'Root');
    const parentId = root.comment.id;
    const answers = [1, 2].map((n) => grace.client.addComment(post.id, `Answer ${n}`, { parentId }));
    const [first = '', second = ''] = (await Promise.all(answers)).map(({ comment }) => comment.id);
    await ada.client.deleteComment(post.id, parentId);
    asked.forget();
    await grace.client.deleteComment(post.id, first);
    const deleting = [...asked.queries()].find(([text]) => /^(?:with|delete) .*recursive/s.test(text));
    assert.ok(deleting);
    const [text, parameters] = deleting;
    const values = parameters.map((value) => (value === first ? second : value));
    await client.query(`
      insert into comments (id, post_id, agent_id, content, html, created_at, parent_id, thread_id)
        select 'c' || n, post_id, agent_id, content, html, created_at, parent_id, thread_id
        from comments, generate_series(1, 5000) as n where id = '${second}'`);
    for (const known of [false, true]) {
      if (known) await client.query('analyze');
      await client.query('begin');
      const { rows } = await client.query(`explain (analyze, format json) ${text}`, values);
      await client.query('rollback');
      const { Plan } = rows[0]['QUERY PLAN'][0];
      assert.ok(rowsRead(Plan) <= 10, JSON.stringify(Plan));
    }
  });
});

test('what is looked up is, whatever PostgreSQL knows of large tables', { timeout: 100_000 }, async () => {
  await onPostgres({}, async (instance, client, asked) => {
    await client.query(manyRows);
    asked.forget();
    const ctx = instance.ctx();
    await listReports(ctx, { state: 'upheld', limit: 1 });
    await ctx.engine.write(sweep, null);
    for (const housekeeping of [publishDue, endProbations, settleCommunity])
      await housekeeping(ctx, async () => true);
    const queries = asked.queries();
    const faults: string[] = [];
    async function look(how: string, text: string, values: readonly unknown[]) {
      const knowsNothing = how === 'nothing known';
      if (knowsNothing && !due.test(text)) return;
      await client.query(`prepare looked as ${text}`);
      const given = values.map((value) => client.escapeLiteral(String(asSent(value))));
      const options = knowsNothing ? 'analyze, format json' : 'format json';
      const { rows } = await client.query(`explain (${options}) execute looked (${given.join()})`);
      await client.query('deallocate looked');
      const { Plan } = rows[0]['QUERY PLAN'][0];
      const seen = postgresFaults(Plan, '').filter((fault) => !knowsNothing && large.test(fault));
      if (knowsNothing && rowsRead(Plan) > 100) seen.push(`${rowsRead(Plan)} rows read`);
      faults.push(...seen.map((fault) => `${fault}, ${how}\n    ${text}`));
    }
    for (const how of ['nothing known', 'custom plan', 'generic plan']) {
      if (how === 'custom plan') await client.query('analyze');
      const [plan] = how.split(' plan');
      if (plan !== how) await client.query(`set plan_cache_mode = force_${plan}_plan`);
      for (const [text, values] of queries)
        if (/^(?:select|update|delete)\b/.test(text) && values.length > 0 && !listed.test(text))
          await look(how, text, values);
    }
    assert.deepEqual(faults, []);
  });
});

test('a look-up passes over nothing of what has accumulated (sqlite)', async () => {
  const instance = await startInstance({ engine: 'sqlite' });
  const mocked = mock.method(DatabaseSync.prototype, 'prepare');
  const database = openSqlite(join(instance.dataDir, 'masthead.db'), { readOnly: true });
  try {
    const ada = await instance.agent('Ada');
    const cursor = await firstRockets(instance, ada);
    await lookUp(instance, ada, cursor);
    const texts = [...new Set(mocked.mock.calls.map((call) => call.arguments[0]))];
    const planned = (text: string, table: RegExp) => {
      const plan = database.prepare(`explain query plan ${text}`).all();
      return plan.map(({ detail }) => String(detail)).filter((detail) => table.test(detail));
    };
    const former = texts.filter(isOfFormer);
    assert.equal(former.length, 2);
    for (const text of former)
      assert.deepEqual(planned(text, / posts /), [
        'SEARCH posts USING INDEX sqlite_autoindex_posts_1 (id=?)',
      ]);
    // The first page of all that have the tag, and what there is after a cursor.
    assert.deepEqual(
      texts.filter(isOfTag).map((text) => planned(text, / post_tags /)),
      ['tag=?', 'tag=? AND published_at<?'].map((by) => [
        `SEARCH post_tags USING COVERING INDEX post_tags_newest (${by})`,
      ]),
    );
  } finally {
    mocked.mock.restore();
    database.close();
    await instance.close();
  }
});

test('a look-up passes over nothing of what has accumulated (postgres)', async () => {
  await onPostgres({}, async (instance, client, asked) => {
    const ada = await instance.agent('Ada');
    const cursor = await firstRockets(instance, ada);
    await client.query(`${manyRows}; ${manyRockets}`);
    // Of an agent it is known that it has two posts.
    await client.query('analyze');
    await client.query(`update posts set agent_id = (select id from agents where slug = 'ada')
      where id in (select 'p' || n from generate_series(1, 500) as n)`);
    asked.forget();
    await lookUp(instance, ada, cursor);
    const queries = asked.queries();
    const looked = [...queries].filter(([text]) => isOfFormer(text) || isOfTag(text));
    assert.equal(looked.length, 3);
    const faults: string[] = [];
    for (const [text, values] of looked) {
      await client.query(`prepare looked as ${text}`);
      const given = values.map((value) => client.escapeLiteral(String(asSent(value))));
      for (const plan of ['custom', 'generic']) {
        await client.query(`set plan_cache_mode = force_${plan}_plan`);
        const { rows } = await client.query(
          `explain (analyze, format json) execute looked (${given.join()})`,
        );
        const read = rowsRead(rows[0]['QUERY PLAN'][0].Plan);
        if (read > 2) faults.push(`${read} rows read by a ${plan} plan\n    ${text}`);
      }
      await client.query('deallocate looked');
    }
    assert.deepEqual(faults, []);
  });
});

/** Publishes the first two posts with a tag that has no word; returns a cursor as if there were only the first. */
async function firstRockets(instance: Instance, { key }: TestAgent): Promise<string> {
  for (const title of ['One', 'Two']) {
    const body = { title, content: 'x', tags: ['🚀'], status: 'published' };
    assert.equal((await instance.call('POST', '/api/publish', { key, body })).status, 201);
  }
  const page = await instance.call('GET', `/api/search?limit=1&q=${encodeURIComponent('tag:🚀')}`);
  const genuine = Buffer.from(String(page.at('nextCursor')), 'base64url').toString();
  const [list] = JSON.parse(genuine) as string[];
  return Buffer.from(JSON.stringify([list, 1, 0, 0, 1])).toString('base64url');
}

/** Many more, a long time after. */
const manyRockets = `
  insert into search_docs (doc, post_id, digest) select n + 100, 'p' || n, '' from generate_series(1, 20000) as n;
  insert into post_tags (agent_id, tag, published_at, post_id)
    select 'a' || n % 20000, '🚀', '2990-01-01T00:00:00.000Z', 'p' || n from generate_series(1, 20000) as n;
`;

/** Looks for a post of Ada that there is not, as anyone and as she does, and for what there is after a cursor. */
async function lookUp(instance: Instance, { key }: TestAgent, cursor: string): Promise<void> {
  for (const who of [{}, { key }])
    assert.equal((await instance.call('GET', '/api/posts/lookup?agent=ada&slug=none', who)).status, 404);
  const q = encodeURIComponent('tag:🚀');
  const page = await instance.call('GET', `/api/search?limit=1&q=${q}&cursor=${cursor}`);
  assert.deepEqual(page.at('posts'), []);
}

function isOfFormer(text: string): boolean {
  return text.startsWith('select "posts"."id"') && text.includes('"former_slugs"');
}

function isOfTag(text: string): boolean {
  return text.startsWith('select') && text.includes('from "post_tags" inner join "search_docs"');
}

/** Queries about what an agent can make any number of, and how SQLite finds their rows. */
const repeated: readonly (readonly [RegExp, string])[] = [
  [/^(?:update|delete from) "outbox".* where "agent_id" = /, 'outbox_undelivered (agent_id=? AND kind=?)'],
  [/ from "outbox" where "mailbox" = /, 'outbox_mailbox (mailbox=? AND kind=? AND created_at>?'],
  [/ from "inbox" where .*"kind" = 'key'/, 'inbox_unread_key ('],
  [/^update inbox set seq = /, 'inbox_unnumbered (agent_id=? AND at>?)'],
  [/ from "inbox" where "seq" is null and "agent_id" > /, 'inbox_unnumbered (agent_id>?)'],
];

test('mail and events are found among all that an agent made (sqlite)', { timeout: 100_000 }, async () => {
  const mocked = mock.method(DatabaseSync.prototype, 'prepare');
  const instance = await startInstance({ engine: 'sqlite', env: manyCalls });
  const file = join(instance.dataDir, 'masthead.db');
  const database = openSqlite(file, { readOnly: true });
  let closeWriter: () => Promise<void> = async () => undefined;
  try {
    const ada = await busyAgent(instance);
    closeWriter = writeHere(instance.ctx().engine, file, instance);
    await repeat(instance, ada);
    const texts = [...new Set(mocked.mock.calls.map((call) => call.arguments[0]))];
    mocked.mock.restore();
    for (const [which, how] of repeated) {
      const asked = texts.filter((text) => which.test(text));
      assert.ok(asked.length > 0, `nothing was asked like ${which.source}`);
      for (const text of asked) {
        const plan = database.prepare(`explain query plan ${text}`).all();
        const lines = plan.map(({ detail }) => String(detail)).join('\n');
        assert.ok(lines.includes(how), `${lines}\n    ${text}`);
        assert.doesNotMatch(lines, /TEMP B-TREE FOR (?:ORDER|LAST)/, text);
      }
    }
  } finally {
    mocked.mock.restore();
    database.close();
    await closeWriter();
    await instance.close();
  }
});

test('mail and events are found among all that an agent made (postgres)', { timeout: 100_000 }, async () => {
  await onPostgres({ env: manyCalls }, async (instance, client, asked) => {
    const ada = await busyAgent(instance);
    await repeat(instance, ada);
    await client.query('delete from inbox');
    await haveUnread(instance, ada.id, 2);
    const queries = asked.queries();
    await client.query('analyze inbox, outbox');
    // The tables are small here, so that a join with 1,000 rows would read all of one.
    await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off');
    const faults: string[] = [];
    for (const [which] of repeated) {
      const matching = [...queries].filter(([text]) => which.test(text));
      assert.ok(matching.length > 0, `nothing was asked like ${which.source}`);
      for (const [text, values] of matching) {
        await client.query('begin');
        const { rows } = await client.query({
          text: `explain (analyze, format json) ${text}`,
          values: values.map(asSent),
        });
        await client.query('rollback');
        const read = rowsRead(rows[0]['QUERY PLAN'][0].Plan);
        if (read > manyOfAgent / 2) faults.push(`${read} rows read\n    ${text}`);
      }
    }
    assert.deepEqual(faults, []);
  });
});

/** More than any query of an agent's mail and events may read twice. */
const manyOfAgent = 6_000;
const numbers = `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${manyOfAgent})`;

/** With `which` told from others: events that an agent has not read. */
async function haveUnread(instance: Instance, agentId: string, which: number): Promise<void> {
  const at = new Date(instance.clock.now()).toISOString();
  const id = `'00000000-0000-7000-8000-${which}' || cast(10000000000 + n as text)`;
  await onFixture(
    settingsOf(instance),
    `${numbers} insert into inbox (id, agent_id, kind, at) select ${id}, '${agentId}', 'comment', '${at}' from numbers`,
  );
}

/** An agent that has had much mail, and has read none of its events. */
async function busyAgent(instance: Instance): Promise<TestAgent> {
  const ada = await instance.agent('Ada');
  await instance.call('POST', '/api/recover', { body: { email: ada.email } });
  await instance.mails();
  await onFixture(
    settingsOf(instance),
    `${numbers} insert into outbox (id, agent_id, mailbox, kind, created_at, delivered_at, route)
      select 'd' || n, agent_id, mailbox, 'key-replaced', created_at, created_at, 'folder' from outbox, numbers
      where agent_id = '${ada.id}' and kind = 'recovery'`,
  );
  await haveUnread(instance, ada.id, 1);
  return ada;
}

/** It does again what makes more, and reads its inbox after housekeeping has bounded that. */
async function repeat(instance: Instance, { key, email }: TestAgent): Promise<void> {
  await instance.call('POST', '/api/recover', { body: { email } });
  await instance.mails();
  const replaced = await instance.call('POST', '/api/regenerate-key', { key });
  assert.equal(replaced.status, 200, replaced.text);
  await expire(instance.ctx(), async () => true);
  const found = await instance.call('GET', '/api/me/inbox', { key: String(replaced.at('apiKey')) });
  assert.equal(found.status, 200, found.text);
}

test('what is looked up passes over no post of the trash', { timeout: 100_000 }, async () => {
  const sent = mock.method(Session.prototype, 'send');
  await onPostgres({ env: manyCalls }, async (instance, client, asked) => {
    const { key } = await instance.agent('Ada');
    const body = { title: 'The same', content: 'The same.' };
    const first = await instance.call('POST', '/api/publish', { key, body });
    await instance.call('DELETE', `/api/posts/${String(first.at('post.id'))}`, { key });
    await client.query(manyTrashed);
    await client.query('set enable_seqscan = off');
    await instance.call('POST', '/api/publish', { key, body });
    const looked = await instance.call('GET', '/api/posts/lookup?agent=ada&slug=trashed', { key });
    assert.equal(looked.at('deleted'), true, looked.text);
    const queries = new Map([
      ...asked.queries(),
      ...sent.mock.calls.map(({ arguments: [text, values = []] }) => [text, values] as const),
    ]);
    for (const which of [alike, byTrashedSlug]) {
      const [text, values] = [...queries].find(([each]) => which.test(each)) ?? [];
      assert.ok(text && values, String(which));
      const { rows } = await client.query({
        text: `explain (analyze, format json) ${text}`,
        values: values.map(asSent),
      });
      const { Plan } = rows[0]['QUERY PLAN'][0];
      assert.ok(
        rowsRead(Plan) < 10 && rowsPassedOver(Plan) < 10,
        JSON.stringify(rows[0]['QUERY PLAN'], null, 1),
      );
    }
  }).finally(() => sent.mock.restore());
});

/** A thousand copies of the post in the trash, of which one had another slug. */
const manyTrashed = `
  create temp table copies as select * from posts;
  insert into posts select (jsonb_populate_record(copies, jsonb_build_object(
      'id', '-' || n, 'slug', '~' || n, 'trashed_slug', case n when 1 then 'trashed' else 'other' end))).*
    from copies, generate_series(1, 1000) as n;
`;

/** The tables that have {@link manyRows}. */
const large = / on (?:agents|posts|votes|reports|audit|rate_calls)$/;
/** What begins with what there is little of, and not with all agents, also where nothing is known of the tables. */
const due = /"publishAt" <= |"counted" is null|"mailbox_key" is null/;
/** What operators list may be all that there is. */
const listed = /^select "target_id", min\(/;

/** Each agent with two drafts, votes and a report, and some of them newcomers; and as many that nobody has verified. */
const manyRows = `
  set session_replication_role = replica;
  insert into agents (id, name, slug, email, email_key, created_at, registered_at, verified_at, listed_at,
      comment_bytes, mailbox_key, name_key, probation)
    select 'a' || n, n, 'a' || n, n, n, n, n, n, n, 0, n, n, case when n % 40 = 0 then 'new' end
    from generate_series(1, 20000) as n;
  insert into agents (id, name, slug, email, email_key, created_at, registered_at)
    select 'u' || n, n, 'u' || n, 'me+' || n || '@example.com', 'u' || n, n, n from generate_series(1, 20000) as n;
  insert into posts (id, agent_id, slug, title, status, excerpt, excerpt_given, tags, disclosure, revision,
      created_at, updated_at, hot_rank, words, content_bytes, renderer_version, content_hash, title_hash)
    select 'p' || n, 'a' || n % 20000, n, n, 'draft', '', 0, '[]', 'none', 1, n, n, 0, 0, 0, 99, n, n
    from generate_series(1, 40000) as n;
  insert into votes (post_id, agent_id, vote, created_at, counted)
    select 'p' || n, 'a' || n % 20000, 1, n, 1 from generate_series(1, 40000) as n;
  insert into reports (id, reporter, target_kind, target_id, owner_id, url, reason, explanation, created_at,
      updated_at, state)
    select 'r' || n, n, 'comment', 'c' || n, 'a' || n % 20000, '', 'spam', '', n, n, 'upheld'
    from generate_series(1, 20000) as n;
  insert into audit (id, at, actor, action, target_kind, target_id)
    select 'u' || n, n, 'system', 'hold-comment', 'comment', 'c' || n from generate_series(1, 100000) as n;
  insert into rate_calls select 'api', n, n, 1, 1 from generate_series(1, 100000) as n;
`;

/** Whether few rows of many are asked for, so that sorting them all would be too much. */
function isPage(text: string): boolean {
  return /\blimit\b/.test(text) && !sorted.test(text);
}

type Plan = {
  'Node Type': string;
  'Rows Removed by Filter'?: number;
  'Relation Name'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  Plans?: Plan[];
};

/** Rows that the parts of a plan gave, or passed over, or how often they were asked. */
function rowsRead(plan: Plan): number {
  const { 'Actual Rows': rows = 0, 'Actual Loops': loops = 0, Plans = [] } = plan;
  const { 'Rows Removed by Filter': passed = 0 } = plan;
  return Math.max(loops, (rows + passed) * loops, ...Plans.map(rowsRead));
}

/** Rows that the parts of a plan read and did not give. */
function rowsPassedOver(plan: Plan): number {
  const passed = (plan['Rows Removed by Filter'] ?? 0) * (plan['Actual Loops'] ?? 0);
  return passed + (plan.Plans ?? []).reduce((sum, part) => sum + rowsPassedOver(part), 0);
}

function postgresFaults(plan: Plan, text: string): string[] {
  const below = (plan.Plans ?? []).flatMap((part) => postgresFaults(part, text));
  const table = plan['Relation Name'] ?? '';
  if (plan['Node Type'] === 'Seq Scan' && !small.includes(table)) return [`Seq Scan on ${table}`, ...below];
  if (plan['Node Type'] === 'Sort' && isPage(text)) return ['Sort', ...below];
  return below;
}

const manyCalls = { LIMIT_PUBLISH: '1000', LIMIT_API: '100000', LIMIT_ANONYMOUS: '100000' };

async function twoAgents(instance: Instance): Promise<readonly [TestAgent, TestAgent]> {
  return [await instance.agent('Ada'), await instance.agent('Grace')];
}

/** Everything that agents, readers and operators do. */
async function live(instance: Instance, [ada, grace]: readonly [TestAgent, TestAgent]): Promise<void> {
  const posts: string[] = [];
  for (let n = 0; n < 4; n++) {
    const body = {
      title: `Post ${n}`,
      content: `# Text\n\nof ${n}`,
      tags: ['a', `t${n}`],
      status: 'published',
    };
    const answer = await instance.call('POST', '/api/publish', { key: ada.key, body });
    assert.equal(answer.status, 201, answer.text);
    posts.push(String(answer.at('post.id')));
  }
  const [id = '', other = '', third = ''] = posts;
  await instance.call('POST', '/api/publish', {
    key: grace.key,
    body: { title: 'Draft', content: 'x', slug: 'draft' },
  });
  await ofPosts(instance, ada, id, other);
  await ofEngagement(instance, ada, grace, other);
  await ofTrash(instance, ada, third);
  await ofLists(instance, ada.key);
  await ofReaders(instance, other);
  await ofKeys(instance, grace);
  await ofOperators(instance);
  await instance.call('DELETE', '/api/me', { key: ada.key });
  await instance.call('POST', '/api/me/restore', { key: ada.key });
  await instance.call('DELETE', `/api/me?confirm=${ada.slug}`, { key: ada.key });
}

async function ofPosts(instance: Instance, { key }: TestAgent, id: string, other: string): Promise<void> {
  await instance.call('PATCH', `/api/posts/${id}`, {
    key,
    body: { slug: 'renamed', title: 'New', content: 'new' },
  });
  await instance.call('POST', '/api/publish?dryRun=true', { key, body: { title: 'Post 1', content: 'x' } });
  await instance.call('POST', '/api/publish', { key, body: { slug: 'post-1', status: 'draft' } });
  await instance.call('POST', '/api/publish', { key, body: { slug: 'post-1', status: 'published' } });
  await instance.call('POST', '/api/publish', {
    key,
    body: { title: 'A leak', content: `my key: ${key}` },
  });
  for (const who of [undefined, key])
    await instance.call('GET', `/api/posts/${other}`, who === undefined ? {} : { key: who });
}

async function ofTrash(instance: Instance, { key }: TestAgent, id: string): Promise<void> {
  const remove = (query = '') => instance.call('DELETE', `/api/posts/${id}${query}`, { key });
  await instance.call('PATCH', `/api/posts/${id}`, { key, body: { slug: 'trashed' } });
  await remove();
  await instance.call('GET', `/api/posts/${id}`, { key });
  for (const slug of ['trashed', 'post-2'])
    await instance.call('GET', `/api/posts/lookup?agent=ada&slug=${slug}`, { key });
  await pagesOf(instance, '/api/me/trash?limit=1', key);
  await instance.call('POST', `/api/posts/${id}/restore`, { key });
  await remove();
  await instance.ctx().engine.write(purgeTrash, null);
  await instance.call('DELETE', '/api/me/trash', { key });
  await eraseDue(instance.ctx(), async () => true);
}

async function ofEngagement(instance: Instance, ada: TestAgent, grace: TestAgent, id: string): Promise<void> {
  const comments: string[] = [];
  for (let n = 0; n < 3; n++) {
    const headers = { 'idempotency-key': `key-${n}` };
    const body = { content: `Comment ${n}` };
    const answer = await instance.call('POST', `/api/posts/${id}/comments`, {
      key: grace.key,
      body,
      headers,
    });
    assert.equal(answer.status, 201, answer.text);
    comments.push(String(answer.at('comment.id')));
  }
  await instance.call('DELETE', `/api/posts/${id}/comments/${comments[0]}`, { key: ada.key });
  const [, root = ''] = comments;
  const answer = await ada.client.addComment(id, 'An answer', { parentId: root });
  await grace.client.deleteComment(id, root);
  await ada.client.deleteComment(id, answer.comment.id);
  for (const value of [1, -1]) {
    for (const { key } of [ada, grace])
      await instance.call('POST', `/api/posts/${id}/vote`, { key, body: { vote: value } });
  }
  await instance.call('DELETE', `/api/posts/${id}/vote`, { key: grace.key });
  await pagesOf(instance, `/api/posts/${id}/comments?limit=1`);
}

async function ofLists(instance: Instance, key: string): Promise<void> {
  const since = encodeURIComponent('2020-01-01T00:00:00Z');
  for (const query of ['', 'sort=oldest', 'agent=ada', 'agent=ada&sort=oldest', `since=${since}`, 'tag=a'])
    await pagesOf(instance, `/api/posts?limit=1&${query}`);
  await instance.call('GET', '/api/posts?limit=1&offset=1');
  for (const query of ['', 'status=draft', 'status=published', `status=published&since=${since}`])
    await pagesOf(instance, `/api/posts?limit=1&${query}`, key);
  for (const query of ['tag=a&sort=oldest', 'tag=a&agent=ada', `tag=a&since=${since}`])
    await pagesOf(instance, `/api/posts?limit=1&${query}`);
  for (const query of ['', 'status=draft', 'tag=a', 'tag=a&status=published', 'view=brief'])
    await pagesOf(instance, `/api/me/posts?limit=1&${query}`, key);
  for (const sort of blogOrderNames) await pagesOf(instance, `/api/blogs?limit=1&sort=${sort}`);
  for (const path of [
    '/api/posts/featured',
    '/api/search?q=post',
    '/api/search?q=%22post%201%22+-none',
    '/api/search?q=post&tag=a',
  ])
    assert.equal((await instance.call('GET', path)).status, 200);
  for (const path of ['/api/me', '/api/limits', '/api/me/export'])
    assert.equal((await instance.call('GET', path, { key })).status, 200);
  await instance.call('PATCH', '/api/me', { key, body: { name: 'New name', bio: 'New bio' } });
  await indexRenamed(instance.ctx(), async () => true);
}

/** The first two pages of a list, the second by its cursor. */
async function pagesOf(instance: Instance, path: string, key?: string): Promise<void> {
  const options = key === undefined ? {} : { key };
  const first = await instance.call('GET', path, options);
  assert.equal(first.status, 200, first.text);
  const cursor = first.at('nextCursor');
  if (typeof cursor !== 'string') return;
  const second = await instance.call('GET', `${path}&cursor=${encodeURIComponent(cursor)}`, options);
  assert.equal(second.status, 200, second.text);
}

async function ofReaders(instance: Instance, id: string): Promise<void> {
  const host = `ada.localhost:${instance.port}`;
  const files = ['feed.xml', 'rss.xml', 'feed.json', 'sitemap.xml', 'llms.txt', 'index.md', 'post-1.md'];
  for (const path of [
    '',
    'post-1',
    'post-0',
    'post-2',
    'none',
    'feed',
    'tags/a',
    'tags/a.md',
    '-/archive',
    '-/tags',
    '-/comments/post-1',
    ...files,
  ])
    await instance.call('GET', `/${path}`, { host });
  const lists = blogOrderNames.map((sort) => `/blogs?sort=${sort}`);
  for (const path of ['/', '/blogs', ...lists, '/search?q=post', '/feed.xml'])
    assert.equal((await instance.call('GET', path)).status, 200, path);
  for (const path of ['/sitemap.xml', '/-/sitemap.xml', '/llms.txt', '/blogs.opml', '/readyz'])
    assert.equal((await instance.call('GET', path)).status, 200, path);
  await instance.call('GET', `/api/posts/${id}/comments`);
}

async function ofKeys(instance: Instance, grace: TestAgent): Promise<void> {
  await instance.call('POST', '/api/register', {
    body: { email: 'kurt@example.com', name: 'Kurt', slug: 'kurt' },
  });
  await instance.call('POST', '/api/register', {
    body: { email: 'kurt@example.com', name: 'Kurt G', slug: 'kurtg' },
  });
  const token = await instance.token('kurt@example.com');
  await instance.call('GET', `/verify?token=${token}`);
  for (let n = 0; n < 2; n++) await instance.call('GET', `/api/verify?token=${token}`);
  await instance.call('POST', '/api/recover', { body: { email: grace.email } });
  const leaked = await instance.token(grace.email);
  await instance.call('POST', '/api/publish', { key: grace.key, body: { title: 'L', content: leaked } });
  await instance.call('POST', '/api/recover', { body: { email: grace.email } });
  const recovery = await instance.token(grace.email);
  const confirmed = await instance.call('POST', '/api/recover/confirm', { body: { token: recovery } });
  await instance.call('POST', '/api/regenerate-key', { key: String(confirmed.at('apiKey')) });
  await instance.mails();
}

async function ofOperators(instance: Instance): Promise<void> {
  assert.ok(await readStoredMetrics(instance.ctx()));
  assert.ok(await allowsCertificate(instance.ctx(), 'ada.localhost'));
  const { engine } = instance.ctx();
  await engine.write(suspendAgent, { slug: 'grace', reason: 'a test' });
  await engine.write(restoreAgent, { slug: 'grace' });
  await engine.write(sweep, null);
  await engine.write(expireReports, null);
  // The next second settles the calls counted in memory.
  await new Promise((resolve) => setTimeout(resolve, 1_100));
}
