import type { Kysely } from 'kysely';
import type { FindNewest } from './full-text.ts';
import type { Write, Ticket } from './write.ts';
import type { Tables } from './tables.ts';

/** All that the SQL engines do differently. Everything above it is written once. */
export type Engine = {
  /** Which database, without credentials. */
  readonly description: string;
  /** Connection for reads outside of a write, which shows every commit; refuses to change anything. */
  readonly reads: Kysely<Tables>;
  /**
   * Connection for what everyone may see. It may be a replica: then one that shows what this process has
   * committed, and what was committed by anyone before {@link Engine.catchUp}, and else is seconds behind at most.
   */
  readonly publicReads: Kysely<Tables>;
  /** For who has seen a change of another process: `publicReads` show it from here on. */
  catchUp(): void;
  /**
   * Whether, since this was asked last, public reads may have shown what was out of date for long: there was no primary,
   * or another server became it. False as long as there is none.
   */
  primaryChanged(): boolean;
  /** How texts are searched, on either of the connections above. */
  readonly findNewest: FindNewest;
  /**
   * Runs an operation in a transaction of its own and resolves when it is durable. A {@link Ticket} that is
   * not yet punched is counted in the same transaction, and stays counted when the operation itself fails.
   * Throws the operation's AppError, or `rate_limited`, `read_only`, `storage_full`, `unavailable`.
   */
  write<I, O>(operation: Write<I, O>, input: I, ticket?: Ticket): Promise<O>;
  /** A number that differs whenever anything may have been committed by anyone since the last call. */
  version(): number;
  /**
   * A number that differs whenever anyone has committed a change of what is shown since the last call. Null where
   * that cannot be told without asking another machine.
   */
  contentVersion(): number | null;
  /** Why writes are refused at present, or null. */
  readOnly(): string | null;
  /** Called after each commit of this process, with what changed. */
  onCommit(listener: (commit: Commit) => void): void;
  /** Resolves if the database can be read at this moment. */
  probe(): Promise<void>;
  /** Finishes what was handed in, then closes all connections. */
  close(): Promise<void>;
};

/** What a commit asks of the process that made it. */
export type Commit = { readonly changed: readonly string[]; readonly mailQueued: boolean };
