import { statfsSync } from 'node:fs';

/** Below this even what SQLite keeps beside a database cannot be made, bytes. */
const leastRoom = 128 * 1024;

/** What a disk has no room for, and the command that shows what takes it. */
export type FullDisk = { readonly lacks: string; readonly mend: string };

/** Whether the disk of a folder takes nothing more: neither bytes nor, with bytes to spare, another file. */
export function fullDisk(folder: string): FullDisk | null {
  const { bavail, bsize, files, ffree } = statfsSync(folder);
  if (bavail * bsize < leastRoom) return { lacks: 'no byte is free', mend: largest(folder) };
  // File systems without a table of inodes say that they have none at all.
  if (files > 0 && ffree < 4)
    return { lacks: 'no file can be made (no inode is free)', mend: largest(folder, '--inodes') };
  return null;
}

/** Shows what takes the room of a folder's disk, and makes some. */
export function largest(folder: string, count = '-h'): string {
  return `du -x ${count} --max-depth=2 '${folder}' /var | sort -h | tail; journalctl --vacuum-size=200M`;
}
