import { promisify } from 'node:util';
import { crc32, deflate } from 'node:zlib';
import { hueOf, hues } from './hue.ts';
import { ornamentCells, type Cell } from './avatar.ts';

/** Size of a preview picture, in pixels. */
const cardSize = { width: 1200, height: 630 } as const;

/** Pixels of one unit of the mark, which is 8 × 8 units. */
const unit = 56;
const shades = 16;
const paper = '#fbfaf6';

/**
 * The picture that stands for a blog where its address is shared: its mark on its hue, without text. PNG of 16
 * colours (https://www.w3.org/TR/png-3/), 1200 × 630.
 */
export async function cardPng(agentSlug: string): Promise<Buffer> {
  const { width, height } = cardSize;
  const pixels = new Uint8Array(width * height);
  const [left, top] = [(width - 8 * unit) / 2, (height - 8 * unit) / 2];
  for (const cell of ornamentCells(agentSlug)) drawCell(pixels, cell, left, top);
  const rows = Buffer.alloc((1 + width / 2) * height);
  for (let y = 0, at = 0; y < height; y++) {
    at++; // Each row begins with its filter, 0 for none.
    for (let x = 0; x < width; x += 2)
      rows[at++] = ((pixels[y * width + x] ?? 0) << 4) | (pixels[y * width + x + 1] ?? 0);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([4, 3, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('PLTE', palette(hues[hueOf(agentSlug)]?.light ?? paper)),
    chunk('IDAT', await promisify(deflate)(rows, { level: 4 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function drawCell(pixels: Uint8Array, cell: Cell, left: number, top: number): void {
  const side = 2 * unit;
  const coverage = coverageOf(cell);
  for (let y = 0; y < side; y++) {
    const row = (top + cell.y * unit + y) * cardSize.width + left + cell.x * unit;
    pixels.set(coverage.subarray(y * side, (y + 1) * side), row);
  }
}

/** How much of each pixel a shape covers, by shape: there are six, whatever the blog. */
const coverages = new Map<string, Uint8Array>();

function coverageOf(cell: Cell): Uint8Array {
  const side = 2 * unit;
  const name = `${cell.shape} ${cell.cornerX} ${cell.cornerY}`;
  let coverage = coverages.get(name);
  if (coverage === undefined) {
    coverage = new Uint8Array(side * side);
    for (let at = 0; at < coverage.length; at++)
      coverage[at] = shadeAt(cell, at % side, Math.floor(at / side));
    coverages.set(name, coverage);
  }
  return coverage;
}

/** 4 × 4 samples of a pixel, as one of the shades. */
function shadeAt({ shape, cornerX, cornerY }: Cell, x: number, y: number): number {
  let inside = 0;
  for (let sample = 0; sample < 16; sample++) {
    const [px, py] = [(x + ((sample & 3) + 0.5) / 4) / unit, (y + ((sample >> 2) + 0.5) / 4) / unit];
    const distance =
      shape === 'disc' ? 2 * Math.hypot(px - 1, py - 1) : Math.hypot(px - 2 * cornerX, py - 2 * cornerY);
    if (shape === 'square' || distance <= 2) inside++;
  }
  return Math.min(shades - 1, inside);
}

/** Colours from the hue to paper. */
function palette(hue: string): Buffer {
  const channels = (hex: string) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
  const [from, to] = [channels(hue), channels(paper)];
  return Buffer.from(
    Array.from({ length: shades }, (_, shade) =>
      from.map((channel, at) => Math.round(channel + (((to[at] ?? 0) - channel) * shade) / (shades - 1))),
    ).flat(),
  );
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const result = Buffer.alloc(named.length + 8);
  result.writeUInt32BE(data.length, 0);
  named.copy(result, 4);
  result.writeUInt32BE(crc32(named), named.length + 4);
  return result;
}
