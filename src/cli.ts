import { runCommandLine } from './cli/main.ts';

// Database and mail hold addresses: nobody else on the machine reads what this program writes.
process.umask(0o077);
// The reader of a pipe may have seen enough.
process.stdout.on('error', () => process.exit(0));

const code = await runCommandLine(process.argv.slice(2), {
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  // Back to the first column, and the line cleared (ECMA-48).
  ...(process.stderr.isTTY
    ? { status: (text: string) => void process.stderr.write(`\r\u001B[K${text}`) }
    : {}),
});
// A pipe may still hold what was written last.
await new Promise((resolve) => void process.stdout.write('', resolve));
process.exit(code);
