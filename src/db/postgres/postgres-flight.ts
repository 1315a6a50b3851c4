import { types, type Connection, type Submittable } from 'pg';

/** A value as it is sent: as text, or in the binary form of its type. */
export type Sent = string | Buffer | null;

/** A statement of a flight. */
export type Statement = {
  readonly text: string;
  readonly values: readonly Sent[];
  /** The name that it is prepared under on this connection; empty for none. */
  readonly name: string;
  /** Whether anybody reads its rows. */
  readonly wanted: boolean;
};

/** What a statement answered: the first word of its command tag, the rows that it changed or found, the rows read. */
export type Answer = {
  readonly command: string;
  readonly count: number;
  readonly rows: Record<string, unknown>[];
  /** Whether the server warned of something while it ran the statement. */
  readonly noticed: boolean;
};

type Column = { readonly name: string; readonly parse: (text: string) => unknown };

/** What a connection has prepared: each statement's columns, by its name; null before its first rows. */
export type Prepared = Map<string, readonly Column[] | null>;

/** Messages of the server, as the driver hands them over. */
type Field = { readonly name: string; readonly dataTypeID: number };

/**
 * Statements that travel together and are answered together: one round trip. The server runs them in order, and after
 * the first that fails none. The driver's own queries each wait for the answer of the one before.
 */
export class Flight implements Submittable {
  /** The driver's name for the time that it may take, ms; 0 for ever. */
  readonly query_timeout: number;
  /** Of each statement that was done, in order. */
  readonly answers: Answer[] = [];
  /** Set while a statement runs of which the server warns. */
  noticed = false;
  /** Replaced by the driver with one that stops its timer. */
  callback: (error: unknown) => void;
  readonly #statements: readonly Statement[];
  readonly #prepared: Prepared;
  /** What the server has yet to confirm as prepared, in order. */
  readonly #parsing: string[] = [];
  #columns: readonly Column[] | null = null;
  #rows: Record<string, unknown>[] = [];

  /** `callback` gets the error of the first statement that failed, or null. */
  constructor(
    statements: readonly Statement[],
    { prepared, patience }: { readonly prepared: Prepared; readonly patience: number },
    callback: (error: unknown) => void,
  ) {
    this.#statements = statements;
    this.#prepared = prepared;
    this.query_timeout = patience;
    this.callback = callback;
  }

  /** Called by the driver when the connection is free. */
  submit(connection: Connection): void {
    connection.stream.cork();
    for (const { text, values, name, wanted } of this.#statements) {
      if (name === '' || !(this.#prepared.has(name) || this.#parsing.includes(name))) {
        this.#parsing.push(name);
        connection.parse({ name, text, types: [] }, true);
      }
      connection.bind({ statement: name, values: [...values] }, true);
      if (wanted && !this.#prepared.get(name)) connection.describe({ type: 'P' }, true);
      connection.execute({}, true);
    }
    connection.sync();
    connection.stream.uncork();
  }

  /** A statement was prepared: the driver tells that to its own queries only. */
  parsed(): void {
    const name = this.#parsing.shift();
    if (name) this.#prepared.set(name, null);
  }

  handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, parse: getTypeParser(dataTypeID) }));
    const name = this.#statements[this.answers.length]?.name;
    if (name) this.#prepared.set(name, this.#columns);
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const statement = this.#statements[this.answers.length];
    if (!statement?.wanted) return;
    this.#columns ??= this.#prepared.get(statement.name) ?? [];
    const row: Record<string, unknown> = {};
    // Columns that a newer release adds come last.
    for (const [i, { name, parse }] of this.#columns.entries()) {
      const text = fields[i] ?? null;
      row[name] = text === null ? null : parse(text);
    }
    this.#rows.push(row);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    const words = text.split(' ');
    this.#done(words[0] ?? '', Number(words.at(-1)) || 0);
  }

  handleEmptyQuery(): void {
    this.#done('', 0);
  }

  handleReadyForQuery(): void {
    this.callback(null);
  }

  handleError(error: unknown): void {
    this.callback(error);
  }

  #done(command: string, count: number): void {
    this.answers.push({ command, count, rows: this.#rows, noticed: this.noticed });
    this.noticed = false;
    this.#rows = [];
    this.#columns = null;
  }
}

/**
 * What is sent, with rows together that one statement can add. All that one write handed over stays in its order; of writes
 * that run at once a row may come before what others handed over, since none knows of it: up to the last other statement.
 */
export function rowsTogether<Handed extends { readonly does: unknown; readonly write: number }>(
  handed: readonly Handed[],
): Handed[][] {
  const groups: Handed[][] = [];
  /** Of those that rows may still join: the group of each query, and the last of each write. */
  const open = new Map<unknown, number>();
  const lastOf = new Map<number, number>();
  for (const one of handed) {
    const { does, write } = one;
    if (typeof does === 'string') {
      open.clear();
      lastOf.clear();
      groups.push([one]);
      continue;
    }
    let group = open.get(does) ?? -1;
    if (group >= (lastOf.get(write) ?? 0)) groups[group]?.push(one);
    else {
      group = groups.push([one]) - 1;
      open.set(does, group);
    }
    lastOf.set(write, group);
  }
  return groups;
}

/** A value as the server reads it; null for SQL's null. Throws for one that it cannot. */
export function asSent(value: unknown): Sent {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || value instanceof Buffer) return value;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return `${value}`;
  if (Array.isArray(value)) return `{${value.map(asMember).join()}}`;
  throw new TypeError(`A ${typeof value} cannot be sent to the database`);
}

/** A value of an array, in the notation of PostgreSQL. */
function asMember(value: unknown): string {
  const sent = asSent(value);
  if (sent instanceof Buffer) throw new TypeError('An array of bytes cannot be sent to the database');
  return typeof sent === 'string' ? `"${sent.replace(/["\\]/g, '\\$&')}"` : 'null';
}

/** Types that the driver leaves as text: `int8` and `numeric` of pg_type. */
const numberTypes = new Set([20, 1700]);

/** 64-bit integers and sums are numbers here: none of ours comes near 2^53. */
function getTypeParser(oid: number): (text: string) => unknown {
  return numberTypes.has(oid) ? Number : types.getTypeParser(oid, 'text');
}
