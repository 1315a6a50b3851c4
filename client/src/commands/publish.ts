import { postFieldNames } from '../../../src/rules/post-fields.ts';
import { parseMoment } from '../../../src/rules/times.ts';
import type { MastheadClient } from '../index.ts';
import { UsageError, type Call } from '../terminal/command.ts';
import { serviceCommand } from './connection.ts';
import { findDocuments, namingOf, type Document } from './documents.ts';
import { localPictures, withPictures } from './local-pictures.ts';
import { createPublishReport } from './publish-report.ts';
import { findGone, foldersOf, isGone, prune } from './pruning.ts';
import { createPublisher, type FormerPost, type Outcome } from './publisher.ts';
import { loadPublishState, publishHash, type PublishState } from './publish-state.ts';
import { toSend, type Wish } from './publish-status.ts';
import { yes } from './trash.ts';

/** Milliseconds between two writes of the record of what was published. */
const saveEvery = 2_000;

/** Said of a new post whose file was published before. */
function formerDeleted(call: Call): string {
  const made = call.has('dry-run') ? 'would be made' : 'was made';
  return `the post that this file was before has been deleted, so another ${made}; 'post trash' lists what can be restored`;
}

export const publish = serviceCommand('required', {
  name: 'post publish',
  summary: "Publish markdown files, all of a folder, or standard input ('-').",
  details: [
    `Front matter may give ${postFieldNames.slice(0, -1).join(', ')} and ${postFieldNames.at(-1)}. Without a title the first heading`,
    'is the title. Without a slug the service derives one from the title; the same title finds the same post again, so',
    'publishing twice creates no duplicate. Two files that would become the same post are refused.',
    'Pictures on this machine that a file shows are uploaded, where the service lacks them; the file stays as it is. One',
    'alone in its paragraph, with a title (![alt](lamp.png "title")), has that as its caption.',
    "Files are published one by one, in the order of their names. Hugo's 'draft: true' and Jekyll's 'published: false'",
    'say draft like status. What this machine has published as it is is not sent again, and of more than',
    '10 files only counted. Ctrl-C stops, and the same command goes on where it stopped.',
    'A published file with another title or slug now is not sent until --move says to change its post, or --new to make',
    'another. With another title alone its address stays; another slug in the file moves it, and the old one redirects.',
    'Without the file: post edit --title or --slug.',
    '--prune deletes only what this machine published, into the trash, and nothing where a file failed.',
    'Exit code: 0 if all went well, 3 if a part did, 130 if it was stopped; else by what went wrong.',
  ],
  operands: ['file…'],
  options: {
    publish: {
      meaning: 'Make them public, unless a file says draft; =all: those too.',
      optional: 'all',
    },
    draft: {
      meaning: 'Keep them drafts. Without both, the front matter decides, and a new post is a draft.',
    },
    at: {
      meaning:
        'Publish them by themselves then, a minute to a year ahead, whatever status they have: 2026-12-01T09:00+01:00.',
      value: 'time',
    },
    'dry-run': { meaning: 'Say what would happen; nothing is stored.' },
    force: { meaning: 'Send unchanged files too, to overwrite posts that were changed elsewhere.' },
    move: { meaning: 'Where the title or slug of a published file has changed: change its post.' },
    new: { meaning: 'The same: make another post.' },
    prune: { meaning: 'Then delete the posts whose files are gone from these folders; asks on a terminal.' },
    yes,
    'allow-outside': { meaning: 'Upload pictures from outside the folder of their file, too.' },
    'no-wait': { meaning: 'Stop when the limit is used up, instead of waiting.' },
  },
  // Waits are shown, so they happen here and not in the client.
  maxWait: 0,
  check(call) {
    if (call.has('publish') && call.has('draft'))
      throw new UsageError('--publish and --draft exclude each other', 'post publish');
    if (call.has('move') && call.has('new'))
      throw new UsageError('--move and --new exclude each other', 'post publish');
    const at = call.value('at');
    if (at && parseMoment(at) === null)
      throw new UsageError(`--at takes a date, a time and its zone: ${sayMoment(at)}`, 'post publish');
  },
  async run(call, { client, url, configDir }) {
    const folders = call.has('prune') ? await foldersOf(call.operands) : null;
    const documents = await findDocuments(call.operands, { allowsOutside: call.has('allow-outside') });
    const wish = wishOf(call);
    const { agent } = await client.me();
    const state = await loadPublishState(configDir, url, agent.id);
    const publishAt = call.value('at') ?? undefined;
    const work = { documents, folders, wish, publishAt, state, blogUrl: agent.blogUrl };
    return publishAll(call, client, work);
  },
});

/** A time as it should have been typed: the one that `+2h` means, or else one in an hour. */
function sayMoment(typed: string): string {
  const [, count = '1', unit = 'h'] = /^\+?(\d{1,4}) ?([mhd])/i.exec(typed) ?? [];
  const minutes = Number(count) * ({ m: 1, d: 1440 }[unit.toLowerCase()] ?? 60);
  return `${new Date(Date.now() + minutes * 60_000).toISOString().slice(0, 16)}Z is in ${count}${unit}`;
}

function wishOf(call: Call): Wish {
  if (call.has('draft')) return 'draft';
  if (!call.has('publish')) return 'as-written';
  return call.value('publish') === 'all' ? 'published' : 'unless-draft';
}

type Work = {
  readonly documents: readonly Document[];
  /** Those whose posts without a file are deleted; null: none. */
  readonly folders: readonly string[] | null;
  readonly wish: Wish;
  readonly publishAt: string | undefined;
  readonly state: PublishState;
  readonly blogUrl: string;
};

async function publishAll(call: Call, client: MastheadClient, work: Work): Promise<number> {
  const { documents, wish, publishAt, state } = work;
  const room = () => (client.limit?.policy === 'publish' ? client.limit.remaining : Infinity);
  const report = createPublishReport(call, documents.length, { ...work, room });
  const orphans = await findOrphans(work);
  const posts = await readPosts(client, work, orphans);
  const renamed = await findRenamed(
    work,
    orphans.flatMap((id) => posts.get(id) ?? []),
  );
  const rememberedOutcome = call.has('force') ? async () => null : readRemembered(posts, work, call);
  const interrupt = onInterrupt();
  const { signal } = interrupt;
  const before = (path: string | null) =>
    path === null ? null : (posts.get(state.last(path)?.id ?? '') ?? renamed.get(path) ?? null);
  const owners = new Map(documents.map(({ name, path }) => [before(path)?.slug, name]));
  const publisher = createPublisher(client, {
    call,
    wish,
    publishAt,
    signal,
    onWait: report.waiting,
    before,
    ownerOf: (slug) => owners.get(slug) ?? null,
  });
  const save = (): Promise<void> => state.save().catch(report.stateLost);
  const saving = setInterval(() => void save(), saveEvery);
  const live = new Set<string>();
  try {
    // One after another: posts stand in lists in the order in which they were created.
    for (const document of documents) {
      if (publisher.stop() !== null) break;
      const outcome = (await rememberedOutcome(document)) ?? (await publisher.publish(document));
      if (outcome === null) break;
      const { path } = document;
      const isSecond = outcome.kind === 'created' && path !== null && state.last(path) && !before(path);
      if (outcome.recorded !== undefined && path !== null) state.record(path, outcome.recorded);
      if (outcome.post?.id) live.add(outcome.post.id);
      const warnings = isSecond ? [...outcome.warnings, formerDeleted(call)] : outcome.warnings;
      report.done(document, { ...outcome, warnings });
    }
    if (work.folders !== null && report.isComplete())
      await prune(call, client, {
        gone: await findGone(work.folders, { live, state, posts }),
        signal,
        forget: state.forget,
        onBegin: report.deleting,
        onDeleted: report.deleted,
      });
  } finally {
    clearInterval(saving);
    interrupt.release();
    await save();
  }
  return report.end(publisher.stop());
}

type Posts = ReadonlyMap<string, FormerPost & NonNullable<Outcome['post']>>;

/** Ids of posts that this machine published from files that are gone, where a document may be one under another name. */
async function findOrphans({ documents, state }: Work): Promise<string[]> {
  const ids: string[] = [];
  if (documents.every(({ path }) => path === null || state.last(path) !== null)) return ids;
  for (const [path, { id }] of state.files()) if (await isGone(path)) ids.push(id);
  return ids;
}

/** Of each document that was not published before, the one orphan that has its title. */
async function findRenamed(
  { documents, state }: Work,
  orphans: readonly FormerPost[],
): Promise<Map<string, FormerPost>> {
  const renamed = new Map<string, FormerPost>();
  if (orphans.length === 0) return renamed;
  for (const { path, fault, read } of documents) {
    if (path === null || fault !== null || state.last(path) !== null) continue;
    // The publisher reports a file that has vanished meanwhile.
    const naming = await read().then(namingOf, () => null);
    const [post, another] = orphans.filter(({ title }) => naming?.slug === null && title === naming.title);
    if (post !== undefined && another === undefined) renamed.set(path, post);
  }
  return renamed;
}

/** The agent's posts by id, where they are needed: any of the documents may be one of them, or some may be deleted. */
async function readPosts(
  client: MastheadClient,
  { documents, folders, state }: Work,
  orphans: readonly string[],
): Promise<Posts> {
  const posts = new Map<string, FormerPost & NonNullable<Outcome['post']>>();
  const isKnown =
    folders !== null || orphans.length > 0 || state.knows(documents.flatMap(({ path }) => path ?? []));
  if (!isKnown) return posts;
  for await (const post of client.iteratePosts({ limit: 1000 })) posts.set(post.id, post);
  return posts;
}

/** Returns the outcome of an unchanged file whose post is still there in the same status; null for any other. */
function readRemembered(
  posts: Posts,
  { wish, publishAt, state }: Work,
  call: Call,
): (document: Document) => Promise<Outcome | null> {
  return async ({ path, fault, read }) => {
    if (path === null || fault !== null || !state.knows([path])) return null;
    // The publisher reports a file that has vanished meanwhile.
    const source = await read()
      .then(async (text) => withPictures(text, await localPictures(text, path, call.has('allow-outside'))))
      .catch(() => null);
    const published =
      source === null ? null : state.unchanged(path, publishHash({ ...toSend(source, wish), publishAt }));
    const post = published === null ? null : posts.get(published.id);
    if (!post || post.status !== published?.status) return null;
    const slug = call.has('move') && source !== null ? namingOf(source)?.slug : null;
    if (slug && slug !== post.slug) return null;
    return { kind: 'unchanged', post, warnings: [], isRemembered: true };
  };
}

/** The first Ctrl-C ends the run in order; the second ends the process, as it would by itself. */
function onInterrupt(): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController();
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const release = (): void => {
    for (const name of signals) process.removeListener(name, stop);
  };
  const stop = (): void => {
    release();
    controller.abort();
  };
  for (const name of signals) process.on(name, stop);
  return { signal: controller.signal, release };
}
