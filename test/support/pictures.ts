import { crc32, deflateSync } from 'node:zlib';
import { cleanPicture } from '../../src/media/formats/clean-picture.ts';
import type { Picture, PictureBytes } from '../../src/media/formats/picture.ts';

/** Bytes in memory as an uploaded file: what is read has memory of its own, which may be freed. */
export function pictureBytes(bytes: Buffer): PictureBytes {
  const read = async (at: number, length: number) => {
    const part = bytes.subarray(at, at + length);
    const own = Buffer.allocUnsafeSlow(part.length);
    part.copy(own);
    return own;
  };
  return { size: bytes.length, read };
}

/** A picture cleaned, with the bytes that are to be stored. Rejects with PictureError. */
export async function clean(bytes: Buffer, declared: string): Promise<Picture & { bytes: Buffer }> {
  const written: Buffer[] = [];
  const picture = await cleanPicture(pictureBytes(bytes), declared, (piece) => {
    written.push(Buffer.from(piece));
    return Promise.resolve();
  });
  return { ...picture, bytes: Buffer.concat(written) };
}

const u16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const u16le = (value: number) => Buffer.from([value & 255, value >> 8]);
const u24le = (value: number) => Buffer.from([value & 255, (value >> 8) & 255, value >> 16]);

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function u32le(value: number): Buffer {
  return Buffer.from(u32(value).toReversed());
}

/** EXIF as TIFF with an orientation, and with a maker beside it if it is to be taken out. */
export function tiff(orientation: number, order: 'II' | 'MM' = 'MM', maker = 'Secret & Co'): Buffer {
  const n16 = (value: number) => (order === 'II' ? u16le(value) : u16(value));
  const n32 = (value: number) => (order === 'II' ? u32le(value) : u32(value));
  const text = Buffer.from(`${maker}\0`);
  return Buffer.concat([
    Buffer.from(order),
    n16(42),
    n32(8),
    n16(2),
    n16(0x010f),
    n16(2),
    n32(text.length),
    n32(38),
    n16(0x0112),
    n16(3),
    n32(1),
    n16(orientation),
    n16(0),
    n32(0),
    text,
  ]);
}

/** XMP that states a digital source type. */
export function xmp(term = 'trainedAlgorithmicMedia'): string {
  return `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" Iptc4xmpExt:DigitalSourceType="http://cv.iptc.org/newscodes/digitalsourcetype/${term}"/></rdf:RDF></x:xmpmeta>`;
}

/** A segment of a JPEG. */
export function segment(marker: number, ...data: (Buffer | string)[]): Buffer {
  const bytes = Buffer.concat(
    data.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
  );
  return Buffer.concat([Buffer.from([0xff, marker]), u16(bytes.length + 2), bytes]);
}

/** A grey JPEG with these segments before its tables. */
export function jpeg(segments: readonly Buffer[] = [], width = 8, height = 8): Buffer {
  const blocks = Math.ceil(width / 8) * Math.ceil(height / 8);
  const code = (table: number) =>
    segment(0xc4, Buffer.from([table, 1, ...Array.from({ length: 15 }, () => 0), 0]));
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    ...segments,
    segment(0xdb, Buffer.from([0, ...Array.from({ length: 64 }, () => 1)])),
    segment(0xc0, Buffer.from([8]), u16(height), u16(width), Buffer.from([1, 1, 0x11, 0])),
    code(0x00),
    code(0x10),
    segment(0xda, Buffer.from([1, 1, 0, 0, 63, 0])),
    // Two bits of 0 a block: no difference, end of block.
    Buffer.alloc(Math.ceil(blocks / 4)),
    Buffer.from([0xff, 0xd9]),
  ]);
}

/** A chunk of a PNG. */
export function chunk(type: string, ...data: (Buffer | string)[]): Buffer {
  const bytes = Buffer.concat(
    [type, ...data].map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
  );
  return Buffer.concat([u32(bytes.length - 4), bytes, u32(crc32(bytes))]);
}

const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

/** The image data of a grey PNG. */
export function greyRows(width: number, height: number): Buffer {
  return deflateSync(Buffer.alloc((width + 1) * height));
}

/** A grey PNG with these chunks before and behind its image. */
export function png(
  before: readonly Buffer[] = [],
  after: readonly Buffer[] = [],
  width = 8,
  height = 4,
): Buffer {
  return Buffer.concat([
    signature,
    chunk('IHDR', u32(width), u32(height), Buffer.from([8, 0, 0, 0, 0])),
    ...before,
    chunk('IDAT', greyRows(width, height)),
    ...after,
    chunk('IEND'),
  ]);
}

/** An APNG of so many frames, with these chunks between them. */
export function apng(frames: number, between: readonly Buffer[] = []): Buffer {
  const control = (sequence: number) =>
    chunk('fcTL', u32(sequence), u32(8), u32(4), u32(0), u32(0), u16(1), u16(10), Buffer.alloc(2));
  const more = Array.from({ length: frames - 1 }, (_, index) => [
    control(1 + index * 2),
    chunk('fdAT', u32(2 + index * 2), greyRows(8, 4)),
    ...between,
  ]);
  return png([chunk('acTL', u32(frames), u32(0)), control(0)], more.flat());
}

/** An extension of a GIF. */
export function extension(label: number, ...subBlocks: (Buffer | string)[]): Buffer {
  const blocks = subBlocks.map((block) => (typeof block === 'string' ? Buffer.from(block, 'latin1') : block));
  const lengths = blocks.flatMap((block) => [Buffer.from([block.length]), block]);
  return Buffer.concat([Buffer.from([0x21, label]), ...lengths, Buffer.alloc(1)]);
}

export const loopForever = extension(0xff, 'NETSCAPE2.0', Buffer.from([1, 0, 0]));

/** A GIF of so many frames of 2 × 2, with these extensions before each. */
export function gif(
  frames = 1,
  extensions: readonly Buffer[] = [],
  version = '89a',
  screen = [2, 2],
): Buffer {
  const [width = 2, height = 2] = screen;
  const image = Buffer.concat([
    Buffer.from(',\0\0\0\0\x02\0\x02\0\0\x02', 'latin1'),
    Buffer.from([3, 0x44, 0x34, 0x05, 0]),
  ]);
  return Buffer.concat([
    Buffer.from(`GIF${version}`),
    u16le(width),
    u16le(height),
    Buffer.from([0x80, 0, 0, 0, 0, 0, 255, 255, 255]),
    ...Array.from({ length: frames }, () => [...extensions, image]).flat(),
    Buffer.from(';'),
  ]);
}

/** A chunk of a WebP. */
export function riff(type: string, ...data: (Buffer | string)[]): Buffer {
  const bytes = Buffer.concat(
    data.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
  );
  return Buffer.concat([Buffer.from(type), u32le(bytes.length), bytes, Buffer.alloc(bytes.length % 2)]);
}

/** Images of 1 × 1 as `cwebp` writes them. */
export const vp8 = riff('VP8 ', Buffer.from('MAEAnQEqAQABAA7A/iWkAANwAAAAAA==', 'base64'));
export const vp8l = riff('VP8L', Buffer.from('LwAAABAHEBERiIj+Bw==', 'base64'));

/** A WebP of these chunks. */
export function webp(...chunks: readonly Buffer[]): Buffer {
  return riff('RIFF', 'WEBP', ...chunks);
}

export function vp8x(flags: number, width = 1, height = 1): Buffer {
  return riff('VP8X', Buffer.from([flags, 0, 0, 0]), u24le(width - 1), u24le(height - 1));
}

/** A frame of 1 × 1 of an animated WebP. */
export function anmf(...parts: readonly Buffer[]): Buffer {
  return riff('ANMF', Buffer.alloc(12), u24le(100), Buffer.alloc(1), ...parts);
}

export const anim = riff('ANIM', Buffer.alloc(6));
