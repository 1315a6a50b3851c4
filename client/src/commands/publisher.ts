import { setTimeout as delay } from 'node:timers/promises';
import { MastheadConnectionError, MastheadError, type MastheadClient, type Status } from '../index.ts';
import { StartError } from '../../../src/rules/failure.ts';
import { failureFacts, failureText } from './connection.ts';
import type { Document } from './documents.ts';
import { publishHash, type Published } from './publish-state.ts';

/** What became of one document. */
export type Outcome = {
  readonly kind: 'created' | 'updated' | 'unchanged' | 'failed';
  /** As the service answered; null where it was not asked, or refused. */
  readonly post: {
    readonly id: string | null;
    readonly slug: string;
    readonly url: string;
    readonly status: Status;
  } | null;
  /** Told from memory: only that the file is what it was, and that its post is there. */
  readonly isRemembered?: true;
  readonly warnings: readonly string[];
  /** Why it failed, in words and for programs. */
  readonly failure?: { readonly text: string; readonly facts: Record<string, unknown> };
  /** To be remembered. */
  readonly recorded?: Published;
};

/** Why the whole run ended before its end. */
export type Stop =
  | { readonly why: 'interrupted' }
  | { readonly why: 'limit'; /** Seconds. */ readonly retryAfter: number }
  | { readonly why: 'failure'; readonly text: string; readonly facts: Record<string, unknown> };

export type PublisherOptions = {
  /** The program's name, for what a failure says to type next. */
  readonly program: string;
  readonly status: Status | undefined;
  readonly dryRun: boolean;
  /** Waits as `Retry-After` says, else stops. */
  readonly wait: boolean;
  /** Nothing is begun any more; what is under way is finished. */
  readonly signal: AbortSignal;
  /** Told once for each wait, in seconds; null when it is over. */
  readonly onWait: (wait: { readonly seconds: number; readonly reason: string } | null) => void;
};

export type Publisher = {
  /** Null: the run has been stopped, and the document was left as it is. */
  publish(document: Document): Promise<Outcome | null>;
  stop(): Stop | null;
};

/** Waits for a service that says "not now" for another reason than a limit. */
const mostWaits = 10;

/** Failures that every other document would meet too. */
const fatal: readonly string[] = [
  'unauthorized',
  'suspended',
  'quota_exceeded',
  'misdirected',
  'unavailable',
  'read_only',
  'storage_full',
  'unknown',
];

/** Publishes documents, several at once if so called; a wait that one is told of holds all back. */
export function createPublisher(client: MastheadClient, options: PublisherOptions): Publisher {
  const { status, dryRun, signal } = options;
  const gate = createGate(options);
  let stop: Stop | null = null;
  let waits = 0;

  /** Whether the call is to be repeated. */
  const passes = (error: unknown): boolean => {
    if (!(error instanceof MastheadError) || error.retryAfter === null) return false;
    const isLimit = error.code === 'rate_limited';
    if (!isLimit && !(error.status === 503 || error.status === 507)) return false;
    if (!options.wait) {
      if (isLimit) stop ??= { why: 'limit', retryAfter: error.retryAfter };
      return false;
    }
    if (!isLimit && ++waits > mostWaits) return false;
    gate.close(error.retryAfter, error.detail);
    return true;
  };

  return {
    stop: () => (signal.aborted ? { why: 'interrupted' } : stop),
    async publish(document) {
      if (document.fault !== null) return failed(document.fault);
      for (;;) {
        await gate.passed();
        if (signal.aborted || stop !== null) return null;
        try {
          const source = await document.read();
          const hash = publishHash(source, status);
          if (dryRun) {
            const answer = await client.publishMarkdown(source, { status }, { dryRun: true });
            return { kind: kindOf(answer), post: answer.post, warnings: answer.warnings ?? [] };
          }
          const answer = await client.publishMarkdown(source, { status });
          const { post, warnings = [] } = answer;
          const recorded = { hash, id: post.id, status: post.status };
          return { kind: kindOf(answer), post, warnings, recorded };
        } catch (error) {
          if (error instanceof StartError) return failed(error.message);
          if (!(error instanceof MastheadError || error instanceof MastheadConnectionError)) throw error;
          if (passes(error)) continue;
          if (stop !== null) return null;
          const failure = {
            text: failureText(options.program, error),
            facts: failureFacts(options.program, error),
          };
          if (error instanceof MastheadConnectionError || fatal.includes(error.code)) {
            stop = { why: 'failure', ...failure };
            return null;
          }
          return { kind: 'failed', post: null, warnings: [], failure };
        }
      }
    },
  };
}

function kindOf({ created, changed }: { created: boolean; changed: boolean }): Outcome['kind'] {
  return created ? 'created' : changed ? 'updated' : 'unchanged';
}

function failed(text: string): Outcome {
  const facts = { success: false, code: 'invalid_document', error: text };
  return { kind: 'failed', post: null, warnings: [], failure: { text, facts } };
}

/** Holds everyone back until the latest moment that anyone was told. */
function createGate({ signal, onWait }: PublisherOptions) {
  let until = 0;
  let opening: Promise<void> | null = null;

  const open = async (): Promise<void> => {
    while (performance.now() < until && !signal.aborted)
      await delay(until - performance.now(), null, { signal }).catch(() => null);
    opening = null;
    onWait(null);
  };

  return {
    close(seconds: number, reason: string): void {
      // A service that says "at once" is not taken to mean a loop.
      until = Math.max(until, performance.now() + Math.max(seconds, 1) * 1000);
      if (opening !== null) return;
      onWait({ seconds, reason });
      opening = open();
    },
    /** Once open; who is refused again then closes it again. */
    passed: async (): Promise<void> => opening ?? undefined,
  };
}
