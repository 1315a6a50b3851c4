import { randomBytes } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';

const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

/** A whole PNG of noise, which no compression makes smaller; `text` is a comment in it. */
export function makePng({ width = 8, height = 8, text = '' } = {}): Buffer<ArrayBuffer> {
  const rows = Array.from({ length: height }, () => Buffer.concat([Buffer.alloc(1), randomBytes(3 * width)]));
  const comment = text === '' ? [] : [chunk('tEXt', Buffer.from(`Comment\0${text}`, 'latin1'))];
  return pngOf({ width, height }, deflateSync(Buffer.concat(rows), { level: 0 }), comment);
}

/** A PNG of about so many bytes. */
export function makeLargePng(bytes: number): Buffer<ArrayBuffer> {
  const width = 1_000;
  return makePng({ width, height: Math.max(1, Math.floor(bytes / (3 * width + 2))) });
}

/** A whole PNG that goes from one colour to another. */
export function gradientPng(width: number, height: number): Buffer<ArrayBuffer> {
  const at = (x: number, y: number) => [(x * 255) / width, 90 + (y * 100) / height, 200 - (x * 150) / width];
  const rows = Array.from({ length: height }, (_, y) =>
    Buffer.from([0, ...Array.from({ length: width }, (_value, x) => at(x, y)).flat()]),
  );
  return pngOf({ width, height }, deflateSync(Buffer.concat(rows)));
}

function pngOf(
  { width, height }: { readonly width: number; readonly height: number },
  data: Buffer,
  between: readonly Buffer[] = [],
): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // 8 bits of each of red, green and blue.
  header.set([8, 2], 8);
  const chunks = [chunk('IHDR', header), ...between, chunk('IDAT', data), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  framed.set(body, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
