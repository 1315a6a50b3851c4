import { ConfigError } from '../config/config.ts';
import { AppError, StartError } from '../errors.ts';

/** What an operator is told of a failure: why, in one line where the reason was foreseen, with the stack where not. */
export function faultText(error: unknown): string {
  if (error instanceof StartError || error instanceof ConfigError || error instanceof AppError) {
    return error.message;
  }
  if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')
    return `${error.message}. Install every package: npm ci; in a checkout without --omit=dev.`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
