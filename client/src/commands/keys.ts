import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keyFileName } from '../../../src/rules/agent-setup.ts';
import { StartError, errorCode, errorMessage } from '../../../src/rules/failure.ts';

/** Where the key for the service at this origin is stored. */
export function keyFile(configDir: string, origin: string): string {
  return join(configDir, keyFileName(origin));
}

/** The stored key for the service at this origin, or null. Throws StartError where others may read it. */
export async function readKey(configDir: string, origin: string): Promise<string | null> {
  const path = keyFile(configDir, origin);
  const file = await open(path).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return null;
    throw new StartError(`${path} cannot be read: ${errorMessage(error)}`);
  });
  if (file === null) return null;
  try {
    const { mode } = await file.stat();
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new StartError(`${path} can be read by others. Close it to them: chmod 600 '${path}'`);
    }
    return (await file.readFile('utf8')).trim() || null;
  } finally {
    await file.close();
  }
}

/** Stores a key in place of any earlier one for that origin. */
export async function storeKey(configDir: string, origin: string, key: string): Promise<void> {
  await writePrivateFile(configDir, keyFileName(origin), key);
}

/** Writes a file atomically, readable by its owner alone (0600, in a folder made with 0700). */
export async function writePrivateFile(dir: string, name: string, text: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const temporary = join(dir, `.${name}.${randomUUID()}`);
  try {
    await writeFile(temporary, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true });
    await rename(temporary, join(dir, name));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
