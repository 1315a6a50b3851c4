import { accessSync, constants, statfsSync } from 'node:fs';

/** Below this even what SQLite keeps beside a database cannot be made, bytes. */
const leastRoom = 128 * 1024;

/** Why a disk takes nothing, what is to be done, and the command that does it or shows what takes the room. */
export type DiskFault = {
  readonly is: 'full' | 'mounted read-only';
  readonly detail: string;
  readonly todo: string;
  readonly mend: string;
};

/** Why the disk of a folder takes nothing more: neither bytes nor, with bytes to spare, another file; null where it does. */
export function diskFault(folder: string): DiskFault | null {
  const { bavail, bsize, files, ffree } = statfsSync(folder);
  const full = { is: 'full', todo: 'make room' } as const;
  if (isReadOnly(folder))
    return {
      is: 'mounted read-only',
      detail: 'the kernel makes it so after an error of the device, which dmesg shows',
      todo: 'mount it for writing',
      mend: `dmesg --level=err | tail; mount -o remount,rw "$(findmnt --noheadings --output TARGET --target '${folder}')"`,
    };
  if (bavail * bsize < leastRoom) return { ...full, detail: 'no byte is free', mend: largest(folder) };
  // File systems without a table of inodes say that they have none at all.
  if (files > 0 && ffree < 4) {
    const detail = 'no file can be made (no inode is free)';
    return { ...full, detail, mend: largest(folder, '--inodes') };
  }
  return null;
}

function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EROFS';
  }
}

/** Shows what takes the room of a folder's disk, and makes some. */
export function largest(folder: string, count = '-h'): string {
  return `du -x ${count} --max-depth=2 '${folder}' /var | sort -h | tail; journalctl --vacuum-size=200M`;
}
