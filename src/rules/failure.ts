/** A start or a command that cannot work: shown to whoever gave it as one line, exit code 1. */
export class StartError extends Error {
  /**
   * What `--json` prints beside the message: a `code`, where it says more than that it failed, and as `mend` the command
   * that helps, which doctor names.
   */
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(message: string, facts: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'StartError';
    this.facts = facts;
  }
}

/** What a thrown value says of itself. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The code of a failure of Node or a library, such as `ENOENT`; undefined where it has none. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
