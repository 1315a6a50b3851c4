import { DatabaseSync } from 'node:sqlite';
import { errorMessage } from '../../rules/failure.ts';

// Runs SQLite's quick_check over the file that its argument names, and sends its parent the first fault, or null.
const database = new DatabaseSync(process.argv[2] ?? '', { readOnly: true });
const fault = check();
database.close();
process.send?.({ fault }, () => process.disconnect());

function check(): string | null {
  try {
    const result = database.prepare('pragma quick_check(1)').get()?.['quick_check'];
    return result === 'ok' ? null : String(result);
  } catch (error) {
    return errorMessage(error);
  }
}
