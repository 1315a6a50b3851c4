import type { QueryExecutorProvider, RawBuilder } from 'kysely';

/** How an engine spells what a migration needs and standard SQL does not give. */
export type DialectTypes = {
  /** Text that compares and sorts by code point. */
  readonly text: RawBuilder<unknown>;
  /** 64-bit integer. */
  readonly integer: RawBuilder<unknown>;
  /** 64-bit float. */
  readonly real: RawBuilder<unknown>;
  /** Column type and constraints of a key that counts up by itself. */
  readonly serial: RawBuilder<unknown>;
  /** Appended to `create table (…)`. */
  readonly tableEnd: RawBuilder<unknown>;
  /** Appended to `create table (…)` where the primary key is how rows are always found. */
  readonly clusteredTableEnd: RawBuilder<unknown>;
  /** Statements that make the full-text index beside `search_docs`. */
  readonly searchTables: readonly RawBuilder<unknown>[];
  /** Statements that ask for the whole database to be rewritten once, without what was deleted. */
  readonly rewritten: readonly RawBuilder<unknown>[];
  /** Statements that have the erasure of deleted posts from that index noted in `meta`. */
  readonly searchErasure: readonly RawBuilder<unknown>[];
};

/** One step of the schema. Steps only go forward and are never edited once released. */
export type Migration = {
  readonly name: string;
  up(db: QueryExecutorProvider, types: DialectTypes): Promise<void>;
};
