import type { DatabaseSync } from 'node:sqlite';
import { sqliteCode } from './sqlite.ts';

/** How long a writer waits for its turn, ms. */
const patience = 5_000;
/** Between two looks whether the turn is free, ms, on average. */
const lookEvery = 0.5;
/** The least that a writer leaves free after its turn, ms, so that one that looks finds it. */
const leastGap = 1;
/** How long after it last had to wait a writer reckons with others, ms. */
const reckonFor = 1_000;

/**
 * Begins write transactions, in turns with the writers of other processes. SQLite's own waiting sleeps for up
 * to 100 ms at a time, and a writer that is never idle begins again before any of the sleepers wakes up. Here
 * one that reckons with others leaves them as much time as it took: what comes meanwhile shares its next commit.
 */
export function createTurns(raw: DatabaseSync): { begin: () => void; ended: () => void } {
  raw.exec('pragma busy_timeout = 0');
  let waitedAt = -Infinity;
  let beganAt = -Infinity;
  let endedAt = -Infinity;

  function tryToBegin(): boolean {
    try {
      raw.exec('begin immediate');
      return true;
    } catch (error) {
      // Busy.
      if (sqliteCode(error) === 5) return false;
      throw error;
    }
  }

  function waitForTurn(since: number): void {
    while (performance.now() - since < patience) {
      sleep(lookEvery * (0.5 + Math.random()));
      if (tryToBegin()) {
        waitedAt = performance.now();
        return;
      }
    }
    raw.exec('begin immediate');
  }

  return {
    /** Waits for its turn, blocking this thread. Throws SQLite's own error when it does not come. */
    begin() {
      const asked = performance.now();
      if (asked - waitedAt < reckonFor) sleep(endedAt + Math.max(leastGap, endedAt - beganAt) - asked);
      if (!tryToBegin()) waitForTurn(asked);
      beganAt = performance.now();
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
