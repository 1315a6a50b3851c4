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

function startsWith(words: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((word, index) => words[index] === word);
}
