import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, rmSync, statfsSync, statSync, truncateSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The most that is reserved, bytes, and the share of a small disk. */
const mostReserved = 8 * 1024 * 1024;
const share = 1 / 16;
/** In how many pieces it is given up: each is free for others too, such as the log that has filled the disk. */
const pieces = 8;
/** Bytes written at a time. */
const pieceLength = 256 * 1024;
/** How often to look whether another process has given the room up, ms: while the disk is busy a look waits for it. */
const lookInterval = 100;

/**
 * A file beside the database whose room is given up, piece by piece, when the disk is full: from then on only writes that
 * delete are accepted, and find the room that they need. Whatever process gave some up, all that serve the database
 * follow.
 */
export function createDiskReserve(database: string) {
  const reserve = reserveOf(database);
  const { file, size, free, isWhole } = reserve;
  const hasRoom = () => free() >= 2 * size;
  let exists = isWhole();
  let isFull = !exists && !hasRoom();
  let isFirst = true;
  let lookedAt = performance.now();
  let restoring: Promise<void> | null = null;

  async function write(): Promise<void> {
    const draft = `${file}.${randomUUID()}`;
    try {
      const opened = await open(draft, 'wx', 0o600);
      try {
        // Random: some file systems store zeros in no room.
        const piece = randomBytes(pieceLength);
        for (let left = size; left > 0; left -= pieceLength)
          await opened.write(piece, 0, Math.min(left, pieceLength));
        await opened.sync();
      } finally {
        await opened.close();
      }
      if (isFull) return;
      await rename(draft, file);
      exists = true;
    } finally {
      await rm(draft, { force: true });
    }
  }

  return {
    /** Bytes that must be free before anything but deletions is accepted again. */
    needed: 2 * size,
    /** Whether only writes that delete are accepted. */
    isFull(): boolean {
      if (exists && performance.now() - lookedAt >= lookInterval) {
        lookedAt = performance.now();
        // Another process has given some up.
        if (!isWhole()) [exists, isFull] = [false, true];
      }
      if (isFull && hasRoom()) isFull = false;
      return isFull;
    },
    /** The disk is full: from now on only deletions. Gives up a piece, and returns whether there was one. */
    release(): boolean {
      [exists, isFull] = [false, true];
      return reserve.giveUp();
    },
    /** Takes the room again, or for the first time, where there is enough; not at a start, which has other work. */
    restore(): void {
      if (isFirst) return void (isFirst = false);
      if (exists || isFull || restoring || !hasRoom()) return;
      // A disk that fills meanwhile: the next call tries again.
      restoring = write()
        .catch(() => undefined)
        .finally(() => (restoring = null));
    },
    /** Resolves when nothing is being written. */
    close: async () => restoring ?? undefined,
  };
}

/** Gives up of the reserve what a start needs that would find no room even to open the database. */
export function releaseWhereFull(database: string): void {
  if (!existsSync(dirname(database))) return;
  const { free, size, giveUp } = reserveOf(database);
  while (free() < size / pieces && giveUp());
}

/** What the disk of a database has room for: whether only deletions are accepted, and the room that ends that, bytes. */
export function diskRoom(database: string) {
  const { free, size, isWhole } = reserveOf(database);
  return { free: free(), needed: 2 * size, onlyDeletions: !isWhole() && free() < 2 * size };
}

function reserveOf(database: string) {
  const folder = dirname(database);
  const { blocks, bsize } = statfsSync(folder);
  const file = join(folder, 'reserve');
  const size = Math.min(mostReserved, Math.floor(blocks * bsize * share));
  const held = () => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return {
    file,
    size,
    isWhole: () => held() >= size,
    giveUp: (): boolean => {
      const left = held() - Math.ceil(size / pieces);
      if (left > 0) truncateSync(file, left);
      else rmSync(file, { force: true });
      return left > -Math.ceil(size / pieces);
    },
    free: () => {
      const now = statfsSync(folder);
      return now.bavail * now.bsize;
    },
  };
}
