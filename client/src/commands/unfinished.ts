import { createHash, randomUUID } from 'node:crypto';
import { readFile, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MastheadError } from '../index.ts';
import type { Connection } from './connection.ts';
import { writePrivateFile } from './private-file.ts';

/** How long a key is used again, ms: a little less than the service remembers it. */
const usableFor = 23 * 3_600_000;
const prefix = 'unfinished-';

/**
 * Makes a call that would take effect twice if it were made twice. Its key is stored until the service has answered, so
 * that the same command, run again after an answer was lost, is known to be a repeat. `asked` is everything it asks for.
 */
export async function withUnfinished<T>(
  { configDir, url, client }: Connection,
  asked: unknown,
  send: (idempotencyKey: string) => Promise<T>,
): Promise<T> {
  const hash = createHash('sha256').update(JSON.stringify([url, client.apiKey, asked]));
  const name = `${prefix}${hash.digest('hex').slice(0, 32)}`;
  const path = join(configDir, name);
  const key = (await unfinishedKey(path)) ?? randomUUID();
  // Where nothing can be stored, only a later run of the command cannot be recognised.
  await writePrivateFile(configDir, name, key).catch(() => undefined);
  await forgetOld(configDir);
  try {
    const answer = await send(key);
    await rm(path, { force: true });
    return answer;
  } catch (error) {
    const isAnswered = error instanceof MastheadError && error.status < 500 && !error.retryable;
    if (isAnswered) await rm(path, { force: true });
    throw error;
  }
}

/** The key of the same call by an earlier command that got no answer; null if there was none. */
async function unfinishedKey(path: string): Promise<string | null> {
  try {
    const { mtimeMs } = await stat(path);
    return mtimeMs > Date.now() - usableFor ? (await readFile(path, 'utf8')).trim() || null : null;
  } catch {
    return null;
  }
}

async function forgetOld(configDir: string): Promise<void> {
  const names = await readdir(configDir).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(prefix))) {
    const path = join(configDir, name);
    if ((await unfinishedKey(path)) === null) await rm(path, { force: true });
  }
}
