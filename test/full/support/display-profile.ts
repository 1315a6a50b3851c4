/** An ICC profile of a display whose red and blue are the other way round: a picture that loses it is seen to. */
export const displayProfile = makeProfile();

function makeProfile(): Buffer {
  const white = xyz(0.9642, 1, 0.8249);
  const curve = Buffer.from('63757276000000000000000102330000', 'hex');
  const tags: readonly (readonly [string, Buffer])[] = [
    ['desc', text('desc', 'Swapped')],
    ['cprt', Buffer.concat([Buffer.from('text\0\0\0\0'), Buffer.from('None\0')])],
    ['wtpt', white],
    ['rXYZ', xyz(0.1431, 0.0606, 0.7141)],
    ['gXYZ', xyz(0.3851, 0.7169, 0.0971)],
    ['bXYZ', xyz(0.4361, 0.2225, 0.0139)],
    ['rTRC', curve],
    ['gTRC', curve],
    ['bTRC', curve],
  ];
  const table: Buffer[] = [u32(tags.length)];
  const data: Buffer[] = [];
  let at = 128 + 4 + 12 * tags.length;
  for (const [name, bytes] of tags) {
    const padded = Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
    table.push(Buffer.from(name), u32(at), u32(bytes.length));
    data.push(padded);
    at += padded.length;
  }
  const header = Buffer.alloc(128);
  header.writeUInt32BE(at, 0);
  header.writeUInt32BE(0x02100000, 8);
  header.write('mntrRGB XYZ ', 12, 'latin1');
  header.write('acsp', 36, 'latin1');
  white.copy(header, 68, 8);
  return Buffer.concat([header, ...table, ...data]);
}

function xyz(...values: readonly number[]): Buffer {
  return Buffer.concat([
    Buffer.from('XYZ \0\0\0\0'),
    ...values.map((value) => u32(Math.round(value * 65_536))),
  ]);
}

/** A description, as version 2 of ICC has it: in ASCII, and empty in Unicode and for a Macintosh. */
function text(type: string, value: string): Buffer {
  const ascii = Buffer.from(`${value}\0`);
  return Buffer.concat([Buffer.from(`${type}\0\0\0\0`), u32(ascii.length), ascii, Buffer.alloc(78)]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
