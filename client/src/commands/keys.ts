import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { keyFileLine, keyFileName, keyInFile } from '../../../src/rules/agent-setup.ts';
import { StartError, errorMessage } from '../../../src/rules/failure.ts';
import { isMissing, removePrivateFile, writePrivateFile } from './private-file.ts';
import { defaultProfile } from './profiles.ts';

/** Whose key it is: of the service at this origin, under this profile. */
export type KeyPlace = {
  /** Absolute path of the folder for keys. */
  readonly configDir: string;
  /** Origin of the service. */
  readonly url: string;
  readonly profile: string;
};

/** Where a key is stored. */
export function keyFile(place: KeyPlace): string {
  return join(place.configDir, nameOf(place));
}

/** No origin holds an @, so no two places have one name. */
function nameOf({ url, profile }: KeyPlace): string {
  const name = keyFileName(url);
  return profile === defaultProfile ? name : name.replace(/\.key$/, `@${profile}.key`);
}

/** The stored key, or null. Throws StartError where others may read it. */
export async function readKey(place: KeyPlace): Promise<string | null> {
  const path = keyFile(place);
  const file = await open(path).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw new StartError(`${path} cannot be read: ${errorMessage(error)}`);
  });
  if (file === null) return null;
  try {
    const { mode } = await file.stat();
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new StartError(`${path} can be read by others. Close it to them: chmod 600 '${path}'`);
    }
    return keyInFile(await file.readFile('utf8')) || null;
  } finally {
    await file.close();
  }
}

/** Stores a key in place of any earlier one there. */
export async function storeKey(place: KeyPlace, key: string): Promise<void> {
  await writePrivateFile(place.configDir, nameOf(place), keyFileLine(key));
}

/** Removes a stored key; whether there was one. */
export async function removeKey(place: KeyPlace): Promise<boolean> {
  const isStored = (await readKey(place)) !== null;
  await removePrivateFile(keyFile(place));
  return isStored;
}
