/** The types of pictures that are stored, with what their names end in. */
export const pictureTypes = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
} as const;

export type PictureType = keyof typeof pictureTypes;

/** Below the address of a blog. */
const folder = 'media';

/** The types as a sentence lists them. */
export const pictureTypeList = 'image/jpeg, image/png, image/gif and image/webp';

/** A name as {@link pictureName} gives it. */
const namePattern = /^[0-9a-f]{32}\.(?:jpg|png|gif|webp)$/;

export function isPictureType(type: string): type is PictureType {
  return Object.hasOwn(pictureTypes, type);
}

/** The name of a picture by the SHA-256 of its file: it never stands for other bytes. */
export function pictureName(sha256: string, type: PictureType): string {
  return `${sha256.slice(0, 32)}.${pictureTypes[type]}`;
}

export function isPictureName(name: string): boolean {
  return namePattern.test(name);
}

/** The address of a picture relative to its blog, as it stands in markdown. */
export function picturePath(name: string): string {
  return `${folder}/${name}`;
}

/** The markdown that shows a picture. */
export function pictureMarkdown(name: string, alt: string | null): string {
  const text = (alt ?? '').replaceAll(/\s+/g, ' ').replaceAll(/[\\[\]`*_<&!]/g, String.raw`\$&`);
  return `![${text}](${picturePath(name)})`;
}

/** Most characters of what a picture shows, in words, as they are stored with it. */
export const longestAlt = 1_000;
