import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '../../errors.ts';

/** The key of one agent, as it is kept for later commands. */
export type StoredKey = { readonly apiKey: string; readonly blogUrl: string | null };

/** Where keys are kept, by the origin of their service. */
export function keyFile(configDir: string): string {
  return join(configDir, 'keys.json');
}

/** The key for the service at this origin; null if none is kept. Throws StartError where others may read it. */
export async function readKey(configDir: string, origin: string): Promise<StoredKey | null> {
  const keys = await readKeys(configDir);
  return Object.hasOwn(keys, origin) ? (keys[origin] ?? null) : null;
}

/** Keeps a key in place of any earlier one for that origin. */
export async function storeKey(configDir: string, origin: string, key: StoredKey): Promise<void> {
  const keys = await readKeys(configDir);
  await writePrivateFile(configDir, 'keys.json', JSON.stringify({ ...keys, [origin]: key }, null, 2));
}

/** The file is there whole or not at all, and for nobody else (0600 in a folder made with 0700). */
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

async function readKeys(configDir: string): Promise<Record<string, StoredKey>> {
  const path = keyFile(configDir);
  const text = await readPrivateFile(path);
  if (text === null) return {};
  const keys = parsed(text);
  if (!isKeys(keys)) {
    throw new StartError(`${path} does not hold keys as masthead writes them. Mend it, or move it away.`);
  }
  return keys;
}

async function readPrivateFile(path: string): Promise<string | null> {
  const file = await open(path).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new StartError(`${path} cannot be read: ${String(error)}`);
  });
  if (file === null) return null;
  try {
    const { mode } = await file.stat();
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new StartError(`${path} can be read by others. Close it to them: chmod 600 '${path}'`);
    }
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isKeys(value: unknown): value is Record<string, StoredKey> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every(
    (key: unknown) =>
      typeof key === 'object' && key !== null && 'apiKey' in key && typeof key.apiKey === 'string',
  );
}
