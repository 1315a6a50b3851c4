import { StartError } from '../../../src/rules/failure.ts';
import { nearest } from '../../../src/rules/suggest.ts';
import { parseCall, shown, UsageError, type Command, type Terminal } from './command.ts';
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
  /** Commands by what a person is about to do. */
  readonly groups: Readonly<Record<string, readonly Command[]>>;
  /** A failure that was foreseen as a StartError; any other as it is. */
  readonly foreseen?: (error: unknown) => unknown;
};

/**
 * Runs one command and returns the exit code: 0, 1 when it failed, 2 when it was not understood, or what the command
 * itself says.
 */
export async function runProgram(
  program: Program,
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    const code = await run(program, args, terminal);
    // Printers are typed void, and what they return is passed on: only a number is a code.
    return typeof code === 'number' ? code : 0;
  } catch (caught) {
    const error = program.foreseen?.(caught) ?? caught;
    const text = error instanceof UsageError ? error.message : failureText(error);
    if (wantsJson(args)) terminal.out(JSON.stringify(factsOf(error, text), null, 2));
    if (!(error instanceof UsageError)) {
      terminal.err(text);
      return 1;
    }
    terminal.err(`${program.name}: ${text}\nTry: ${program.name} ${`${error.about} `.trimStart()}--help`);
    return 2;
  }
}

/** Why it failed: one line where the reason was foreseen, with the stack where not. */
export function failureText(error: unknown): string {
  if (error instanceof StartError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}

/** A failure for programs: always `success`, `code` and `error`. */
function factsOf(error: unknown, text: string): object {
  const code = error instanceof UsageError ? 'usage' : 'failed';
  return { success: false, code, error: text, ...(error instanceof StartError ? error.facts : {}) };
}

async function run(program: Program, args: readonly string[], terminal: Terminal): Promise<number | void> {
  if (args.length === 1 && args[0] === '--version') return terminal.out(program.version());
  const optionAt = args.findIndex((arg) => arg.startsWith('-'));
  const words = optionAt === -1 ? args : args.slice(0, optionAt);
  const command = commandsOf(program).find(({ name }) => startsWith(words, name.split(' ')));
  if (command === undefined) return runGroup(program, words, args.slice(words.length), terminal);
  const call = parseCall(program.name, command, args.slice(command.name.split(' ').length), terminal);
  return call.wantsHelp ? terminal.out(commandHelp(program, command)) : command.run(call);
}

/** No command: a group of them (`admin`), the program itself, or a word that is none. */
function runGroup(
  program: Program,
  words: readonly string[],
  rest: readonly string[],
  terminal: Terminal,
): void {
  let group: readonly string[] = [];
  for (const word of words) {
    const next = nextWords(program, group);
    if (!next.includes(word)) {
      const near = nearest(word, next);
      const question = near === null ? '' : `; did you mean '${[...group, near].join(' ')}'?`;
      throw new UsageError(
        `unknown command ${shown([...group, word].join(' '))}${question}`,
        group.join(' '),
      );
    }
    group = [...group, word];
  }
  const within = Object.entries(program.groups).map(
    ([title, list]) => [title, list.filter(({ name }) => startsWith(name.split(' '), group))] as const,
  );
  const [option] = rest;
  if (option === '--help' || option === '-h') return terminal.out(listHelp(program, within, group.join(' ')));
  if (option !== undefined) throw new UsageError(`unknown option ${shown(option)}`, group.join(' '));
  throw new UsageError(`say what to do: ${nextWords(program, group).join(', ')}`, group.join(' '));
}

/** What can follow the words of a group. */
function nextWords(program: Program, group: readonly string[]): string[] {
  const names = commandsOf(program)
    .map(({ name }) => name.split(' '))
    .filter((name) => startsWith(name, group));
  return [...new Set(names.flatMap((name) => name[group.length] ?? []))];
}

function commandsOf({ groups }: Program): Command[] {
  return Object.values(groups).flat();
}

function startsWith(words: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((word, index) => words[index] === word);
}
