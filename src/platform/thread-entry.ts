import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';

/**
 * MiB that the young generation of each kind of thread may take, measured: less costs the writer a tenth of its
 * speed, more gains the others nothing. V8 makes each of its two halves the next power of two of a third of it.
 */
export const youngMemory = { quick: 12, patient: 3, writer: 24 } as const;

/** The modules that threads begin with, and the processes that check and search the database, below `src/`. */
export const threadEntries = {
  check: 'db/sqlite/check-process.ts',
  render: 'markdown/pool/render-thread.ts',
  search: 'db/sqlite/search-process.ts',
  writer: 'process/writer-thread.ts',
} as const;

/** Address of a thread's entry module: as it is in source, or compiled, where all lie in one folder. */
export function threadEntry(name: keyof typeof threadEntries): URL {
  const source = threadEntries[name];
  const path = import.meta.url.endsWith('.ts') ? `../${source}` : source.replace(/^.*\/|\.ts$/g, '') + '.js';
  return new URL(path, import.meta.url);
}

/**
 * The environment of a thread or process that is given no other: where compiled code is kept, if anywhere, with which
 * it starts in a third of the time.
 */
export function threadEnv(): Readonly<Record<string, string>> {
  const ofThisVersion = getCompileCacheDir();
  return ofThisVersion === undefined ? {} : { NODE_COMPILE_CACHE: dirname(ofThisVersion) };
}
