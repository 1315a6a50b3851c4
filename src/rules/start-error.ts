/** A start or a command that cannot work: shown to whoever gave it as one line, exit code 1. */
export class StartError extends Error {
  /** What programs are told beside the message; at least a `code`, where it says more than that it failed. */
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(message: string, facts: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'StartError';
    this.facts = facts;
  }
}
