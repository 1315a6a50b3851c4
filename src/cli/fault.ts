import { ConfigError } from '../config.ts';
import { AppError, StartError } from '../errors.ts';

/** What an operator is told of a failure: why, in one line where the reason was foreseen, with the stack where not. */
export function faultText(error: unknown): string {
  if (error instanceof StartError || error instanceof ConfigError || error instanceof AppError) {
    return error.message;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
