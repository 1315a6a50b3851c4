import { parseArgs } from 'node:util';
import { StartError } from '../../../src/rules/failure.ts';
import { nearest } from '../../../src/rules/suggest.ts';
import { shown } from './format.ts';

/** One command of a program: what it takes, and what it does. */
export type Command = {
  /** As typed: `admin agents list`. */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Further lines for its own help. */
  readonly details?: readonly string[];
  /** Names of the values that must follow, in order; where the last ends in `…`, one or more; in `?`, none or one; in `…?`, any number. */
  readonly operands?: readonly string[];
  /** Its own options, beside --json and --help. */
  readonly options?: Options;
  /** A command without a result takes no --json. */
  readonly hasResult?: false;
  /**
   * Returns the exit code where it is not 0. Throws UsageError and what else has a message for the operator;
   * heavy modules are imported here and not above.
   */
  run(call: Call): Promise<number | void>;
};

export type Options = Readonly<Record<string, Option>>;

export type Option = {
  readonly meaning: string;
  /** What its value is, such as `address`; `a|b` allows no other value. An option without one is a switch. */
  readonly value?: string;
  /** A value that a switch may be given: `--publish=all`. */
  readonly optional?: string;
  /** One letter that stands for it: `-v`. */
  readonly short?: string;
  /** Of a number, which is at least 1. */
  readonly maximum?: number;
  readonly required?: true;
};

/** Where a command runs. */
export type Terminal = {
  /** Prints a line to standard output: the result. */
  readonly out: (line: string) => void;
  /** Prints a line to standard error: anything but the result. */
  readonly err: (line: string) => void;
  /** On a terminal, replaces the one line that shows progress; an empty text removes it. */
  readonly status?: (text: string) => void;
  /** How wide the terminal is that shows the result, or progress; undefined where it is none. */
  readonly columns?: (what: 'result' | 'progress') => number | undefined;
  /** On a terminal, asks a question to be answered by yes or no. */
  readonly ask?: (question: string) => Promise<boolean>;
  /** On a terminal, asks for a line that is not shown. */
  readonly secret?: (prompt: string) => Promise<string>;
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
  /**
   * Prints the result: with --json `{"ok": true, "data": facts}`, or where it has a `failure` that as `error` with the facts;
   * else `text`, and `notes` to standard error.
   */
  readonly result: (facts: object, text: string, notes?: readonly string[], failure?: string) => void;
  /** Prints one result of a command that goes on, as one line of JSON of the same form. */
  readonly line: (facts: object) => void;
};

/** The command line itself is wrong: exit code 2. */
export class UsageError extends Error {
  /** The command or group whose help to suggest: `admin agents`. */
  readonly about: string;

  constructor(message: string, about: string) {
    super(message);
    this.name = 'UsageError';
    this.about = about;
  }
}

/** Asks on a terminal, unless --yes is given. False when the answer is no. */
export async function isConfirmed(call: Call, question: string): Promise<boolean> {
  return call.has('yes') || !call.ask || call.ask(question);
}

/** The same, but throws StartError, saying `otherwise`, when the answer is no. */
export async function confirm(call: Call, question: string, otherwise: string): Promise<void> {
  if (!(await isConfirmed(call, question))) throw new StartError(otherwise, { code: 'not_confirmed' });
}

/** All options of a command. */
export function optionsOf({ options, hasResult }: Command): Options {
  return {
    ...options,
    ...(hasResult === false ? {} : { json: { meaning: 'Print JSON for programs.' } }),
    help: { meaning: 'Show this help.', short: 'h' },
  };
}

/** Reads what follows the command's name. Throws UsageError. */
export function parseCall(
  program: string,
  command: Command,
  args: readonly string[],
  terminal: Terminal,
): Call {
  const { given, operands } = readArguments(command, args);
  if (!given.has('help')) checkComplete(command, given, operands);
  const has = (option: string): boolean => given.has(option);
  return {
    ...terminal,
    program,
    operands,
    operand: (name) => operands[command.operands?.indexOf(name) ?? -1] ?? '',
    has,
    value: (option) => given.get(option) ?? null,
    line: (data) => terminal.out(JSON.stringify({ ok: true, data })),
    result(facts, text, notes = [], failure) {
      const answer =
        failure === undefined
          ? { ok: true, data: facts }
          : { ok: false, error: { code: failure, message: text, ...facts } };
      if (has('json')) return terminal.out(JSON.stringify(answer, null, 2));
      terminal.out(text);
      for (const note of notes) terminal.err(note);
    },
  };
}

type Given = ReadonlyMap<string, string>;

function readArguments(
  command: Command,
  args: readonly string[],
): { given: Given; operands: readonly string[] } {
  const options = optionsOf(command);
  const { tokens, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    strict: false,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value, short }]) => [
        name,
        { type: value === undefined ? 'boolean' : 'string', ...(short === undefined ? {} : { short }) },
      ]),
    ),
  });
  const given = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    const fault =
      option === undefined
        ? `unknown option ${shown(rawName)}${didYouMean('--', nearest(name, Object.keys(options))) || afterHyphens(command, rawName)}`
        : faultOf(name, option, value);
    if (fault !== null) throw new UsageError(fault, command.name);
    given.set(name, value ?? '');
  }
  return { given, operands: positionals };
}

/** `- one` may be the text of a comment. */
function afterHyphens({ operands = [] }: Command, rawName: string): string {
  return operands.length === 0 || rawName.startsWith('--')
    ? ''
    : '; a text that begins with a hyphen comes after --';
}

function faultOf(
  name: string,
  { value: kind, optional, maximum }: Option,
  given: string | undefined,
): string | null {
  if (kind === undefined && given !== undefined && given !== optional)
    return optional === undefined ? `--${name} takes no value` : `--${name} or --${name}=${optional}`;
  if (kind === undefined) return null;
  if (given === undefined) return `--${name} needs a value: --${name} <${kind}>`;
  const choices = kind.split('|');
  if (choices.length > 1 && !choices.includes(given)) return `--${name} is ${choices.join(' or ')}`;
  if (maximum !== undefined && !(/^[1-9]\d*$/.test(given) && Number(given) <= maximum))
    return `--${name} is a number from 1 to ${maximum}`;
  return null;
}

function checkComplete(command: Command, given: Given, operands: readonly string[]): void {
  const { name: about, operands: names = [], options = {} } = command;
  const missing = names[operands.length];
  if (missing !== undefined && !missing.endsWith('?')) throw new UsageError(`<${missing}> is missing`, about);
  const surplus = operands[names.length];
  if (surplus !== undefined && !/…\??$/.test(names.at(-1) ?? ''))
    throw new UsageError(`there is one argument too many: ${shown(surplus)}`, about);
  for (const [name, { required, value }] of Object.entries(options)) {
    if (required === true && !given.has(name)) throw new UsageError(`--${name} <${value}> is missing`, about);
  }
}

/** The end of a message about an unknown word; nothing where no known one is near. */
export function didYouMean(prefix: string, near: string | null, quote = ''): string {
  return near === null ? '' : `; did you mean ${quote}${prefix}${near}${quote}?`;
}
