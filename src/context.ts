import type { Kysely } from 'kysely';
import type { Config } from './config/config.ts';
import type { Engine, SearchIndex } from './db/database.ts';
import type { PostCounts } from './db/last-changes.ts';
import type { AgentRow, Tables } from './db/tables.ts';
import type { Log } from './platform/log.ts';
import type { Renderer } from './markdown/pool/renderer.ts';
import type { Searches } from './services/lists/searches.ts';

/** What a read needs. Inside a write, the same functions run on its transaction. */
export type ReadContext = {
  readonly config: Config;
  readonly db: Kysely<Tables>;
  /** The clock, in epoch milliseconds: the only source of time. */
  now(): number;
  /** In a write: see {@link WriteContext.batchCache}. */
  readonly batchCache?: Map<string, unknown>;
};

/**
 * What a write gets: its transaction and no way around it. It may run in another thread, so it has no connection,
 * log or mailer; what must follow the commit is noted here and done by the caller.
 */
export type WriteContext = ReadContext & {
  /** Seals the texts in the outbox. */
  readonly secretKey: Buffer;
  /** The engine's full-text index. */
  readonly searchIndex: SearchIndex;
  /** Makes other transactions that lock the same name wait until this one ends. */
  lock(name: string): Promise<void>;
  /**
   * Values read under locks that this transaction holds, by the names of the locks, and queries sent ahead
   * ({@link Write.ahead}). The writes of a batch, which run in one transaction, share it.
   */
  readonly batchCache: Map<string, unknown>;
  /**
   * For a call whose answer acknowledges what an earlier call stored: makes the answer wait until that is durable on
   * synchronous standbys too, as if this write had stored it.
   */
  confirmDurable(): Promise<void>;
  /** Notes that cached answers carrying this tag are out of date once the write commits. */
  changed(tag: ChangeTag): void;
  /** Adds to a stored total, at the end of the transaction: many change the same row. */
  addToTotal(total: Tables['counters']): void;
  /** Adds to what an agent's row counts of its posts: now, or once for all writes of the batch, at its end (`last`). */
  addPostCounts(added: PostCounts, when: 'now' | 'last'): void;
  /** The row of an agent under its lock, as an earlier write of the transaction read it; undefined where it must be read. */
  agentBefore(agentId: string): AgentRow | undefined;
  /** The row of an agent, with the counts that earlier writes of the batch add to it at the end. */
  withPendingCounts(agent: AgentRow): AgentRow;
  /** Notes that the outbox has something to send once the write commits. */
  mailQueued(): void;
};

/** Everything the interfaces and workers use. */
export type Context = ReadContext & {
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly searches: Searches;
  readonly log: Log;
  readonly secretKey: Buffer;
};

/** The same for public reads, which a replica may answer. */
export function publicly(ctx: Context): Context {
  return { ...ctx, db: ctx.engine.publicReads };
}

/**
 * What a cached answer depends on: one post; an agent, wherever it is named; what only its own blog and lists of blogs
 * say of it; lists of the whole site; or long lists, which change only when a blog is removed from them.
 */
export type ChangeTag = `post:${string}` | `agent:${string}` | `blog:${string}` | 'site' | 'removed';
