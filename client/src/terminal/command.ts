import { parseArgs } from 'node:util';
import { nearest } from '../../../src/rules/suggest.ts';
import { printable } from '../../../src/rules/text.ts';

/** One command of the program: what it takes, and what it does. */
export type Command = {
  /** As typed: `admin agents list`. */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Further lines for its own help. */
  readonly details?: readonly string[] | ((program: string) => readonly string[]);
  /** Names of the values that must follow, in order; where the last ends in `…`, one or more. */
  readonly operands: readonly string[];
  readonly options: Readonly<Record<string, Option>>;
  /**
   * Returns the exit code where it is not 0. Throws UsageError and what else has a message for the operator;
   * heavy modules are imported here and not above.
   */
  run(call: Call): Promise<number | void>;
};

export type Option = {
  readonly meaning: string;
  /** What its value is, e.g. `number`. An option without one is a switch. */
  readonly value?: string;
  readonly required?: true;
};

/** Where a command runs. */
export type Terminal = {
  /** Prints a line to standard output: the result. */
  readonly out: (line: string) => void;
  /** Prints a line to standard error: what is said beside the result. */
  readonly err: (line: string) => void;
  /** Replaces the one line that tells how far the work is, on a terminal; an empty text takes it away. */
  readonly status?: (text: string) => void;
  /** The settings, where they are not those of the process. */
  readonly env?: Readonly<Record<string, string>>;
};

/** A command as it was typed. */
export type Call = Terminal & {
  /** The program's name, for lines that say what to type next. */
  readonly program: string;
  readonly operand: (name: string) => string;
  /** All of them. */
  readonly operands: readonly string[];
  /** Whether an option was given. */
  readonly has: (option: string) => boolean;
  /** The value of an option, null when it was not given. */
  readonly value: (option: string) => string | null;
  readonly outJson: (value: unknown) => void;
};

/** The command line itself is wrong: exit code 2. */
export class UsageError extends Error {
  /** What to ask for help about: `admin agents`. */
  readonly about: string;

  constructor(message: string, about: string) {
    super(message);
    this.name = 'UsageError';
    this.about = about;
  }
}

/** Options of every command. */
export const helpOption: Readonly<Record<string, Option>> = { help: { meaning: 'Show this help.' } };
export const jsonOption: Readonly<Record<string, Option>> = { json: { meaning: 'Print JSON for programs.' } };

/** Reads what follows the command's name. Throws UsageError. */
export function parseCall(
  program: string,
  command: Command,
  args: readonly string[],
  terminal: Terminal,
): Call & { readonly wantsHelp: boolean } {
  const options = { ...command.options, ...helpOption };
  const { given, operands } = readArguments(command, options, args);
  const wantsHelp = given.has('help');
  if (!wantsHelp) checkComplete(command, given, operands);
  return {
    ...terminal,
    program,
    wantsHelp,
    operands,
    operand: (name) => operands[command.operands.indexOf(name)] ?? '',
    has: (option) => given.has(option),
    value: (option) => given.get(option) ?? null,
    outJson: (value) => terminal.out(JSON.stringify(value, null, 2)),
  };
}

function readArguments(
  { name: about }: Command,
  options: Readonly<Record<string, Option>>,
  args: readonly string[],
): { given: ReadonlyMap<string, string>; operands: readonly string[] } {
  const { tokens, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    strict: false,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value }]) => [
        name,
        { type: value === undefined ? 'boolean' : 'string', ...(name === 'help' ? { short: 'h' } : {}) },
      ]),
    ),
  });
  const given = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (option === undefined) {
      const near = nearest(name, Object.keys(options));
      const question = near === null ? '' : `; did you mean --${near}?`;
      throw new UsageError(`unknown option ${shown(rawName)}${question}`, about);
    }
    if (option.value === undefined && value !== undefined)
      throw new UsageError(`--${name} takes no value`, about);
    if (option.value !== undefined && value === undefined) {
      throw new UsageError(`--${name} needs a value: --${name} <${option.value}>`, about);
    }
    given.set(name, value ?? '');
  }
  return { given, operands: positionals };
}

function checkComplete(
  command: Command,
  given: ReadonlyMap<string, string>,
  operands: readonly string[],
): void {
  const missing = command.operands[operands.length];
  if (missing !== undefined) throw new UsageError(`<${missing}> is missing`, command.name);
  const surplus = operands[command.operands.length];
  if (surplus !== undefined && command.operands.at(-1)?.endsWith('…') !== true)
    throw new UsageError(`there is one argument too many: ${shown(surplus)}`, command.name);
  for (const [name, option] of Object.entries(command.options)) {
    if (option.required !== true || given.has(name)) continue;
    throw new UsageError(`--${name} <${option.value}> is missing`, command.name);
  }
}

/** A word of the command line, fit to be repeated. */
export function shown(word: string): string {
  return `'${printable(word, 60)}'`;
}
