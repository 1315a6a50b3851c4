import { longWork } from '../../platform/slices.ts';
import { PictureError, type PictureBytes } from './picture.ts';

/** How much of a file is in memory at a time. */
export const pieceSize = 256 * 1024;

/** Each costs about a microsecond: more are there to keep us busy. A picture has a few, an animation a few for each frame. */
const mostParts = 10_000;

/**
 * Reads a file from its beginning in pieces. `piece` and `at` are open, so that what looks at every byte awaits
 * nothing in between; `load` gives other work a turn after each piece.
 */
export class ByteReader {
  piece: Buffer = Buffer.alloc(0);
  at = 0;
  #start = 0;
  #parts = 0;
  readonly #nextTurn = longWork();
  readonly #source: PictureBytes;
  readonly #format: string;
  readonly #end: string;

  /** `end` names what a whole file ends with, for the error about one that is cut off. */
  constructor(source: PictureBytes, format: string, end: string) {
    this.#source = source;
    this.#format = format;
    this.#end = end;
  }

  get size(): number {
    return this.#source.size;
  }

  /** Where the next byte is in the file. */
  get position(): number {
    return this.#start + this.at;
  }

  /** Where a part (a segment, chunk or block) begins. Throws PictureError for one of too many. */
  beginPart(): number {
    if (++this.#parts > mostParts)
      throw this.fault(this.position, `it has more than ${mostParts.toLocaleString('en-US')} parts`);
    return this.position;
  }

  /** Whether fewer bytes than that are in memory from `at` on. */
  lacks(count: number): boolean {
    return this.piece.length - this.at < count;
  }

  /** Brings at least `count` bytes (a piece at most) into memory from `at` on. Throws PictureError past the end. */
  async load(count: number): Promise<void> {
    const position = this.position;
    if (position + count > this.size) throw this.cutOff();
    if (position > 0) await this.#nextTurn();
    this.piece = await this.#source.read(position, Math.min(pieceSize, this.size - position));
    this.#start = position;
    this.at = 0;
    if (this.lacks(count)) throw this.cutOff();
  }

  /** The next bytes, a piece at most, without going past them. */
  async peek(count: number): Promise<Buffer> {
    if (this.lacks(count)) await this.load(count);
    return this.piece.subarray(this.at, this.at + count);
  }

  skip(count: number): void {
    this.at += count;
  }

  /** What is wrong at a byte of the file. */
  fault(position: number, what: string): PictureError {
    return new PictureError(
      'invalid',
      `The ${this.#format} file is damaged at byte ${position}: ${what}. Open it in a program that shows it, save it again, and send that.`,
    );
  }

  cutOff(): PictureError {
    return new PictureError(
      'invalid',
      `The ${this.#format} file is cut off: it ends at byte ${this.size}, before its ${this.#end}. Send the whole file.`,
    );
  }
}
