import { helpOption, type Command, type Option } from './command.ts';
import type { Program } from './program.ts';
import { table } from './table.ts';

/** Help about one command. */
export function commandHelp({ name: program }: Program, command: Command): string {
  const operands = command.operands.map((name) => ` <${name}>`).join('');
  const required = Object.entries(command.options).filter(([, option]) => option.required === true);
  const must = required.map(([name, option]) => ` ${written(name, option)}`).join('');
  const options = Object.entries({ ...command.options, ...helpOption });
  return [
    `Usage: ${program} ${command.name}${operands}${must}${options.length > required.length ? ' [options]' : ''}`,
    '',
    command.summary,
    ...(typeof command.details === 'function' ? command.details(program) : (command.details ?? [])),
    '',
    'Options:',
    indented(options.map(([name, option]) => [written(name, option), option.meaning])),
  ].join('\n');
}

/** Help about the commands whose names begin with `prefix`, or all, under their titles. */
export function listHelp(
  { name: program, title, closing }: Program,
  groups: readonly (readonly [title: string, commands: readonly Command[]])[],
  prefix: string,
): string {
  const usage = ({ name, operands }: Command) =>
    [name, ...operands.map((operand) => `<${operand}>`)].join(' ');
  const width = Math.max(...groups.flatMap(([, commands]) => commands.map((each) => usage(each).length)));
  const list = groups.flatMap(([heading, commands]) => [
    ...(prefix === '' ? ['', `${heading}:`] : []),
    ...commands.map((each) => `  ${usage(each).padEnd(width)}  ${each.summary}`),
  ]);
  return [
    ...(prefix === ''
      ? [title, '', `Usage: ${program} <command> [options]`]
      : [`Commands of ${program} ${prefix}:`, '']),
    ...list,
    '',
    closing,
  ].join('\n');
}

function written(name: string, { value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} <${value}>`;
}

function indented(rows: readonly (readonly string[])[]): string {
  return table(rows).replace(/^/gm, '  ');
}
