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
/** Files of which the same warning is shown. */
const mostWarnings = 3;
/** Files of a run beyond which those that are as this machine published them are counted, not listed. */
const mostListed = 10;
/** Seconds of a wait that is said on a line of its own, after the first. */
const worthALine = 60;

type Publication = {
  readonly wish: Wish;
  readonly blogUrl: string;
  /** How many posts the limit has room for at present, as far as is known. */
  readonly room: () => number;
};

/** Shows how publishing goes: as lines, on a terminal as one moving line, with --json as a result at the end. */
export function createPublishReport(call: Call, total: number, { wish, blogUrl, room }: Publication) {
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
  const showPictures = (file: string, uploaded: readonly string[]): void => {
    if (call.has('json') || (moving !== undefined && !isDry)) return;
    for (const picture of uploaded)
      say(call.out, `${isDry ? 'would upload' : 'uploaded'}: ${file}: ${printable(picture, 200)}`);
  };
  const isListed = (isRemembered = false): boolean =>
    moving === undefined && !call.has('json') && !(isRemembered && total > mostListed);
  const warned = createWarnings((line) => say(call.err, line));
  const finished = (): number => Object.values(counts).reduce((sum, count) => sum + count, 0);
  const draw = (note: string): void => moving?.(bar.working(finished(), note, room()));

  return {
    done({ name }: Document, { kind, post, warnings, failure, isRemembered, uploaded = [] }: Outcome): void {
      counts[kind]++;
      const isDraft = post?.status === 'draft';
      const until = post?.publishAt ?? null;
      if (isDraft && until === null) drafts++;
      const file = printable(name, 200);
      results.push({ file: name, outcome: kind, post, warnings, uploaded, error: failure?.facts ?? null });
      showPictures(file, uploaded);
      const verb = isRemembered ? 'unchanged, not sent' : (isDry ? would : asIs)[kind];
      const line = `${verb}${isDraft ? ` (${draftState(until)})` : ''}: ${file}${post === null ? '' : ` -> ${post.url}`}`;
      if (failure === undefined && isListed(isRemembered)) call.out(line);
      if (failure === undefined && kind !== 'unchanged') addresses.push(line);
      if (failure !== undefined) say(call.err, `failed: ${file}: ${failure.text}`);
      for (const warning of warnings) warned.add(file, printable(warning, 500));
      draw(name);
    },
    waiting: createWaits(
      (line) => say(call.err, line),
      (note) => moving?.(bar.waiting(finished(), note)),
      draw,
    ),
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
      say(call.err, `What was published cannot be recorded: ${errorMessage(error)}`);
    },
    /** Prints the summary, and returns the exit code. */
    end(stop: Stop | null): number {
      moving?.('');
      warned.end();
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
      const wouldBe = (kind: string) =>
        isDry && /^(?:created|updated|deleted)$/.test(kind) ? 'would be ' : '';
      const text = parts.map(([kind, count]) => `${count} ${wouldBe(kind)}${kind}`).join(', ');
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

/** Shows warnings: the same one of many files for the first few, and in the end how many more there were. */
function createWarnings(say: (line: string) => void) {
  const counts = new Map<string, number>();
  return {
    add(file: string, warning: string): void {
      const count = (counts.get(warning) ?? 0) + 1;
      counts.set(warning, count);
      if (count <= mostWarnings) say(`warning: ${file}: ${warning}`);
    },
    end(): void {
      for (const [warning, count] of counts)
        if (count > mostWarnings) say(`warning: ${count - mostWarnings} more: ${warning}`);
    },
  };
}

/** Shows waits: the first, and each long one, on a line of its own. */
function createWaits(
  say: (line: string) => void,
  show: (note: string) => void,
  goOn: (note: string) => void,
): PublisherOptions['onWait'] {
  let hasWaited = false;
  return (wait) => {
    if (wait === null) return goOn('');
    // Places come free one by one after the first wait: a line for each would hide all others.
    if (!hasWaited || wait.seconds >= worthALine)
      say(`${printable(wait.reason, 300)} Waiting ${duration(wait.seconds)}; Ctrl-C stops.`);
    hasWaited = true;
    const until = new Date(Date.now() + wait.seconds * 1000).toTimeString().slice(0, 8);
    show(`waiting until ${until}`);
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

/** What a draft is, and until when. */
export function draftState(publishAt: string | null): string {
  return publishAt === null ? 'draft' : `draft until ${publishAt}`;
}

/** Drafts are easily taken for published. */
function draftsSentence(drafts: number, wish: Wish): string {
  const isOne = drafts === 1;
  const are = isOne ? '1 is a draft' : `${drafts} are drafts`;
  const how = {
    'unless-draft': ` ${isOne ? 'Its file says' : 'Their files say'} so; --publish=all makes ${isOne ? 'it' : 'them'} public.`,
    'as-written': ' --publish makes public what no file calls a draft.',
    published: '',
    draft: '',
  };
  return `${are}, which nobody else sees.${how[wish]}`;
}

const asIs: Readonly<Record<Outcome['kind'], string>> = {
  created: 'created',
  updated: 'updated',
  unchanged: 'unchanged',
  failed: 'failed',
};

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
