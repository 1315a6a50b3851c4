// A million generated inputs over HTTP, MCP and pages, in both variants: npm run fuzz. Writes fuzz.md.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fuzzService } from '../test/support/fuzz-service.ts';
import { describeRun } from './machine.ts';
import { writeReport } from './report.ts';

const { values } = parseArgs({
  options: {
    /** In all: a third each for the API, MCP and pages, and half of each for either variant. */
    inputs: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string', default: fileURLToPath(new URL('./fuzz.md', import.meta.url)) },
  },
});
const inputs = Number(values.inputs);

const begun = performance.now();
const rows: string[] = [];
let total = 0;
for (const variant of ['subdomain', 'path'] as const) {
  const statuses = await fuzzService({
    variant,
    requests: (operations) => Math.ceil(inputs / 6 / operations),
    seed: Number(values.seed),
  });
  for (const [what, seen] of statuses) {
    total += [...seen.values()].reduce((sum, count) => sum + count, 0);
    const counts = [...seen].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
    rows.push(`| ${variant} | ${what} | ${counts.join(', ')} |`);
  }
  process.stdout.write(`${variant}: ${total} inputs so far\n`);
}
const minutes = Math.round((performance.now() - begun) / 60_000);
const text = [
  '# Generated input',
  '',
  'Written by `npm run fuzz`: requests generated from the OpenAPI document and the schemas of the tools, for addresses',
  'that exist and what is near them, and what is no request at all. Each answer of the API is held against the document.',
  'It ends at the first 5xx, internal error of MCP, undocumented answer, error in the log or end of the process.',
  '',
  `- ${describeRun()}; seed ${values.seed}`,
  `- **${total.toLocaleString('en-US')} inputs in ${minutes} minutes: no 5xx, no stop**`,
  '',
  '| variant | what | answered, how often |',
  '|---|---|---|',
  ...rows,
  '',
].join('\n');
process.stdout.write(text);
writeReport(values.out, text);
