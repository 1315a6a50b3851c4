import { pieceSize, type ByteReader } from './byte-reader.ts';
import { digitalSourceTypeOf } from './digital-source-type.ts';
import { orientationOf, orientationTiff } from './orientation.ts';
import { checkFrames, checkSize, type Contents, type Removable } from './picture.ts';
import type { Plan } from './plan.ts';

/** Flags of VP8X. */
const hasProfile = 0x20;
const hasExif = 0x08;
const hasAlpha = 0x10;
const isAnimated = 0x02;

const words: Readonly<Record<string, Removable>> = { EXIF: 'exif', 'XMP ': 'xmp', C2PA: 'c2pa' };

/** A chunk whose head has been read: where its data is, and where the next chunk begins. */
type Chunk = {
  readonly type: string;
  readonly start: number;
  readonly data: number;
  readonly length: number;
  readonly end: number;
};

type Size = { readonly width: number; readonly height: number };

/** Reads a WebP chunk by chunk to the end that its RIFF header names (RFC 9649). */
export async function readWebp(reader: ByteReader, plan: Plan): Promise<Contents> {
  const head = Buffer.from(await reader.peek(12));
  const end = 8 + head.readUInt32LE(4);
  if (end > reader.size) throw reader.cutOff();
  plan.put(head);
  reader.skip(12);
  const first = await readHead(reader, end);
  const contents =
    first.type === 'VP8X'
      ? await readExtended(reader, plan, first, end)
      : await readSimple(reader, plan, first, end);
  head.writeUInt32LE(plan.length - 8, 4);
  return contents;
}

/** Reads the head of a chunk that must end within `limit`. */
async function readHead(reader: ByteReader, limit: number): Promise<Chunk> {
  const start = reader.beginPart();
  if (start + 8 > limit) throw reader.fault(start, 'a chunk should begin there, and its container ends');
  if (reader.lacks(8)) await reader.load(8);
  const type = reader.piece.toString('latin1', reader.at, reader.at + 4);
  if (!/^[\x20-\x7e]{4}$/.test(type)) throw reader.fault(start, 'the type of a chunk is not of four letters');
  const length = reader.piece.readUInt32LE(reader.at + 4);
  const end = start + 8 + length + (length % 2);
  if (end > limit)
    throw reader.fault(start, `chunk ${type.trim()} is of ${length} bytes, more than its container has left`);
  reader.skip(8);
  return { type, start, data: start + 8, length, end };
}

function leave(reader: ByteReader, chunk: Chunk): void {
  reader.skip(chunk.end - reader.position);
}

/** Stores a chunk as it is, and goes past it. */
function keep(reader: ByteReader, plan: Plan, chunk: Chunk): void {
  plan.keep(chunk.start, chunk.data + chunk.length);
  if (chunk.length % 2 === 1) plan.put(Buffer.alloc(1));
  leave(reader, chunk);
}

/** A file with nothing but an image; decoders leave alone what follows it. */
async function readSimple(reader: ByteReader, plan: Plan, first: Chunk, end: number): Promise<Contents> {
  if (!isImage(first)) throw reader.fault(first.start, 'its first chunk is neither VP8, VP8L nor VP8X');
  const size = await readImage(reader, first);
  keep(reader, plan, first);
  while (reader.position < end) {
    const chunk = await readHead(reader, end);
    plan.removed.add(words[chunk.type] ?? 'other');
    leave(reader, chunk);
  }
  return { ...size, animated: false, digitalSourceType: null };
}

function isImage(chunk: Chunk): boolean {
  return chunk.type === 'VP8 ' || chunk.type === 'VP8L';
}

/** The size of an image by the head of its bitstream (RFC 6386, section 9.1; RFC 9649, section 3). */
async function readImage(reader: ByteReader, chunk: Chunk): Promise<Size> {
  const head = await reader.peek(Math.min(chunk.length, 10));
  const fault = reader.fault(chunk.start, `the head of its image (${chunk.type.trim()}) is wrong`);
  let size: Size;
  if (chunk.type === 'VP8L') {
    if (head.length < 5 || head[0] !== 0x2f || (head[4] ?? 0) >> 5 !== 0) throw fault;
    const bits = head.readUInt32LE(1);
    size = { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  } else {
    if (head.length < 10 || head.readUIntBE(3, 3) !== 0x9d012a) throw fault;
    const tag = head.readUIntLE(0, 3);
    // A key frame, of a version that exists, that is shown, and whose first partition is within the chunk.
    if ((tag & 1) !== 0 || ((tag >> 1) & 7) > 3 || ((tag >> 4) & 1) === 0 || tag >> 5 >= chunk.length)
      throw fault;
    size = { width: head.readUInt16LE(6) & 0x3fff, height: head.readUInt16LE(8) & 0x3fff };
  }
  checkSize(size.width, size.height);
  return size;
}

type State = {
  readonly canvas: Size;
  readonly flags: number;
  profile: boolean;
  exif: Buffer | null;
  /** Of a picture that stands still: whether its alpha and its image have been read. */
  alpha: boolean;
  image: boolean;
  /** Of an animation: its global parameters, and how many frames. */
  parameters: boolean;
  frames: number;
  digitalSourceType: string | null;
};

async function readExtended(reader: ByteReader, plan: Plan, first: Chunk, end: number): Promise<Contents> {
  if (first.length !== 10) throw reader.fault(first.start, 'its chunk VP8X is not of 10 bytes');
  const fields = await reader.peek(10);
  const head = Buffer.concat([Buffer.from('VP8X\x0a\0\0\0', 'latin1'), fields]);
  const state: State = {
    canvas: { width: fields.readUIntLE(4, 3) + 1, height: fields.readUIntLE(7, 3) + 1 },
    flags: fields[0] ?? 0,
    profile: false,
    exif: null,
    alpha: false,
    image: false,
    parameters: false,
    frames: 0,
    digitalSourceType: null,
  };
  checkSize(state.canvas.width, state.canvas.height);
  plan.put(head);
  leave(reader, first);
  while (reader.position < end) {
    const chunk = await readHead(reader, end);
    if (await isKept(reader, plan, chunk, state)) keep(reader, plan, chunk);
    leave(reader, chunk);
  }
  const moves = (state.flags & isAnimated) !== 0;
  if (moves ? state.frames === 0 : !state.image)
    throw reader.fault(
      end,
      moves ? 'it ends before its first frame (ANIM, ANMF)' : 'it ends before its image',
    );
  // Kept of the flags: alpha and animation.
  head[8] =
    (state.flags & (hasAlpha | isAnimated)) | (state.profile ? hasProfile : 0) | (state.exif ? hasExif : 0);
  head.fill(0, 9, 12);
  if (state.exif !== null) plan.put(chunkOf('EXIF', state.exif));
  return { ...state.canvas, animated: state.frames > 1, digitalSourceType: state.digitalSourceType };
}

/** Whether a chunk stays where it is; stores itself what stays otherwise. */
async function isKept(reader: ByteReader, plan: Plan, chunk: Chunk, state: State): Promise<boolean> {
  const moves = (state.flags & isAnimated) !== 0;
  const begun = state.alpha || state.image || state.parameters;
  if (chunk.type === 'ICCP' && !state.profile && !begun && (state.flags & hasProfile) !== 0) {
    state.profile = true;
    return true;
  }
  if (chunk.type === 'ANIM' && moves && !state.parameters) {
    if (chunk.length !== 6) throw reader.fault(chunk.start, 'its chunk ANIM is not of 6 bytes');
    state.parameters = true;
    return true;
  }
  if (chunk.type === 'ANMF' && state.parameters) {
    checkFrames(++state.frames);
    await readFrame(reader, plan, chunk, state.canvas);
    return false;
  }
  if (!moves && !state.image && (chunk.type === 'ALPH' || isImage(chunk)))
    return readStillPart(reader, chunk, state, state.canvas);
  await readMetadata(reader, plan, chunk, state);
  return false;
}

/** The alpha or the image of a picture or frame, whose size must be that of what it is for. */
async function readStillPart(
  reader: ByteReader,
  chunk: Chunk,
  state: Pick<State, 'alpha' | 'image'>,
  { width, height }: Size,
): Promise<boolean> {
  if (chunk.type === 'ALPH') {
    if (state.alpha) throw reader.fault(chunk.start, 'a second chunk ALPH begins there');
    state.alpha = true;
    return true;
  }
  if (chunk.type === 'VP8L' && state.alpha)
    throw reader.fault(chunk.start, 'chunk VP8L brings its own alpha, and there is a chunk ALPH');
  const size = await readImage(reader, chunk);
  if (size.width !== width || size.height !== height)
    throw reader.fault(
      chunk.start,
      `its image is of ${size.width} × ${size.height} pixels where ${width} × ${height} are announced`,
    );
  state.image = true;
  return true;
}

/** Stores a frame of an animation: its head, its alpha and its image. */
async function readFrame(reader: ByteReader, plan: Plan, chunk: Chunk, canvas: Size): Promise<void> {
  const { start, data, length } = chunk;
  if (length < 16) throw reader.fault(start, 'a frame (ANMF) is shorter than its head');
  const fields = await reader.peek(16);
  const size = { width: fields.readUIntLE(6, 3) + 1, height: fields.readUIntLE(9, 3) + 1 };
  const right = fields.readUIntLE(0, 3) * 2 + size.width;
  const bottom = fields.readUIntLE(3, 3) * 2 + size.height;
  if (right > canvas.width || bottom > canvas.height)
    throw reader.fault(start, 'a frame (ANMF) reaches over the edge of the picture');
  const head = Buffer.concat([Buffer.from('ANMF\0\0\0\0', 'latin1'), fields]);
  const before = plan.length;
  plan.put(head);
  reader.skip(16);
  const state = { alpha: false, image: false };
  while (reader.position < data + length) {
    const part = await readHead(reader, data + length);
    if (!state.image && (part.type === 'ALPH' || isImage(part))) {
      await readStillPart(reader, part, state, size);
      keep(reader, plan, part);
    } else {
      plan.removed.add('other');
      leave(reader, part);
    }
  }
  if (!state.image) throw reader.fault(start, 'a frame (ANMF) has no image');
  head.writeUInt32LE(plan.length - before - 8, 4);
}

/** Notes what is wanted of a chunk that goes: the orientation of the first EXIF has its place behind the image. */
async function readMetadata(reader: ByteReader, plan: Plan, chunk: Chunk, state: State): Promise<void> {
  const word = words[chunk.type] ?? 'other';
  const data = await reader.peek(word === 'other' ? 0 : Math.min(chunk.length, pieceSize));
  if (word === 'xmp') state.digitalSourceType ??= digitalSourceTypeOf(data);
  if (word === 'exif' && state.exif === null) {
    // Some programs write what stands before the TIFF in a JPEG here too.
    const orientation = orientationOf(data.toString('latin1', 0, 5) === 'Exif\0' ? data.subarray(6) : data);
    if (orientation !== 1) state.exif = orientationTiff(orientation);
    if (state.exif?.equals(data)) return;
  }
  plan.removed.add(word);
}

function chunkOf(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(type, 'latin1');
  head.writeUInt32LE(data.length, 4);
  return Buffer.concat([head, data]);
}
