import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Log } from '../../platform/log.ts';
import { threadEntry, threadEnv } from '../../platform/thread-entry.ts';
import type { SearchQuery } from '../../rules/search/search-terms.ts';
import { SearchCutOff, searchStopped, searchTime, tooManySearches, type FoundNewest } from '../database.ts';

/** What a search process is asked, until one finds anything: SQL that reads matches with their digests, and what to rank them by. */
export type Search = readonly {
  readonly text: string;
  readonly parameters: readonly unknown[];
  readonly query: SearchQuery;
}[];

/** Its matches, or why it failed: `errcode` is SQLite's. */
export type SearchResult =
  | FoundNewest
  | { readonly fault: { readonly message: string; readonly errcode: number | null } };

/** Processes at once: the second is for those who wait behind a query that takes long. */
const mostProcesses = 2;
/** How long the first process takes for one query before the second is started, ms. */
const secondAfter = 25;
/** Milliseconds between two starts, on average: the first two may follow at once. */
const startEvery = 1_000;
/** How long a process without work is kept, ms: the last one, and one of two. */
const idleFor = { last: 30_000, other: 3_000 };
/** Measured: with a small heap a process takes 17 MiB of its own instead of 27, and no longer. */
const smallHeap = ['--max-semi-space-size=1', '--heap-growing-percent=30', '--optimize-for-size'];
/** The outer bound of a query, ms, for a machine too busy to give it its processor time. */
const longestSearch = 5_000;
/** What a query may still take whose client has left, ms: to start another process costs more. */
const graceOfAbandoned = 100;

/**
 * Searches in processes of their own, started on demand and ended when idle. Not in threads: while SQLite works,
 * neither its thread nor the process around that can be ended, but by killing the process.
 */
export function createSearchProcesses(file: string, log: Log) {
  const all = new Set<ChildProcess>();
  const idle = new Map<ChildProcess, NodeJS.Timeout>();
  const waiting: PromiseWithResolvers<ChildProcess>[] = [];
  /** When a process was last given a query, by `performance.now()`. */
  let givenAt = -Infinity;
  /** When the next start is due at the mean rate, by `performance.now()`. */
  let due = -Infinity;
  let growing: NodeJS.Timeout | undefined;
  let closed = false;
  /** Whether any took queries since the last start: another would fail like one that did not begin. */
  let startsWell = true;

  function take(): Promise<ChildProcess> {
    const turn = Promise.withResolvers<ChildProcess>();
    waiting.push(turn);
    // The one used last, so that the other comes to its end.
    const free = [...idle.keys()].at(-1);
    if (free) give(free);
    else if (all.size > 0) growing ??= setTimeout(grow, secondAfter).unref();
    else grow();
    return turn.promise;
  }

  /** Passes a process that has nothing to do to who waits for one. */
  function give(child: ChildProcess): void {
    startsWell = true;
    clearTimeout(idle.get(child));
    idle.delete(child);
    const next = waiting.shift();
    if (!next) return rest(child);
    givenAt = performance.now();
    next.resolve(child);
  }

  /** Ends a process that gets no more work. */
  function rest(child: ChildProcess): void {
    const time = all.size === 1 ? idleFor.last : idleFor.other;
    const over = () => (time === idleFor.other && all.size === 1 ? rest(child) : end(child));
    idle.set(child, setTimeout(over, time).unref());
  }

  /** Starts a process for those who wait, now or when there may be another; refuses them if none can be. */
  function grow(): void {
    clearTimeout(growing);
    growing = undefined;
    if (waiting.length === 0 || all.size === mostProcesses) return;
    const now = performance.now();
    const patience = all.size === 0 ? 0 : givenAt + secondAfter - now;
    const wait = Math.max(patience, due - startEvery - now);
    if (!closed && wait <= 0) {
      due = Math.max(now, due) + startEvery;
      start();
    } else if (all.size === 0 && (closed || !startsWell)) {
      for (const turn of waiting.splice(0)) turn.reject(tooManySearches());
    } else {
      growing = setTimeout(grow, Math.max(wait, 0) + 1).unref();
    }
  }

  function start(): void {
    const child = startProcess(file, log, end);
    all.add(child);
    startsWell = false;
    child.once('message', () => give(child));
  }

  function end(child: ChildProcess): void {
    clearTimeout(idle.get(child));
    idle.delete(child);
    all.delete(child);
    child.kill('SIGKILL');
    grow();
  }

  return {
    /** Throws {@link SearchCutOff} where the query takes too long or its client leaves, unavailable. */
    async search(search: Search, signal: AbortSignal): Promise<SearchResult> {
      const child = await take();
      const result = ask(child, search, signal);
      void result.then(
        () => give(child),
        () => end(child),
      );
      return result;
    },
    /** Ends all processes, whatever they do; resolves when they are gone, and with them their connections. */
    async close(): Promise<void> {
      closed = true;
      const ended = Array.from(all, (child) => endOf(child));
      for (const child of all) end(child);
      await Promise.all(ended);
    },
  };
}

/** A search process, for which this one does not stay alive. `onEnd` may be called twice. */
function startProcess(file: string, log: Log, onEnd: (child: ChildProcess) => void): ChildProcess {
  const env = { ...threadEnv(), MALLOC_ARENA_MAX: '1' };
  const child = fork(threadEntry('search'), [file], { execArgv: smallHeap, env, stdio: 'ignore' });
  child.unref();
  child.channel?.unref();
  // `exit` does not follow where none was started; a broken channel is noticed by its end.
  child.on('error', (error) => {
    log.error({ err: error }, 'a search process failed');
    onEnd(child);
  });
  child.once('exit', (code, signal) => {
    if (signal !== 'SIGKILL') log.error({ code, signal }, 'a search process ended');
    onEnd(child);
  });
  return child;
}

/** Resolves when a process has ended; until then this one stays alive for it. */
async function endOf(child: ChildProcess): Promise<void> {
  child.ref();
  await once(child, 'exit');
}

function ask(child: ChildProcess, search: Search, signal: AbortSignal): Promise<SearchResult> {
  const began = performance.now();
  const usedBefore = processorTime(child);
  const { promise, resolve, reject } = Promise.withResolvers<SearchResult>();
  let timer = setTimeout(look, searchTime);
  const cutOff = () => reject(new SearchCutOff());
  const stopped = () => reject(searchStopped());
  const abandon = () => {
    clearTimeout(timer);
    timer = setTimeout(cutOff, graceOfAbandoned);
  };

  function look(): void {
    const elapsed = performance.now() - began;
    const used = usedBefore === null ? elapsed : (processorTime(child) ?? 0) - usedBefore;
    if (used >= searchTime || elapsed >= longestSearch) cutOff();
    else timer = setTimeout(look, Math.max(10, searchTime - used));
  }

  child.once('message', resolve).once('exit', stopped);
  signal.addEventListener('abort', abandon);
  child.send(search);
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener('abort', abandon);
    child.off('message', resolve).off('exit', stopped);
  });
}

/** Processor time of a process so far, ms; null where only Linux would tell. See proc(5), utime and stime. */
function processorTime({ pid }: ChildProcess): number | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * msPerTick;
  } catch {
    return null;
  }
}

/** USER_HZ is 100 on every architecture that Node runs on. */
const msPerTick = 10;
