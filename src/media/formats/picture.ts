/** Bytes of an uploaded file, read at random. */
export interface PictureBytes {
  readonly size: number;
  /** Bytes in memory of their own, which the reader may free. */
  read(offset: number, length: number): Promise<Buffer>;
}

export type PictureType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';

/** What `removed` may name, in its order. */
export const removables = [
  'exif',
  'xmp',
  'iptc',
  'c2pa',
  'comment',
  'text',
  'time',
  'thumbnail',
  'mpf',
  'other',
  'trailer',
] as const;
export type Removable = (typeof removables)[number];

/** What is known of a picture without decoding it. */
export interface Picture {
  type: PictureType;
  /** As browsers show it: EXIF turns a JPEG, and a PNG that has it before its image, but no WebP. */
  width: number;
  height: number;
  /** Whether it has more than one frame. */
  animated: boolean;
  removed: Removable[];
  /** An IPTC digital source type, as an address of https://cv.iptc.org/newscodes/digitalsourcetype/. */
  digitalSourceType: string | null;
}

/** What the reader of one format finds. */
export type Contents = Pick<Picture, 'width' | 'height' | 'animated' | 'digitalSourceType'>;

/** Why a file is no picture that can be stored: of a kind that is not, or damaged or too large. */
export class PictureError extends Error {
  readonly kind: 'unsupported' | 'invalid';

  constructor(kind: 'unsupported' | 'invalid', message: string) {
    super(message);
    this.kind = kind;
  }
}

const pictureLimits = { side: 10_000, pixels: 50_000_000, frames: 1000 } as const;

/** Throws PictureError for a picture, or a frame of one, that is larger than allowed or empty. */
export function checkSize(width: number, height: number): void {
  const { side, pixels } = pictureLimits;
  const tooLarge = width > side || height > side || width * height > pixels;
  if (width >= 1 && height >= 1 && !tooLarge) return;
  throw new PictureError(
    'invalid',
    `The picture is ${width} × ${height} pixels, but each side must be of 1 to ${side.toLocaleString('en-US')} pixels and both make at most ${pixels / 1_000_000} megapixels. Send it at the size at which it is shown, for example 1,600 pixels wide.`,
  );
}

/** Throws PictureError once there are more frames than allowed. */
export function checkFrames(count: number): void {
  if (count <= pictureLimits.frames) return;
  throw new PictureError(
    'invalid',
    `The animation has more than ${pictureLimits.frames.toLocaleString('en-US')} frames. Send one with fewer.`,
  );
}
