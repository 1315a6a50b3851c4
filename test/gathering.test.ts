import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CompiledQuery } from 'kysely';
import { createGathering } from '../src/db/postgres/postgres-gather.ts';
import type { Session } from '../src/db/postgres/postgres-session.ts';

const query = (text: string, ...parameters: unknown[]) =>
  ({ sql: text, parameters }) as unknown as CompiledQuery;

/** A connection that answers each query with what it asks for, but for some. */
function connection(fails: (asked: CompiledQuery) => boolean = () => false) {
  const asked: string[] = [];
  const nameOf = ({ sql, parameters }: CompiledQuery) => `${sql} ${parameters.join()}`;
  const session = {
    async executeQuery(one: CompiledQuery) {
      asked.push(nameOf(one));
      if (fails(one)) throw new Error('refused');
      return { rows: [nameOf(one)] };
    },
    release: () => asked.push('release'),
  };
  return { asked, nameOf, take: async () => session as unknown as Session };
}

test('reads that are due together share a trip, and equal ones, values included, an answer', async () => {
  const { asked, take } = connection();
  const read = createGathering(take, async () => assert.fail('alone'));
  const answers = await Promise.all([
    read(query('agent', 'ada')),
    read(query('agent', 'bob')),
    read(query('agent', 'ada')),
    read(query('post', 'ada')),
  ]);
  assert.deepEqual(answers.flat(), ['agent ada', 'agent bob', 'agent ada', 'post ada']);
  await nextTurn();
  assert.deepEqual(asked, ['agent ada', 'agent bob', 'post ada', 'release']);
  // What is asked for later sees what was committed meanwhile.
  await read(query('agent', 'ada'));
  await nextTurn();
  assert.deepEqual(asked.slice(4), ['agent ada', 'release']);
});

test('a read that fails in a trip is made alone, and so are all where there is no connection', async () => {
  const { nameOf, take } = connection(({ parameters }) => parameters[0] === 'bob');
  const alone: string[] = [];
  const askAlone = async (one: CompiledQuery) => [alone.push(nameOf(one))];
  const read = createGathering(take, askAlone);
  assert.deepEqual(await Promise.all([read(query('agent', 'ada')), read(query('agent', 'bob'))]), [
    ['agent ada'],
    [1],
  ]);
  const unconnected = createGathering(async () => Promise.reject(new Error('none')), askAlone);
  assert.deepEqual(await Promise.all([unconnected(query('a')), unconnected(query('b'))]), [[2], [3]]);
  assert.deepEqual(alone, ['agent bob', 'a ', 'b ']);
});

test('more than a trip takes go with the next', async () => {
  const { asked, take } = connection();
  const read = createGathering(take, async () => assert.fail('alone'));
  await Promise.all(Array.from({ length: 70 }, (_, n) => read(query('post', n))));
  await nextTurn();
  assert.deepEqual([asked.indexOf('release'), asked.length], [64, 72]);
});
