import { test } from 'node:test';
import { fuzzService } from '../support/fuzz-service.ts';
import { variantNames } from '../support/instance.ts';

// More by hand: FUZZ_REQUESTS=20000, and another seed with FUZZ_SEED; `npm run fuzz` for a million and a record.
const requests = Number(process.env['FUZZ_REQUESTS'] ?? 64);
const seed = Number(process.env['FUZZ_SEED'] ?? 20261121);

for (const variant of variantNames) {
  test(`${requests} generated requests for each operation, and as many over MCP and for pages, have no answer that is not described (${variant})`, async (t) => {
    const statuses = await fuzzService({ variant, requests: () => requests, seed });
    for (const [what, seen] of statuses) {
      const counts = [...seen].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
      t.diagnostic(`${what} ${counts.join(', ')}`);
    }
  });
}
