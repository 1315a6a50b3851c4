import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from '../../../src/rules/failure.ts';
import {
  MastheadConnectionError,
  MastheadError,
  type ErrorCode,
  type MastheadClient,
  type PublishedPost,
  type Status,
} from '../index.ts';
import type { Call } from '../terminal/command.ts';
import { failureFacts, failureText } from './connection.ts';
import type { Document } from './documents.ts';
import { warningsOf } from './publish-report.ts';
import { publishHash, type Published } from './publish-state.ts';

/** What became of one document. */
export type Outcome = {
  readonly kind: 'created' | 'updated' | 'unchanged' | 'failed';
  /** As the service answered; null where it was not asked, or refused. `id` is null in a dry run that creates it. */
  readonly post:
    | (Omit<PublishedPost, 'id' | 'title' | 'publishedAt'> & { readonly id: string | null })
    | null;
  /** Known from an earlier run, without a call. */
  readonly isRemembered?: true;
  readonly warnings: readonly string[];
  readonly failure?: Failure;
  /** What a later run should know. */
  readonly recorded?: Published;
};

/** Why something failed, in words and for programs. */
type Failure = { readonly text: string; readonly facts: Record<string, unknown> };

/** Why the run ended early. */
export type Stop =
  | { readonly why: 'interrupted' }
  | { readonly why: 'limit'; /** Seconds. */ readonly retryAfter: number }
  | ({ readonly why: 'failure' } & Failure);

export type PublisherOptions = {
  readonly call: Call;
  readonly status: Status | undefined;
  /** Once aborted nothing more is begun; calls in progress are finished. */
  readonly signal: AbortSignal;
  /** Called at the start of each wait, in seconds; with null when it is over. */
  readonly onWait: (wait: { readonly seconds: number; readonly reason: string } | null) => void;
};

/** How often to wait for a service that says "not now" for another reason than a limit. */
const maxWaits = 10;

/** Failures that every other document would meet too. */
const fatal: readonly (ErrorCode | 'unknown')[] = [
  'unauthorized',
  'suspended',
  'quota_exceeded',
  'misdirected',
  'unavailable',
  'read_only',
  'storage_full',
  'unknown',
];

/** Publishes documents; can be called concurrently. A `Retry-After` holds back all of them. */
export function createPublisher(client: MastheadClient, options: PublisherOptions) {
  const { call, status, signal } = options;
  const gate = createGate(options);
  let stop: Stop | null = null;
  let waits = 0;

  /** Whether to repeat the call, once the gate is open again. */
  const mayRepeat = (error: unknown): boolean => {
    if (!(error instanceof MastheadError) || error.retryAfter === null) return false;
    const isLimit = error.code === 'rate_limited';
    if (!isLimit && error.status !== 503 && error.status !== 507) return false;
    if (call.has('no-wait')) {
      if (isLimit) stop ??= { why: 'limit', retryAfter: error.retryAfter };
      return false;
    }
    if (!isLimit && ++waits > maxWaits) return false;
    gate.close(error.retryAfter, error.detail);
    return true;
  };

  const send = async (source: string): Promise<Outcome> => {
    if (call.has('dry-run')) {
      const answer = await client.publishMarkdown(source, { status }, { dryRun: true });
      return { kind: kindOf(answer), post: answer.post, warnings: warningsOf(answer) };
    }
    const answer = await client.publishMarkdown(source, { status });
    const { post } = answer;
    const recorded = { hash: publishHash(source, status), id: post.id, status: post.status };
    return { kind: kindOf(answer), post, warnings: warningsOf(answer), recorded };
  };

  return {
    stop: (): Stop | null => (signal.aborted ? { why: 'interrupted' } : stop),
    /** Null: the run has been stopped, and the document was left as it is. */
    async publish(document: Document): Promise<Outcome | null> {
      if (document.fault !== null) return failed(document.fault);
      for (;;) {
        await gate.passed();
        if (signal.aborted || stop !== null) return null;
        try {
          return await send(await document.read());
        } catch (error) {
          if (error instanceof StartError) return failed(error.message);
          if (!(error instanceof MastheadError || error instanceof MastheadConnectionError)) throw error;
          if (mayRepeat(error)) continue;
          if (stop !== null) return null;
          const [text, facts] = [failureText(call.program, error), failureFacts(call.program, error)];
          if (error instanceof MastheadError && !fatal.includes(error.code)) return failed(text, facts);
          stop = { why: 'failure', text, facts };
          return null;
        }
      }
    },
  };
}

function kindOf({ created, changed }: { created: boolean; changed: boolean }): Outcome['kind'] {
  return created ? 'created' : changed ? 'updated' : 'unchanged';
}

function failed(
  text: string,
  facts: Failure['facts'] = { success: false, code: 'invalid_document', error: text },
): Outcome {
  return { kind: 'failed', post: null, warnings: [], failure: { text, facts } };
}

/** Holds back every call until the latest time that the service gave. */
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
      // At least a second, so that "at once" does not become a loop.
      until = Math.max(until, performance.now() + Math.max(seconds, 1) * 1000);
      if (opening !== null) return;
      onWait({ seconds, reason });
      opening = open();
    },
    passed: async (): Promise<void> => opening ?? undefined,
  };
}
