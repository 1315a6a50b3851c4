import { crc32 } from 'node:zlib';
import { pieceSize, type ByteReader } from './byte-reader.ts';
import { digitalSourceTypeOf } from './digital-source-type.ts';
import { orientationOf, orientationTiff, turned } from './orientation.ts';
import { checkFrames, checkSize, type Contents, type Removable } from './picture.ts';
import type { Plan } from './plan.ts';

/** Length, type and CRC of a chunk. */
const frame = 12;
/**
 * What the colours and the size of the picture depend on, with the most bytes that each may have: in longer ones
 * something else is hidden. These have their place before the first IDAT.
 */
const kept: Readonly<Record<string, number>> = {
  PLTE: 768,
  tRNS: 256,
  gAMA: 4,
  cHRM: 32,
  sRGB: 1,
  iCCP: Infinity,
  sBIT: 4,
  bKGD: 6,
  hIST: 512,
  pHYs: 9,
  cICP: 4,
  mDCV: 24,
  mDCv: 24,
  cLLI: 8,
  cLLi: 8,
};
const words: Readonly<Record<string, Removable>> = {
  tEXt: 'text',
  zTXt: 'text',
  iTXt: 'text',
  tIME: 'time',
  eXIf: 'exif',
  caBX: 'c2pa',
};
const xmpKeyword = 'XML:com.adobe.xmp\0';
/** The allowed bits a sample by colour type. */
const depths: Readonly<Record<number, readonly number[]>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16],
};

type Chunk = {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  /** The first piece of its data: all of it, unless it is larger than a piece. */
  readonly data: Buffer;
};

type State = {
  readonly width: number;
  readonly height: number;
  readonly needsPalette: boolean;
  previous: string;
  hasPalette: boolean;
  hasImage: boolean;
  /** Frames by acTL, or null for a picture that stands still; those found, and whether the last one has data. */
  frames: number | null;
  found: number;
  open: boolean;
  sequence: number;
  hasExif: boolean;
  orientation: number;
  digitalSourceType: string | null;
};

/** Reads a PNG or APNG chunk by chunk to IEND (https://www.w3.org/TR/png-3/). */
export async function readPng(reader: ByteReader, plan: Plan): Promise<Contents> {
  reader.skip(8);
  const state = readHeader(await readChunk(reader), reader);
  plan.keep(0, reader.position);
  for (;;) {
    const chunk = await readChunk(reader);
    if (chunk.type === 'IEND') {
      checkEnd(chunk, state, reader);
      plan.keep(chunk.start, chunk.end);
      const { width, height } = turned(state.width, state.height, state.orientation);
      const animated = (state.frames ?? 1) > 1;
      return { width, height, animated, digitalSourceType: state.digitalSourceType };
    }
    if (isKept(chunk, state, reader)) plan.keep(chunk.start, chunk.end);
    else if (chunk.type === 'eXIf') keepOrientation(chunk, state, plan);
    else {
      const isXmp =
        chunk.type === 'iTXt' && chunk.data.toString('latin1', 0, xmpKeyword.length) === xmpKeyword;
      // A compressed one is not inflated.
      if (isXmp && chunk.data[xmpKeyword.length] === 0)
        state.digitalSourceType ??= digitalSourceTypeOf(chunk.data);
      plan.removed.add(isXmp ? 'xmp' : (words[chunk.type] ?? 'other'));
    }
    state.previous = chunk.type;
  }
}

/** Reads a chunk, holds its CRC against it, and goes past it. */
async function readChunk(reader: ByteReader): Promise<Chunk> {
  const start = reader.beginPart();
  if (reader.lacks(8)) await reader.load(8);
  const length = reader.piece.readUInt32BE(reader.at);
  const type = reader.piece.toString('latin1', reader.at + 4, reader.at + 8);
  if (!/^[A-Za-z]{4}$/.test(type)) throw reader.fault(start, 'the type of a chunk is not of four letters');
  const end = start + frame + length;
  if (end > reader.size)
    throw reader.fault(
      start,
      `chunk ${type} is of ${length} bytes, more than follow; the file may be cut off`,
    );
  reader.skip(4);
  const head = await reader.peek(Math.min(length + 4, pieceSize));
  let crc = 0;
  for (let left = length + 4; left > 0;) {
    if (reader.lacks(1)) await reader.load(1);
    const part = reader.piece.subarray(reader.at, reader.at + left);
    crc = crc32(part, crc);
    reader.skip(part.length);
    left -= part.length;
  }
  if (reader.lacks(4)) await reader.load(4);
  if (reader.piece.readUInt32BE(reader.at) !== crc)
    throw reader.fault(start, `the CRC of chunk ${type} is wrong`);
  reader.skip(4);
  return { type, start, end, data: head.subarray(4) };
}

function readHeader({ type, start, data }: Chunk, reader: ByteReader): State {
  if (type !== 'IHDR' || data.length !== 13)
    throw reader.fault(start, 'its first chunk is not an IHDR of 13 bytes');
  const [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)];
  const [depth = 0, colour = 0, compression = 0, filter = 0, interlace = 0] = data.subarray(8);
  if (!depths[colour]?.includes(depth) || compression !== 0 || filter !== 0 || interlace > 1)
    throw reader.fault(start, 'its IHDR names a kind of PNG that does not exist');
  checkSize(width, height);
  return {
    width,
    height,
    needsPalette: colour === 3,
    previous: type,
    hasPalette: false,
    hasImage: false,
    frames: null,
    found: 0,
    open: false,
    sequence: 0,
    hasExif: false,
    orientation: 1,
    digitalSourceType: null,
  };
}

/** Whether a chunk is part of the picture as it is shown. Throws PictureError for one that cannot be where it is. */
function isKept(chunk: Chunk, state: State, reader: ByteReader): boolean {
  const { type, start, end, data } = chunk;
  if (type === 'IDAT') {
    if (state.hasImage && state.previous !== type)
      throw reader.fault(start, 'another chunk stands between its IDAT chunks');
    if (state.needsPalette && !state.hasPalette)
      throw reader.fault(start, 'it needs a palette (PLTE) and has none');
    state.hasImage = true;
    state.open = false;
    return true;
  }
  if (type === 'acTL') return readAnimation(chunk, state, reader);
  if (type === 'fcTL' || type === 'fdAT') {
    // Without acTL before the image they mean nothing.
    if (state.frames !== null) readFrame(chunk, state, reader);
    return state.frames !== null;
  }
  if (type === 'PLTE') {
    if (state.hasPalette || state.hasImage || data.length > 768 || data.length % 3 !== 0 || data.length === 0)
      throw reader.fault(start, 'its palette (PLTE) stands in the wrong place or is of a wrong length');
    state.hasPalette = true;
  }
  // The case of its first letter says whether a picture can be shown without a chunk.
  const most = kept[type];
  if (most === undefined && /^[A-Z]/.test(type))
    throw reader.fault(start, `chunk ${type} has no place there`);
  return most !== undefined && end - start - frame <= most && !state.hasImage;
}

function readAnimation({ start, data }: Chunk, state: State, reader: ByteReader): boolean {
  if (state.hasImage || state.frames !== null) return false;
  state.frames = data.length === 8 ? data.readUInt32BE(0) : 0;
  if (state.frames === 0) throw reader.fault(start, 'its chunk acTL names no frames');
  checkFrames(state.frames);
  return true;
}

/** The control chunk or a piece of the data of a frame, which are numbered in one sequence. */
function readFrame({ type, start, data }: Chunk, state: State, reader: ByteReader): void {
  if (data.length < 4 || data.readUInt32BE(0) !== state.sequence)
    throw reader.fault(start, `the sequence number of chunk ${type} should be ${state.sequence}`);
  state.sequence++;
  if (type === 'fdAT') {
    if (!state.hasImage || state.found === 0) throw reader.fault(start, 'chunk fdAT belongs to no frame');
    state.open = false;
    return;
  }
  if (data.length !== 26 || state.open) throw reader.fault(start, 'a frame of the animation has no data');
  const [width, height] = [data.readUInt32BE(4), data.readUInt32BE(8)];
  const [right, bottom] = [data.readUInt32BE(12) + width, data.readUInt32BE(16) + height];
  if (width === 0 || height === 0 || right > state.width || bottom > state.height)
    throw reader.fault(start, 'a frame of the animation is empty or reaches over its edge');
  state.found++;
  state.open = true;
}

function checkEnd({ start, data }: Chunk, state: State, reader: ByteReader): void {
  if (data.length > 0) throw reader.fault(start, 'its last chunk (IEND) is not empty');
  if (!state.hasImage) throw reader.fault(start, 'it ends before its image (IDAT)');
  if (state.frames !== null && (state.found !== state.frames || state.open))
    throw reader.fault(
      start,
      `its animation is of ${state.frames} frames, of which ${state.found} are there`,
    );
}

/** Stores the orientation of the first EXIF where that stands; behind the image, browsers do not turn it. */
function keepOrientation({ start, end, data }: Chunk, state: State, plan: Plan): void {
  const orientation = state.hasExif ? 1 : orientationOf(data);
  state.hasExif = true;
  const tiff = orientationTiff(orientation);
  if (orientation !== 1 && tiff.equals(data)) plan.keep(start, end);
  else {
    if (orientation !== 1) plan.put(chunkOf('eXIf', tiff));
    plan.removed.add('exif');
  }
  if (!state.hasImage) state.orientation = orientation;
}

function chunkOf(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(frame + data.length);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write(type, 4, 'latin1');
  data.copy(chunk, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}
