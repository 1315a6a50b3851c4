import { setTimeout as delay } from 'node:timers/promises';
import { StartError } from '../../../src/rules/failure.ts';
import { postSlugFromTitle } from '../../../src/rules/slug.ts';
import { pictureName } from '../../../src/rules/media/media-names.ts';
import {
  MastheadConnectionError,
  MastheadError,
  type ErrorCode,
  type MastheadClient,
  type OwnPost,
  type PublishedPost,
} from '../index.ts';
import type { Call } from '../terminal/command.ts';
import { failureFacts, failureText } from './connection.ts';
import { namingOf, wouldOverwrite, type Document } from './documents.ts';
import { createPictureStore, localPictures, withPictures, type LocalPicture } from './local-pictures.ts';
import { warningsOf } from './publish-report.ts';
import { publishHash, type Published } from './publish-state.ts';
import { toSend, type Wish } from './publish-status.ts';

/** What became of one document. */
export type Outcome = {
  readonly kind: 'created' | 'updated' | 'unchanged' | 'failed';
  /** As the service answered; null where it was not asked, or refused. `id` is null in a dry run that creates it. */
  readonly post:
    | (Omit<PublishedPost, 'id' | 'title' | 'publishedAt'> &
        Pick<OwnPost, 'publishAt'> & { readonly id: string | null })
    | null;
  /** Known from an earlier run, without a call. */
  readonly isRemembered?: true;
  readonly warnings: readonly string[];
  /** Pictures that were uploaded, or would be, as the document names them. */
  readonly uploaded?: readonly string[];
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

/** The post that a file is sent to because it was published to it before. */
type Target = {
  readonly post: FormerPost;
  /** The slug that the file gives, where the post has another. */
  readonly slug: string | null;
  /** Null: the file still names this post. Else what its new title or slug would do. */
  readonly renamed: 'creates' | { readonly overwrites: string } | null;
};

export type PublisherOptions = {
  readonly call: Call;
  readonly wish: Wish;
  /** When the posts are to be public; undefined: their front matter says it, or nobody. */
  readonly publishAt: string | undefined;
  /** Once aborted nothing more is begun; a call in progress is finished. */
  readonly signal: AbortSignal;
  /** The post that a file was when it was last published, if that is still there. */
  readonly before: (path: string) => FormerPost | null;
  /** The file of this run that was last published to one's post with this slug; null: none. */
  readonly ownerOf: (slug: string) => string | null;
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
  const { call, wish, publishAt, signal, onWait, before, ownerOf } = options;
  let stop: Stop | null = null;
  let waits = 0;
  const isDry = call.has('dry-run');
  const pictureStore = createPictureStore(client, { isDry });

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
    onWait({ seconds: error.retryAfter, reason: isLimit ? limitReached(client) : error.detail });
    // At least a second, so that "at once" does not become a loop.
    await pauseUnless(signal, Math.max(error.retryAfter, 1) * 1000);
    onWait(null);
    return true;
  };

  const send = async (document: string, path: string | null): Promise<Outcome> => {
    const pictures = await localPictures(document, path, call.has('allow-outside'));
    // By the names that the files would have: what is recorded changes where a file does.
    const { source, status } = toSend(withPictures(document, pictures), wish);
    const target = path === null ? null : await targetOf(source, before(path));
    if (target?.renamed && !call.has('move')) throw new StartError(whatToDo(target, target.renamed));
    const asked = { status, publishAt };
    // A query parameter wins over front matter: the post keeps its slug until it is moved.
    const fields = target === null || target.slug !== null ? asked : { ...asked, slug: target.post.slug };
    const id = target?.slug ? target.post.id : undefined;
    const uploaded = await pictureStore.store(pictures);
    const sent = toSend(withPictures(document, pictures, pictureStore.names), wish).source;
    const notes = notesOn(call, target);
    if (isDry) {
      const answer = await client.publishMarkdown(sent, fields, { dryRun: true, id });
      const lacking =
        uploaded.length > 0 ? pictures.filter(({ sha256 }) => !pictureStore.names.has(sha256)) : [];
      const known = warningsOf(answer).filter((warning) => !lacking.some(isNamedIn(warning)));
      return { kind: kindOf(answer), post: answer.post, warnings: [...known, ...notes], uploaded };
    }
    const answer = await client.publishMarkdown(sent, fields, { id });
    const { post } = answer;
    const recorded = { hash: publishHash({ source, ...asked }), id: post.id, status: post.status };
    const warnings = [...warningsOf(answer), ...notes];
    return { kind: kindOf(answer), post, warnings, uploaded, recorded };
  };

  /** Where a file is sent; null: to the post that the service finds by what the file says, or to a new one. */
  const targetOf = async (source: string, post: FormerPost | null): Promise<Target | null> => {
    const naming = namingOf(source);
    if (naming === null) return null;
    const { slug, title } = naming;
    if (post === null) {
      if (ownerOf(slug ?? postSlugFromTitle(title)) === null) return null;
      // Titles that become one slug have a post each: the service alone knows which is this one's.
      const found = slug ?? (await client.publishMarkdown(source, {}, { dryRun: true })).post.slug;
      const owner = ownerOf(found);
      if (owner !== null) throw new StartError(wouldOverwrite(owner));
      return null;
    }
    // The title alone would not find a post whose slug is that of another title.
    if (slug === null && title === post.title) return { post, slug, renamed: null };
    if (slug === post.slug || call.has('new')) return null;
    // A former slug or title still finds the post, as the service alone knows.
    const found = await client.publishMarkdown(source, {}, { dryRun: true });
    const isFound = found.post.id === post.id;
    if (isFound && (slug === null || !call.has('move'))) return null;
    return { post, slug, renamed: isFound || found.created ? 'creates' : { overwrites: found.post.url } };
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

/** Whether a warning is of a picture that a dry run has not uploaded. */
const isNamedIn =
  (warning: string) =>
  ({ sha256, type }: LocalPicture): boolean =>
    warning.includes(pictureName(sha256, type));

/** What the answer of the service does not say. */
function notesOn({ program }: Call, target: Target | null): string[] {
  if (!target?.renamed) return [];
  if (target.slug !== null) return [`the post moves here from ${target.post.url}`];
  return [
    `the title is another, the address stays; to change it: '${program} post edit ${target.post.slug} --slug <slug>'`,
  ];
}

function limitReached({ limit: known }: MastheadClient): string {
  return known === null
    ? 'The limit is used up.'
    : `The limit of ${known.limit} '${known.policy}' calls is used up.`;
}

function whatToDo({ post, slug }: Target, renamed: NonNullable<Target['renamed']>): string {
  const what = slug === null ? 'title' : 'slug';
  const [found, makes] =
    renamed === 'creates'
      ? ['', 'makes another']
      : [`, and now names your post ${renamed.overwrites}`, 'overwrites the one it names'];
  return `has another ${what} than its post ${post.url} has${found}: --move changes that post, --new ${makes}, and 'slug: ${post.slug}' in the file keeps it where it is`;
}

async function pauseUnless(signal: AbortSignal, milliseconds: number): Promise<void> {
  await delay(milliseconds, null, { signal }).catch(() => null);
}

type Answer = { readonly created: boolean; readonly changed: boolean };

function kindOf({ created, changed }: Answer): Outcome['kind'] {
  return created ? 'created' : changed ? 'updated' : 'unchanged';
}

function failed(
  text: string,
  facts: Failure['facts'] = { code: 'invalid_document', message: text },
): Outcome {
  return { kind: 'failed', post: null, warnings: [], failure: { text, facts } };
}
