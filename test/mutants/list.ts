import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A fault that is planted in the program, and that some test must catch. */
export type Mutant = {
  /** Below the root of the project. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly text: string;
  /** What stands there instead. */
  readonly becomes: string;
  /** Why a hurried colleague could make it. */
  readonly why: string;
  /** Listed by a reader who had not seen the tests. */
  readonly unseen?: true;
};

export const root = join(import.meta.dirname, '../..');

/** All that are listed: each file here has those of one folder of `src`, or of the client. */
export function listMutants(): readonly Mutant[] {
  const files = globSync('*.json', { cwd: import.meta.dirname }).toSorted();
  return files.flatMap(
    (file) => JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8')) as readonly Mutant[],
  );
}

/** The folder of the program that a file is in, as `src/db`. */
export function folderOf(file: string): string {
  return /^(?:client\/)?src(?:\/[^/]+(?=\/))?/.exec(file)?.[0] ?? file;
}
