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
import { namingOf, type Document } from './documents.ts';
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

/** A post as it is now. */
export type FormerPost = Pick<PublishedPost, 'id' | 'slug' | 'title' | 'url'>;

/** A post whose file has another title now, or another slug where it gives one. */
type Renamed = { readonly post: FormerPost; readonly slug: string | null };

export type PublisherOptions = {
  readonly call: Call;
  readonly wish: Wish;
  /** Once aborted nothing more is begun; a call in progress is finished. */
  readonly signal: AbortSignal;
  /** The post that a file was when it was last published, if that is still there. */
  readonly before: (path: string) => FormerPost | null;
  /** Called at the start of each wait, in seconds; with null when it is over. */
  readonly onWait: (wait: { readonly seconds: number; readonly reason: string } | null) => void;
};

/** How often to wait for a service that says "not now" for another reason than a limit. */
const maxWaits = 10;

/** Failures that every other document would meet too. */
const fatal: readonly (ErrorCode | 'unknown')[] = [
  'unauthorized',
  'suspended',
  'deleting',
  'quota_exceeded',
  'misdirected',
  'unavailable',
  'read_only',
  'storage_full',
  'unknown',
];

/** Publishes documents, one at a time. */
export function createPublisher(client: MastheadClient, options: PublisherOptions) {
  const { call, wish, signal, onWait, before } = options;
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

  const send = async (document: string, path: string | null): Promise<Outcome> => {
    const { source, status } = toSend(document, wish);
    const renamed = path === null ? null : await renamedFrom(source, before(path));
    if (renamed !== null && !call.has('move')) throw new StartError(whatToDo(renamed));
    // A query parameter wins over front matter: the post keeps its slug until it is moved.
    const fields = renamed === null ? { status } : { status, slug: renamed.post.slug };
    if (call.has('dry-run')) {
      const answer = await client.publishMarkdown(source, fields, { dryRun: true });
      return { kind: kindOf(answer), post: answer.post, warnings: warningsOf(answer) };
    }
    if (renamed?.slug) await client.updatePost(renamed.post.id, { slug: renamed.slug });
    const answer = await client.publishMarkdown(source, renamed?.slug ? { status } : fields);
    const { post } = answer;
    const recorded = { hash: publishHash({ source, status }), id: post.id, status: post.status };
    const kind = renamed === null ? kindOf(answer) : 'updated';
    return { kind, post, warnings: warningsOf(answer), recorded };
  };

  /** The post that a file was before, where sending it as it is would make another; null where it would not. */
  const renamedFrom = async (source: string, post: FormerPost | null): Promise<Renamed | null> => {
    const naming = namingOf(source);
    if (post === null || naming === null || call.has('new')) return null;
    if (naming.slug === null ? naming.title === post.title : naming.slug === post.slug) return null;
    // A former slug or title still finds the post, as the service alone knows.
    const { created } = await client.publishMarkdown(source, {}, { dryRun: true });
    return created ? { post, slug: naming.slug } : null;
  };

  return {
    stop: (): Stop | null => (signal.aborted ? { why: 'interrupted' } : stop),
    /** Null: the run has been stopped, and the document was left as it is. */
    async publish(document: Document): Promise<Outcome | null> {
      if (document.fault !== null) return failed(document.fault);
      for (;;) {
        if (signal.aborted || stop !== null) return null;
        try {
          return await send(await document.read(), document.path);
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

function whatToDo({ post, slug }: Renamed): string {
  const what = slug === null ? 'title' : 'slug';
  return `has another ${what} than its post ${post.url} has: --move changes that post, --new makes another, and 'slug: ${post.slug}' in the file keeps it where it is`;
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
