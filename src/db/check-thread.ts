import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

// Runs SQLite's quick_check over the file and posts the first fault, or null.
const database = new DatabaseSync(String(workerData), { readOnly: true });
const fault = check();
database.close();
parentPort?.postMessage(fault);

function check(): string | null {
  try {
    const result = database.prepare('pragma quick_check(1)').get()?.['quick_check'];
    return result === 'ok' ? null : String(result);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
