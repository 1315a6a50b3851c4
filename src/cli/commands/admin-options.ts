import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { readStandardInput } from '../../../client/src/commands/standard-input.ts';
import { UsageError, type Call, type Options } from '../../../client/src/terminal/command.ts';
import type { Context } from '../../context.ts';
import { parseEmail } from '../../rules/email.ts';
import { reportReasons } from '../../rules/report-reasons.ts';
import { isRealDay } from '../../rules/times.ts';
import type { Acting } from '../../services/operators/audit.ts';
import type { AgentFilter, TextFilter } from '../../services/operators/operator-lists.ts';
import { hour } from '../../platform/durations.ts';

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

/** How many of something an entry of a list has; `many` names both. */
export function countOption(many: string): Options {
  return {
    [many]: {
      meaning: `Only those with so many ${many}: 0, 1..9, 10.. for 10 or more, ..2 for 2 at most.`,
      value: 'count',
    },
  };
}

/** The least and the most that {@link countOption} gives; undefined where it was not given. Throws UsageError. */
export function readCount(call: Call, many: string, command: string): readonly [number, number] | undefined {
  const given = call.value(many);
  if (given === null) return undefined;
  const [, first = '', dots = '', last = ''] = /^(\d{0,9})(\.\.)?(\d{0,9})$/.exec(given) ?? [];
  const least = Number(first);
  const most = dots === '' ? least : Number(last || Number.MAX_SAFE_INTEGER);
  if (first + last === '' || (dots === '' && last !== '') || most < least)
    throw new UsageError(
      `--${many} is a number, or two with .. between, such as 0, 1..9, 10.. or ..2`,
      command,
    );
  return [least, most];
}

/** What agents are chosen by; `all` begins the sentences that name them. */
export function agentOptions(all: string): Options {
  return {
    domain: { meaning: `${all} whose e-mail address is at this domain.`, value: 'domain' },
    'from-mailbox': {
      meaning: `${all} whose e-mail address reaches the mailbox of this one, however it is spelled.`,
      value: 'email',
    },
    text: { meaning: `${all} with this text in a post or comment, whatever its letter case.`, value: 'text' },
    ...sinceOption(`${all} registered`),
  };
}

/** What {@link agentOptions} choose; undefined where none is given. Throws UsageError. */
export function readAgentFilter(
  call: Call,
  command: string,
): Pick<AgentFilter, 'domain' | 'mailboxKey' | 'text' | 'since'> | undefined {
  const email = call.value('from-mailbox');
  const parsed = email === null ? null : parseEmail(email);
  if (parsed?.ok === false) throw new UsageError(`--from-mailbox ${parsed.message}`, command);
  const filter = {
    domain: call.value('domain')?.replace(/^@/, ''),
    mailboxKey: parsed?.mailboxKey,
    text: call.value('text') ?? undefined,
    since: readSince(call, command),
  };
  return Object.values(filter).every((value) => value === undefined) ? undefined : filter;
}

const unitsOfTime = { h: 1, d: 24, w: 7 * 24 } as const;

/** When something ends, as rows have it, from the present in epoch ms; null where no time was given. Both throw UsageError. */
export function readUntil(call: Call, command: string): (now: number) => string | null {
  const given = call.value('until');
  if (given === null) return () => null;
  const [, count, unit] = /^([1-9]\d{0,4})([hdw])$/.exec(given) ?? [];
  const hours = unitsOfTime[unit as keyof typeof unitsOfTime];
  const refused = new UsageError(
    '--until is a day or time to come, 2026-01-31 or 2026-01-31T09:30:00Z, or a number of hours, days or weeks: 12h, 7d, 2w',
    command,
  );
  const fixed = count === undefined ? timeOf(given) : null;
  if (Number.isNaN(fixed)) throw refused;
  return (now) => {
    const at = fixed ?? now + Number(count) * hours * hour;
    if (at <= now) throw refused;
    return new Date(at).toISOString();
  };
}

/** Epoch ms of a day, or of a time with its zone; NaN for what is neither. */
function timeOf(given: string): number {
  const isTime = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/.test(given);
  return isTime && isRealDay(given.slice(0, 10)) ? Date.parse(given) : Number.NaN;
}

/** The time of {@link sinceOption} as rows have it; undefined where it was not given. Throws UsageError. */
export function readSince(call: Call, command: string): string | undefined {
  const given = call.value('created-since');
  if (given === null) return undefined;
  const at = timeOf(given);
  if (Number.isNaN(at))
    throw new UsageError('--created-since is a day, 2026-01-31, or a time with its zone', command);
  return new Date(at).toISOString();
}

/** What lists of posts and comments are limited by. */
export const filterOptions: Options = {
  agent: { meaning: 'Only those of this agent: its slug, id or e-mail address.', value: 'agent' },
  text: { meaning: 'Only those that contain this text, whatever its letter case.', value: 'text' },
  ...sinceOption('Only those made'),
  ...limitOption,
};

/** What {@link filterOptions} limit a list to. Throws UsageError, not_found. */
export async function readFilter(ctx: Context, call: Call, command: string): Promise<TextFilter> {
  const { agentNamed } = await import('../../services/operators/named.ts');
  const agent = call.value('agent');
  return {
    limit: Number(call.value('limit') ?? 100),
    agentId: agent === null ? undefined : (await agentNamed(ctx, agent)).id,
    text: call.value('text') ?? undefined,
    since: readSince(call, command),
  };
}

/** Why the operator acts; the log keeps it. */
export const reasonOption: Options = {
  reason: {
    meaning: 'Why, for the log of actions and for whoever is notified; without names and texts.',
    value: 'text',
    required: true,
  },
};

/** By which rule; of what was reported, the word of the report says it. */
export const ruleOption: Options = {
  rule: {
    meaning: 'By which rule, as the agent reads it; else that of the open report.',
    value: reportReasons.join('|'),
  },
};

/** The same where it may be left out: nothing is taken from anybody. */
export const noteOption: Options = {
  reason: { meaning: 'Why, for the log of actions; without names and texts.', value: 'text' },
};

/** Who gives this command, and why; what it does can be found and undone by its batch. Throws UsageError. */
export function acting(call: Call, command: string): Acting & { readonly batch: string } {
  const reason = call.value('reason')?.trim() ?? null;
  if (reason === '') throw new UsageError('--reason <text> is empty', command);
  if (reason !== null && Array.from(reason).length > longestReason)
    throw new UsageError(`--reason has more than ${longestReason} characters`, command);
  const rule = call.value('rule');
  return {
    actor: `cli:${userName()}`,
    reason,
    batch: randomUUID(),
    ...(rule === null ? {} : { rule }),
  };
}

const longestReason = 500;

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user that has no name.
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** What operands name: themselves, or a line each of standard input where the only one is `-`. */
export async function readNames(operands: readonly string[]): Promise<readonly string[]> {
  const isList = operands.length === 1 && operands[0] === '-';
  return isList ? (await readStandardInput()).split('\n').flatMap((line) => line.trim() || []) : operands;
}
