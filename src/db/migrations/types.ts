import type { RawBuilder } from 'kysely';

/** What migrations need and the engines write differently. */
export type DialectTypes = {
  /** Text that compares and sorts by code point. */
  readonly text: RawBuilder<unknown>;
  /** 64-bit integer. */
  readonly integer: RawBuilder<unknown>;
  /** 64-bit float. */
  readonly real: RawBuilder<unknown>;
  /** Type and constraints of an auto-incrementing key. */
  readonly serial: RawBuilder<unknown>;
  /** Appended to `create table (…)`. */
  readonly tableEnd: RawBuilder<unknown>;
  /** The same for tables whose rows are always looked up by primary key. */
  readonly clusteredTableEnd: RawBuilder<unknown>;
  /** Whether a column's constraints can be altered; else its table is copied. */
  readonly altersColumns: boolean;
  /** Creates the full-text index beside `search_docs`. */
  readonly searchTables: readonly RawBuilder<unknown>[];
  /** Has large texts compressed by a faster method, where the database has several. */
  readonly fastCompression: readonly RawBuilder<unknown>[];
  /** Notes in `meta` the agents of posts whose terms lost positions in the full-text index: these are indexed again. */
  readonly cutPositions: readonly RawBuilder<unknown>[];
  /** Requests one rewrite of the whole database, so that deleted data leaves its free pages. */
  readonly rewritten: readonly RawBuilder<unknown>[];
  /** Records in `meta` that terms of deleted posts are to be erased from that index. */
  readonly searchErasure: readonly RawBuilder<unknown>[];
};

/** One step of the schema. Steps only go forward and are never edited once released. */
export type Migration = {
  readonly name: string;
  statements(types: DialectTypes): readonly RawBuilder<unknown>[];
};
