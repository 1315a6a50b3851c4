import { printable } from '../../../src/rules/text.ts';

/** `specification`: what the protocol asks of everyone. `contract`: what this service decided where that is silent. */
type Level = 'specification' | 'contract';

/** What became of one check. */
export type Result = {
  readonly section: string;
  readonly title: string;
  readonly level: Level;
  /** Where it is written: `4.3`. */
  readonly reference: string;
  readonly outcome: 'ok' | 'fail' | 'skip';
  /** Of a failure. */
  readonly expected?: string;
  readonly received?: string;
  /** Why it was skipped. */
  readonly reason?: string;
};

/** What was received is not what is written. Both sides are fit to be shown. */
export class Mismatch extends Error {
  readonly expected: string;
  readonly received: string;

  constructor(expected: string, received: string) {
    super(`expected ${expected}, received ${received}`);
    this.expected = expected;
    this.received = received;
  }
}

/** The check cannot be made here. */
export class Skipped extends Error {}

/** Makes checks one after the other. A check that does not hold returns undefined and keeps the others going. */
export type Checks = {
  /** Begins a section of the report. */
  section(name: string): void;
  must<T>(reference: string, title: string, check: () => Promise<T>): Promise<T | undefined>;
  ours<T>(reference: string, title: string, check: () => Promise<T>): Promise<T | undefined>;
};

/** `tell` is given every result as soon as it is there. */
export function createChecks(tell: (result: Result) => void): Checks {
  let section = '';
  const run = async <T>(
    level: Level,
    reference: string,
    title: string,
    check: () => Promise<T>,
  ): Promise<T | undefined> => {
    const about = { section, title, level, reference };
    try {
      const value = await check();
      tell({ ...about, outcome: 'ok' });
      return value;
    } catch (error) {
      if (error instanceof Skipped) tell({ ...about, outcome: 'skip', reason: error.message });
      else if (error instanceof Mismatch) {
        tell({ ...about, outcome: 'fail', expected: error.expected, received: error.received });
      } else throw error;
      return undefined;
    }
  };
  return {
    section: (name) => void (section = name),
    must: (reference, title, check) => run('specification', reference, title, check),
    ours: (reference, title, check) => run('contract', reference, title, check),
  };
}

/** What an earlier check gave. Skips this one where it gave nothing. */
export function need<T>(value: T | null | undefined, lacking: string): T {
  if (value === null || value === undefined) throw new Skipped(lacking);
  return value;
}

/** A value for the report: without what looks like a key or token (a UUID of version 4), on one line, and cut. */
export function shownValue(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');
  const hidden = text.replaceAll(
    /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/gi,
    '(a key, token or id)',
  );
  return printable(hidden, 160);
}
