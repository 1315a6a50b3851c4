/**
 * MiB of a thread's young generation. Left alone it grows to 48 in every thread, for no speed that can be measured.
 */
export const youngMemory = 12;

/**
 * Address of a thread's entry module, relative to the module at `from`. Entries are named by their source
 * (`.ts`); in the compiled package they end in `.js`, like the module that starts them.
 */
export function threadEntry(entry: string, from: string): URL {
  return new URL(from.endsWith('.ts') ? entry : entry.replace(/\.ts$/, '.js'), from);
}
