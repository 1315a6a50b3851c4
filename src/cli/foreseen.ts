import { AppError } from '../errors.ts';
import { StartError, errorCode, errorMessage } from '../rules/failure.ts';

/** A failure that was foreseen as a StartError; any other as it is. */
export function foreseen(error: unknown): unknown {
  if (error instanceof AppError) return new StartError(error.message, { code: error.code });
  if (errorCode(error) === 'ERR_MODULE_NOT_FOUND') {
    return new StartError(
      `${errorMessage(error)}. Install every package: npm ci; in a checkout without --omit=dev.`,
    );
  }
  return error;
}
