/**
 * MiB of a thread's young generation. Left alone it grows to 48 in every thread, for no speed that can be measured.
 */
export const youngMemory = 12;

/** The modules that threads begin with, below `src/`. */
export const threadEntries = {
  check: 'db/check-thread.ts',
  render: 'markdown/render-thread.ts',
  search: 'db/search-thread.ts',
  writer: 'writer-thread.ts',
} as const;

/** Address of a thread's entry module: as it is in source, or compiled, where all lie in one folder. */
export function threadEntry(name: keyof typeof threadEntries): URL {
  const source = threadEntries[name];
  const path = import.meta.url.endsWith('.ts') ? source : source.replace(/^.*\/|\.ts$/g, '') + '.js';
  return new URL(path, import.meta.url);
}
