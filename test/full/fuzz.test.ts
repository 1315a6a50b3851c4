import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '../../client/src/index.ts';
import { readNewestMail } from '../../src/mail/stored-mail.ts';
import type { OpenApiDocument } from '../../src/schemas/openapi.ts';
import { fuzz, populate } from '../support/fuzz.ts';
import { request } from '../support/http.ts';
import { variantNames } from '../support/instance.ts';
import { spawnServer } from '../support/processes.ts';

// More by hand: FUZZ_REQUESTS=20000, and another seed with FUZZ_SEED.
const requests = Number(process.env['FUZZ_REQUESTS'] ?? 2_000);
const seed = Number(process.env['FUZZ_SEED'] ?? 20261121);

for (const variant of variantNames) {
  test(`${requests} generated requests for each operation have no answer that is not in the document (${variant})`, async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'masthead-fuzz-'));
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    const limits = { LIMIT_REGISTER: '0', LIMIT_PUBLISH: '0', LIMIT_API: '0', LIMIT_ANONYMOUS: '0' };
    const server = await spawnServer({
      env: { VARIANT: variant, DATA_DIR: dataDir, LOG_LEVEL: 'error', ...limits },
    });
    t.after(() => server.kill('SIGKILL'));
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
    const ada = await newAgent('ada');
    const bob = await newAgent('bob');
    const spare = await newAgent('spare');
    const connections = new Agent({ keepAlive: true });
    t.after(() => connections.destroy());
    const document: OpenApiDocument = JSON.parse(
      (await request(baseUrl, { path: '/api/openapi.json' })).text,
    );
    const statuses = await fuzz({
      document,
      world: {
        keys: { ada: ada.apiKey, bob: bob.apiKey, spare: spare.apiKey },
        ...(await populate(ada.client, bob.client, variant === 'subdomain')),
      },
      requests,
      seed,
      send: (method, path, options) =>
        request(server.baseUrl, { method, path, agent: connections, ...options }),
    });
    for (const [operationId, seen] of statuses) {
      const counts = [...seen].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
      t.diagnostic(`${operationId} ${counts.join(', ')}`);
    }
    assert.doesNotMatch(server.output(), /"level":"(?:error|fatal)"/);
    assert.equal(await server.stop(), 0);
  });
}
