import { existsSync, readdirSync, statfsSync, statSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { hostAndPort } from '../../config/values.ts';
import type { BackupCheck } from '../../db/sqlite/sqlite-backups.ts';
import { diskFault, largest } from '../../platform/disk.ts';
import { newProbe, probeHeader } from '../../http/own-probe.ts';
import { isPortTaken, reachedAt } from '../../process/port.ts';
import { StartError } from '../../rules/failure.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';
import type { Probes } from './probes.ts';
import { day, hour } from '../../platform/durations.ts';

/** Free space below which somebody should look, bytes. */
const littleSpace = 1024 ** 3;
/** Ages of the newest backup: a night was missed, and a week. */
const [oneNight, oneWeek] = [26 * hour, 7 * day];

/** Who may read what is the service's alone, and whether all of it is the service's. */
export function examinePermissions({ dataDir, media, mail }: Config, file: string | null): Finding {
  const what = 'permissions';
  const names = ['secret', 'instance', 'reserve', 'masthead.db', 'masthead.db-wal', 'masthead.db-shm'];
  const ours = [
    ...new Set([dataDir, ...names.map((name) => join(dataDir, name)), ...(file === null ? [] : [file])]),
  ];
  const found = ours.flatMap((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat === undefined ? [] : [{ path, stat }];
  });
  const quote = (paths: readonly string[]) => paths.map((path) => `'${path}'`).join(' ');
  const secrets = [dataDir, join(dataDir, 'secret'), file];
  const open = found.filter(({ path, stat }) => secrets.includes(path) && (stat.mode & 0o077) !== 0);
  if (open.length > 0) {
    const mend = `chmod go= ${quote(open.map(({ path }) => path))}`;
    return { what, state: 'wrong', detail: `others may read what is the service's alone: ${mend}`, mend };
  }
  const owner = found[0]?.stat.uid;
  const folders = [media.dir, mail.dir].map((folder) => ({ folder, within: foldersOf(folder) }));
  const filled = folders.filter(({ within }) =>
    within.some(({ uid, mode }) => uid !== owner && (mode & 0o022) === 0),
  );
  const foreign = [
    ...found.filter(({ stat }) => stat.uid !== owner).map(({ path }) => path),
    ...filled.map(({ folder }) => folder),
  ];
  if (foreign.length > 0)
    return {
      what,
      state: 'wrong',
      detail: `not all is the user's that ${dataDir} belongs to, as after a command as root: the service cannot write it`,
      mend: `chown --recursive --reference='${dataDir}' ${quote(foreign)}`,
    };
  // The secret is only read.
  const closed = [
    ...found
      .filter(
        ({ path, stat }) =>
          stat.uid === owner &&
          lacks(stat, stat.isDirectory() ? 0o700 : path === join(dataDir, 'secret') ? 0o400 : 0o600),
      )
      .map(({ path }) => path),
    ...folders
      .filter(({ within }) => within.some((stat) => stat.uid === owner && lacks(stat, 0o700)))
      .map(({ folder }) => folder),
  ];
  if (closed.length === 0) return { what, state: 'ok', detail: `only its user reads ${dataDir}` };
  return {
    what,
    state: 'wrong',
    detail: `their own user, the service, may not read and write ${closed.join(' ')}`,
    mend: `chmod --recursive u+rwX ${quote(closed)}`,
  };
}

/** Whether its own user has not all of these rights. */
function lacks({ mode }: Stats, needed: number): boolean {
  return (mode & needed) !== needed;
}

/** A folder that the service fills, and each in it; none where it is not there yet. */
function foldersOf(folder: string): readonly Stats[] {
  const stat = statSync(folder, { throwIfNoEntry: false });
  if (stat === undefined) return [];
  // What cannot be listed is to be said, not to be thrown.
  if (lacks(stat, 0o500)) return [stat];
  const inner = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [stat, ...inner.map(({ name }) => statSync(join(folder, name)))];
}

export async function examineDisk(dataDir: string, file: string | null): Promise<Finding> {
  const what = 'disk';
  const fault = diskFault(dataDir);
  if (fault !== null) {
    const detail = `the disk of ${dataDir} is ${fault.is}: ${fault.detail}`;
    return { what, state: 'wrong', detail, mend: fault.mend };
  }
  const mend = largest(dataDir);
  const { bavail, bsize } = statfsSync(dataDir);
  const free = bavail * bsize;
  const detail = `${mebibytes(free)} MiB are free in ${dataDir}`;
  const { diskRoom } = await import('../../db/sqlite/disk-reserve.ts');
  const room = file !== null && existsSync(file) ? diskRoom(file) : null;
  if (!room?.onlyDeletions)
    return { what, detail, ...(free < littleSpace ? { state: 'look', mend } : { state: 'ok' }) };
  const needed = Math.ceil(room.needed / 1024 ** 2);
  const until = `make room: until ${needed} MiB are free the service only reads and deletes`;
  return { what, state: 'wrong', detail: `${mebibytes(room.free)} MiB are free for ${file}: ${until}`, mend };
}

const mebibytes = (bytes: number) => Math.floor(bytes / 1024 ** 2);

/** The database file's structure, every row of it. Whether there is one, its opening says. */
export async function examineFile(dataDir: string, file: string): Promise<Finding | void> {
  const [{ sqliteFault }, { mendByRestore }] = await Promise.all([
    import('../../db/sqlite/sqlite-copy.ts'),
    import('../../db/sqlite/sqlite-file.ts'),
  ]);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined || stat.size === 0) return;
  if (!stat.isFile())
    return { what: 'file', state: 'wrong', detail: `${file} is no file`, mend: mendByRestore(dataDir, file) };
  const fault = sqliteFault(file);
  if (fault === null) return { what: 'file', state: 'ok', detail: `${file} is whole` };
  return {
    what: 'file',
    state: 'wrong',
    detail: `${file} is damaged (${fault}): restore it from a backup`,
    mend: mendByRestore(dataDir, file),
  };
}

/** Throws where the folder is none, or cannot be read. */
export function examineFolder(dataDir: string): void {
  const stat = statSync(dataDir, { throwIfNoEntry: false });
  if (stat?.isDirectory() === false)
    throw new StartError(`DATA_DIR ${dataDir} is no folder: name one.`, {
      mend: 'DATA_DIR=/var/lib/masthead',
    });
  if (stat === undefined) return;
  if (stat.uid === process.getuid?.() && lacks(stat, 0o500))
    throw new StartError(`DATA_DIR ${dataDir} may not be read by its own user.`, {
      mend: `chmod u+rwX '${dataDir}'`,
    });
  readdirSync(dataDir);
}

/** Whether this service listens at HOST and PORT, or somebody else does. */
export async function examinePort(
  config: Config,
  probes: Pick<Probes, 'ask' | 'now'>,
  secretKey: Buffer,
): Promise<Finding> {
  const what = 'port';
  const { host, port } = config;
  if (port === 0) return { what, state: 'ok', detail: 'PORT is 0: any free one' };
  if (!(await isPortTaken(config)))
    return {
      what,
      state: 'ok',
      detail: `nothing listens at ${host}, port ${port}: the service does not run`,
    };
  if (await isListening(config, probes, secretKey))
    return { what, state: 'ok', detail: `this service listens at ${host}, port ${port}` };
  return {
    what,
    state: 'wrong',
    detail: `port ${port} of ${host} is taken by another program, or by this one with another secret or an older release`,
    mend: `ss -ltnp 'sport = :${port}'`,
  };
}

/** Whether this very service answers at HOST and PORT. */
export async function isListening(
  { host, port }: Config,
  { ask, now }: Pick<Probes, 'ask' | 'now'>,
  secretKey: Buffer,
): Promise<boolean> {
  const { nonce, value } = newProbe(secretKey, now());
  const url = `http://${hostAndPort({ host: reachedAt(host), port })}/readyz`;
  const answer = await ask(url, { [probeHeader]: value }).catch(() => null);
  return answer?.body.includes(nonce) ?? false;
}

/** Whether this machine follows a time server. */
export async function examineTime({ isClockSynchronised }: Probes): Promise<Finding> {
  const what = 'time server';
  const follows = await isClockSynchronised();
  if (follows === null)
    return { what, state: 'unknown', detail: 'nothing here tells whether the clock follows a time server' };
  if (follows) return { what, state: 'ok', detail: 'the clock follows one' };
  return {
    what,
    state: 'look',
    detail: 'the clock follows none: limits, links in mail and certificates depend on it',
    mend: 'apt-get install --yes systemd-timesyncd && timedatectl set-ntp true',
  };
}

/** How old the newest backup is that `masthead backup` has made, and whether the last check found it whole. */
export function examineBackup(lastAt: number | null, check: BackupCheck | null, now: number): Finding {
  const what = 'backup';
  if (check !== null && check.fault !== null)
    return {
      what,
      state: 'wrong',
      detail: `the newest of ${check.folder} is of no use, as found at ${check.at}: ${check.fault}`,
      mend: `masthead backup --keep 7 '${check.folder}' && masthead verify-backup '${check.folder}'`,
    };
  const mend = 'systemctl enable --now masthead-backup.timer; systemctl status masthead-backup';
  if (lastAt === null)
    return { what, state: 'look', detail: "'masthead backup' has never made one of this database", mend };
  const age = now - lastAt;
  const made = `the newest is of ${new Date(lastAt).toISOString()}`;
  if (age < -hour)
    return { what, state: 'look', detail: `${made}: the clock was ahead when it was made`, mend };
  const detail = `${made}, ${Math.floor(age / hour)} hours ago`;
  if (age < oneNight) return { what, state: 'ok', detail };
  return { what, state: age < oneWeek ? 'look' : 'wrong', detail, mend };
}
