import { optionsOf, type Command, type Option } from './command.ts';
import { fitted, glossary } from './format.ts';
import type { Program } from './program.ts';
import { wrapped } from './width.ts';

/** Help about one command, in lines that fit the terminal, if it is one. */
export function commandHelp({ name: program }: Program, command: Command, width?: number): string {
  const options = Object.entries(optionsOf(command));
  const required = options.filter(([, option]) => option.required === true);
  const must = required.map(([name, option]) => ` ${written(name, option)}`).join('');
  const { summary, details = [] } = command;
  const inLines = (lines: readonly string[]) =>
    width === undefined ? lines : paragraphs(lines).flatMap((text) => wrapped(text, width));
  return [
    ...wrapped(`Usage: ${program} ${usage(command)}${must} [options]`, width ?? Infinity, '  '),
    '',
    ...inLines([summary]),
    ...inLines(details),
    '',
    'Options:',
    glossary(
      options.map(([name, option]) => [`  ${written(name, option)}`, option.meaning]),
      width,
    ),
  ].join('\n');
}

/** A line that does not end a sentence goes on in the next. */
function paragraphs(lines: readonly string[]): string[] {
  return lines.reduce<string[]>((all, line) => {
    const last = all.at(-1);
    return last === undefined || /[.:]$/.test(last)
      ? [...all, line]
      : [...all.slice(0, -1), `${last} ${line}`];
  }, []);
}

/** Help about the commands of a group (`admin agents`), or about all of them under their titles. */
export function listHelp(
  { name: program, title, closing, groups }: Program,
  group: string,
  width?: number,
): string {
  const list = Object.entries(groups).flatMap(([heading, commands]) => {
    const named = commands.filter(({ name }) => name.startsWith(group));
    return group === '' ? [heading, ...named] : named;
  });
  const commands = list.filter((each) => typeof each !== 'string');
  const most = Math.max(...commands.map((each) => usage(each).length + 2));
  const lines = list.flatMap((each) =>
    typeof each === 'string'
      ? ['', `${each}:`]
      : [glossary([[`  ${usage(each)}`.padEnd(most), each.summary]], width)],
  );
  const head =
    group === ''
      ? [...wrapped(title, width ?? Infinity), '', `Usage: ${program} <command> [options]`]
      : [`Commands of ${program} ${group}:`, ''];
  return [...head, ...lines, '', fitted(closing, width)].join('\n');
}

function usage({ name, operands = [] }: Command): string {
  return [
    name,
    ...operands.map((operand) => (operand.endsWith('?') ? `[${operand.slice(0, -1)}]` : `<${operand}>`)),
  ].join(' ');
}

function written(name: string, { value, optional, short }: Option): string {
  if (short !== undefined) return `-${short}, --${name}`;
  if (optional !== undefined) return `--${name}[=${optional}]`;
  return value === undefined ? `--${name}` : `--${name} <${value}>`;
}
