import type { ByteReader } from './byte-reader.ts';
import { digitalSourceTypeOf } from './digital-source-type.ts';
import { orientationOf, orientationTiff, turned } from './orientation.ts';
import { checkSize, type Contents, type Removable } from './picture.ts';
import type { Plan } from './plan.ts';

const soi = 0xd8;
const eoi = 0xd9;
const sos = 0xda;
const app0 = 0xe0;
const app15 = 0xef;
const com = 0xfe;
/** Tables of the decoder: Huffman, quantisation, number of lines, restart interval. */
const tables: ReadonlySet<number> = new Set([0xc4, 0xdb, 0xdc, 0xdd]);
/** Browsers show baseline, extended and progressive frames, of 8 bits a sample. */
const frames: ReadonlySet<number> = new Set([0xc0, 0xc1, 0xc2]);
const otherFrames: ReadonlySet<number> = new Set([
  0xc3, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xde, 0xdf, 0xf7,
]);
/** More scans than any encoder writes are there to keep decoders busy; libjpeg-turbo's tests stop here too. */
const mostScans = 500;

type State = {
  size: { readonly width: number; readonly height: number } | null;
  scans: number;
  /** Of the first EXIF segment before the first scan, as browsers have it. */
  orientation: number | null;
  digitalSourceType: string | null;
};

/** A segment: where its marker is, and what follows its length. */
type Segment = {
  readonly marker: number;
  readonly start: number;
  readonly end: number;
  readonly data: Buffer;
};

/** Reads a JPEG marker by marker to EOI (ITU-T T.81, annex B). */
export async function readJpeg(reader: ByteReader, plan: Plan): Promise<Contents> {
  const state: State = { size: null, scans: 0, orientation: null, digitalSourceType: null };
  reader.skip(2);
  plan.keep(0, 2);
  for (;;) {
    const marker = await nextMarker(reader);
    const start = reader.position - 2;
    if (marker === eoi) {
      if (state.size === null || state.scans === 0)
        throw reader.fault(start, 'it ends before its first scan');
      plan.keep(start, start + 2);
      const { width, height } = turned(state.size.width, state.size.height, state.orientation ?? 1);
      return { width, height, animated: false, digitalSourceType: state.digitalSourceType };
    }
    const segment = await readSegment(reader, marker, start);
    if (marker === com || (marker >= app0 && marker <= app15)) readApplication(segment, state, plan);
    else {
      readPart(segment, state, reader);
      plan.keep(start, segment.end);
    }
    reader.skip(segment.data.length);
    if (marker === sos) {
      await findScanEnd(reader);
      plan.keep(segment.end, reader.position);
    }
  }
}

/** Goes past the next marker, of which any number of bytes FF may stand before it. */
async function nextMarker(reader: ByteReader): Promise<number> {
  const start = reader.beginPart();
  if (reader.lacks(2)) await reader.load(2);
  if (reader.piece[reader.at] !== 0xff) throw reader.fault(start, 'a marker (FF) should stand there');
  for (;;) {
    reader.skip(1);
    if (reader.lacks(1)) await reader.load(1);
    const byte = reader.piece[reader.at] ?? 0;
    if (byte === 0xff) continue;
    reader.skip(1);
    return byte;
  }
}

async function readSegment(reader: ByteReader, marker: number, start: number): Promise<Segment> {
  const name = marker.toString(16).toUpperCase().padStart(2, '0');
  if (otherFrames.has(marker))
    throw reader.fault(start, 'it is coded in a way that browsers do not show (lossless or arithmetic)');
  const known = tables.has(marker) || frames.has(marker) || marker === sos || marker === com;
  if (!known && (marker < app0 || marker > app15))
    throw reader.fault(
      start,
      marker === soi ? 'a second picture begins there' : `marker FF ${name} has no place there`,
    );
  const length = (await reader.peek(2)).readUInt16BE();
  if (length < 2)
    throw reader.fault(start, `the length of segment FF ${name} is ${length}, and 2 is the least`);
  const whole = await reader.peek(length);
  reader.skip(2);
  return { marker, start, end: reader.position + length - 2, data: whole.subarray(2) };
}

/** What makes the picture: tables, the frame, and the head of each scan. */
function readPart({ marker, start, data }: Segment, state: State, reader: ByteReader): void {
  if (frames.has(marker)) {
    if (state.size !== null) throw reader.fault(start, 'a second frame begins there');
    const components = data[5] ?? 0;
    if (![1, 3, 4].includes(components) || data.length !== 6 + 3 * components)
      throw reader.fault(start, `the head of its frame has ${data.length} bytes and ${components} colours`);
    if (data[0] !== 8) throw reader.fault(start, `it has ${data[0]} bits a sample, and browsers show 8`);
    state.size = { width: data.readUInt16BE(3), height: data.readUInt16BE(1) };
    checkSize(state.size.width, state.size.height);
  }
  if (marker !== sos) return;
  if (state.size === null) throw reader.fault(start, 'a scan begins before its frame');
  const components = data[0] ?? 0;
  if (components < 1 || components > 4 || data.length !== 4 + 2 * components)
    throw reader.fault(start, `the head of a scan has ${data.length} bytes and ${components} colours`);
  if (++state.scans > mostScans) throw reader.fault(start, `it has more than ${mostScans} scans`);
}

/** Goes to the marker that ends a scan: neither a stuffed byte (FF 00) nor a restart (FF D0 to D7). */
async function findScanEnd(reader: ByteReader): Promise<void> {
  for (;;) {
    if (reader.lacks(2)) await reader.load(2);
    const { piece } = reader;
    const last = piece.length - 1;
    let { at } = reader;
    while (at < last) {
      if (piece[at] !== 0xff) at++;
      else {
        const next = piece[at + 1] ?? 0;
        if (next === 0xff) at++;
        else if (next === 0 || (next >= 0xd0 && next <= 0xd7)) at += 2;
        else {
          reader.at = at;
          return;
        }
      }
    }
    reader.at = at;
  }
}

/** Comments and application segments, of which only those stay that colours or orientation depend on. */
function readApplication(segment: Segment, state: State, plan: Plan): void {
  const { marker, start, end, data } = segment;
  const begins = (text: string) => data.toString('latin1', 0, text.length) === text;
  const kept = marker === app0 && begins('JFIF\0') ? 14 : marker === 0xee && begins('Adobe') ? 12 : 0;
  if (kept > 0 && data.length >= kept) {
    keepHead(segment, kept, plan);
    return;
  }
  if (marker === 0xe2 && begins('ICC_PROFILE\0')) {
    plan.keep(start, end);
    return;
  }
  if (marker === 0xe1 && begins('Exif\0')) {
    if (!keepOrientation(segment, state, plan)) plan.removed.add('exif');
    return;
  }
  const [word] = removed.find(([, at, text]) => at === marker && begins(text)) ?? ['other'];
  if (word === 'xmp') state.digitalSourceType ??= digitalSourceTypeOf(data);
  plan.removed.add(word);
}

/** How segments that go are named: by marker and first bytes. */
const removed: readonly (readonly [Removable, marker: number, begins: string])[] = [
  ['comment', com, ''],
  ['thumbnail', app0, 'JFXX\0'],
  ['xmp', 0xe1, 'http://ns.adobe.com/xap/1.0/\0'],
  ['xmp', 0xe1, 'http://ns.adobe.com/xmp/extension/\0'],
  ['mpf', 0xe2, 'MPF\0'],
  ['c2pa', 0xeb, 'JP'],
  ['iptc', 0xed, 'Photoshop '],
];

/** Stores a JFIF or Adobe segment without what may follow its fields, a thumbnail for one. */
function keepHead({ marker, start, end, data }: Segment, length: number, plan: Plan): void {
  const head = Buffer.concat([Buffer.from([0xff, marker, 0, length + 2]), data.subarray(0, length)]);
  // Width and height of the thumbnail.
  if (marker === app0) head.fill(0, 16, 18);
  if (data.length === length && head.subarray(4).equals(data)) plan.keep(start, end);
  else {
    plan.put(head);
    plan.removed.add(marker === app0 ? 'thumbnail' : 'other');
  }
}

/** Stores the orientation of EXIF, and whether that is all there was. */
function keepOrientation({ start, end, data }: Segment, state: State, plan: Plan): boolean {
  if (state.orientation !== null || state.scans > 0) return false;
  state.orientation = orientationOf(data.subarray(6));
  if (state.orientation === 1) return false;
  const exif = Buffer.concat([Buffer.from('Exif\0\0'), orientationTiff(state.orientation)]);
  if (exif.equals(data)) {
    plan.keep(start, end);
    return true;
  }
  plan.put(Buffer.concat([Buffer.from([0xff, 0xe1, 0, exif.length + 2]), exif]));
  return false;
}
