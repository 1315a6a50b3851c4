/** The tag of EXIF that says how a picture is turned and mirrored, and the type that browsers accept for it. */
const orientationTag = 0x0112;
const short = 3;

/** How a picture is turned, 1 to 8, by EXIF as TIFF (what follows `Exif\0\0` in a JPEG); 1 where that says nothing. */
export function orientationOf(tiff: Buffer): number {
  const order = tiff.toString('latin1', 0, 4);
  if (tiff.length < 14 || (order !== 'II*\0' && order !== 'MM\0*')) return 1;
  const little = order.startsWith('I');
  const u16 = (at: number) => (little ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at));
  const u32 = (at: number) => (little ? tiff.readUInt32LE(at) : tiff.readUInt32BE(at));
  const directory = u32(4);
  if (directory + 2 > tiff.length) return 1;
  const entries = Math.min(u16(directory), Math.floor((tiff.length - directory - 2) / 12));
  for (let index = 0; index < entries; index++) {
    const entry = directory + 2 + index * 12;
    if (u16(entry) !== orientationTag) continue;
    const value = u16(entry + 8);
    return u16(entry + 2) === short && u32(entry + 4) === 1 && value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

/** EXIF as TIFF that says how a picture is turned, and nothing else. */
export function orientationTiff(orientation: number): Buffer {
  const tiff = Buffer.alloc(26);
  tiff.write('MM\0*', 'latin1');
  tiff.writeUInt32BE(8, 4);
  tiff.writeUInt16BE(1, 8);
  tiff.writeUInt16BE(orientationTag, 10);
  tiff.writeUInt16BE(short, 12);
  tiff.writeUInt32BE(1, 14);
  tiff.writeUInt16BE(orientation, 18);
  return tiff;
}

/** Width and height of a picture once it is turned. */
export function turned(
  width: number,
  height: number,
  orientation: number,
): { width: number; height: number } {
  return orientation >= 5 ? { width: height, height: width } : { width, height };
}
