import { readdir, statfs } from 'node:fs/promises';
import type { ReadContext } from '../../context.ts';
import { createPictureStore, type PictureStore } from '../../media/picture-store.ts';
import { errorCode, errorMessage } from '../../rules/failure.ts';
import { countRows } from '../lists/paging.ts';
import { unknownFiles } from '../media/picture-sweep.ts';
import type { Finding } from './doctor.ts';

/** Rows that one statement reads. */
const rowsAtOnce = 500;
/** Pictures that are named of those that lack something. */
const mostNamed = 10;
/** Free space below which somebody should look, bytes. */
const littleSpace = 1024 ** 3;

/** Rows of pictures held against the files of MEDIA_DIR. */
type ComparedPictures = {
  readonly pictures: number;
  /** Pictures whose file is not there, differs or cannot be read. */
  readonly lacking: number;
  /** A sentence for each of the first of them; or one that says why none could be looked at. */
  readonly faults: readonly string[];
};

/** Holds pictures against their files: whether each is there with its length, and with `bytes` its very bytes. */
export async function comparePictures(
  ctx: ReadContext,
  { bytes }: { readonly bytes: boolean },
): Promise<ComparedPictures> {
  const pictures = await countRows(ctx.db.selectFrom('media'));
  const { dir } = ctx.config.media;
  const unusable = pictures === 0 ? null : await folderFault(dir);
  if (unusable !== null)
    return {
      pictures,
      lacking: pictures,
      faults: [`${pictures} pictures are stored, and ${unusable}`],
    };
  const store = createPictureStore(dir);
  const faults: string[] = [];
  let lacking = 0;
  for await (const rows of files(ctx))
    for (const row of rows) {
      const fault = await faultOf(store, row, bytes).catch((error: unknown) => {
        if (errorCode(error) !== 'EACCES') throw error;
        return unreadable;
      });
      if (fault === null) continue;
      if (++lacking <= mostNamed)
        faults.push(`picture ${row.name} of '${row.agent}' (${row.sha256}): ${fault}`);
    }
  if (lacking > mostNamed) faults.push(`and ${lacking - mostNamed} more pictures without their whole file`);
  return { pictures, lacking, faults };
}

const unreadable = 'its file may not be read by this user';

/** What is wrong with the file of a picture, or null. Rejects where it may not be read. */
async function faultOf(
  store: PictureStore,
  { sha256, bytes }: FileRow,
  all: boolean,
): Promise<string | null> {
  const length = await store.lengthOf(sha256);
  if (length === null) return 'its file is missing';
  if (length !== bytes) return `its file has ${length} bytes instead of ${bytes}`;
  await store.requireReadable(sha256);
  return all && (await store.hashOf(sha256)) !== sha256 ? 'its file has other bytes' : null;
}

/** Why the folder of pictures cannot be compared with the rows; null where it can. */
async function folderFault(dir: string): Promise<string | null> {
  const advice = 'set it to the folder with their files, or to the copy of it';
  if (dir === '') return `MEDIA_DIR is not set: ${advice}`;
  try {
    const entries = await readdir(dir);
    if (entries.some((name) => /^[0-9a-f]{2}$/.test(name))) return null;
    return `MEDIA_DIR (${dir}) ${entries.length === 0 ? 'is empty' : 'holds none of their files'}: ${advice}`;
  } catch (error) {
    return `MEDIA_DIR cannot be read (${errorMessage(error)}): ${advice}`;
  }
}

type FileRow = { sha256: string; bytes: number; name: string; agent: string | null };

/** Every picture, in the order of the files. */
async function* files({ db }: ReadContext): AsyncGenerator<FileRow[]> {
  const all = db
    .selectFrom('media')
    .innerJoin('agents', 'agents.id', 'media.agent_id')
    .select(['media.id', 'media.sha256', 'media.bytes', 'media.name', 'agents.slug as agent'])
    .orderBy('media.id')
    .limit(rowsAtOnce);
  for (let after = ''; ;) {
    const rows = await all.where('media.id', '>', after).execute();
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsAtOnce) return;
    after = last.id;
  }
}

/** Pictures without a file, files without a picture, and the room of their disk. */
export async function examinePictures(ctx: ReadContext): Promise<Finding> {
  const what = 'pictures';
  const { dir } = ctx.config.media;
  const { pictures, lacking, faults } = await comparePictures(ctx, { bytes: false });
  const folder = dir === '' ? '/var/lib/masthead/media' : dir;
  if (lacking > 0)
    return {
      what,
      state: 'wrong',
      detail: `${lacking} of ${pictures} lack their file: ${faults.join('; ')}`,
      // A file never changes, so that one which was cut off is replaced too.
      mend: faults.some((fault) => fault.endsWith(unreadable) || fault.includes('EACCES'))
        ? `chmod --recursive u+rwX '${folder}'`
        : `cp --archive /backup/media/COPY/. '${folder}/'`,
    };
  if (dir === '') return { what, state: 'ok', detail: 'none is stored, and MEDIA_DIR is not set here' };
  const room = await statfs(dir).catch(() => null);
  // The service makes it when it starts.
  if (room === null) return { what, state: 'ok', detail: `none is stored, and there is no ${dir} yet` };
  const free = room.bavail * room.bsize;
  let unknown = 0;
  for await (const hashes of createPictureStore(dir).all())
    unknown += (await unknownFiles(ctx, hashes)).length;
  const detail = `${pictures} have their files in ${dir}, where ${Math.floor(free / 1024 ** 2)} MiB are free`;
  if (free < littleSpace)
    return {
      what,
      state: 'look',
      detail,
      mend: `du -xh --max-depth=1 '${dir}' | sort -h | tail; df -h '${dir}'`,
    };
  if (unknown === 0) return { what, state: 'ok', detail };
  return {
    what,
    state: 'look',
    detail: `${detail}; ${unknown} files belong to no picture: a running service removes them after a day`,
    mend: `find '${dir}' -type f -mtime +2 | head`,
  };
}
