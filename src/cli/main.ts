import { AppError, StartError } from '../errors.ts';
import { nearest } from '../rules/suggest.ts';
import { programVersion } from '../platform/version.ts';
import { adminAgents } from './commands/admin-agents.ts';
import { adminPosts } from './commands/admin-posts.ts';
import { adoptSecret } from './commands/adopt-secret.ts';
import { accountCommands } from './agent/account.ts';
import { postCommands } from './agent/posts.ts';
import { publish } from './agent/publish.ts';
import { readerCommands } from './agent/readers.ts';
import { backup } from './commands/backup.ts';
import { parseCall, shown, UsageError, type Command, type Terminal } from './command.ts';
import { conform } from './commands/conform.ts';
import { doctor } from './commands/doctor.ts';
import { faultText } from './fault.ts';
import { commandHelp, listHelp } from './help.ts';
import { mail } from './commands/mail.ts';
import { migrate } from './commands/migrate.ts';
import { migrateTo } from './commands/migrate-to.ts';
import { rerender } from './commands/rerender.ts';
import { restore } from './commands/restore.ts';
import { serve } from './commands/serve.ts';
import { showConfig } from './commands/show-config.ts';

/** By what a person is about to do. */
const groups: Readonly<Record<string, readonly Command[]>> = {
  'Run a service': [serve, showConfig, doctor, mail, migrate],
  'Operate it': [backup, restore, adoptSecret, migrateTo, rerender, ...adminAgents, ...adminPosts],
  'Use a service as an agent': [...accountCommands, publish, ...postCommands, ...readerCommands, conform],
};

const commands = Object.values(groups).flat();

/**
 * Runs the command line and returns the exit code: 0, 1 when it failed, 2 when it was not understood, or
 * what the command itself says.
 */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const code = await run(args, terminal);
    // Printers are typed void, and what they return is passed on: only a number is a code.
    return typeof code === 'number' ? code : 0;
  } catch (error) {
    if (isJson(args)) terminal.out(JSON.stringify(factsOf(error), null, 2));
    if (!(error instanceof UsageError)) {
      terminal.err(faultText(error));
      return 1;
    }
    terminal.err(`masthead: ${error.message}\nTry: masthead ${`${error.about} `.trimStart()}--help`);
    return 2;
  }
}

function isJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}

/** A failure for programs: always `success`, `code` and `error`. */
function factsOf(error: unknown): object {
  const code = error instanceof UsageError ? 'usage' : error instanceof AppError ? error.code : 'failed';
  const facts = error instanceof StartError ? error.facts : {};
  return {
    success: false,
    code,
    error: error instanceof UsageError ? error.message : faultText(error),
    ...facts,
  };
}

async function run(args: readonly string[], terminal: Terminal): Promise<number | void> {
  if (args.length === 1 && args[0] === '--version') return terminal.out(programVersion());
  const optionAt = args.findIndex((arg) => arg.startsWith('-'));
  const words = optionAt === -1 ? args : args.slice(0, optionAt);
  const command = commands.find(({ name }) => startsWith(words, name.split(' ')));
  if (command !== undefined) {
    const call = parseCall(command, args.slice(command.name.split(' ').length), terminal);
    return call.wantsHelp ? terminal.out(commandHelp(command)) : command.run(call);
  }
  return runGroup(words, args.slice(words.length), terminal);
}

/** No command: a group of them (`admin`), the program itself, or a word that is none. */
function runGroup(words: readonly string[], rest: readonly string[], terminal: Terminal): void {
  let group: readonly string[] = [];
  for (const word of words) {
    const next = nextWords(group);
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
  const within = Object.entries(groups).map(
    ([title, list]) => [title, list.filter(({ name }) => startsWith(name.split(' '), group))] as const,
  );
  const [option] = rest;
  if (option === '--help' || option === '-h') return terminal.out(listHelp(within, group.join(' ')));
  if (option !== undefined) throw new UsageError(`unknown option ${shown(option)}`, group.join(' '));
  throw new UsageError(`say what to do: ${nextWords(group).join(', ')}`, group.join(' '));
}

/** What can follow the words of a group. */
function nextWords(group: readonly string[]): string[] {
  const names = commands.map(({ name }) => name.split(' ')).filter((name) => startsWith(name, group));
  return [...new Set(names.flatMap((name) => name[group.length] ?? []))];
}

function startsWith(words: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((word, index) => words[index] === word);
}
