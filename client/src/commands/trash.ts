import { printable } from '../../../src/rules/text.ts';
import { MastheadError, type MastheadClient } from '../index.ts';
import { confirm, UsageError, type Command } from '../terminal/command.ts';
import { plainText, tableOrList } from '../terminal/format.ts';
import { cutInMiddle } from '../terminal/width.ts';
import { diffToNow, expectedTag, guarded, noteFile, revisionOf } from './changes.ts';
import { said, serviceCommand } from './connection.ts';
import { collect, postIdOf, postNaming } from './posts.ts';
import { warningsOf } from './publish-report.ts';

export const yes = { meaning: 'Do not ask.' };

const remove = serviceCommand('required', {
  name: 'post delete',
  summary: 'Delete posts of your own, with their comments and votes.',
  details: [
    postNaming,
    'They can be restored from the trash for a while. On a terminal it asks first, elsewhere it does not.',
  ],
  operands: ['post…'],
  options: { permanent: { meaning: 'For good, from the trash too.' }, yes },
  async run(call, connection) {
    const { client } = connection;
    const permanent = call.has('permanent');
    // A name that is wrong is found out before anything is deleted.
    const ids = new Map<string, string>();
    for (const named of call.operands) ids.set(await ownPostIdOf(client, named), named);
    const what = ids.size === 1 ? 'this post' : `these ${ids.size} posts`;
    await confirm(
      call,
      `Delete ${what}, with comments and votes${permanent ? ', for good' : ''}?`,
      'Nothing was deleted.',
    );
    const deleted: ({ id: string } & Awaited<ReturnType<typeof deletion>>)[] = [];
    for (const id of ids.keys()) deleted.push({ id, ...(await deletion(client, id, permanent)) });
    const lines = deleted.map(({ id, message, restoreUntil }) =>
      restoreUntil === null
        ? message
        : `${said({ message })} '${call.program} post restore ${ids.get(id)}' takes it back, until ${restoreUntil}.`,
    );
    call.result({ deleted }, lines.join('\n'));
    for (const { id, changed } of deleted)
      if (changed)
        await noteFile(call, connection, { id, note: 'is still there: publishing it makes a post again' });
  },
});

/** Deletes one post; of one that is in the trash already, says so. */
async function deletion(client: MastheadClient, id: string, permanent: boolean) {
  try {
    const { message, restoreUntil } = await client.deletePost(id, { permanent });
    return { message, changed: true, restoreUntil: restoreUntil ?? null };
  } catch (error) {
    if (!isInTrash(error)) throw error;
    return { message: `${error.detail} Nothing was changed.`, changed: false, restoreUntil: null };
  }
}

const restore = serviceCommand('required', {
  name: 'post restore',
  summary: 'Take a deleted post out of the trash, or make a post what it was in a former revision.',
  details: [
    postNaming,
    "With --revision, title, text, tags and the other fields come back as a new revision; slug and status stay. 'post history' lists.",
  ],
  operands: ['post'],
  options: {
    slug: { meaning: 'Another slug, where that of the deleted post is taken by now.', value: 'slug' },
    revision: { meaning: 'Which; 1 is the first.', value: 'number' },
    ...guarded,
  },
  check(call) {
    const revision = call.value('revision');
    if (revision !== null) revisionOf(revision, 'post restore');
    const [other, only] = revision === null ? ['if-match', 'needs'] : ['slug', 'does not go with'];
    if (call.value(other) !== null) throw new UsageError(`--${other} ${only} --revision`, 'post restore');
  },
  async run(call, connection) {
    const { client } = connection;
    const id = await ownPostIdOf(client, call.operand('post'));
    const revision = call.value('revision');
    const options = { ifMatch: expectedTag(call) };
    const answer =
      revision === null
        ? await client.restorePost(id, { slug: call.value('slug') ?? undefined })
        : await client.restoreRevision(id, Number(revision), options);
    for (const warning of warningsOf(answer)) call.err(`warning: ${warning}`);
    const isOther = revision !== null && answer.changed;
    const diff = isOther && !call.has('json') ? await diffToNow(client, id) : '';
    call.result(answer, plainText([said(answer), diff].join('\n')).trimEnd());
    if (isOther) await noteFile(call, connection, answer.post);
  },
});

const trash = serviceCommand('required', {
  name: 'post trash',
  summary: 'List your deleted posts that can be restored, the last deleted first, or erase them all.',
  details: ['On a terminal --empty asks first, elsewhere it does not.'],
  options: { empty: { meaning: 'Erase them for good.' }, yes },
  async run(call, { client }) {
    if (call.has('empty')) {
      await confirm(call, 'Erase every post in the trash, for good?', 'Nothing was erased.');
      const answer = await client.emptyTrash();
      call.result(answer, answer.message);
      return;
    }
    const posts = await collect(client.iterateTrash({ limit: 100 }));
    const rows = posts.map(({ status, slug, title, restoreUntil }) => [restoreUntil, status, slug, title]);
    const heading = ['RESTORABLE UNTIL', 'STATUS', 'SLUG', 'TITLE'];
    const width = call.columns?.('result') ?? Infinity;
    const lines = posts.map(
      ({ status, slug, title, restoreUntil }) =>
        `${cutInMiddle(printable(title, 200), width)}\n  ${status}, until ${restoreUntil}\n  ${slug}`,
    );
    call.result(
      posts,
      posts.length === 0 ? 'The trash is empty.' : tableOrList([heading, ...rows], lines, width),
    );
  },
});

/** The id of a post of one's own, which may be in the trash. */
async function ownPostIdOf(client: MastheadClient, named: string): Promise<string> {
  try {
    return await postIdOf(client, named);
  } catch (error) {
    if (!isInTrash(error)) throw error;
    const slug = URL.parse(named)?.pathname.split('/').at(-1) ?? named;
    for await (const post of client.iterateTrash({ limit: 100 })) if (post.slug === slug) return post.id;
    throw error;
  }
}

function isInTrash(error: unknown): error is MastheadError {
  return error instanceof MastheadError && error.deleted;
}

/** Deleting posts, and taking that back. */
export const trashCommands: readonly Command[] = [remove, restore, trash];
