import { errorCode, errorMessage, StartError } from '../../../src/rules/failure.ts';
import { nearest } from '../../../src/rules/suggest.ts';
import { coloured, progress, questions } from './asking.ts';
import { didYouMean, parseCall, UsageError, type Terminal } from './command.ts';
import { candidates, completionScript } from './completion.ts';
import { exitCodeOf } from './exit-codes.ts';
import { shown } from './format.ts';
import { commandFirst, findCommand, meantBy, nextWords, type Groups } from './words.ts';
import { commandHelp, listHelp } from './help.ts';

/** A program of commands. */
export type Program = {
  /** As it is typed. */
  readonly name: string;
  /** Its first line of help. */
  readonly title: string;
  /** Its last one. */
  readonly closing: string;
  readonly version: () => string;
  readonly groups: Groups;
  /** Turns an expected failure of the program's own into a StartError; returns any other unchanged. */
  readonly expected?: (error: unknown) => unknown;
};

/** Runs a program in the terminal that it was started from, and ends the process. */
export async function runInTerminal(program: Program): Promise<never> {
  // Database, mail and keys are for their owner only.
  process.umask(0o077);
  process.stdout.on('error', (error) => {
    // Whoever reads the pipe may have seen enough; what a full disk does not take is lost.
    if (errorCode(error) === 'EPIPE') process.exit(0);
    process.stderr.write(`The result cannot be written: ${errorMessage(error)}\n`);
    process.exit(1);
  });
  // What is said beside the result needs no reader.
  process.stderr.on('error', () => undefined);
  const code = await runProgram(program, process.argv.slice(2), {
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${coloured(line)}\n`),
    ...progress(),
    // A terminal without a known size, as in a container, says 0.
    columns: (what) => (what === 'result' ? process.stdout : process.stderr).columns || undefined,
    ...questions(),
  });
  // A pipe may not have taken everything yet.
  await new Promise((resolve) => void process.stdout.write('', resolve));
  process.exit(code);
}

/** Runs one command. The exit code is 0, 2 for a usage error, that of a failure, or what the command returns. */
export async function runProgram(
  program: Program,
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    const code = await run(program, args, terminal);
    // A command may return what a printer returned: only a number is a code.
    return typeof code === 'number' ? code : 0;
  } catch (caught) {
    const error = program.expected?.(caught) ?? caught;
    const isUsage = error instanceof UsageError;
    const text = isUsage ? error.message : failureText(error);
    const facts = error instanceof StartError ? error.facts : {};
    if (wantsJson(args)) {
      // One line, as what goes on prints them.
      const failure = { code: isUsage ? 'usage' : 'failed', message: text, ...facts };
      terminal.out(JSON.stringify({ ok: false, error: failure }));
    }
    terminal.err(
      isUsage
        ? `${program.name}: ${text}\nTry: ${program.name} ${`${error.about} `.trimStart()}--help`
        : text,
    );
    return isUsage ? 2 : exitCodeOf(facts);
  }
}

/** Why it failed: the message of a StartError, the stack of anything unexpected. */
export function failureText(error: unknown): string {
  if (error instanceof StartError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}

async function run(program: Program, typed: readonly string[], terminal: Terminal): Promise<number | void> {
  if (typed.length === 1 && typed[0] === '--version') return terminal.out(program.version());
  const args = commandFirst(program.groups, typed);
  const [first, ...rest] = args;
  if (first === 'help') return run(program, [...rest, '--help'], terminal);
  if (first === 'completion') return terminal.out(completionScript(program.name, rest));
  if (first === 'complete') return terminal.out(candidates(program, rest).join('\n'));
  const optionAt = args.findIndex((arg) => arg.startsWith('-'));
  const words = optionAt === -1 ? args : args.slice(0, optionAt);
  const command = findCommand(program.groups, words);
  if (command === undefined) return runGroup(program, words, args.slice(words.length), terminal);
  const call = parseCall(program.name, command, args.slice(command.name.split(' ').length), terminal);
  return call.has('help')
    ? terminal.out(commandHelp(program, command, terminal.columns?.('result')))
    : command.run(call);
}

/** Not a command: the program itself, a group of commands (`admin`), or an unknown word. */
function runGroup(
  program: Program,
  words: readonly string[],
  options: readonly string[],
  terminal: Terminal,
): void {
  for (const [index, word] of words.entries()) {
    const group = words.slice(0, index);
    const next = nextWords(program.groups, group);
    if (next.includes(word)) continue;
    const prefix = group.map((each) => `${each} `).join('');
    const near = nearest(word, next);
    const isFirst = group.length === 0;
    const meant = near === null || isFirst ? meantBy(program.groups, word, isFirst) : '';
    const question = meant === '' ? didYouMean(prefix, near, "'") : meant;
    const others = question === '' && !isFirst ? `: say what to do: ${next.join(', ')}` : '';
    throw new UsageError(`unknown command ${shown(prefix + word)}${question}${others}`, group.join(' '));
  }
  const group = words.join(' ');
  if (options.includes('--help') || options.includes('-h'))
    return terminal.out(listHelp(program, group, terminal.columns?.('result')));
  const option = options.find((each) => each !== '--json');
  if (option !== undefined) throw new UsageError(`unknown option ${shown(option)}`, group);
  throw new UsageError(`say what to do: ${nextWords(program.groups, words).join(', ')}`, group);
}
