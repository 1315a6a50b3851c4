import type { CompiledQuery, Kysely, QueryResult } from 'kysely';
import type { PoolClient } from 'pg';
import { AppError } from '../../errors.ts';
import { sha256 } from '../../rules/secrets.ts';
import type { Tables } from '../tables.ts';
import { createDb, sqlState, Unreachable } from './postgres.ts';
import { mostRows, type QueryForRows } from '../prepared.ts';
import {
  asSent,
  Flight,
  rowsTogether,
  type Answer,
  type Prepared,
  type Sent,
  type Statement,
} from './postgres-flight.ts';

/** Most statements that one connection keeps prepared; generated texts are few. */
const mostPrepared = 500;
/** How long a statement may take, ms. A slower one was lost on its way or needs an index. */
const statementPatience = 30_000;
/** The patience that has no end. */
const forever = 0;

/** SQLSTATEs that end a connection, besides 08: it was ended by an administrator or a limit. */
const connectionStates = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '53300', '53400']);
/**
 * A prepared statement is missing or stale: a pooler handed out another connection, or a process of a newer release
 * added a column (0A000, 'cached plan must not change result type').
 */
const unpreparedStates = new Set(['26000', '42P05', '0A000']);

/** Whether statements are prepared by name; turned off for good when a pooler does not support it. */
export type Preparing = { on: boolean; onEnd: () => void };

export type SessionOptions = {
  readonly preparing: Preparing;
  /** How long a statement may take until the connection counts as lost, ms; 30 s by default. */
  readonly statementPatience?: number;
};

/** What was handed to a session, in order: a statement with its values, or a row and the query that adds such. */
type Handed = {
  readonly does: string | QueryForRows;
  readonly values: readonly Sent[];
  readonly named: boolean;
  readonly number: number;
  /** Whether it may change something. */
  readonly changes: boolean;
  readonly patience: number;
  readonly answer: PromiseWithResolvers<Answer> | null;
  /** Whose it is; null: of no part. */
  readonly part: Part | null;
  /** The number of the write that it belongs to, of those that run at once; 0: of none. */
  readonly write: number;
};

/** A statement on its way, and who waits for its answer. */
type Waited = Statement & Pick<Handed, 'answer'>;

type HandOptions = Partial<Pick<Handed, 'changes' | 'patience' | 'named' | 'part'>>;

/** One of several writes that run at once in a transaction: what it handed over can be taken back without the others'. */
export class Part {
  /** Runs everything on the connection. */
  readonly db: Kysely<Tables>;
  /** The number of its last change that was sent. */
  lastChange = 0;
  /** The number of the write that it is given to. */
  write = 0;

  constructor(createDbOf: (part: Part) => Kysely<Tables>) {
    this.db = createDbOf(this);
  }
}

/**
 * One connection of a pool, taken until it is released. Statements that are handed over without anything being awaited
 * in between travel together, behind those whose answers nobody waits for: see {@link Flight}.
 */
export class Session {
  /** Runs everything on this connection. */
  readonly db: Kysely<Tables>;
  /** Those that nobody uses. */
  readonly #parts: Part[] = [];
  readonly #client: PoolClient;
  readonly #preparing: Preparing;
  readonly #patience: number;
  readonly #prepared: Prepared = new Map();
  #waiting: Handed[] = [];
  #flight: Flight | null = null;
  #isDue = false;
  #handed = 0;
  #writes = 0;
  #lost = false;
  #failed = false;
  #answered = false;

  constructor(
    client: PoolClient,
    { preparing, statementPatience: patience = statementPatience }: SessionOptions,
  ) {
    this.#client = client;
    this.#preparing = preparing;
    this.#patience = patience;
    this.db = this.#createDb(null);
    client.connection.on('parseComplete', () => this.#flight?.parsed());
    client.on('notice', () => {
      if (this.#flight) this.#flight.noticed = true;
    });
    client.on('error', () => {
      this.#lost = true;
    });
  }

  async executeQuery<R>(
    { sql: text, parameters, query }: CompiledQuery,
    part: Part | null = null,
  ): Promise<QueryResult<R>> {
    const changes = query.kind !== 'SelectQueryNode';
    const named = parameters.length > 0;
    const { command, count, rows } = await this.#ask(text, parameters, { changes, named, part });
    const counts = command === 'INSERT' || command === 'UPDATE' || command === 'DELETE';
    return { rows: rows as R[], ...(counts ? { numAffectedRows: BigInt(count) } : {}) };
  }

  /** Gives `use` a part of its own. */
  async inPart<T>(use: (part: Part) => Promise<T>): Promise<T> {
    const part = this.#parts.pop() ?? new Part((own) => this.#createDb(own));
    part.write = ++this.#writes;
    try {
      return await use(part);
    } finally {
      this.#parts.push(part);
    }
  }

  /** One statement without parameters. */
  async run(text: string): Promise<void> {
    await this.#ask(text, [], { named: false });
  }

  /** A statement whose answer nobody waits for: its failure is that of what is asked or committed next. */
  send(text: string, values: readonly unknown[] = [], { changes = true } = {}): void {
    this.#hand(text, values, { changes });
  }

  /** The column `answer` of the first row of a query without parameters. `patience`: ms. */
  async ask(text: string, patience = this.#patience): Promise<unknown> {
    const { rows } = await this.#ask(text, [], { patience, named: false });
    return rows[0]?.['answer'];
  }

  /** Whether the server is in recovery, and so takes no writes. `patience`: ms. */
  async isStandby(patience?: number): Promise<boolean> {
    return (await this.ask('select pg_is_in_recovery() as answer', patience)) === true;
  }

  /** Whether the database has tables of ours. */
  async hasTables(): Promise<boolean> {
    return (await this.ask(`select to_regclass('migrations') is not null as answer`)) === true;
  }

  /**
   * Commits. Resolves to false where the server rolled back or sent a warning: to PostgreSQL, a cancelled wait for
   * the synchronous standby is a success with a warning.
   */
  async commit(): Promise<boolean> {
    const { command, noticed } = await this.#ask('commit', [], { patience: forever });
    return command === 'COMMIT' && !noticed;
  }

  /** Begins a transaction, together with what comes next. */
  begin(): void {
    this.#answered = false;
    this.#failed = false;
    this.send('begin isolation level read committed', [], { changes: false });
  }

  /** Whether the server has answered anything since the transaction began. */
  hasAnswered(): boolean {
    return this.#answered;
  }

  /** Ends the transaction without its changes, those that wait to be sent included. Resolves whatever happens. */
  async rollback(): Promise<void> {
    this.#waiting = [];
    await this.run('rollback').catch(() => undefined);
    this.#failed = false;
  }

  /** Marks a place in the transaction, for {@link takeBack}. */
  mark(): number {
    return this.#handed;
  }

  /** Drops what a part handed over since a mark. False where a change of it was sent, or the transaction has failed. */
  takeBack(part: Part, mark: number): boolean {
    if (this.#lost) throw new Unreachable(null);
    if (this.#failed || part.lastChange > mark) return false;
    this.#waiting = this.#waiting.filter((handed) => handed.part !== part || handed.number <= mark);
    return true;
  }

  /** Drops what waits to be sent, and undoes what was, since a savepoint of this name. */
  async undoTo(savepoint: string, mark: number): Promise<void> {
    this.#waiting = this.#waiting.filter(({ number }) => number <= mark);
    await this.run(`rollback to savepoint ${savepoint}`);
    this.#failed = false;
  }

  release(): void {
    this.#client.release(this.#lost);
  }

  #createDb(part: Part | null): Kysely<Tables> {
    return createDb((query) => this.executeQuery(query, part), {
      rows: async (query) => (await this.executeQuery(query, part)).rows,
      change: ({ sql: text, parameters }) => this.#hand(text, parameters, { part }),
      changeRows: (queryFor, rows) => {
        for (const row of rows) this.#hand(queryFor, row, { part });
      },
    });
  }

  async #ask(
    text: string,
    values: readonly unknown[] = [],
    { changes = false, ...options }: HandOptions = {},
  ): Promise<Answer> {
    if (this.#lost) throw new Unreachable(null);
    const answer = Promise.withResolvers<Answer>();
    this.#hand(text, values, { changes, ...options }, answer);
    if (!this.#isDue && this.#flight === null) this.#depart();
    return answer.promise;
  }

  #hand(
    does: Handed['does'],
    given: readonly unknown[],
    { changes = true, patience = this.#patience, named = true, part = null }: HandOptions = {},
    answer: Handed['answer'] = null,
  ): void {
    const [values, number, write] = [given.map(asSent), ++this.#handed, part?.write ?? 0];
    this.#waiting.push({ does, values, named, number, changes, patience, answer, part, write });
  }

  /** Sends what is handed over until everybody waits for something. */
  #depart(): void {
    this.#isDue = true;
    // From a microtask, so that the tick comes after all others that are due.
    queueMicrotask(() => process.nextTick(() => this.#fly(this.#waiting.splice(0))));
  }

  #fly(handed: readonly Handed[]): void {
    this.#isDue = false;
    if (handed.length === 0) return;
    for (const { part, changes, number } of handed) if (part && changes) part.lastChange = number;
    const isForever = handed.some(({ patience }) => patience === forever);
    const patience = isForever ? forever : Math.max(...handed.map((one) => one.patience));
    this.#send(
      rowsTogether(handed).flatMap((some) => this.#statementsOf(some)),
      patience,
    );
  }

  #send(statements: readonly Waited[], patience: number): void {
    const flight = new Flight(statements, { prepared: this.#prepared, patience }, (error) => {
      this.#flight = null;
      if (error !== null && error !== undefined) this.#refuse(statements, error, patience);
      else this.#deliver(statements, flight.answers);
      const isAwaited = this.#waiting.some(({ answer }) => answer !== null);
      if (isAwaited && this.#flight === null && !this.#isDue) this.#depart();
    });
    this.#flight = flight;
    this.#client.query(flight);
  }

  /** A statement, or those that add rows: a power of two at a time, so that few are prepared, and fewer long ones. */
  #statementsOf(handed: readonly Handed[]): Waited[] {
    const statements: Waited[] = [];
    const add = (text: string, values: readonly Sent[], { answer, named }: Handed) => {
      const name = named && this.#preparing.on ? nameOf(text) : '';
      statements.push({ text, values, name, wanted: answer !== null, answer });
    };
    for (let n = 0, rows = 1; n < handed.length; n += rows) {
      const first = handed[n] as Handed;
      if (typeof first.does === 'string') add(first.does, first.values, first);
      else {
        rows = 2 ** Math.floor(Math.log2(Math.min(mostRows, handed.length - n)));
        while (rows > 1 && lengthOf(handed.slice(n, n + rows)) > mostLength) rows /= 2;
        const some = handed.slice(n, n + rows).map(({ values }) => values);
        const { sql: text, parameters } = first.does(this.db, some);
        add(text, parameters.map(asSent), first);
      }
    }
    return statements;
  }

  #deliver(statements: readonly Waited[], answers: readonly Answer[]): void {
    this.#answered = true;
    for (const [i, { answer }] of statements.entries()) {
      const given = answers[i];
      if (given) answer?.resolve(given);
      else answer?.reject(new Error('the database did not answer a statement'));
    }
  }

  #refuse(statements: readonly Waited[], error: unknown, patience: number): void {
    const state = sqlState(error);
    this.#failed = true;
    if (state !== null && unpreparedStates.has(state)) {
      if (this.#preparing.on) this.#preparing.onEnd();
      this.#preparing.on = false;
      // A failed transaction accepts no more statements: the engine runs all of it again.
      const isAlone = statements.length === 1 && this.#client.getTransactionStatus() === 'I';
      if (isAlone && statements[0]?.name) return this.#send([{ ...statements[0], name: '' }], patience);
    }
    const failure = this.#meaningOf(error, state);
    for (const { answer } of statements) answer?.reject(failure);
  }

  #meaningOf(error: unknown, state: string | null): unknown {
    if (state === null || state.startsWith('08') || connectionStates.has(state)) {
      this.#lost = true;
      return new Unreachable(error);
    }
    // No stored text can equal one that cannot be stored.
    if (state !== '22021') return error;
    return new AppError(
      'invalid_input',
      'The call contains a character that no text here can have, such as NUL.',
    );
  }
}

/** Of the values of a statement that adds several rows, in bytes and characters: its message is one piece of memory. */
const mostLength = 1024 * 1024;

function lengthOf(handed: readonly Handed[]): number {
  let length = 0;
  for (const { values } of handed) for (const value of values) length += value?.length ?? 0;
  return length;
}

const names = new Map<string, string>();

/** Empty where too many have names. The same name for the same text in every process, since poolers that track prepared statements share them. */
function nameOf(text: string): string {
  const known = names.get(text);
  if (known !== undefined) return known;
  if (names.size >= mostPrepared) return '';
  const name = `masthead_${sha256(text).slice(0, 24)}`;
  names.set(text, name);
  return name;
}
