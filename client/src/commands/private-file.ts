import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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
