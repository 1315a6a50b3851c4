import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../../client/src/index.ts';
import { readNewestMail } from '../../src/mail/stored-mail.ts';
import type { OpenApiDocument } from '../../src/schemas/openapi.ts';
import { operationsOf } from './api-document.ts';
import { fuzz, populate } from './fuzz.ts';
import { fuzzMcp } from './fuzz-mcp.ts';
import { fuzzPages } from './fuzz-pages.ts';
import { request } from './http.ts';
import { spawnServer } from './processes.ts';

type FuzzRun = {
  readonly variant: 'subdomain' | 'path';
  /** Requests for each operation of the API; as many messages to MCP and requests for pages as for the API in all. */
  readonly requests: (operations: number) => number;
  readonly seed: number;
};

/**
 * Sends generated input to a server of its own, over all interfaces. Rejects at the first 5xx, undocumented answer,
 * error in the log or unclean end; how many of each status there were, by operation, `MCP` and `pages`.
 */
export async function fuzzService({
  variant,
  requests,
  seed,
}: FuzzRun): Promise<Map<string, Map<number, number>>> {
  const dataDir = mkdtempSync(join(tmpdir(), 'masthead-fuzz-'));
  const limits = Object.fromEntries(
    ['REGISTER', 'PUBLISH', 'API', 'ANONYMOUS', 'COMMENT'].map((policy) => [`LIMIT_${policy}`, '0']),
  );
  const server = await spawnServer({
    env: { VARIANT: variant, DATA_DIR: dataDir, LOG_LEVEL: 'error', QUOTA_POSTS: '1000000000', ...limits },
    readyWithin: 120_000,
  });
  const connections = new Agent({ keepAlive: true });
  try {
    const baseUrl = `http://localhost:${server.port}`;
    const newAgent = async (slug: string) => {
      const client = createClient({ baseUrl });
      const email = `${slug}@example.com`;
      await client.register({ email, name: slug, ...(variant === 'subdomain' ? { slug } : {}) });
      const { apiKey } = await client.waitForVerification(
        async () => {
          const mail = await readNewestMail(join(dataDir, 'mail'), { holdingToken: true });
          return mail?.to === email ? mail.token : null;
        },
        { interval: 20, timeout: 60_000 },
      );
      return { client, apiKey };
    };
    const [ada, bob, spare] = [await newAgent('ada'), await newAgent('bob'), await newAgent('spare')];
    const document: OpenApiDocument = JSON.parse(
      (await request(baseUrl, { path: '/api/openapi.json' })).text,
    );
    const operations = operationsOf(document).length;
    const ofEach = requests(operations);
    const world = {
      keys: { ada: ada.apiKey, bob: bob.apiKey, spare: spare.apiKey },
      ...(await populate(ada.client, bob.client, variant === 'subdomain')),
    };
    const { posts } = await ada.client.listPosts({ limit: 10 });
    const send = (method: string, path: string, options: object) =>
      // Long, since a machine with other work is slow, not the service.
      request(server.baseUrl, { method, path, agent: connections, timeout: 120_000, ...options });
    const pages = await fuzzPages({
      hosts: (variant === 'subdomain' ? ['', 'ada.', 'nobody.'] : ['', '', '', 'nobody.']).map(
        (blog) => `${blog}localhost:${server.port}`,
      ),
      slugs: ['ada', 'bob', ...posts.map(({ slug }) => slug)],
      requests: ofEach * operations,
      seed,
      send,
    });
    const mcp = await fuzzMcp({
      world,
      requests: ofEach * operations,
      seed,
      send: (headers, body) => send('POST', '/mcp', { headers, body }),
    });
    // Messages may have changed what the API is asked about: it comes last, since it deletes the agent too.
    const api = await fuzz({ document, world, requests: ofEach, seed, send });
    assert.doesNotMatch(server.output(), /"level":"(?:error|fatal)"/);
    assert.equal(await server.stop(), 0);
    return new Map([['pages', pages], ['MCP', mcp], ...api]);
  } finally {
    connections.destroy();
    server.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  }
}
