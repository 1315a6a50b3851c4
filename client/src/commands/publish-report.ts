import { errorMessage } from '../../../src/rules/failure.ts';
import { printable } from '../../../src/rules/text.ts';
import { createBar } from '../terminal/bar.ts';
import type { Call } from '../terminal/command.ts';
import { duration } from '../terminal/format.ts';
import { exitCodeOf } from '../terminal/exit-codes.ts';
import type { Document } from './documents.ts';
import type { FormerPost, Outcome, PublisherOptions, Stop } from './publisher.ts';
import type { Wish } from './publish-status.ts';

/** Posts whose addresses stand below the bar at the end. */
const mostAddresses = 20;

/** Shows how publishing goes: as lines, on a terminal as one moving line, with --json as a result at the end. */
export function createPublishReport(
  call: Call,
  total: number,
  { wish, blogUrl }: { readonly wish: Wish; readonly blogUrl: string },
) {
  const counts = { created: 0, updated: 0, unchanged: 0, failed: 0 };
  const results: object[] = [];
  const addresses: string[] = [];
  const isDry = call.has('dry-run');
  const moving = total > 1 ? call.status : undefined;
  const bar = createBar(total, call.columns);
  let drafts = 0;
  let toDelete = 0;
  let deleted = 0;
  let isStateLost = false;

  /** A line above the moving one. */
  const say = (print: (line: string) => void, line: string): void => {
    moving?.('');
    print(line);
  };
  const finished = (): number => Object.values(counts).reduce((sum, count) => sum + count, 0);
  const draw = (note: string): void => moving?.(bar(finished(), note));

  return {
    done({ name }: Document, { kind, post, warnings, failure, isRemembered }: Outcome): void {
      counts[kind]++;
      const isDraft = post?.status === 'draft';
      if (isDraft) drafts++;
      const file = printable(name, 200);
      results.push({ file: name, outcome: kind, post, warnings, error: failure?.facts ?? null });
      const verb = isRemembered ? 'unchanged here' : isDry ? would[kind] : kind;
      const line = `${verb}${isDraft ? ' (draft)' : ''}: ${file}${post === null ? '' : ` -> ${post.url}`}`;
      if (failure === undefined && moving === undefined && !call.has('json')) call.out(line);
      if (failure === undefined && kind !== 'unchanged') addresses.push(line);
      if (failure !== undefined) say(call.err, `failed: ${file}: ${failure.text}`);
      for (const warning of warnings) say(call.err, `warning: ${file}: ${printable(warning, 500)}`);
      draw(name);
    },
    waiting: ((wait) => {
      if (wait === null) return draw('');
      const time = duration(wait.seconds);
      say(call.err, `${printable(wait.reason, 300)} Waiting ${time}; Ctrl-C stops.`);
      draw(`waiting ${time}`);
    }) satisfies PublisherOptions['onWait'],
    /** So many posts whose files are gone are to be deleted. */
    deleting: (count: number): void => void (toDelete = count),
    /** One of them was deleted, or would be. */
    deleted: (path: string, post: FormerPost): void => {
      deleted++;
      results.push({ file: path, outcome: 'deleted', post, warnings: [], error: null });
      const line = `${isDry ? 'would delete' : 'deleted'}: ${printable(path, 200)} -> ${post.url}`;
      if (!call.has('json')) say(call.out, line);
    },
    /** Whether every document was published. */
    isComplete: (): boolean => finished() === total && counts.failed === 0,
    /** The record of what was published cannot be written. Shown once. */
    stateLost: (error: unknown): void => {
      if (isStateLost) return;
      isStateLost = true;
      say(call.err, `The record of what was published cannot be written: ${errorMessage(error)}`);
    },
    /** Prints the summary, and returns the exit code. */
    end(stop: Stop | null): number {
      moving?.('');
      const left = total - finished() + toDelete - deleted;
      const facts = {
        total,
        ...counts,
        deleted,
        left,
        stopped: stop?.why ?? null,
        reason: factsOf(stop),
        results,
      };
      const parts = Object.entries({ ...counts, deleted, left }).filter(([, count]) => count > 0);
      const text = parts.map(([kind, count]) => `${count} ${kind}`).join(', ');
      const documents = `${total} ${total === 1 ? 'document' : 'documents'}`;
      if (moving !== undefined && !call.has('json')) showAddresses(call, addresses);
      const code = exitCode({ stop, left, failed: counts.failed, done: finished() });
      const summary = `${documents}${isDry ? ', nothing stored' : ''}: ${text}. The blog is ${blogUrl}`;
      if (total > 1 || deleted > 0 || call.has('json'))
        call.result({ ...facts, drafts, blogUrl }, summary, [], code === 0 ? undefined : 'incomplete');
      if (drafts > 0 && !isDry) call.err(draftsSentence(drafts, wish));
      if (stop !== null && left > 0) call.err(farewell(stop));
      return code;
    },
  };
}

function showAddresses({ out, program }: Call, addresses: readonly string[]): void {
  for (const line of addresses.slice(0, mostAddresses)) out(line);
  const rest = addresses.length - mostAddresses;
  if (rest > 0) out(`… and ${rest} more: ${program} post list`);
}

type Ending = { stop: Stop | null; left: number; failed: number; done: number };

function exitCode({ stop, left, failed, done }: Ending): number {
  if (stop?.why === 'interrupted' && left > 0) return 130;
  if (left === 0 && failed === 0) return 0;
  if (done > failed) return 3;
  return stop === null ? 1 : exitCodeOf(factsOf(stop) ?? {});
}

/** Drafts are easily taken for published. */
function draftsSentence(drafts: number, wish: Wish): string {
  const are = drafts === 1 ? '1 is a draft' : `${drafts} are drafts`;
  const how =
    wish === 'unless-draft'
      ? 'Their files say so; --publish=all makes them public.'
      : '--publish makes public what no file calls a draft.';
  return `${are}, which nobody else sees. ${how}`;
}

const would: Readonly<Record<Outcome['kind'], string>> = {
  created: 'would create',
  updated: 'would update',
  unchanged: 'unchanged',
  failed: 'failed',
};

function factsOf(stop: Stop | null): Record<string, unknown> | null {
  if (stop?.why === 'limit') return { code: 'rate_limited', status: 429, retryAfter: stop.retryAfter };
  return stop?.why === 'failure' ? stop.facts : null;
}

function farewell(stop: Stop): string {
  const again = 'The same command goes on where this one stopped';
  if (stop.why === 'interrupted') return `Stopped. ${again}.`;
  if (stop.why === 'failure') return `${stop.text}\n${again}.`;
  return `The limit is used up. ${again}: in ${duration(stop.retryAfter)} there is room for more.`;
}

/** The warnings of an answer. A service of 0.1 leaves them out where there are none. */
export function warningsOf({ warnings = [] }: { readonly warnings?: readonly string[] }): readonly string[] {
  return warnings;
}
