import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { Terminal } from './command.ts';

/** How a person at this terminal is asked; nothing where nobody can answer. */
export function questions(): Pick<Terminal, 'ask' | 'secret'> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return {};
  return {
    ask: async (question) => /^y(?:es)?$/i.test((await line(`${question} [y/N] `, process.stderr)).trim()),
    async secret(prompt) {
      process.stderr.write(prompt);
      // What readline would show goes nowhere.
      const typed = await line('', new Writable({ write: (_chunk, _encoding, done) => done() }));
      process.stderr.write('\n');
      return typed;
    },
  };
}

async function line(question: string, output: NodeJS.WritableStream): Promise<string> {
  // What is shown, the terminal edits by itself, and a dumb one too.
  const reader = createInterface({ input: process.stdin, output, terminal: output !== process.stderr });
  // Ctrl-C and the end of the input give no answer.
  const ended = new Promise<string>((resolve) => reader.once('close', () => resolve('')));
  reader.once('SIGINT', () => process.exit(130));
  try {
    return await Promise.race([reader.question(question), ended]);
  } finally {
    reader.close();
  }
}

/** How progress is shown to a terminal that can: back to the first column, and the line cleared (ECMA-48). */
export function progress(): Pick<Terminal, 'status'> {
  return obeys() ? { status: (text) => void process.stderr.write(`\r\u001B[K${text}`) } : {};
}

function obeys(): boolean {
  return process.stderr.isTTY && process.env['TERM'] !== 'dumb';
}

/** A line of standard error with colours for a terminal (https://no-color.org). */
export function coloured(text: string): string {
  if (!obeys() || process.env['NO_COLOR']) return text;
  const colour = text.startsWith('warning: ') ? 33 : text.startsWith('failed: ') ? 31 : null;
  return colour === null ? text : text.replace(/^\w+:/, (word) => `\u001B[${colour}m${word}\u001B[39m`);
}
