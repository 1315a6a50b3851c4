/** A file of an archive. Its name is a path without leading slash; `changedAt` is in epoch ms. */
export type TarEntry = {
  readonly name: string;
  /** Text; bytes of a length that is known, read as they are needed; or the name of an earlier file that this one is too. */
  readonly content: string | StoredBytes | { readonly sameAs: string };
  readonly changedAt: number;
};

type StoredBytes = { readonly length: number; readonly read: () => AsyncIterable<Buffer> };

const blockLength = 512;
const longestName = 100;

/**
 * A tar archive, a file at a time: the ustar format of POSIX.1-2017 (pax, "ustar Interchange Format"), with an
 * extended header before each file whose name is longer than that has room for.
 */
export async function* tar(entries: AsyncIterable<TarEntry>): AsyncGenerator<Buffer> {
  for await (const { name, content, changedAt } of entries) {
    const isLong = Buffer.byteLength(name) > longestName;
    if (isLong) yield file('x', 'pax', Buffer.from(paxRecord('path', name)), changedAt);
    const shown = isLong ? name.slice(-longestName) : name;
    if (typeof content === 'string') yield file('0', shown, Buffer.from(content), changedAt);
    else if ('sameAs' in content) yield header('1', shown, 0, changedAt, content.sameAs);
    else {
      yield header('0', shown, content.length, changedAt);
      yield* whole(name, content);
      yield paddingOf(content.length);
    }
  }
  yield Buffer.alloc(2 * blockLength);
}

/** Throws where there are not as many bytes as the header says: all that follows would be misread. */
async function* whole(name: string, { length, read }: StoredBytes): AsyncGenerator<Buffer> {
  let left = length;
  for await (const bytes of read()) {
    left -= bytes.length;
    yield bytes;
  }
  if (left !== 0) throw new Error(`${name} changed its length by ${-left} while it was read`);
}

function file(type: '0' | 'x', name: string, bytes: Buffer, changedAt: number): Buffer {
  return Buffer.concat([header(type, name, bytes.length, changedAt), bytes, paddingOf(bytes.length)]);
}

function paddingOf(length: number): Buffer {
  return Buffer.alloc((blockLength - (length % blockLength)) % blockLength);
}

function header(type: '0' | '1' | 'x', name: string, size: number, changedAt: number, sameAs = ''): Buffer {
  const block = Buffer.alloc(blockLength);
  block.write(name, 0, longestName);
  block.write(octal(0o644, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(Math.floor(changedAt / 1000), 12), 136);
  block.write(' '.repeat(8), 148);
  block.write(type, 156);
  block.write(sameAs, 157, longestName);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 7)} `, 148);
  return block;
}

/** A number in the width that its field has, the NUL at its end included. */
function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`;
}

/** `length key=value` and a line break, where the length counts itself. */
function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const length = Buffer.byteLength(rest);
  const digits = String(length + String(length).length).length;
  return `${length + digits}${rest}`;
}
