import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, '.test-groups');
const groups = 20;

/** A hook outside of a suite would be of all files of its group, and what kills processes must not meet theirs. */
const alone = /^(?:before|after)(?:Each)?\(|SIGKILL/m;

/** The test files of the quick tier, below the root. */
export const quickTests = globSync(['test/*.test.ts', 'client/test/*.test.ts'], { cwd: root }).toSorted();

/** Whether a test file needs a process of its own. */
export function isAlone(file: string): boolean {
  return alone.test(textOf(file));
}

/** Whether a test file may have suites that run in several places. */
function hasPlaces(file: string): boolean {
  return /\b(?:describeInstances|placesOf)\(/.test(textOf(file));
}

// For all tests of the quick tier, or, told `places`, those of which some run in several.
if (import.meta.main) writeGroups(process.argv[2] === 'places' ? quickTests.filter(hasPlaces) : quickTests);

/**
 * Writes modules each of which imports several of these test files: what they have in common is loaded and warmed up
 * once for all of them, which took half of the time where each had a process of its own.
 */
function writeGroups(files: readonly string[]): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of files.filter(isAlone)) write(file.replaceAll(/\W+/g, '-'), [file]);
  const shared = files.filter((file) => !isAlone(file));
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

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}
