import type { ByteReader } from './byte-reader.ts';
import { checkFrames, checkSize, type Contents, type Removable } from './picture.ts';
import type { Plan } from './plan.ts';

const extension = 0x21;
const image = 0x2c;
const trailer = 0x3b;
const graphicControl = 0xf9;
const application = 0xff;

type State = { width: number; height: number; frames: number };

/** Reads a GIF block by block to its trailer (GIF89a specification of 1990). */
export async function readGif(reader: ByteReader, plan: Plan): Promise<Contents> {
  const screen = await reader.peek(13);
  const state: State = { width: screen.readUInt16LE(6), height: screen.readUInt16LE(8), frames: 0 };
  reader.skip(13 + tableLength(screen[10] ?? 0));
  plan.keep(0, reader.position);
  for (;;) {
    const start = reader.beginPart();
    if (reader.lacks(1)) await reader.load(1);
    const introducer = reader.piece[reader.at];
    if (introducer === image) await readImage(reader, state);
    else if (introducer === extension) {
      if (!(await readExtension(reader, plan))) continue;
    } else if (introducer === trailer) {
      if (state.frames === 0) throw reader.fault(start, 'it ends before its first image');
      reader.skip(1);
    } else throw reader.fault(start, 'a block should begin there (21, 2C or 3B)');
    plan.keep(start, reader.position);
    if (introducer === trailer) break;
  }
  const { width, height, frames } = state;
  checkSize(width, height);
  return { width, height, animated: frames > 1, digitalSourceType: null };
}

/** Bytes of a colour table, by the flags that announce it. */
function tableLength(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 << ((flags & 0x07) + 1);
}

async function readImage(reader: ByteReader, state: State): Promise<void> {
  const head = await reader.peek(10);
  const [left, top] = [head.readUInt16LE(1), head.readUInt16LE(3)];
  const [width, height] = [head.readUInt16LE(5), head.readUInt16LE(7)];
  // As browsers do it: the first image may widen the screen, later ones are cut at its edge.
  if (state.frames === 0) {
    state.width = Math.max(state.width, left + width);
    state.height = Math.max(state.height, top + height);
  }
  if (width > 0 && height > 0) checkSize(width, height);
  checkFrames(++state.frames);
  reader.skip(10 + tableLength(head[9] ?? 0));
  const codeSize = (await reader.peek(1))[0] ?? 0;
  if (codeSize < 1 || codeSize > 8)
    throw reader.fault(reader.position, `codes of ${codeSize} bits do not exist`);
  reader.skip(1);
  await skipSubBlocks(reader);
}

/** Goes past the sub-blocks of a block, each of which says its length, to the empty one that ends them. */
async function skipSubBlocks(reader: ByteReader): Promise<void> {
  for (;;) {
    if (reader.lacks(1)) await reader.load(1);
    const length = reader.piece[reader.at] ?? 0;
    reader.skip(length + 1);
    if (length === 0) return;
  }
}

/** Goes past an extension, and whether it stays as it is. */
async function readExtension(reader: ByteReader, plan: Plan): Promise<boolean> {
  const start = reader.position;
  const label = (await reader.peek(2))[1] ?? 0;
  if (label === graphicControl) {
    const block = await reader.peek(8);
    if (block[2] !== 4 || block[7] !== 0) throw reader.fault(start, 'a graphic control is not of 4 bytes');
    reader.skip(8);
    return true;
  }
  const name = label === application ? (await reader.peek(14)).toString('latin1', 2) : '';
  if (loops.has(name) && (await keepLoop(reader, plan))) return true;
  reader.skip(2);
  await skipSubBlocks(reader);
  if (name === colourProfile) return true;
  const word = label === application ? applications[name] : labels[label];
  plan.removed.add(word ?? 'other');
  return false;
}

/** Whether the block that says how often to repeat is that alone; of one that says more, stores that much. */
async function keepLoop(reader: ByteReader, plan: Plan): Promise<boolean> {
  const block = await reader.peek(19);
  if (block[14] !== 3 || block[15] !== 1) return false;
  if (block[18] === 0) {
    reader.skip(19);
    return true;
  }
  plan.put(Buffer.concat([block.subarray(0, 18), Buffer.alloc(1)]));
  return false;
}

/** Names of application extensions, with their length before them. */
const loops: ReadonlySet<string> = new Set(['\x0bNETSCAPE2.0', '\x0bANIMEXTS1.0']);
const colourProfile = '\x0bICCRGBG1012';
const applications: Readonly<Record<string, Removable>> = { '\x0bXMP DataXMP': 'xmp' };
const labels: Readonly<Record<number, Removable>> = { 0xfe: 'comment', 0x01: 'text' };
