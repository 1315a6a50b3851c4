import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import { StartError } from '../../../src/rules/failure.ts';
import { lineFault, sliceCodePoints } from '../../../src/rules/text.ts';
import { longestAlt, pictureName, picturePath } from '../../../src/rules/media/media-names.ts';
import { MastheadError, type ErrorCode, type MastheadClient } from '../index.ts';
import { shown } from '../terminal/format.ts';
import { findPictures, type PictureMention } from './picture-scan.ts';
import { checkStoresPictures, readPicture, uploadTimeout, type PictureFile } from './pictures.ts';

/** A picture on this machine that a document shows. */
export type LocalPicture = PictureMention & { readonly file: string } & Pick<PictureFile, 'type' | 'sha256'>;

/**
 * The pictures on this machine that the document at `path` shows; null is standard input, which has no folder. Throws
 * StartError for one that is missing, is none, or is out of the folder of the document, which `allowsOutside` allows.
 */
export async function localPictures(
  source: string,
  path: string | null,
  allowsOutside: boolean,
): Promise<LocalPicture[]> {
  if (path === null) return [];
  const folder = dirname(path);
  const found: LocalPicture[] = [];
  for (const mention of findPictures(source)) {
    const { target, line } = mention;
    if (/^(?:[a-z][a-z\d+.-]+:|\/\/|[#?]|$)/i.test(target)) continue;
    const file = await fileNamed(folder, target);
    const isHosted = /^(?:\.\/)?media\//.test(target);
    if (file === null && isHosted) continue;
    const fault = (what: string) => new StartError(`line ${line}: the picture ${shown(target)} ${what}`);
    if (file === null) throw fault('does not exist');
    const way = relative(folder, file);
    if (!allowsOutside && (isAbsolute(way) || /^\.\.(?:[\\/]|$)/.test(way)))
      throw fault('is outside the folder of the file: --allow-outside uploads it all the same');
    const { type, sha256 } = await readPicture(file).catch((error: unknown) => {
      throw error instanceof StartError ? fault(error.message) : error;
    });
    found.push({ ...mention, file, type, sha256 });
  }
  return found;
}

/** The file that an address names, without symbolic links; null where there is none. */
async function fileNamed(folder: string, target: string): Promise<string | null> {
  const bare = target.replace(/[?#].*$/s, '');
  for (const name of new Set([target, decoded(target), bare, decoded(bare)])) {
    if (name === '' || name.includes('\0')) continue;
    const file = await realpath(resolve(folder, name)).catch(() => null);
    if (file !== null) return file;
  }
  return null;
}

function decoded(address: string): string {
  try {
    return decodeURIComponent(address);
  } catch {
    return address;
  }
}

/** A document with other addresses for its pictures: by default made of the files, which tell one state from another. */
export function withPictures(
  source: string,
  pictures: readonly LocalPicture[],
  names: ReadonlyMap<string, string> = new Map(),
): string {
  let [text, at] = ['', 0];
  for (const { start, end, sha256, type } of pictures) {
    text += source.slice(at, start) + picturePath(names.get(sha256) ?? pictureName(sha256, type));
    at = end;
  }
  return text + source.slice(at);
}

/** What the document says first of a picture, as far as it can be stored with it; the document stays as it is. */
function wordsFor(sha256: string, pictures: readonly LocalPicture[]): string | undefined {
  const said = pictures.find((each) => each.sha256 === sha256 && each.alt !== '')?.alt ?? '';
  return said === '' || lineFault(said) !== null ? undefined : sliceCodePoints(said, 0, longestAlt);
}

/** Refusals of the picture, and not of the caller. */
const ofPicture: readonly (ErrorCode | 'unknown')[] = [
  'invalid_media',
  'blocked_media',
  'too_large',
  'unsupported_media_type',
  'invalid_input',
];

/** Finds out what the service calls pictures, and uploads those that it lacks. */
export function createPictureStore(client: MastheadClient, { isDry }: { readonly isDry: boolean }) {
  const names = new Map<string, string>();
  let isChecked = false;
  return {
    /** Names by the SHA-256 of the file. */
    names: names as ReadonlyMap<string, string>,
    /** Returns the addresses, as written, of those that were uploaded, or would be. Throws StartError. */
    async store(pictures: readonly LocalPicture[]): Promise<string[]> {
      const uploaded = new Map<string, string>();
      for (const { sha256, file, target, line } of pictures) {
        if (names.has(sha256) || uploaded.has(sha256)) continue;
        if (!isChecked) await checkStoresPictures(client);
        isChecked = true;
        const { media } = await client.listMedia({ sha256, limit: 1 });
        if (media[0] !== undefined) {
          names.set(sha256, media[0].name);
          continue;
        }
        uploaded.set(sha256, target);
        if (isDry) continue;
        const { bytes, type } = await readPicture(file);
        const options = { type, timeout: uploadTimeout, alt: wordsFor(sha256, pictures) };
        const answer = await client.uploadMedia(bytes, options).catch((error: unknown) => {
          if (!(error instanceof MastheadError) || !ofPicture.includes(error.code)) throw error;
          throw new StartError(`line ${line}: the picture ${shown(target)}: ${error.detail}`);
        });
        names.set(sha256, answer.media.name);
      }
      return [...uploaded.values()];
    },
  };
}
