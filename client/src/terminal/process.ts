import { runProgram, type Program } from './program.ts';

/** Runs a program in the terminal that it was started from, and ends the process. */
export async function runInTerminal(program: Program): Promise<never> {
  // What is written is for its owner only: database, mail and keys.
  process.umask(0o077);
  // The reader of a pipe may have seen enough.
  process.stdout.on('error', () => process.exit(0));
  const code = await runProgram(program, process.argv.slice(2), {
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
}
