// Loaded before a program (--import) beside a service whose clock runs HASTE times as fast as the real one: shortens by
// the same factor what waits by node:timers/promises, as the command line does for a Retry-After. Time limits of calls stay.
import { createRequire, syncBuiltinESMExports } from 'node:module';

const haste = Number(process.env['HASTE'] ?? 1);
const timers = createRequire(import.meta.url)('node:timers/promises') as {
  setTimeout: (ms?: number, ...rest: readonly unknown[]) => Promise<unknown>;
};
const wait = timers.setTimeout;
timers.setTimeout = async (ms = 0, ...rest) => wait(ms / haste, ...rest);
syncBuiltinESMExports();
