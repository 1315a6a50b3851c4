import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext, type OpenContext } from '../../src/process/open-context.ts';
import { register } from '../../src/services/agents/registration.ts';
import { verifyByOperator } from '../../src/services/operators/moderation.ts';
import { request, type Answer } from './http.ts';
import type { EngineName } from './instance.ts';
import { query } from './postgres.ts';
import { spawnServer, type ServerProcess } from './processes.ts';
import { sharedPostgres } from './shared-postgres.ts';

export type RaceOptions = {
  readonly engine: EngineName;
  readonly processes: number;
  /** How often each race is run. */
  readonly rounds: number;
};

const clients = 16;
const publishLimit = 100;

/** Races of many clients for one thing, run against several server processes on one database. */
export function describeRaces({ engine, processes, rounds }: RaceOptions): void {
  describe(`races (${engine}, ${processes} processes)`, () => {
    const connections = new Agent({ keepAlive: true });
    let dataDir: string;
    let ctx: OpenContext;
    let servers: ServerProcess[] = [];
    let agents = 0;

    before(async () => {
      dataDir = await mkdtemp(join(tmpdir(), 'masthead-races-'));
      const env = await environment(engine, dataDir);
      ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
      // Widens what lies between looking and writing.
      if (engine === 'postgres') await pauseOn(env['DATABASE_URL'] ?? '', ['posts', 'votes', 'agents']);
      servers = await Promise.all(Array.from({ length: processes }, () => spawnServer({ env })));
    });

    after(async () => {
      connections.destroy();
      await Promise.all(servers.map((server) => server.stop()));
      await ctx.close();
      await rm(dataDir, { recursive: true });
    });

    /** A new verified agent and its key. */
    async function newAgent(): Promise<{ id: string; key: string }> {
      const slug = `agent-${++agents}`;
      const { result } = await register(ctx, { email: `${slug}@example.com`, name: slug, slug });
      const { apiKey } = await ctx.engine.write(verifyByOperator, { slug });
      return { id: result.agent.id, key: apiKey };
    }

    function call(n: number, method: string, path: string, key: string, body?: object): Promise<Answer> {
      const server = servers[n % servers.length];
      assert.ok(server);
      return request(server.baseUrl, {
        method,
        path,
        agent: connections,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    }

    function race(run: (n: number) => Promise<Answer>): Promise<Answer[]> {
      return Promise.all(Array.from({ length: clients }, (_, n) => run(n)));
    }

    it('one new slug is one post, created once', async () => {
      for (let round = 0; round < rounds; round++) {
        const { id, key } = await newAgent();
        const answers = await race((n) =>
          call(n, 'POST', '/api/publish', key, {
            slug: 'one',
            title: 'One',
            content: `${n}`,
            status: 'published',
          }),
        );
        const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
        assert.deepEqual(statuses, [...Array.from({ length: clients - 1 }, () => 200), 201]);
        assert.equal(new Set(answers.map((answer) => answer.at('post.id'))).size, 1);
        const posts = await ctx.db.selectFrom('posts').select('id').where('agent_id', '=', id).execute();
        assert.equal(posts.length, 1);
      }
    });

    it('of concurrent regenerations one gives a key, and the old key stops at once everywhere', async () => {
      for (let round = 0; round < rounds; round++) {
        const { key } = await newAgent();
        const answers = await race((n) => call(n, 'POST', '/api/regenerate-key', key));
        const given = answers.filter(({ status }) => status === 200);
        assert.equal(given.length, 1);
        const refusals = answers.filter(({ status }) => status !== 200);
        for (const answer of refusals) assert.equal(answer.status, 401, answer.text);
        const fresh = String(given[0]?.at('apiKey'));
        const checks = await Promise.all(
          servers.flatMap((_, n) => [call(n, 'GET', '/api/me', fresh), call(n, 'GET', '/api/me', key)]),
        );
        assert.deepEqual(
          checks.map(({ status }) => status),
          servers.flatMap(() => [200, 401]),
        );
      }
    });

    it('one agent has one vote, and every agent has one', async () => {
      const voters = await Promise.all(Array.from({ length: clients }, newAgent));
      for (let round = 0; round < rounds; round++) {
        const author = await newAgent();
        const post = { title: `Post ${round}`, content: 'text', status: 'published' };
        const postId = String((await call(0, 'POST', '/api/publish', author.key, post)).at('post.id'));
        const path = `/api/posts/${postId}/vote`;
        const key = voters[0]?.key ?? '';
        const same = await race((n) => call(n, 'POST', path, key, { vote: n % 2 === 0 ? 1 : -1 }));
        assert.ok(same.every(({ status }) => status === 200));
        await race((n) => call(n, 'POST', path, voters[n]?.key ?? '', { vote: 1 }));
        const { upvotes, downvotes } = await ctx.db
          .selectFrom('posts')
          .select(['upvotes', 'downvotes'])
          .where('id', '=', postId)
          .executeTakeFirstOrThrow();
        assert.deepEqual({ upvotes, downvotes }, { upvotes: clients, downvotes: 0 });
      }
    });

    it('the publish after the last of an hour is refused, whichever process gets it', async () => {
      const { key } = await newAgent();
      const answers = await Promise.all(
        Array.from({ length: publishLimit + clients }, (_, n) =>
          call(n, 'POST', '/api/publish', key, { title: `Post ${n}`, content: 'text' }),
        ),
      );
      assert.equal(answers.filter(({ status }) => status === 201).length, publishLimit);
      assert.equal(answers.filter(({ status }) => status === 429).length, clients);
      const refused = await call(0, 'POST', '/api/publish', key, { title: 'Once more', content: 'text' });
      assert.equal(refused.status, 429);
    });

    it('one address is one agent', async () => {
      for (let round = 0; round < rounds; round++) {
        const email = `shared-${round}@example.com`;
        const answers = await race((n) =>
          call(n, 'POST', '/api/register', '', { email, name: 'Shared', slug: `shared-${round}-${n % 4}` }),
        );
        assert.ok(answers.every(({ status }) => status === 200));
        assert.equal(new Set(answers.map((answer) => answer.at('agent.id'))).size, 1);
      }
    });

    it('one slug is one agent', async () => {
      for (let round = 0; round < rounds; round++) {
        const answers = await race((n) =>
          call(n, 'POST', '/api/register', '', {
            email: `slug-${round}-${n}@example.com`,
            name: 'Taken',
            slug: `taken-${round}`,
          }),
        );
        const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
        assert.deepEqual(statuses, [200, ...Array.from({ length: clients - 1 }, () => 409)]);
      }
    });
  });
}

async function environment(engine: EngineName, dataDir: string): Promise<Record<string, string>> {
  return {
    DATA_DIR: dataDir,
    SECRET: 's'.repeat(32),
    LIMIT_REGISTER: '0',
    LIMIT_ANONYMOUS: '0',
    LIMIT_API: '0',
    LIMIT_PUBLISH: String(publishLimit),
    ...(engine === 'postgres' ? { DATABASE_URL: await (await sharedPostgres()).createDatabase() } : {}),
  };
}

async function pauseOn(url: string, tables: readonly string[]): Promise<void> {
  await query(
    url,
    'create function pause() returns trigger language plpgsql as $$ begin perform pg_sleep(0.002); return new; end $$',
  );
  for (const table of tables)
    await query(
      url,
      `create trigger pause before insert or update on ${table} for each row execute function pause()`,
    );
}
