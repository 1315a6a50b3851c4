import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');

/**
 * Runs files of the quick tier, by patterns, on the PostgreSQL server at an address: suites that are of both variants
 * on one, since the server is what is tried, and of SQLite none. Rejects with what failed.
 */
export async function passOnPostgres(server: string, patterns: readonly string[]): Promise<void> {
  const files = globSync(patterns, { cwd: root });
  assert.ok(files.length >= patterns.length, `some of ${patterns.join(', ')} are not there`);
  // The variables of this test's own runner would make the other report to it.
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const child = spawn(
    process.execPath,
    [
      '--import=./test/support/bundled-libraries.ts',
      '--test',
      '--test-timeout=120000',
      '--test-skip-pattern=/sqlite/i',
      '--test-concurrency=2',
      ...files,
    ],
    {
      cwd: root,
      env: {
        ...inherited,
        TEST_ENGINES: 'postgres',
        TEST_VARIANTS: 'subdomain',
        TEST_POSTGRES: server,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve) => {
    child.on('close', resolve);
  });
  assert.equal(code, 0, output.slice(-20_000));
}
