import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError, errorCode } from '../../../src/rules/failure.ts';

/** Writes a file atomically, readable by its owner alone (0600, in a folder made with 0700). Throws StartError. */
export async function writePrivateFile(dir: string, name: string, text: string): Promise<void> {
  const temporary = join(dir, `.${name}.${randomUUID()}`);
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeFile(temporary, `${text}\n`, { mode: 0o600, flag: 'wx', flush: true });
    await rename(temporary, join(dir, name));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw cannotBeWritten(join(dir, name), error);
  }
}

/** Removes such a file, if it is there. Throws StartError. */
export async function removePrivateFile(path: string): Promise<void> {
  await rm(path, { force: true }).catch((error: unknown) => {
    if (!isMissing(error)) throw cannotBeWritten(path, error);
  });
}

/** Whether there is no such file: a home such as /dev/null has none. */
export function isMissing(error: unknown): boolean {
  return /^ENO(?:ENT|TDIR)$/.test(errorCode(error) ?? '');
}

function cannotBeWritten(path: string, error: unknown): StartError {
  return new StartError(`${path} cannot be written (${String(errorCode(error))}).`);
}
