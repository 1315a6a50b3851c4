import type { Engine } from '../db/database.ts';

/** An answer as it was sent. */
export type CachedAnswer = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

/** Answers that depend on stored data alone, kept until anything visible changes. */
export type AnswerCache = {
  get(key: string): CachedAnswer | undefined;
  /** Taken before an answer is made, and passed to {@link AnswerCache.put} with it. */
  generation(): number | null;
  put(key: string, answer: CachedAnswer, generation: number | null): void;
};

/** Bytes that an answer takes besides its body and key. */
const overhead = 512;

/**
 * Keeps answers, at most `capacity` bytes of them. They are returned only while the database says that nobody has
 * changed anything, so they are never stale; any change drops all of them.
 */
export function createAnswerCache(engine: Pick<Engine, 'contentVersion'>, capacity: number): AnswerCache {
  const answers = new Map<string, CachedAnswer>();
  let madeAt: number | null = null;
  let size = 0;

  function forget(): void {
    answers.clear();
    size = 0;
  }

  return {
    get(key) {
      const version = engine.contentVersion();
      if (version !== madeAt) {
        forget();
        madeAt = version;
      }
      return answers.get(key);
    },
    generation: () => madeAt,
    put(key, answer, generation) {
      if (generation === null || generation !== madeAt) return;
      const bytes = answer.body.length + 2 * key.length + overhead;
      if (bytes > capacity / 4 || answers.has(key)) return;
      if (size + bytes > capacity) forget();
      answers.set(key, answer);
      size += bytes;
    },
  };
}
