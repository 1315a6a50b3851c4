import { realpath, stat } from 'node:fs/promises';
import { sep } from 'node:path';
import { StartError, errorCode } from '../../../src/rules/failure.ts';
import { MastheadError, type MastheadClient } from '../index.ts';
import { isConfirmed, type Call } from '../terminal/command.ts';
import type { PublishState } from './publish-state.ts';
import type { FormerPost } from './publisher.ts';

/** A post that was published from a file that is not there any more. */
type Gone = { readonly path: string; readonly post: FormerPost };

/** The folders among the operands, as absolute paths that end in a separator. Throws StartError where there is none. */
export async function foldersOf(operands: readonly string[]): Promise<string[]> {
  const folders: string[] = [];
  for (const operand of operands) {
    const found = await stat(operand).catch(() => null);
    if (found?.isDirectory()) folders.push(`${await realpath(operand)}${sep}`);
  }
  if (folders.length === 0)
    throw new StartError('--prune needs a folder: it deletes the posts whose files are gone from it.');
  return folders;
}

/** The posts that this machine published from files below the folders, where the file is gone. */
export async function findGone(
  folders: readonly string[],
  {
    live,
    state,
    posts,
  }: {
    /** Ids of posts that have a file in this run, which may be a renamed one. */
    readonly live: ReadonlySet<string>;
    readonly state: PublishState;
    readonly posts: ReadonlyMap<string, FormerPost>;
  },
): Promise<Gone[]> {
  const gone: Gone[] = [];
  for (const [path, { id }] of state.files()) {
    const post = posts.get(id);
    if (post === undefined || live.has(id)) continue;
    if (!folders.some((folder) => path.startsWith(folder))) continue;
    if (await isGone(path)) gone.push({ path, post });
  }
  return gone;
}

/** Whether there is no such file any more; what cannot be looked at is not taken for gone. */
export async function isGone(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    (error: unknown) => errorCode(error) === 'ENOENT',
  );
}

type Pruning = {
  readonly gone: readonly Gone[];
  /** Once aborted no further post is deleted. */
  readonly signal: AbortSignal;
  readonly forget: (path: string) => void;
  /** Called before the first deletion, with their number. */
  readonly onBegin: (count: number) => void;
  readonly onDeleted: (path: string, post: FormerPost) => void;
};

/** Deletes those posts into the trash, after a question on a terminal; in a dry run only names them. */
export async function prune(
  call: Call,
  client: MastheadClient,
  { gone, signal, forget, onBegin, onDeleted }: Pruning,
): Promise<void> {
  const isDry = call.has('dry-run');
  const what =
    gone.length === 1 ? 'the post of 1 file that is gone' : `the posts of ${gone.length} files that are gone`;
  const isWanted =
    gone.length === 0 || isDry || (await isConfirmed(call, `Delete ${what}, with comments and votes?`));
  if (!isWanted) return call.err('Nothing was deleted.');
  onBegin(gone.length);
  for (const { path, post } of gone) {
    if (signal.aborted) return;
    if (!isDry) {
      await deleteIfThere(client, post.id);
      forget(path);
    }
    onDeleted(path, post);
  }
}

async function deleteIfThere(client: MastheadClient, id: string): Promise<void> {
  try {
    await client.deletePost(id);
  } catch (error) {
    // Deleted by another meanwhile.
    if (!(error instanceof MastheadError && error.code === 'not_found')) throw error;
  }
}
