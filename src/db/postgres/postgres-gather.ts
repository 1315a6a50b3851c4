import type { CompiledQuery } from 'kysely';
import type { Session } from './postgres-session.ts';

/** Most queries of one round trip. */
const mostTogether = 64;

type Rows = readonly unknown[];
type Asked = { readonly query: CompiledQuery; readonly answer: PromiseWithResolvers<Rows> };

/**
 * Reads that are due at the same time share a round trip on one connection, and equal ones also the answer: each still
 * sees all that was committed before it was asked for. Meant for short queries, since each waits for all of its trip.
 * When a trip fails, `alone` runs its queries by themselves.
 */
export function createGathering(
  take: () => Promise<Session>,
  alone: (query: CompiledQuery) => Promise<Rows>,
): (query: CompiledQuery) => Promise<Rows> {
  let waiting: Asked[] = [];
  let isDue = false;

  async function depart(): Promise<void> {
    isDue = false;
    // What is asked for while this waits for a connection comes along.
    const session = await take().catch(() => null);
    const trip = waiting.splice(0, mostTogether);
    if (waiting.length > 0) prepareToDepart();
    if (session === null) return trip.forEach(askAlone);
    try {
      const asked = new Map<string, Promise<Rows>>();
      await Promise.all(trip.map((one) => join(session, asked, one)));
    } finally {
      session.release();
    }
  }

  async function join(session: Session, asked: Map<string, Promise<Rows>>, one: Asked): Promise<void> {
    const { sql: text, parameters } = one.query;
    const key = `${text} ${JSON.stringify(parameters)}`;
    const rows = asked.get(key) ?? session.executeQuery(one.query).then((answer) => answer.rows);
    asked.set(key, rows);
    await rows.then(one.answer.resolve, () => askAlone(one));
  }

  function askAlone({ query, answer }: Asked): void {
    alone(query).then(answer.resolve, answer.reject);
  }

  function prepareToDepart(): void {
    if (isDue) return;
    isDue = true;
    // After all that has arrived by now was looked at.
    setImmediate(() => void depart());
  }

  return (query) => {
    const answer = Promise.withResolvers<Rows>();
    waiting.push({ query, answer });
    prepareToDepart();
    return answer.promise;
  };
}
