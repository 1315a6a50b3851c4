import { DatabaseSync } from 'node:sqlite';
import { errorMessage } from '../../rules/failure.ts';

/** What is wrong with the file, or why that was not found out: other failures, as of the disk, say nothing of it. */
export type Checked = { readonly fault: string | null; readonly failure: string | null };

/** Of SQLite's result codes those that mean damage (https://www.sqlite.org/rescode.html). */
const corrupt = 11;
const notADatabase = 26;

// Signals to the whole group, as of Ctrl-C, are for the parent, which ends this one; if it is killed, the check goes on to its end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

// Runs SQLite's quick_check over the file that its argument names, and sends its parent the first fault, or null; or
// why it could not be run.
process.send?.(check(process.argv[2] ?? ''), () => process.disconnect());

function check(file: string): Checked {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true });
    const result = database.prepare('pragma quick_check(1)').get()?.['quick_check'];
    return { fault: result === 'ok' ? null : String(result), failure: null };
  } catch (error) {
    const code = error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0;
    const isDamage = code === corrupt || code === notADatabase;
    return isDamage
      ? { fault: errorMessage(error), failure: null }
      : { fault: null, failure: errorMessage(error) };
  } finally {
    database?.close();
  }
}
