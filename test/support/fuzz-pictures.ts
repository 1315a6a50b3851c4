import { crc32 } from 'node:zlib';
import { PictureError } from '../../src/media/formats/picture.ts';
import * as p from './pictures.ts';
import { randomFrom } from './random.ts';

/** Small pictures of all formats with everything that is kept or taken out. */
const pictures: readonly (readonly [type: string, bytes: Buffer])[] = [
  [
    'image/jpeg',
    p.jpeg([
      p.segment(0xe0, 'JFIF\0\x01\x02\0\0\x01\0\x01\0\0'),
      p.segment(0xe1, 'Exif\0\0', p.tiff(6, 'II')),
      p.segment(0xe1, 'http://ns.adobe.com/xap/1.0/\0', p.xmp()),
      p.segment(0xe2, 'ICC_PROFILE\0\x01\x01', 'profile'),
      p.segment(0xee, 'Adobe\0\x64\0\0\0\0\x02'),
      p.segment(0xfe, 'comment'),
    ]),
  ],
  ['image/png', p.png([p.chunk('iCCP', 'a\0\0b'), p.chunk('eXIf', p.tiff(8))], [p.chunk('tEXt', 'a\0b')])],
  ['image/png', p.apng(3, [p.chunk('iTXt', 'XML:com.adobe.xmp\0\0\0\0\0', p.xmp())])],
  ['image/gif', p.gif(3, [p.loopForever, p.extension(0xf9, '\0\0\0\0'), p.extension(0xfe, 'comment')])],
  ['image/webp', p.webp(p.vp8)],
  [
    'image/webp',
    p.webp(p.vp8x(0x1c), p.riff('ALPH', 'x'), p.vp8, p.riff('EXIF', p.tiff(3)), p.riff('XMP ', p.xmp())),
  ],
  ['image/webp', p.webp(p.vp8x(0x22), p.riff('ICCP', 'odd'), p.anim, p.anmf(p.vp8), p.anmf(p.vp8l))],
];

/** How many mutated files of each type were accepted, and refused. */
export type FuzzedPictures = Map<string, { accepted: number; refused: number }>;

/**
 * Cleans so many mutated pictures. Rejects with the file (base64) at the first that fails with anything but
 * PictureError, or whose result is not left as it is when it is cleaned again.
 */
export async function fuzzPictures(count: number, seed: number): Promise<FuzzedPictures> {
  const below = randomFrom(seed);
  const counts: FuzzedPictures = new Map();
  for (let index = 0; index < count; index++) {
    const [type, bytes] = pictures[index % pictures.length] ?? ['', Buffer.alloc(0)];
    const mutated = mutate(bytes, below);
    if (type === 'image/png' && below(8) > 0) mendChecksums(mutated);
    const seen = counts.get(type) ?? { accepted: 0, refused: 0 };
    counts.set(type, seen);
    try {
      const result = await p.clean(mutated, type);
      seen.accepted++;
      const again = await p.clean(result.bytes, type);
      if (again.removed.length > 0 || !again.bytes.equals(result.bytes))
        throw new Error('cleaning again changes it');
    } catch (error) {
      if (!(error instanceof PictureError) || error.message === '')
        throw new Error(`${type} ${mutated.toString('base64')}`, { cause: error });
      seen.refused++;
    }
  }
  return counts;
}

/** A copy with one to four changes: bits and bytes, lengths, and parts left out, doubled, or of another picture. */
function mutate(original: Buffer, below: (limit: number) => number): Buffer {
  let bytes: Buffer = Buffer.from(original);
  for (let changes = 1 + below(4); changes > 0; changes--) {
    const at = below(bytes.length);
    const end = Math.min(bytes.length, at + 1 + below(below(4) === 0 ? bytes.length : 16));
    const values = [0, 1, 2, 4, 8, 0x21, 0x2c, 0x3b, 0x7f, 0x80, 0xd8, 0xd9, 0xda, 0xfe, 0xff, below(256)];
    const [, other] = pictures[below(pictures.length)] ?? ['', bytes];
    const from = below(other.length);
    const parts = [
      () => bytes.fill(values[below(values.length)] ?? 0, at, at + 1),
      () => bytes.fill((bytes[at] ?? 0) ^ (1 << below(8)), at, at + 1),
      () => bytes.fill((bytes[at] ?? 0) + below(5) - 2, at, at + 1),
      () => bytes.fill(values[below(values.length)] ?? 0, at, end),
      () => bytes.subarray(0, Math.max(12, at)),
      () => Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]),
      () => Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]),
      () => Buffer.concat([bytes.subarray(0, at), other.subarray(from, from + 64), bytes.subarray(end)]),
    ];
    bytes = parts[below(parts.length)]?.() ?? bytes;
    if (bytes.length === 0) return Buffer.from(original);
  }
  return bytes;
}

/** Puts right the CRC of each chunk, so that a mutated PNG is read further than that. */
function mendChecksums(png: Buffer): void {
  for (let at = 8; at + 12 <= png.length;) {
    const end = at + 8 + png.readUInt32BE(at);
    if (end + 4 > png.length) return;
    png.writeUInt32BE(crc32(png.subarray(at + 4, end)), end);
    at = end + 4;
  }
}
