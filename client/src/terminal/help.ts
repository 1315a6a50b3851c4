import { optionsOf, type Command, type Option } from './command.ts';
import { table } from './format.ts';
import type { Program } from './program.ts';

/** Help about one command. */
export function commandHelp({ name: program }: Program, command: Command): string {
  const options = Object.entries(optionsOf(command));
  const required = options.filter(([, option]) => option.required === true);
  const must = required.map(([name, option]) => ` ${written(name, option)}`).join('');
  return [
    `Usage: ${program} ${usage(command)}${must} [options]`,
    '',
    command.summary,
    ...(command.details ?? []),
    '',
    'Options:',
    table(options.map(([name, option]) => [`  ${written(name, option)}`, option.meaning])),
  ].join('\n');
}

/** Help about the commands of a group (`admin agents`), or about all of them under their titles. */
export function listHelp({ name: program, title, closing, groups }: Program, group: string): string {
  const rows = (commands: readonly Command[]) =>
    commands.filter(({ name }) => name.startsWith(group)).map((each) => [`  ${usage(each)}`, each.summary]);
  const width = Math.max(...rows(Object.values(groups).flat()).map(([left = '']) => left.length));
  const list = Object.entries(groups).flatMap(([heading, commands]) => [
    ...(group === '' ? ['', `${heading}:`] : []),
    ...rows(commands).map(([left = '', summary]) => `${left.padEnd(width)}  ${summary}`),
  ]);
  const head =
    group === ''
      ? [title, '', `Usage: ${program} <command> [options]`]
      : [`Commands of ${program} ${group}:`, ''];
  return [...head, ...list, '', closing].join('\n');
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
