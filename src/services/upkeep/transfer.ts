import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { timestamp } from '../../db/write.ts';
import { migrate, requireUpToDate } from '../../db/migrate.ts';
import { markKey } from '../../db/sqlite/instance-marker.ts';
import type { Tables } from '../../db/tables.ts';
import { inTransaction, insertRows, unfinishedCopy, type Row, type WholeDatabase } from '../../db/whole.ts';
import { StartError } from '../../rules/failure.ts';
import { searchEntry } from '../../rules/search/search-terms.ts';
import { countRows, inBatches } from '../lists/paging.ts';
import { readFact } from './facts.ts';
import { processGoneAfter } from './maintenance.ts';

/**
 * Every table by its key, in an order in which no row refers to one that comes later. Null: not copied, since it
 * is about running processes (`changes`, `processes`), or completes the copy (`meta`).
 */
const keys: { readonly [Name in keyof Tables]: readonly (keyof Tables[Name] & string)[] | null } = {
  meta: null,
  counters: ['name', 'shard'],
  agents: ['id'],
  retired_slugs: ['slug'],
  tokens: ['hash'],
  posts: ['id'],
  post_bodies: ['post_id'],
  post_revisions: ['post_id', 'revision'],
  post_tags: ['agent_id', 'tag', 'published_at', 'post_id'],
  former_slugs: ['agent_id', 'slug'],
  search_docs: ['doc'],
  comments: ['id'],
  media_blobs: ['sha256'],
  media: ['id'],
  post_media: ['post_id', 'name'],
  inboxes: ['agent_id'],
  inbox: ['id'],
  agent_blocks: ['agent_id', 'blocked_id'],
  votes: ['post_id', 'agent_id'],
  outbox: ['id'],
  rate_calls: ['policy', 'subject', 'at', 'n'],
  idempotency: ['scope', 'key'],
  exports: ['id'],
  audit: ['id'],
  source_blocks: ['id'],
  reports: ['id'],
  appeals: ['id'],
  changes: null,
  processes: null,
};

/** Rows read and written together: bodies may have several MiB each. */
const fewRows = 500;
const fewBodies = 32;
const largeTexts: ReadonlySet<string> = new Set(['post_bodies', 'post_revisions']);
/** Rows after which the copy so far is committed. */
const rowsPerCommit = 5_000;

const copiedTables = Object.entries(keys).flatMap(([name, key]) =>
  key === null ? [] : { name, key, batchLength: largeTexts.has(name) ? fewBodies : fewRows },
);
type CopiedTable = (typeof copiedTables)[number];

/** One table of a finished copy. `sha256` is of all its rows, equal on both sides. */
export type CopiedRows = { readonly table: string; readonly rows: number; readonly sha256: string };

export type TransferOptions = {
  readonly now: () => number;
  /** Called with the rows copied so far of each table, and once more when it is `checked`. */
  readonly progress: (step: { table: string; done: number; all: number; checked: boolean }) => void;
};

/**
 * Copies a whole instance into an empty database, or continues an interrupted copy; then reads both again and compares.
 * Nothing may write to the source, which is locked; the copy cannot be served before it is compared. Throws StartError.
 */
export async function transfer(
  source: WholeDatabase,
  target: WholeDatabase,
  options: TransferOptions,
): Promise<CopiedRows[]> {
  if (!(await source.hasTables())) throw new StartError(`${source.description} has no tables of ours.`);
  const isUpToDate = () => requireUpToDate(source.db, `The database ${source.description}`);
  // First, since another schema may lack a table to be frozen; and again, since until then it can be upgraded.
  await isUpToDate();
  await source.freeze(Object.keys(keys));
  try {
    await isUpToDate();
    await requireNoWriters(source, options.now());
    const instanceId = await instanceOf(source);
    await prepare(target, instanceId, options.now());
    for (const table of copiedTables) {
      await copyTable(source, target, table, options);
      if (table.name === 'search_docs') await indexAll(source, target, options);
    }
    await target.settle();
    const copied: CopiedRows[] = [];
    for (const table of copiedTables) copied.push(await compare(source, target, table, options));
    await finish(source, target, options.now());
    return copied;
  } finally {
    await source.rollback();
  }
}

async function requireNoWriters({ db }: WholeDatabase, now: number): Promise<void> {
  // Only a process that writes has a heartbeat.
  const count = await countRows(db.selectFrom('processes').where('seen_at', '>=', now - processGoneAfter));
  if (count === 0) return;
  throw new StartError(
    `${count === 1 ? 'A process serves' : `${count} processes serve`} this database: stop what serves it, or start it with READ_ONLY=on. One that was killed counts for ${processGoneAfter / 1000} seconds.`,
  );
}

async function instanceOf({ db, description }: WholeDatabase): Promise<string> {
  const id = await readFact(db, 'instance_id');
  if (id === null) throw new StartError(`${description} is not the whole database of an instance.`);
  return id;
}

/** Creates the tables of an empty database, or accepts an unfinished copy of the same instance. */
async function prepare(target: WholeDatabase, instanceId: string, now: number): Promise<void> {
  await inTransaction(target, async () => {
    if (await target.hasTables()) {
      const held = await readFact(target.db, unfinishedCopy);
      const what = held === null ? 'an instance already' : `a part of another instance, ${held}`;
      if (held !== instanceId)
        throw new StartError(`${target.description} holds ${what}: name an empty database.`);
      await requireUpToDate(target.db, target.description);
    } else {
      await migrate(target.db, target.types, timestamp(now));
      await target.db.insertInto('meta').values({ key: unfinishedCopy, value: instanceId }).execute();
    }
  });
}

async function copyTable(
  source: WholeDatabase,
  target: WholeDatabase,
  table: CopiedTable,
  { progress }: TransferOptions,
): Promise<void> {
  const all = await countTable(source, table.name);
  let done = await countTable(target, table.name);
  const batches = readTable(source, table, await lastRow(target, table));
  for (let isEnd = false; !isEnd;) {
    isEnd = await inTransaction(target, async () => {
      for (let rows = 0; rows < rowsPerCommit;) {
        const { value: batch } = await batches.next();
        if (batch === undefined) return true;
        await insertRows(target.db, table.name, batch);
        rows += batch.length;
        done += batch.length;
      }
      return false;
    });
    progress({ table: table.name, done, all, checked: false });
  }
}

async function countTable({ db }: WholeDatabase, table: string): Promise<number> {
  const { rows } = await sql<{ n: number }>`select count(*) as n from ${sql.table(table)}`.execute(db);
  return rows[0]?.n ?? 0;
}

/** The rows of a table in the order of its key, from the one after a given row on. */
function readTable({ db }: WholeDatabase, table: CopiedTable, from?: Row): AsyncGenerator<Row[], undefined> {
  const key = keyOf(table);
  const read = async (after: Row | undefined) => {
    const beyond = after && sql`where (${key}) > (${sql.join(table.key.map((column) => after[column]))})`;
    const { rows } = await sql<Row>`select * from ${sql.table(table.name)} ${beyond ?? sql``}
      order by ${key} limit ${sql.lit(table.batchLength)}`.execute(db);
    return rows;
  };
  return inBatches(table.batchLength, read, from);
}

async function lastRow({ db }: WholeDatabase, table: CopiedTable): Promise<Row | undefined> {
  const backwards = sql.join(table.key.map((column) => sql`${sql.ref(column)} desc`));
  const { rows } = await sql<Row>`select ${keyOf(table)} from ${sql.table(table.name)}
    order by ${backwards} limit 1`.execute(db);
  return rows[0];
}

function keyOf({ key }: CopiedTable) {
  return sql.join(key.map((column) => sql.ref(column)));
}

/** The index is the engine's own, so it is rebuilt from the posts. */
async function indexAll(
  source: WholeDatabase,
  target: WholeDatabase,
  { progress }: TransferOptions,
): Promise<void> {
  const all = await countTable(source, 'search_docs');
  let done = 0;
  for await (const docs of inBatches<SearchDoc>(fewRows, (after) => readDocs(source, after))) {
    await inTransaction(target, async () => {
      const entries = docs.map(({ doc, text, ...post }) => ({ doc, fields: searchEntry(post, text).fields }));
      target.searchIndex.storeNumbered(target.db, entries);
    });
    done += docs.length;
    progress({ table: 'post_search', done, all, checked: false });
  }
}

type SearchDoc = Awaited<ReturnType<typeof readDocs>>[number];

function readDocs({ db }: WholeDatabase, after: { readonly doc: number } | undefined) {
  return db
    .selectFrom('search_docs')
    .innerJoin('posts', 'posts.id', 'search_docs.post_id')
    .innerJoin('post_bodies', 'post_bodies.post_id', 'posts.id')
    .innerJoin('agents', 'agents.id', 'posts.agent_id')
    .select(['search_docs.doc', 'posts.title', 'posts.tags', 'posts.agent_id', 'post_bodies.text'])
    .select(['agents.name as author_name', 'agents.slug as author_slug'])
    .where('search_docs.doc', '>', after?.doc ?? 0)
    .orderBy('search_docs.doc')
    .limit(fewRows)
    .execute();
}

/** Reads a table on both sides. Throws StartError where they differ. */
async function compare(
  source: WholeDatabase,
  target: WholeDatabase,
  table: CopiedTable,
  { progress }: TransferOptions,
): Promise<CopiedRows> {
  const [is, was] = [await digest(target, table), await digest(source, table)];
  if (is.rows !== was.rows || is.sha256 !== was.sha256) {
    throw new StartError(
      `The table ${table.name} is not equal on both sides (${was.rows} rows, ${is.rows} copied): the source was changed between two runs. Empty the copy, and begin again.`,
    );
  }
  progress({ table: table.name, done: is.rows, all: is.rows, checked: true });
  return is;
}

async function digest(database: WholeDatabase, table: CopiedTable): Promise<CopiedRows> {
  const hash = createHash('sha256');
  let rows = 0;
  for await (const batch of readTable(database, table)) {
    // Columns by name: a later schema step may have added them in another order.
    for (const row of batch)
      hash.update(`${JSON.stringify(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)))}\n`);
    rows += batch.length;
  }
  return { table: table.name, rows, sha256: hash.digest('hex') };
}

/** Makes the copy an instance that can be served. */
async function finish(source: WholeDatabase, target: WholeDatabase, now: number): Promise<void> {
  const held = await source.db.selectFrom('meta').selectAll().execute();
  // It is newer than any file of this instance that an earlier marker may speak of.
  const facts = [...held.filter(({ key }) => key !== markKey), { key: markKey, value: String(now) }];
  await inTransaction(target, async () => {
    await target.db.deleteFrom('meta').execute();
    await target.db.insertInto('meta').values(facts).execute();
  });
}
