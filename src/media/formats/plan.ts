import { freeChunk } from '../../platform/memory.ts';
import { longWork } from '../../platform/slices.ts';
import { pieceSize } from './byte-reader.ts';
import type { PictureBytes, Removable } from './picture.ts';

type Range = { readonly start: number; end: number };

/** What is going to be stored: ranges of the file as sent, and bytes of our own. Nothing is written before all is read. */
export class Plan {
  /** How many bytes it makes. */
  length = 0;
  readonly removed = new Set<Removable>();
  readonly #parts: (Range | Buffer)[] = [];

  /** Stores these bytes of the file. */
  keep(start: number, end: number): void {
    this.length += end - start;
    const last = this.#parts.at(-1);
    if (last !== undefined && !Buffer.isBuffer(last) && last.end === start) last.end = end;
    else this.#parts.push({ start, end });
  }

  /** Stores bytes that the file does not have there; they may still be changed until `write`. */
  put(bytes: Buffer): void {
    this.length += bytes.length;
    this.#parts.push(bytes);
  }

  /** Writes it all, in order, in pieces, which are freed once they are written. */
  async write(source: PictureBytes, write: (bytes: Buffer) => Promise<void>): Promise<void> {
    const parts = this.#parts.flatMap((part): (Range | Buffer)[] =>
      Buffer.isBuffer(part) ? [part] : split(part),
    );
    const nextTurn = longWork();
    let batch: Buffer[] = [];
    let length = 0;
    let window: { start: number; bytes: Buffer } = { start: 0, bytes: Buffer.alloc(0) };
    const passed: Buffer[] = [];
    const flush = async () => {
      const whole = Buffer.concat(batch);
      await write(whole);
      for (const bytes of [whole, ...passed.splice(0)]) freeChunk(bytes);
      batch = [];
      length = 0;
    };
    for (const part of parts) {
      if (
        !Buffer.isBuffer(part) &&
        !(window.start <= part.start && part.end <= window.start + window.bytes.length)
      ) {
        await nextTurn();
        passed.push(window.bytes);
        const most = Math.min(pieceSize, source.size - part.start);
        window = { start: part.start, bytes: await source.read(part.start, most) };
      }
      const bytes = Buffer.isBuffer(part)
        ? part
        : window.bytes.subarray(part.start - window.start, part.end - window.start);
      if (length + bytes.length > pieceSize) await flush();
      batch.push(bytes);
      length += bytes.length;
    }
    await flush();
    freeChunk(window.bytes);
  }
}

/** A range in pieces that are read at once. */
function split({ start, end }: Range): Range[] {
  const pieces: Range[] = [];
  for (let at = start; at < end; at += pieceSize)
    pieces.push({ start: at, end: Math.min(end, at + pieceSize) });
  return pieces;
}
