import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * Writes the modules that `npm test` runs, each of which imports several test files: what they have in common is
 * loaded and warmed up once for all of them, which took half of the time where each had a process of its own.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, '.test-groups');
const groups = 20;

/** A hook outside of a suite would be of all files of its group, and what kills processes must not meet theirs. */
const alone = /^(?:before|after)(?:Each)?\(|SIGKILL/m;

/** The test files of the quick tier, below the root. */
export const quickTests = globSync(['test/*.test.ts', 'client/test/*.test.ts'], { cwd: root }).toSorted();

/** Whether a test file needs a process of its own. */
export function isAlone(file: string): boolean {
  return alone.test(readFileSync(join(root, file), 'utf8'));
}

if (import.meta.main) writeGroups();

function writeGroups(): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of quickTests.filter(isAlone)) write(file.replaceAll(/\W+/g, '-'), [file]);
  const shared = quickTests.filter((file) => !isAlone(file));
  for (let group = 0; group < groups; group++)
    // Neighbours by name are often alike, so they are dealt out in turn.
    write(
      `group-${String(group).padStart(2, '0')}`,
      shared.filter((_, at) => at % groups === group),
    );
}

function write(name: string, members: readonly string[]): void {
  const lines = members.map((file) => `import ${JSON.stringify(pathToFileURL(join(root, file)).href)};\n`);
  writeFileSync(join(folder, `${name}.test.mjs`), lines.join(''));
}
