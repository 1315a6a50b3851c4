import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnGuard } from './processes.ts';

/** A file system of its own, at a folder of its own. It goes with the process that made it. */
export type Mount = {
  readonly folder: string;
  /** Takes it away, with all that is on it. Nothing may have a file of it open. */
  remove(): void;
};

/** A file system on an image, which can be cut off like a disk whose power fails. */
export type Disk = Mount & {
  /** From now on nothing reaches the disk, nor what is cached (the ioctl that xfstests use for that). */
  cut(): void;
  /** Mounts again what is on the disk. Nothing may have a file of it open. */
  replug(): void;
};

/** Why nothing can be mounted here; false where it can. */
export function cannotMount(): string | false {
  try {
    makeMemoryDisk(1).remove();
    return false;
  } catch {
    return 'mounting a file system needs root and the capability CAP_SYS_ADMIN';
  }
}

/** A file system of so many MiB in memory, and of so many files; 0 is any number. */
export function makeMemoryDisk(mebibytes: number, files = 0): Mount {
  const folder = mkdtempSync(join(tmpdir(), 'masthead-disk-'));
  run('mount', '-t', 'tmpfs', '-o', `size=${mebibytes}m,nr_inodes=${files}`, 'tmpfs', folder);
  return { folder, remove: remover([folder], folder) };
}

/** From now on nothing may be written on it, as on a disk that has failed. */
export function forbidWriting({ folder }: Mount): void {
  run('mount', '-o', 'remount,ro', folder);
}

/** An ext4 of so many MiB on a file. */
export function makeDisk(mebibytes: number): Disk {
  const home = mkdtempSync(join(tmpdir(), 'masthead-disk-'));
  const image = join(home, 'image');
  const folder = mkdtempSync(join(home, 'mounted-'));
  writeFileSync(image, '');
  truncateSync(image, mebibytes * 1024 * 1024);
  run('mkfs.ext4', '-q', '-F', image);
  const mount = () => run('mount', '-o', 'loop', image, folder);
  mount();
  return {
    folder,
    remove: remover([folder, home], folder),
    cut() {
      // FS_IOC_SHUTDOWN without flushing the journal (EXT4_GOING_FLAGS_NOLOGFLUSH).
      const script =
        'open my $f, "<", $ARGV[0] or die $!; my $how = pack "L", 2; ioctl $f, 0x8004587D, $how or die $!';
      run('perl', '-e', script, folder);
    },
    replug() {
      run('umount', folder);
      mount();
    },
  };
}

function remover([folder = '', ...more]: readonly string[], mounted: string): () => void {
  const guard = spawnGuard('umount -l "$1"', [mounted]);
  return () => {
    guard.kill('SIGKILL');
    run('umount', mounted);
    for (const path of [folder, ...more]) rmSync(path, { recursive: true, force: true });
  };
}

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
