import { SearchCutOff, type Engine } from '../../db/database.ts';
import { createTurns, type Turn } from './search-turns.ts';

/** Who searches: a client address, and what tells that the client has left. */
export type Seeker = { readonly address: string; readonly signal: AbortSignal };

/** The searches of a process. */
export type Searches = ReturnType<typeof createSearches>;

/** Memory for answers, and the most that one takes, bytes. */
const capacity = 4 * 1024 * 1024;
const largest = capacity / 8;

type Search = {
  readonly turn: Turn;
  readonly answer: Promise<unknown>;
  /** Aborted when nobody waits for the answer any more. */
  readonly abandoned: AbortController;
  /** The content version that it finds; null before it has begun. */
  version: number | null;
  seekers: number;
};

/** Searches in fair turns. Equal ones are joined while they are under way, and answered alike until content changes. */
export function createSearches(engine: Pick<Engine, 'publicVersion' | 'searchesAtOnce'>) {
  const turns = createTurns(engine.searchesAtOnce);
  const underWay = new Map<string, Search>();
  let answers = new Map<string, { readonly answer: unknown; readonly bytes: number }>();
  let size = 0;
  /** Content version of the kept answers; null before the first, so that a damaged database can still be opened. */
  let madeAt: number | null = null;

  function begin(key: string, run: (signal: AbortSignal) => Promise<unknown>): Search {
    const { promise: answer, resolve, reject } = Promise.withResolvers<unknown>();
    const abandoned = new AbortController();
    const turn: Turn = {
      refuse: reject,
      async run() {
        try {
          const version = engine.publicVersion();
          search.version = version;
          const found = await run(abandoned.signal);
          keep(key, version, found);
          resolve(found);
          return false;
        } catch (error) {
          reject(error);
          return error instanceof SearchCutOff;
        }
      },
    };
    const search: Search = { turn, answer, abandoned, version: null, seekers: 0 };
    const end = () => {
      if (underWay.get(key) === search) underWay.delete(key);
    };
    answer.then(end, end);
    abandoned.signal.addEventListener('abort', () => {
      turns.leave(turn);
      if (search.version === null) reject(new SearchCutOff());
    });
    return search;
  }

  function keep(key: string, version: number, answer: unknown): void {
    const bytes = 2 * (key.length + JSON.stringify(answer).length);
    if (version !== engine.publicVersion() || version !== madeAt || bytes > largest) return;
    if (size + bytes > capacity) forget();
    answers.set(key, { answer, bytes });
    size += bytes;
  }

  function forget(): void {
    // Another map: V8 keeps the entries of one that was cleared until a full collection.
    answers = new Map();
    size = 0;
  }

  function countOut(search: Search): void {
    search.seekers -= 1;
    if (search.seekers === 0) search.abandoned.abort();
  }

  return {
    /**
     * What `run` finds, or an equal search has found; `key` says what is looked for and in which form. Throws
     * unavailable where too many searches wait, SearchCutOff where it takes too long.
     */
    async find<T>(
      key: string,
      { address, signal }: Seeker,
      run: (signal: AbortSignal) => Promise<T>,
    ): Promise<T> {
      const version = engine.publicVersion();
      if (version !== madeAt) forget();
      madeAt = version;
      const known = answers.get(key);
      // All that is found by one key has one type.
      if (known) return known.answer as T;
      if (signal.aborted) throw new SearchCutOff();
      const equal = underWay.get(key);
      const isShared = equal && equal.seekers > 0 && (equal.version ?? version) === version;
      const search = isShared ? equal : begin(key, run);
      if (search.version === null) turns.wait(address, search.turn);
      underWay.set(key, search);
      search.seekers += 1;
      const leave = () => countOut(search);
      signal.addEventListener('abort', leave, { once: true });
      return (search.answer as Promise<T>).finally(() => signal.removeEventListener('abort', leave));
    },
  };
}
