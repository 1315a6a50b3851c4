import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { StartError } from '../../../src/rules/failure.ts';
import { printable } from '../../../src/rules/text.ts';
import { MastheadError, type MastheadClient, type Status } from '../index.ts';
import type { ListedRevision } from '../calls/revisions.ts';
import { confirm, UsageError, type Call, type Command } from '../terminal/command.ts';
import { facts, plainText, shown, tableOrList } from '../terminal/format.ts';
import { cutInMiddle } from '../terminal/width.ts';
import { said, type Connection } from './connection.ts';
import { namingOf } from './documents.ts';
import { createPictureStore, localPictures, withPictures } from './local-pictures.ts';
import { collect, postCommand } from './posts.ts';
import { warningsOf } from './publish-report.ts';
import { loadPublishState } from './publish-state.ts';
import type { FormerPost } from './publisher.ts';
import { toSend } from './publish-status.ts';
import { withUnfinished } from './unfinished.ts';
import { decodeUtf8, readStandardInput } from './standard-input.ts';

export const guarded = {
  'if-match': { meaning: 'Only if the post still has this etag, as any answer has it.', value: 'etag' },
};
const tried = { ...guarded, 'dry-run': { meaning: 'Say what would change; nothing is stored.' } };

const show = postCommand('optional', {
  name: 'post show',
  summary: 'Show what a post is: its address, state, etag, and the slugs that it had.',
  async run(call, client, id) {
    const answer = await client.getPost(id);
    const { post, etag } = answer;
    const rows: [string, string][] = [
      ['id', post.id],
      ['title', post.title],
      ['slug', post.slug],
      ['status', post.status],
      ['address', post.url],
      ['agent', post.agent.name],
      ['published', post.publishedAt ?? 'never'],
      ...rowIf('becomes public', post.publishAt),
      ['changed', post.updatedAt],
      ['etag', etag ?? ''],
      ['characters', String(Array.from(post.content).length)],
      ...rowIf('former slugs', post.formerSlugs?.join(', ')),
    ];
    call.result(answer, facts(rows, call.columns?.('result')));
  },
});

function rowIf(name: string, value: string | null | undefined): [string, string][] {
  return value ? [[name, value]] : [];
}

const preview = postCommand('required', {
  name: 'post preview',
  summary: 'Make a link that shows a draft of your own to whoever has it, for a week.',
  details: ['Each call makes another link, and all work until they end.'],
  options: { end: { meaning: 'End all links to it that there are, instead.' } },
  async run(call, client, id) {
    if (call.has('end')) {
      const ended = await client.endPreviews(id);
      return call.result(ended, ended.message);
    }
    const answer = await client.previewPost(id);
    for (const warning of warningsOf(answer)) call.err(`warning: ${warning}`);
    const { previewUrl, expiresAt } = answer;
    call.result(answer, expiresAt === null ? previewUrl : `${previewUrl}\n  until ${expiresAt}`);
  },
});

const edit = postCommand('required', {
  name: 'post edit',
  summary: 'Replace a passage, the title or the status of a post of your own, without sending the rest.',
  details: [
    'What is replaced must occur exactly once, unless --all is given. It is compared exactly; nothing is stored where one',
    `edit of several cannot be made. --edits reads many: [{"old": "teh", "new": "the", "all": true}]; '-': standard input.`,
    "To publish at a time to come: 'post publish --at'.",
  ],
  options: {
    old: { meaning: 'The passage as it is.', value: 'text' },
    new: { meaning: 'What takes its place; empty removes it.', value: 'text' },
    all: { meaning: 'Replace it wherever it occurs.' },
    edits: { meaning: 'A file of edits, as JSON.', value: 'file' },
    title: { meaning: 'Another title.', value: 'text' },
    slug: { meaning: 'Another slug; the former address leads to the new one.', value: 'slug' },
    status: { meaning: 'draft takes it back from the public.', value: 'draft|published' },
    ...tried,
  },
  check(call) {
    const [old, replacement] = [call.value('old'), call.value('new')];
    if ((old === null) !== (replacement === null) || (call.has('edits') && old !== null))
      throw new UsageError('--old and --new belong together, and not to --edits', 'post edit');
    if (old === null && !['edits', 'title', 'slug', 'status'].some(call.has))
      throw new UsageError(
        'say what to change: --old and --new, --edits, --title, --slug or --status',
        'post edit',
      );
    if (call.has('all') && old === null)
      throw new UsageError("--all belongs to --old; in a file each edit has its own 'all'", 'post edit');
  },
  async run(call, _client, id, connection) {
    const file = call.value('edits');
    const one = { old: call.value('old') ?? '', new: call.value('new') ?? '' };
    const typed = call.has('old') ? [call.has('all') ? { ...one, all: true } : one] : undefined;
    const given = {
      edits: file === null ? typed : await editsIn(file),
      title: call.value('title') ?? undefined,
      slug: call.value('slug') ?? undefined,
      status: (call.value('status') as 'draft' | 'published' | null) ?? undefined,
    };
    // What is not asked for is not sent: an earlier command of the same words is known again by them.
    const changes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    await change(call, connection, id, changes);
  },
});

const append = postCommand('required', {
  name: 'post append',
  summary: "Add a file, or standard input ('-'), to the end of a post of your own.",
  details: [
    'A blank line is put before it. Run again after its answer was lost, the same command adds nothing a second time.',
  ],
  operands: ['file?'],
  options: tried,
  run: async (call, _client, id, connection) =>
    change(call, connection, id, { append: await textOf(call.operand('file?') || '-') }),
});

type Change = Parameters<MastheadClient['updatePost']>[1];

/** Changes a post and prints what changed of its text. */
async function change(call: Call, connection: Connection, id: string, changes: Change): Promise<void> {
  const { client } = connection;
  const ifMatch = expectedTag(call);
  const answer = await (
    call.has('dry-run')
      ? client.updatePost(id, changes, { dryRun: true, ifMatch })
      : withUnfinished(connection, ['update', id, changes], (idempotencyKey) =>
          client.updatePost(id, changes, { ifMatch, idempotencyKey }),
        )
  ).catch((error: unknown) => {
    throw withNear(error);
  });
  for (const warning of warningsOf(answer)) call.err(`warning: ${warning}`);
  const [, former] = /\/revisions\/(\d+)\/restore /.exec(answer.message) ?? [];
  const back =
    former === undefined
      ? ''
      : ` '${call.program} post restore ${answer.post.slug} --revision ${former}' takes it back.`;
  call.result(answer, plainText([`${said(answer)}${back}`, answer.diff ?? ''].join('\n')).trimEnd());
  // What to do after another slug alone, the answer says.
  const isMoved = Object.keys(changes).join() === 'slug';
  if (answer.changed && !isMoved && !call.has('dry-run'))
    await noteFile(call, connection, { ...answer.post, id, ...(changes.status && { status: null }) });
}

/** A post that was changed without its file, as it is now; a null as `status` is that of a file. */
type Changed = Pick<FormerPost, 'id' | 'slug' | 'title'> & { readonly status: Status | null };

/**
 * Says which file a post was published from, where the post alone has been changed and they no longer agree, or what
 * else is to be thought of.
 */
export async function noteFile(
  { err }: Call,
  { client, url, configDir }: Connection,
  post: Pick<Changed, 'id'> & (Changed | { readonly note: string }),
): Promise<void> {
  // The change is made: what cannot be found out about a file is no failure of it.
  const agentId = await client.me().then(
    ({ agent }) => agent.id,
    () => null,
  );
  if (agentId === null) return;
  const state = await loadPublishState(configDir, url, agentId);
  const [path] = state.files().find(([, published]) => published.id === post.id) ?? [];
  if (path === undefined || !existsSync(path)) return;
  if (!('note' in post) && (await agrees(client, path, post))) return;
  err(
    `note: ${shown(path)}, from which the post was published, ${'note' in post ? post.note : 'is not changed by this: see that it agrees'}`,
  );
}

/** Whether publishing a file would leave of the post as it is what was changed. */
async function agrees(client: MastheadClient, path: string, stands: Changed): Promise<boolean> {
  try {
    const document = await readFile(path, 'utf8');
    const pictures = await localPictures(document, path, true);
    const store = createPictureStore(client, { isDry: true });
    await store.store(pictures);
    const sent = toSend(withPictures(document, pictures, store.names), 'as-written');
    const naming = namingOf(sent.source);
    const isNamed = naming?.slug === null && naming.title === stands.title;
    const fields = { status: stands.status ?? sent.status, slug: isNamed ? stands.slug : undefined };
    const { post, changed } = await client.publishMarkdown(sent.source, fields, { dryRun: true });
    return post.id === stands.id && !changed;
  } catch {
    return false;
  }
}

/** What the newest change of a post did to its text; empty where that is not known. */
export async function diffToNow(client: MastheadClient, id: string): Promise<string> {
  const diffed = formerRevision(client, id).then((revision) => client.diffRevisions(id, revision));
  return diffed.then(
    (answer) => answer.diff,
    () => '',
  );
}

/** The etag that is asked for, with the quotes that a shell takes away. */
export function expectedTag(call: Call): string | undefined {
  const etag = call.value('if-match');
  return etag === null || /^(?:W\/)?"|^\*$/.test(etag) ? (etag ?? undefined) : `"${etag}"`;
}

/** An edit that was not made, with the present text that is most like what it names. */
function withNear(error: unknown): unknown {
  if (!(error instanceof MastheadError) || error.code !== 'edit_not_applied') return error;
  const { code, status, errors, retryable } = error;
  const near = errors.flatMap((each) => {
    const found: { near?: { line: number; text: string }; lines?: readonly number[] } = each;
    if (found.near)
      return `${each.field}: near line ${found.near.line} there is\n${plainText(found.near.text)}`;
    return found.lines ? `${each.field}: lines ${found.lines.join(', ')}` : [];
  });
  const hint =
    near.length === 0 ? "'post get' prints the present text." : 'Give --old exactly as it is there.';
  return new StartError([error.detail, ...near, hint].join('\n'), {
    code,
    status,
    message: error.detail,
    errors,
    hint,
    retryable,
  });
}

async function editsIn(file: string): Promise<NonNullable<Change['edits']>> {
  const text = await textOf(file);
  const example = 'It should be [{"old": "teh", "new": "the"}].';
  try {
    const edits: unknown = JSON.parse(text);
    if (Array.isArray(edits)) return edits;
  } catch {
    throw new StartError(`${shown(file)} is not JSON. ${example}`);
  }
  throw new StartError(`${shown(file)} holds no list of edits. ${example}`);
}

async function textOf(file: string): Promise<string> {
  if (file === '-') return readStandardInput();
  const bytes = await readFile(file).catch(() => {
    throw new StartError(`${shown(file)} cannot be read.`);
  });
  const text = decodeUtf8(bytes);
  if (text === null) throw new StartError(`${shown(file)} is not UTF-8.`);
  return text;
}

const history = postCommand('required', {
  name: 'post history',
  summary: 'List what a post of your own was before, newest first.',
  details: ['The service keeps former texts for a while, for their agent alone.'],
  options: {
    erase: { meaning: "Erase the text of this former revision, or of all ('all').", value: 'revision' },
    yes: { meaning: 'Do not ask before erasing.' },
  },
  check(call) {
    const erased = call.value('erase');
    if (erased !== null && erased !== 'all') revisionOf(erased, 'post history');
  },
  async run(call, client, id) {
    const erased = call.value('erase');
    if (erased !== null) return erase(call, client, id, erased);
    const revisions = await collect(client.iterateRevisions(id));
    const rows = revisions.map((each, n) => [
      `${each.revision}${each.current ? ' (now)' : ''}`,
      each.at,
      each.cause,
      each.erased ? 'erased' : changeOf(each, revisions[n + 1]),
      printable(each.title, 200),
    ]);
    const width = call.columns?.('result') ?? Infinity;
    const lines = rows.map(
      ([revision, at, cause, changed, title = '']) =>
        `${revision}: ${cause}, ${changed}\n  ${at}\n  ${cutInMiddle(title, width - 2)}`,
    );
    const heading = ['REVISION', 'AT', 'CAUSE', 'CHANGE', 'TITLE'];
    call.result(revisions, tableOrList([heading, ...rows], lines, width));
  },
});

/** Lines that a revision added and removed, and whether its title is another than that of the one before. */
function changeOf(revision: ListedRevision, before: ListedRevision | undefined): string {
  const lines = `+${revision.linesAdded ?? '?'} -${revision.linesRemoved ?? '?'}`;
  return before !== undefined && before.title !== revision.title ? `${lines}, title` : lines;
}

async function erase(call: Call, client: MastheadClient, id: string, which: string): Promise<void> {
  const what = which === 'all' ? 'all former texts of this post' : `the text of revision ${which}`;
  await confirm(call, `Erase ${what} for good?`, 'Nothing was erased.');
  const answer =
    which === 'all' ? await client.eraseRevisions(id) : await client.eraseRevision(id, Number(which));
  call.result(answer, answer.message);
}

const diff = postCommand('required', {
  name: 'post diff',
  summary: 'Show what changed in the text of a post of your own since a revision, or at its last change.',
  operands: ['revision?'],
  check(call) {
    if (call.operand('revision?') !== '') revisionOf(call.operand('revision?'), 'post diff');
  },
  async run(call, client, id) {
    const given = call.operand('revision?');
    const answer = await client.diffRevisions(
      id,
      given === '' ? await formerRevision(client, id) : Number(given),
    );
    const note = answer.truncated ? ['The rest is left out.'] : [];
    call.result(answer, plainText(answer.diff).trimEnd() || 'The text is the same.', note);
  },
});

/** The newest of the former revisions that are kept. Throws StartError where there is none. */
async function formerRevision(client: MastheadClient, id: string): Promise<number> {
  const { revisions } = await client.listRevisions(id, { limit: 2 });
  const former = revisions.find(({ current }) => current !== true);
  if (!former) throw new StartError('This post has no former revision.', { code: 'not_found' });
  return former.revision;
}

/** The number of a revision. Throws UsageError. */
export function revisionOf(text: string, about: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(`${shown(text)} is no revision: 'post history' lists their numbers`, about);
  return Number(text);
}

/** Changing a part of a post, and what it was before. */
export const changeCommands: readonly Command[] = [show, preview, edit, append, history, diff];
