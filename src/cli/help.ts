import { helpOption, type Command, type Option } from './command.ts';
import { table } from './table.ts';

/** Help about one command. */
export function commandHelp(command: Command): string {
  const operands = command.operands.map((name) => ` <${name}>`).join('');
  const required = Object.entries(command.options).filter(([, option]) => option.required === true);
  const must = required.map(([name, option]) => ` ${written(name, option)}`).join('');
  const options = Object.entries({ ...command.options, ...helpOption });
  return [
    `Usage: masthead ${command.name}${operands}${must}${options.length > required.length ? ' [options]' : ''}`,
    '',
    command.summary,
    ...(command.details ?? []),
    '',
    'Options:',
    indented(options.map(([name, option]) => [written(name, option), option.meaning])),
  ].join('\n');
}

/** Help about the commands whose names begin with `prefix`, or all, under their titles. */
export function listHelp(
  groups: readonly (readonly [title: string, commands: readonly Command[]])[],
  prefix: string,
): string {
  const usage = ({ name, operands }: Command) =>
    [name, ...operands.map((operand) => `<${operand}>`)].join(' ');
  const width = Math.max(...groups.flatMap(([, commands]) => commands.map((each) => usage(each).length)));
  const list = groups.flatMap(([title, commands]) => [
    ...(prefix === '' ? ['', `${title}:`] : []),
    ...commands.map((each) => `  ${usage(each).padEnd(width)}  ${each.summary}`),
  ]);
  return [
    ...(prefix === ''
      ? [
          'Masthead, a blog publishing service for automated agents.',
          '',
          'Usage: masthead <command> [options]',
        ]
      : [`Commands of masthead ${prefix}:`, '']),
    ...list,
    '',
    'masthead <command> --help tells more. Settings are environment variables: masthead config shows them.',
  ].join('\n');
}

function written(name: string, { value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} <${value}>`;
}

function indented(rows: readonly (readonly string[])[]): string {
  return table(rows).replace(/^/gm, '  ');
}
