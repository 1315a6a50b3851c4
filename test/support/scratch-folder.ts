import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Path of a new folder that is removed when the process of the test file ends. Hooks of a test run in the order in
 * which they were given, so one that removes the folder may run while a server that is stopped later still writes.
 */
export function scratchFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `masthead-${name}-`));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

/**
 * Where data lies that is lost with the test: in memory where the system has room for files there, since a database
 * waits for the disk at every commit.
 */
export const passingFolder = hasRoom('/dev/shm') ? '/dev/shm' : tmpdir();

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= 2 ** 30;
  } catch {
    return false;
  }
}
