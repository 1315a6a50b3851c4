import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { StartError } from '../../../src/rules/failure.ts';
import { MastheadError, type Media, type MastheadClient, type PictureType } from '../index.ts';
import { reasonOf } from './documents.ts';

/** A picture on this machine. */
export type PictureFile = {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: PictureType;
  readonly sha256: string;
};

/** Milliseconds that one upload may take: 10 MiB over a slow line. */
export const uploadTimeout = 300_000;

/** Reads a file, whose first bytes say what it is. Throws StartError, which does not name it. */
export async function readPicture(path: string): Promise<PictureFile> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw new StartError(reasonOf(error));
  });
  const type = typeOf(bytes);
  if (type !== null) return { bytes, type, sha256: createHash('sha256').update(bytes).digest('hex') };
  const isSvg = /\.svgz?$/i.test(path) || /<svg[\s>]/i.test(bytes.subarray(0, 1000).toString('latin1'));
  throw new StartError(
    bytes.length === 0
      ? 'is empty'
      : `is not a JPEG, PNG, GIF or WebP: ${isSvg ? 'convert it to PNG' : 'its first bytes say so, whatever its name'}`,
  );
}

function typeOf(bytes: Buffer): PictureType | null {
  const start = bytes.toString('latin1', 0, 12);
  if (start.startsWith('\xFF\xD8\xFF')) return 'image/jpeg';
  if (start.startsWith('\x89PNG\r\n\x1A\n')) return 'image/png';
  if (/^GIF8[79]a/.test(start)) return 'image/gif';
  return /^RIFF[^]{4}WEBP/.test(start) ? 'image/webp' : null;
}

/** Throws StartError where the service stores no pictures. */
export async function checkStoresPictures(client: MastheadClient): Promise<void> {
  const capabilities = await client.about().then(
    (about) => about.capabilities,
    (error: unknown): string[] => {
      // A service of 0.1 has no such call.
      if (error instanceof MastheadError && error.status === 404) return [];
      throw error;
    },
  );
  if (!capabilities.includes('media'))
    throw new StartError("This service stores no pictures: it lacks the capability 'media'.");
}

/** The agent's own pictures, newest first. */
export async function* picturesOf(client: MastheadClient, unused?: boolean): AsyncGenerator<Media> {
  let cursor: string | undefined;
  do {
    const { media, nextCursor } = await client.listMedia({ unused, limit: 100, cursor });
    yield* media;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
}
