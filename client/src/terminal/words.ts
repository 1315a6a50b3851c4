import type { Command } from './command.ts';

/** Commands by what a person is about to do. */
export type Groups = Readonly<Record<string, readonly Command[]>>;

/** The command that these words begin with. */
export function findCommand(groups: Groups, words: readonly string[]): Command | undefined {
  return (
    Object.values(groups)
      .flat()
      .filter(({ name }) => startsWith(words, name.split(' ')))
      // Of `mail` and `mail queue` the one that was typed whole.
      .toSorted((a, b) => b.name.length - a.name.length)[0]
  );
}

/** The words that can follow those of a group. */
export function nextWords(groups: Groups, group: readonly string[]): string[] {
  const names = Object.values(groups)
    .flat()
    .map(({ name }) => name.split(' '))
    .filter((name) => startsWith(name, group));
  return [...new Set(names.flatMap((name) => name[group.length] ?? []))];
}

/** The same words with those of the command first: options may stand before it, `--profile bob whoami`. */
export function commandFirst(groups: Groups, args: readonly string[]): string[] {
  const words: string[] = [];
  const options: string[] = [];
  const takesValue = new Set(
    Object.values(groups)
      .flat()
      .flatMap(({ options: own = {} }) => Object.entries(own))
      .flatMap(([name, { value }]) => (value === undefined ? [] : `--${name}`)),
  );
  let at = 0;
  for (; at < args.length && args[at] !== '--'; at++) {
    const arg = args[at] ?? '';
    if (!arg.startsWith('-')) {
      if (!nextWords(groups, words).includes(arg)) break;
      words.push(arg);
      continue;
    }
    options.push(arg);
    if (takesValue.has(arg) && at + 1 < args.length) options.push(args[++at] ?? '');
  }
  return [...words, ...options, ...args.slice(at)];
}

/**
 * The end of a message about a word that is no command, but the last of some, `publish` of `post publish`, or else, where
 * it is the first, what one or two commands say that they do.
 */
export function meantBy(groups: Groups, word: string, isFirst: boolean): string {
  const commands = Object.values(groups).flat();
  const ends = commands.filter(({ name }) => name.endsWith(` ${word}`));
  const does = commands.filter(({ summary }) => wordsOf(summary).includes(word.toLowerCase()));
  const meant = ends.length > 0 ? ends : isFirst && does.length <= 2 ? does : [];
  return meant.length === 0 ? '' : `; did you mean ${meant.map(({ name }) => `'${name}'`).join(' or ')}?`;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[a-z]+/g) ?? [];
}

function startsWith(words: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((word, index) => words[index] === word);
}
