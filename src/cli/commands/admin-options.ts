import { UsageError, type Call, type Options } from '../../../client/src/terminal/command.ts';

/** How many entries of a list are shown. */
export const limitOption: Options = {
  limit: { meaning: 'How many at most; 100 by default.', value: 'number', maximum: 1_000_000 },
};

/** `what` is the beginning of a sentence that names the entries. */
export function sinceOption(what: string): Options {
  return {
    'created-since': {
      meaning: `${what} at or after this time: 2026-01-31, or with T09:30:00Z.`,
      value: 'time',
    },
  };
}

/** The time of {@link sinceOption} as rows have it; undefined where it was not given. Throws UsageError. */
export function readSince(call: Call, command: string): string | undefined {
  const given = call.value('created-since');
  if (given === null) return undefined;
  const isTime = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/.test(given);
  const at = isTime ? Date.parse(given) : Number.NaN;
  if (Number.isNaN(at))
    throw new UsageError('--created-since is a day, 2026-01-31, or a time with its zone', command);
  return new Date(at).toISOString();
}
