import type { MastheadClient, OwnPost, Status } from '../index.ts';
import { UsageError, type Call, type Command } from '../terminal/command.ts';
import { serviceOptions, withService } from './connection.ts';
import { findDocuments, type Document } from './documents.ts';
import { createPublishReport } from './publish-report.ts';
import { createPublisher, type Outcome } from './publisher.ts';
import { loadPublishState, publishHash, type PublishState } from './publish-state.ts';

/** Calls under way at once. */
const concurrency = 4;

/** Milliseconds between two writes of what is remembered. */
const saveEvery = 2_000;

export const publish: Command = {
  name: 'post publish',
  summary: "Publish markdown files, all of a folder, or standard input ('-').",
  details: [
    'Front matter may give title, slug, status, tags, lang, excerpt and disclosure. Without a title the first heading',
    'is the title; without a slug the service derives one from the title, and the same title finds the same post',
    'again, so that publishing twice never doubles. Two files that would share a post are refused.',
    'Unchanged files are passed over: Ctrl-C stops, and the same command goes on where it stopped.',
    'Exit code: 0 when all went well, 3 when a part did, 1 when nothing did, 130 when stopped.',
  ],
  operands: ['file…'],
  options: {
    publish: { meaning: 'Make them public, whatever their front matter says.' },
    draft: {
      meaning: 'Keep them drafts; without both, what the front matter says, and a new post is a draft.',
    },
    'dry-run': { meaning: 'Say what would happen; nothing is stored.' },
    force: { meaning: 'Send unchanged files too, for posts that were changed elsewhere.' },
    'no-wait': { meaning: 'Stop at the limit instead of waiting until it allows more.' },
    ...serviceOptions,
  },
  async run(call) {
    if (call.has('publish') && call.has('draft')) {
      throw new UsageError('--publish and --draft exclude each other', 'post publish');
    }
    const status = call.has('publish') ? 'published' : call.has('draft') ? 'draft' : undefined;
    // Waiting is told, so it is done here and not by the client.
    const retry = { maxWait: 0 };
    return withService(call, { key: 'required', retry }, async ({ client, url, configDir }) => {
      const documents = await findDocuments(call.operands);
      const { agent } = await client.me();
      const state = await loadPublishState(configDir, url, agent.id);
      return publishAll(call, client, { documents, status, state });
    });
  },
};

type Work = {
  readonly documents: readonly Document[];
  readonly status: Status | undefined;
  readonly state: PublishState;
};

async function publishAll(call: Call, client: MastheadClient, work: Work): Promise<number> {
  const { documents, state } = work;
  const report = createPublishReport(call, documents.length);
  const isUnchanged = call.has('force') ? async () => null : await createUnchanged(client, work);
  const interrupt = onInterrupt();
  const publisher = createPublisher(client, {
    program: call.program,
    status: work.status,
    dryRun: call.has('dry-run'),
    wait: !call.has('no-wait'),
    signal: interrupt.signal,
    onWait: (wait) => report.waiting(wait),
  });
  const save = (): Promise<void> => state.save().catch((error: unknown) => report.stateLost(error));
  const saving = setInterval(() => void save(), saveEvery);
  const queue = documents.values();
  const worker = async (): Promise<void> => {
    for (const document of queue) {
      if (publisher.stop() !== null) return;
      const outcome = (await isUnchanged(document)) ?? (await publisher.publish(document));
      if (outcome === null) return;
      if (outcome.recorded !== undefined && document.path !== null) {
        state.record(document.path, outcome.recorded);
      }
      report.done(document, outcome);
    }
  };
  try {
    await Promise.all(Array.from({ length: concurrency }, worker));
  } finally {
    clearInterval(saving);
    interrupt.release();
    await save();
  }
  return report.end(publisher.stop());
}

/** Tells of a document that it was published as it is, and that its post is still there in that status. */
async function createUnchanged(
  client: MastheadClient,
  { documents, status, state }: Work,
): Promise<(document: Document) => Promise<Outcome | null>> {
  if (!state.knows(documents.flatMap(({ path }) => path ?? []))) return async () => null;
  const posts = new Map<string, OwnPost>();
  for await (const post of client.iteratePosts({ limit: 1000 })) posts.set(post.id, post);
  return async ({ path, fault, read }) => {
    if (path === null || fault !== null || !state.knows([path])) return null;
    // A file that vanished meanwhile is the publisher's to report.
    const source = await read().catch(() => null);
    const published = source === null ? null : state.unchanged(path, publishHash(source, status));
    const post = published === null ? undefined : posts.get(published.id);
    if (post === undefined || post.status !== published?.status) return null;
    return { kind: 'unchanged', post, warnings: [], isRemembered: true };
  };
}

/** The first Ctrl-C ends the run in order; the second ends the process, as it would by itself. */
function onInterrupt(): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController();
  const stop = (): void => {
    release();
    controller.abort();
  };
  const release = (): void => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.removeListener(name, stop);
  };
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, stop);
  return { signal: controller.signal, release };
}
