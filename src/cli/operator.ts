import type { Terminal } from '../../client/src/terminal/command.ts';
import { AppError } from '../errors.ts';
import { createLog, type Log } from '../platform/log.ts';
import type { OpenContext, OpenOptions } from '../process/open-context.ts';
import { StartError, errorCode, errorMessage } from '../rules/failure.ts';

/** How long a command waits for a database that does not answer, ms: somebody waits for it. */
const patience = 10_000;

/**
 * Runs a command on the database itself, beside any server that runs on it. By default it never makes a database, nor
 * brings its schema up to date, which would take it away from servers of an older release.
 */
export async function withContext<T>(
  terminal: Terminal,
  run: (ctx: OpenContext) => Promise<T>,
  options: Partial<Omit<OpenOptions, 'log'>> = {},
): Promise<T> {
  const { loadConfig } = await import('../config/config.ts');
  const { openContext } = await import('../process/open-context.ts');
  const config = loadConfig(terminal.env);
  const log = commandLog(terminal);
  const ctx = await openContext(config, { existing: true, migrate: false, patience, ...options, log });
  try {
    return await run(ctx);
  } finally {
    await ctx.close();
  }
}

/** Warnings and errors, to standard error. */
export function commandLog({ err }: Terminal): Log {
  return createLog('warn', (line) => err(line.trimEnd()));
}

/** An expected failure as a StartError; any other error unchanged. */
export function expected(error: unknown): unknown {
  if (error instanceof AppError) return new StartError(error.message, { code: error.code });
  if (errorCode(error) !== 'ERR_MODULE_NOT_FOUND') return error;
  return new StartError(
    `${errorMessage(error)}. Install every package: npm ci; in a checkout without --omit=dev.`,
  );
}
