import { runCommandLine } from '../../src/cli/main.ts';

/** Runs a command in this process; its exit code, and the lines it wrote, joined by line breaks. */
export async function masthead(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await runCommandLine(args, {
    out: (line) => void out.push(line),
    err: unlessSlow((line) => void err.push(line)),
    env,
  });
  return { code, stdout: out.join('\n'), stderr: err.join('\n') };
}

/** Prints all but the line in which a command says that the service takes long, as it may on a busy machine. */
export function unlessSlow(print: (line: string) => void): (line: string) => void {
  return (line) => {
    if (!/^Still waiting for an answer of http\S+\.$/.test(line)) print(line);
  };
}
