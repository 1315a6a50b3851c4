import { randomUUID } from 'node:crypto';
import { link, open, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * Writes a file of mode 0600 that appears whole and durable, or not at all. Throws errors of node:fs: `EEXIST`
 * without `replace` where the file exists.
 */
export async function writePrivateFile(
  file: string,
  content: string,
  { replace = true }: { readonly replace?: boolean } = {},
): Promise<void> {
  const draft = join(dirname(file), `.${basename(file)}.${randomUUID()}`);
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx', flush: true });
    await (replace ? rename : link)(draft, file);
  } finally {
    await rm(draft, { force: true });
  }
  await syncPath(dirname(file));
}

/** Resolves when a file, or the names in a folder, are on disk. */
export async function syncPath(path: string): Promise<void> {
  const opened = await open(path, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}
