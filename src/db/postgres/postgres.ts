import {
  DummyDriver,
  Kysely,
  OperatorNode,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  PrimitiveValueListNode,
  type BinaryOperationNode,
  type DatabaseConnection,
  type OperationNode,
} from 'kysely';
import { DatabaseError } from 'pg';
import { AppError } from '../../errors.ts';
import { databaseFailures } from '../../platform/measured.ts';
import { directly, type Direct } from '../prepared.ts';
import type { Tables } from '../tables.ts';

/** The connection to the database, or the wait for one, failed: nothing is known to have been stored. */
export class Unreachable extends AppError {
  constructor(cause: unknown) {
    super('unavailable', 'The database cannot be reached at this moment. Repeat the call.', {
      retryAfter: 2,
    });
    this.cause = cause;
    databaseFailures.unreachable.value++;
  }
}

/** The SQLSTATE of a failed statement, or null for any other failure. */
export function sqlState(error: unknown): string | null {
  return error instanceof DatabaseError ? (error.code ?? null) : null;
}

/** A list of values is one parameter, so that a query with lists of any length is one statement, prepared once. */
class QueryCompiler extends PostgresQueryCompiler {
  protected override visitBinaryOperation(node: BinaryOperationNode): void {
    const comparison = listComparisons.get(nameOf(node.operator));
    const values = comparison === undefined ? undefined : valuesOf(node.rightOperand);
    if (values === undefined) return super.visitBinaryOperation(node);
    this.visitNode(node.leftOperand);
    this.append(` ${comparison}(`);
    this.appendValue(values);
    this.append(')');
  }
}

const listComparisons = new Map([
  ['in', '= any'],
  ['not in', '<> all'],
]);

function nameOf(operator: OperationNode): string {
  return OperatorNode.is(operator) ? operator.operator : '';
}

/** The values of a list; undefined for placeholders of a query that is built once, whose list has one length. */
function valuesOf(list: OperationNode): readonly unknown[] | undefined {
  if (!PrimitiveValueListNode.is(list)) return undefined;
  return list.values.some((value) => typeof value === 'object') ? undefined : list.values;
}

/** A query builder that runs queries by `execute`. It has no transactions: those are the engine's own. */
export function createDb(execute: DatabaseConnection['executeQuery'], direct: Direct): Kysely<Tables> {
  const refuse = (why: string) => () => {
    throw new Error(why);
  };
  const connection: DatabaseConnection = {
    executeQuery: execute,
    streamQuery: refuse('Rows are read in pages, never streamed'),
  };
  const driver = Object.assign(new DummyDriver(), {
    acquireConnection: async () => connection,
    beginTransaction: refuse('Changes go through Engine.write'),
  });
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => driver,
      createIntrospector: (introspected) => new PostgresIntrospector(introspected),
      createQueryCompiler: () => new QueryCompiler(),
    },
  });
  directly.set(db, direct);
  return db;
}
