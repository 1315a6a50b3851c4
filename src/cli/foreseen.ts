import { AppError } from '../errors.ts';
import { StartError } from '../rules/start-error.ts';

/** A failure that was foreseen as a StartError; any other as it is. */
export function foreseen(error: unknown): unknown {
  if (error instanceof AppError) return new StartError(error.message, { code: error.code });
  if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') {
    return new StartError(
      `${error.message}. Install every package: npm ci; in a checkout without --omit=dev.`,
    );
  }
  return error;
}
