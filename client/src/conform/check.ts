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
  /** Set where a limit of the service was used up: the check could be made at another time. */
  readonly limited?: true;
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

/** A limit of the service leaves no room for the check. */
export class OverLimit extends Skipped {}

/** Runs one check. Resolves to what it returns, or to undefined where it does not hold. */
type Check = <T>(reference: string, title: string, check: () => T | Promise<T>) => Promise<T | undefined>;

export type Checks = {
  /** Begins a section of the report. */
  readonly section: (name: string) => void;
  readonly must: Check;
  readonly ours: Check;
};

/** Makes checks one after the other; `report` is given each result at once. A failure does not stop the others. */
export function createChecks(report: (result: Result) => void): Checks {
  let section = '';
  const checkOf =
    (level: Level): Check =>
    async (reference, title, check) => {
      const about = { section, title, level, reference };
      try {
        const value = await check();
        report({ ...about, outcome: 'ok' });
        return value;
      } catch (error) {
        if (error instanceof Skipped) {
          const limited = error instanceof OverLimit ? ({ limited: true } as const) : {};
          report({ ...about, outcome: 'skip', reason: error.message, ...limited });
        } else if (error instanceof Mismatch) {
          report({ ...about, outcome: 'fail', expected: error.expected, received: error.received });
        } else throw error;
        return undefined;
      }
    };
  return {
    section: (name) => void (section = name),
    must: checkOf('specification'),
    ours: checkOf('contract'),
  };
}

/**
 * Checks an answer, and returns it also where it is not as written: one odd field or status leaves out nothing of what
 * can be checked with it. Undefined where none came.
 */
export async function checkAnswer<Answer>(
  check: Check,
  about: readonly [reference: string, title: string],
  call: () => Promise<Answer>,
  expect: (answer: Answer) => unknown,
): Promise<Answer | undefined> {
  const received: Answer[] = [];
  await check(...about, async () => {
    const answer = await call();
    received.push(answer);
    expect(answer);
  });
  return received[0];
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
  return printable(hidden, 240);
}
