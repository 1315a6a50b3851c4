import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from '../../../src/rules/failure.ts';
import {
  MastheadConnectionError,
  MastheadError,
  type ErrorCode,
  type MastheadClient,
  type PublishedPost,
} from '../index.ts';
import type { Call } from '../terminal/command.ts';
import { failureFacts, failureText } from './connection.ts';
import type { Document } from './documents.ts';
import { warningsOf } from './publish-report.ts';
import { publishHash, type Published } from './publish-state.ts';
import { toSend, type Wish } from './publish-status.ts';

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
  readonly wish: Wish;
  /** Once aborted nothing more is begun; a call in progress is finished. */
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

/** Publishes documents, one at a time. */
export function createPublisher(client: MastheadClient, options: PublisherOptions) {
  const { call, wish, signal, onWait } = options;
  let stop: Stop | null = null;
  let waits = 0;

  /** Waits where the service says "not now"; whether to repeat the call then. */
  const waitAfter = async (error: unknown): Promise<boolean> => {
    if (!(error instanceof MastheadError) || error.retryAfter === null) return false;
    const isLimit = error.code === 'rate_limited';
    if (!isLimit && error.status !== 503 && error.status !== 507) return false;
    if (call.has('no-wait')) {
      if (isLimit) stop ??= { why: 'limit', retryAfter: error.retryAfter };
      return false;
    }
    if (!isLimit && ++waits > maxWaits) return false;
    onWait({ seconds: error.retryAfter, reason: error.detail });
    // At least a second, so that "at once" does not become a loop.
    await pauseUnless(signal, Math.max(error.retryAfter, 1) * 1000);
    onWait(null);
    return true;
  };

  const send = async (document: string): Promise<Outcome> => {
    const { source, status } = toSend(document, wish);
    if (call.has('dry-run')) {
      const answer = await client.publishMarkdown(source, { status }, { dryRun: true });
      return { kind: kindOf(answer), post: answer.post, warnings: warningsOf(answer) };
    }
    const answer = await client.publishMarkdown(source, { status });
    const { post } = answer;
    const recorded = { hash: publishHash({ source, status }), id: post.id, status: post.status };
    return { kind: kindOf(answer), post, warnings: warningsOf(answer), recorded };
  };

  return {
    stop: (): Stop | null => (signal.aborted ? { why: 'interrupted' } : stop),
    /** Null: the run has been stopped, and the document was left as it is. */
    async publish(document: Document): Promise<Outcome | null> {
      if (document.fault !== null) return failed(document.fault);
      for (;;) {
        if (signal.aborted || stop !== null) return null;
        try {
          return await send(await document.read());
        } catch (error) {
          if (error instanceof StartError) return failed(error.message);
          if (!(error instanceof MastheadError || error instanceof MastheadConnectionError)) throw error;
          if (await waitAfter(error)) continue;
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

async function pauseUnless(signal: AbortSignal, milliseconds: number): Promise<void> {
  await delay(milliseconds, null, { signal }).catch(() => null);
}

function kindOf({ created, changed }: { created: boolean; changed: boolean }): Outcome['kind'] {
  return created ? 'created' : changed ? 'updated' : 'unchanged';
}

function failed(
  text: string,
  facts: Failure['facts'] = { code: 'invalid_document', message: text },
): Outcome {
  return { kind: 'failed', post: null, warnings: [], failure: { text, facts } };
}
