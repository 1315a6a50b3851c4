import { printable } from '../../../src/rules/text.ts';
import type { Call } from '../terminal/command.ts';
import { duration } from './connection.ts';
import type { Document } from './documents.ts';
import type { Outcome, Publisher, Stop } from './publisher.ts';

/** Tells how publishing goes: lines, or on a terminal one that moves, or for programs all at the end. */
export type PublishReport = {
  done(document: Document, outcome: Outcome): void;
  waiting(wait: { readonly seconds: number; readonly reason: string } | null): void;
  /** What was published cannot be remembered. Told once. */
  stateLost(error: unknown): void;
  /** Sums up, and returns the exit code. */
  end(stop: ReturnType<Publisher['stop']>): number;
};

const width = 24;

/** Of `total` documents. */
export function createPublishReport(call: Call, total: number): PublishReport {
  const counts = { created: 0, updated: 0, unchanged: 0, failed: 0 };
  const results: object[] = [];
  const isDry = call.has('dry-run');
  const drawn = total > 1 ? call.status : undefined;
  let drafts = false;
  let isStateLost = false;

  /** A line above the one that moves. */
  const say = (print: (line: string) => void, line: string): void => {
    drawn?.('');
    print(line);
  };
  const finished = (): number => Object.values(counts).reduce((sum, count) => sum + count, 0);
  const draw = (note: string): void => {
    const filled = Math.floor((finished() / total) * width);
    const bar = `${'#'.repeat(filled)}${'.'.repeat(width - filled)}`;
    drawn?.(`[${bar}] ${finished()}/${total} ${printable(note, 30)}`);
  };

  return {
    done(document, outcome) {
      counts[outcome.kind]++;
      const { kind, post, warnings, failure, isRemembered } = outcome;
      if (post?.status === 'draft') drafts = true;
      const file = printable(document.name, 200);
      if (call.has('json')) {
        results.push({ file: document.name, outcome: kind, post, warnings, error: failure?.facts ?? null });
      } else if (drawn === undefined && failure === undefined) {
        const verb = isRemembered ? 'unchanged here' : isDry ? would[kind] : kind;
        const asDraft = post?.status === 'draft' ? ' (draft)' : '';
        say(call.out, `${verb}${asDraft}: ${file}${post === null ? '' : ` -> ${post.url}`}`);
      }
      if (failure !== undefined) say(call.err, `failed: ${file}: ${failure.text}`);
      for (const warning of warnings) say(call.err, `warning: ${file}: ${printable(warning, 500)}`);
      draw(document.name);
    },
    waiting(wait) {
      if (wait === null) return draw('');
      const time = duration(wait.seconds);
      say(call.err, `${printable(wait.reason, 300)} Waiting ${time}; Ctrl-C stops.`);
      draw(`waiting ${time}`);
    },
    stateLost(error) {
      if (isStateLost) return;
      isStateLost = true;
      say(call.err, `What is published cannot be remembered for the next run: ${String(error)}`);
    },
    end(stop) {
      drawn?.('');
      const left = total - finished();
      const good = finished() - counts.failed;
      const text = Object.entries(counts).flatMap(([kind, count]) => (count === 0 ? [] : `${count} ${kind}`));
      const summary = `${total} ${total === 1 ? 'document' : 'documents'}${isDry ? ', nothing stored' : ''}: ${[...text, ...(left === 0 ? [] : [`${left} left`])].join(', ')}.`;
      if (call.has('json')) {
        call.outJson({ total, ...counts, left, stopped: stop?.why ?? null, error: factsOf(stop), results });
      } else if (total > 1) {
        call.out(summary);
      }
      if (drafts && !isDry) call.err('Nobody else sees a draft: --publish makes it public.');
      if (stop !== null && left > 0) call.err(farewell(stop));
      if (stop?.why === 'interrupted' && left > 0) return 130;
      if (good === total) return 0;
      return good > 0 ? 3 : 1;
    },
  };
}

const would: Readonly<Record<Outcome['kind'], string>> = {
  created: 'would create',
  updated: 'would update',
  unchanged: 'unchanged',
  failed: 'failed',
};

function factsOf(stop: Stop | null): object | null {
  if (stop === null || stop.why === 'interrupted') return null;
  return stop.why === 'failure'
    ? stop.facts
    : { success: false, code: 'rate_limited', retryAfter: stop.retryAfter };
}

function farewell(stop: Stop): string {
  const again = 'The same command goes on where this one stopped';
  if (stop.why === 'interrupted') return `Stopped. ${again}.`;
  if (stop.why === 'failure') return `${stop.text}\n${again}.`;
  return `The limit is used up. ${again}: in ${duration(stop.retryAfter)} there is room for more.`;
}
