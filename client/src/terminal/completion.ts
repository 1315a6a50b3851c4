import { optionsOf, UsageError, type Options } from './command.ts';
import type { Program } from './program.ts';
import { commandFirst, findCommand, nextWords } from './words.ts';

const shells = ['bash', 'zsh', 'fish'];

/** What a shell reads to complete the words of this program; it asks the program itself for them. */
export function completionScript(program: string, [shell = '', ...more]: readonly string[]): string {
  if (/^(?:--help|-h)$/.test(shell))
    return `Usage: ${program} completion ${shells.join('|')}\n\nPrint what a shell needs to complete commands; its first line says where it goes.`;
  if (!shells.includes(shell) || more.length > 0)
    throw new UsageError(`say for which shell: ${program} completion ${shells.join('|')}`, '');
  const name = `_${program.replaceAll('-', '_')}`;
  if (shell === 'bash')
    return `# Add to ~/.bashrc: eval "$(${program} completion bash)"
${name}() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(${program} complete "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F ${name} ${program}`;
  if (shell === 'zsh')
    return `# Add to ~/.zshrc, after compinit: eval "$(${program} completion zsh)"
${name}() {
  local -a found
  found=("\${(@f)$(${program} complete "\${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
  [[ -n "$found" ]] && compadd -a found || _files
}
compdef ${name} ${program}`;
  return `# Save as ~/.config/fish/completions/${program}.fish
complete -c ${program} -a '(${program} complete (commandline -opc)[2..-1] 2>/dev/null)'
complete -c ${program} -f -n '${program} complete (commandline -opc)[2..-1] 2>/dev/null | string match -qr "^[^-]"'`;
}

/** What may follow the words typed so far; nothing where that is a file or a text. */
export function candidates({ groups }: Program, typed: readonly string[]): string[] {
  const ordered = commandFirst(groups, typed);
  const optionAt = ordered.findIndex((word) => word.startsWith('-'));
  const words = optionAt === -1 ? ordered : ordered.slice(0, optionAt);
  const command = findCommand(groups, words);
  // Before the command is known, an option may be that of any.
  const known = command === undefined ? Object.values(groups).flat() : [command];
  const options: Options = Object.assign({}, ...known.map(optionsOf));
  const { value } = options[typed.at(-1)?.replace(/^--/, '') ?? ''] ?? {};
  if (value !== undefined) return value.includes('|') ? value.split('|') : [];
  const next = nextWords(groups, words);
  if (next.length > 0) return typed.length > 0 ? next : [...next, 'help', 'completion'];
  if (typed[0] === 'help') return nextWords(groups, words.slice(1));
  if (typed[0] === 'completion') return shells;
  if (command === undefined) return [];
  const given = new Set(typed);
  return Object.keys(options)
    .map((name) => `--${name}`)
    .filter((option) => !given.has(option));
}
