import type { DatabaseSync } from 'node:sqlite';
import { sqliteCode } from './sqlite.ts';

/** How long a writer waits for the lock, ms. */
const patience = 5_000;
/** Mean interval between attempts, ms. */
const tryEvery = 0.5;
/** Least time for which a writer leaves the lock free, ms, so that another attempt can succeed. */
const leastGap = 1;
/** How long after its last wait a writer expects others, ms. */
const contendedFor = 1_000;

/**
 * Begins write transactions, fairly between processes. SQLite's busy handler sleeps for up to 100 ms at a time, so a
 * writer that is never idle takes the lock again before any sleeper wakes. Here a writer that expects others leaves
 * the lock free for as long as it held it; requests that arrive meanwhile share its next commit.
 */
export function createTurns(raw: DatabaseSync): { begin: () => void; ended: () => void } {
  raw.exec('pragma busy_timeout = 0');
  let waitedAt = -Infinity;
  let beganAt = -Infinity;
  let endedAt = -Infinity;

  function tryToBegin(since: number): boolean {
    try {
      raw.exec('begin immediate');
      return true;
    } catch (error) {
      const isBusy = sqliteCode(error) === 5;
      if (isBusy && performance.now() - since < patience) return false;
      throw error;
    }
  }

  return {
    /** Waits for the lock, blocking this thread. Throws SQLite's own error after 5 s. */
    begin() {
      const asked = performance.now();
      if (asked - waitedAt < contendedFor) sleep(endedAt + Math.max(leastGap, endedAt - beganAt) - asked);
      let hasWaited = false;
      for (; !tryToBegin(asked); hasWaited = true) sleep(tryEvery * (0.5 + Math.random()));
      beganAt = performance.now();
      if (hasWaited) waitedAt = beganAt;
    },
    ended() {
      endedAt = performance.now();
    },
  };
}

const cell = new Int32Array(new SharedArrayBuffer(4));

function sleep(ms: number): void {
  if (ms > 0) Atomics.wait(cell, 0, 0, ms);
}
