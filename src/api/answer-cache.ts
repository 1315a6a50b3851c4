import type { Engine } from '../db/database.ts';

/** An answer as it was sent. */
export type CachedAnswer = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

/** A cache of answers that depend on stored data alone. */
export type AnswerCache = {
  get(key: string): CachedAnswer | undefined;
  /** Cache generation; read it before making an answer and pass it to `put()`, which drops stale answers. */
  generation(): number | null;
  put(key: string, answer: CachedAnswer, generation: number | null): void;
};

/** Bytes that an entry takes besides its body and key. */
const overhead = 512;

/**
 * A cache of at most `capacity` bytes. Any visible change in the database drops all answers, so none is ever
 * stale.
 */
export function createAnswerCache(engine: Pick<Engine, 'contentVersion'>, capacity: number): AnswerCache {
  const answers = new Map<string, CachedAnswer>();
  let madeAt: number | null = null;
  let size = 0;

  function clear(): void {
    answers.clear();
    size = 0;
  }

  return {
    get(key) {
      const version = engine.contentVersion();
      if (version !== madeAt) {
        clear();
        madeAt = version;
      }
      return answers.get(key);
    },
    generation: () => madeAt,
    put(key, answer, generation) {
      if (generation === null || generation !== madeAt) return;
      const bytes = answer.body.length + 2 * key.length + overhead;
      if (bytes > capacity / 4 || answers.has(key)) return;
      if (size + bytes > capacity) clear();
      answers.set(key, answer);
      size += bytes;
    },
  };
}
