import { createHash, randomUUID } from 'node:crypto';
import { constants, statSync, unlinkSync } from 'node:fs';
import { access, mkdir, open, readdir, rename, rm, stat, statfs, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Of } from '../platform/checksum.ts';
import { syncPath } from '../platform/private-file.ts';
import { errorCode } from '../rules/failure.ts';

/** Where files stand until they are whole. */
const drafts = 'tmp';
/** Mode of the folders, and of the files. */
const [folderMode, fileMode] = [0o700, 0o600];

/** The share of the disk below which no picture is stored any more. */
const leastFree = 0.05;

/** A file that is being written, with its length and hash so far. */
export type Draft = {
  readonly size: () => number;
  /** SHA-256, hex, of what was written; to be asked for once. */
  readonly sha256: () => string;
  write(bytes: Buffer): Promise<void>;
  read(offset: number, length: number): Promise<Buffer>;
  /** Makes it the file of its hash, durably. */
  keep(sha256: string): Promise<void>;
  /** Closes it, and removes it unless it was kept. */
  close(): Promise<void>;
};

export type PictureStore = ReturnType<typeof createPictureStore>;

/**
 * The files of pictures below a folder, by their hash: `ab/cd/{sha256}`. A file is whole and on the disk before it has
 * its name. The folder itself is made by {@link PictureStore.prepare} alone: one that is gone may be a disk not mounted.
 */
export function createPictureStore(folder: string) {
  return {
    folder,

    /** Makes the folder where only it is missing. */
    async prepare(): Promise<void> {
      await makeFolder(folder);
      await readdir(folder);
    },

    /** Whether the disk has so little room that its last is left to other data. Throws where there is no folder. */
    async isFull(): Promise<boolean> {
      return lacksRoom(await statfs(folder));
    },

    /** A file to be written. One that is not to be kept has no name from the beginning: a crash leaves nothing of it. */
    async begin(use: 'kept' | 'passing'): Promise<Draft> {
      await makeFolder(join(folder, drafts));
      const path = join(folder, drafts, randomUUID());
      const draft = await beginDraft(folder, path);
      if (use === 'passing') await rm(path);
      return draft;
    },

    /** Opens the file of a picture. Rejects where there is none. */
    async read(sha256: string): Promise<FileHandle> {
      return open(pathOf(folder, sha256), 'r');
    },

    /** The length of the file of a picture, or null where there is none. Rejects where the folder cannot be read. */
    async lengthOf(sha256: string): Promise<number | null> {
      return stat(pathOf(folder, sha256)).then(({ size }) => size, absent);
    },

    /** Rejects where the file of a picture may not be read. */
    async requireReadable(sha256: string): Promise<void> {
      await access(pathOf(folder, sha256), constants.R_OK);
    },

    /** The hash of the bytes that the file of a picture has. Rejects where there is none. */
    async hashOf(sha256: string): Promise<string> {
      return sha256Of(pathOf(folder, sha256));
    },

    /** The hashes of all files, those of a folder at a time. */
    async *all(): AsyncGenerator<string[]> {
      for (const first of await entriesOf(folder, /^[0-9a-f]{2}$/))
        for (const second of await entriesOf(join(folder, first), /^[0-9a-f]{2}$/))
          yield await entriesOf(join(folder, first, second), /^[0-9a-f]{64}$/);
    },

    /** Removes files that were begun so long ago that nobody writes them any more. Returns how many. */
    async removeDrafts(before: number): Promise<number> {
      let removed = 0;
      for (const name of await entriesOf(join(folder, drafts), /./)) {
        const path = join(folder, drafts, name);
        const changed = await stat(path).then(({ mtimeMs }) => mtimeMs, absent);
        if (changed === null || changed > before) continue;
        await rm(path, { force: true });
        removed++;
      }
      return removed;
    },
  };
}

/** Whether less than a twentieth of a disk is free. */
export function lacksRoom({ bavail, blocks }: { readonly bavail: number; readonly blocks: number }): boolean {
  return bavail < blocks * leastFree;
}

/** The length of the file of a picture, or null where there is none; at once, as {@link removePicture}. */
export function pictureBytes(folder: string, sha256: string): number | null {
  return statSync(pathOf(folder, sha256), { throwIfNoEntry: false })?.size ?? null;
}

/**
 * Removes the file of a picture, if there is one. At once, so that whoever holds a lock against its being written anew still
 * holds it afterwards.
 */
export function removePicture(folder: string, sha256: string): void {
  try {
    unlinkSync(pathOf(folder, sha256));
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

async function beginDraft(folder: string, path: string): Promise<Draft> {
  const file = await open(path, 'wx+', fileMode);
  const hash = createHash('sha256');
  let size = 0;
  let isKept = false;
  return {
    size: () => size,
    sha256: () => hash.digest('hex'),
    async write(bytes) {
      hash.update(bytes);
      const at = size;
      size += bytes.length;
      for (let done = 0; done < bytes.length;)
        done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
    },
    async read(offset, length) {
      const wanted = Math.max(0, Math.min(length, size - offset));
      const bytes = Buffer.allocUnsafe(wanted);
      let done = 0;
      while (done < wanted) {
        const { bytesRead } = await file.read(bytes, done, wanted - done, offset + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return bytes.subarray(0, done);
    },
    async keep(sha256) {
      await file.sync();
      const [first, second] = foldersOf(sha256);
      const above = join(folder, first);
      const place = join(above, second);
      await makeFolder(above);
      await makeFolder(place);
      await rename(path, join(place, sha256));
      isKept = true;
      // Whoever made a folder just now may not have come to that yet.
      for (const changed of [place, above, folder]) await syncPath(changed);
    },
    async close() {
      await file.close();
      if (!isKept) await rm(path, { force: true });
    },
  };
}

function pathOf(folder: string, sha256: string): string {
  return join(folder, ...foldersOf(sha256), sha256);
}

function foldersOf(sha256: string): [string, string] {
  return [sha256.slice(0, 2), sha256.slice(2, 4)];
}

/** Makes a folder in one that exists, unless it is there. */
async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { mode: folderMode }).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
}

async function entriesOf(path: string, pattern: RegExp): Promise<string[]> {
  const names = await readdir(path).catch(absent);
  return (names ?? []).filter((name) => pattern.test(name)).toSorted();
}

function absent(error: unknown): null {
  if (errorCode(error) === 'ENOENT') return null;
  throw error;
}
