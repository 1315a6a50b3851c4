import { ByteReader } from './byte-reader.ts';
import { readGif } from './gif.ts';
import { readJpeg } from './jpeg.ts';
import {
  PictureError,
  removables,
  type Contents,
  type Picture,
  type PictureBytes,
  type PictureType,
} from './picture.ts';
import { Plan } from './plan.ts';
import { readPng } from './png.ts';
import { readWebp } from './webp.ts';

type Format = {
  readonly name: string;
  /** What a whole file ends with. */
  readonly end: string;
  readonly begins: (head: string) => boolean;
  readonly read: (reader: ByteReader, plan: Plan) => Promise<Contents>;
};

const formats: Readonly<Record<PictureType, Format>> = {
  'image/jpeg': {
    name: 'JPEG',
    end: 'end marker (EOI)',
    begins: (head) => head.startsWith('\xff\xd8\xff'),
    read: readJpeg,
  },
  'image/png': {
    name: 'PNG',
    end: 'last chunk (IEND)',
    begins: (head) => head.startsWith('\x89PNG\r\n\x1a\n'),
    read: readPng,
  },
  'image/gif': {
    name: 'GIF',
    end: 'trailer (byte 3B)',
    begins: (head) => head.startsWith('GIF87a') || head.startsWith('GIF89a'),
    read: readGif,
  },
  'image/webp': {
    name: 'WebP',
    end: 'last chunk',
    begins: (head) => head.startsWith('RIFF') && head.startsWith('WEBP', 8),
    read: readWebp,
  },
};

/**
 * Recognises a picture by its first bytes, verifies that it is whole, and writes what is to be stored of it through
 * `write`, in order: the picture as it was, without what says where and by whom it was made, and without what follows
 * its end. Nothing is decoded. What it has written once, it leaves as it is the next time. Throws PictureError, and
 * then has written nothing.
 */
export async function cleanPicture(
  source: PictureBytes,
  declared: string,
  write: (bytes: Buffer) => Promise<void>,
): Promise<Picture> {
  const type = recognise((await source.read(0, Math.min(source.size, 256))).toString('latin1'), declared);
  const { name, end, read } = formats[type];
  const reader = new ByteReader(source, name, end);
  const plan = new Plan();
  const contents = await read(reader, plan);
  if (reader.position < source.size) plan.removed.add('trailer');
  await plan.write(source, write);
  return { type, ...contents, removed: removables.filter((word) => plan.removed.has(word)) };
}

function recognise(head: string, declared: string): PictureType {
  const wanted = declared.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const type = (Object.keys(formats) as PictureType[]).find((each) => formats[each].begins(head));
  if (type !== undefined && type === wanted) return type;
  if (type !== undefined)
    throw new PictureError(
      'unsupported',
      `The bytes are ${type}, but were sent as ${wanted === '' ? 'nothing' : JSON.stringify(wanted.slice(0, 80))}. Send them as ${type}.`,
    );
  if (head === '')
    throw new PictureError('unsupported', `There are no bytes. Send those of a file: ${accepted}.`);
  const svg = wanted === 'image/svg+xml' || /<svg[\s>]/i.test(head);
  throw new PictureError(
    'unsupported',
    svg
      ? `SVG is not accepted: convert it to PNG. ${accepted}.`
      : `These are not the bytes of a picture that is accepted. ${accepted}.`,
  );
}

const accepted = `Accepted are ${Object.keys(formats)
  .join(', ')
  .replace(/, (?=[^,]*$)/, ' and ')}`;
