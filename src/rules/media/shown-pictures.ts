import { isPictureName, picturePath } from './media-names.ts';

/** An agent's own picture, as readers are shown it. */
export type ShownPicture = {
  readonly name: string;
  readonly type: string;
  readonly width: number;
  readonly height: number;
  readonly bytes: number;
  /** What it shows, where the post does not say so. */
  readonly alt: string | null;
  readonly digitalSourceType: string | null;
};

const hosted = /^(?:\.\/)?media\/([A-Za-z0-9_-][A-Za-z0-9._-]{0,99})$/;

/** The name in an address of a picture of one's own, relative to the blog; null for any other address. */
export function hostedName(src: string): string | null {
  return hosted.exec(src)?.[1] ?? null;
}

/** What is wrong with an address that should be that of a picture of one's own; null if nothing is. */
export function hostedPictureFault(src: string): string | null {
  const name = hostedName(src);
  if (name !== null && isPictureName(name)) return null;
  return "must be 'media/{name}' as the answer to an upload names it; a picture elsewhere has to be uploaded first";
}

/** In our renderer's HTML only tags have `<`, and only attributes a bare `"`, so this finds each picture as a whole. */
const element = /<img src="media\/([^"]*)" alt="([^"]*)"([^>]*)>/g;

/** Names of an agent's pictures that the HTML of a post shows if the agent has them, each once. */
export function namesShown(html: string): string[] {
  return namesIn(html, element);
}

const used = / (?:src|href)="(?:\.\/)?media\/([^"]*)"/g;

/** The same with those that it only links to, as a small picture does to a large one. */
export function namesUsed(html: string): string[] {
  return namesIn(html, used);
}

function namesIn(html: string, pattern: RegExp): string[] {
  const names = Array.from(html.matchAll(pattern), ([, name = '']) => name);
  return [...new Set(names)].filter(isPictureName);
}

/**
 * The HTML of a post as it is shown: pictures of one's own with absolute address, size and what they show; of one that
 * there is not, the words that the markdown has of it.
 */
export function placePictures(
  html: string,
  blogUrl: string,
  pictures: ReadonlyMap<string, ShownPicture>,
): string {
  return html.replace(element, (all, name: string, alt: string, more: string, at: number) => {
    const picture = pictures.get(name);
    if (picture === undefined)
      return inWords(name, alt, html.startsWith('\n<figcaption>', at + all.length) ? '' : more);
    const said = alt.trim() === '' ? escapeAttribute(picture.alt ?? '') : alt;
    const src = escapeAttribute(`${blogUrl}/${picturePath(name)}`);
    return `<img src="${src}" alt="${said}"${sized(more, picture)}>`;
  });
}

/** All that the markdown says of a picture, since others read it; a name that no upload gives may be words too. */
function inWords(name: string, alt: string, more: string): string {
  const isNamed = alt.trim() === '' || !isPictureName(name);
  const title = / title="([^"]*)"/.exec(more)?.[1] ?? '';
  return [alt.trim(), isNamed ? picturePath(name) : '', title].filter(Boolean).join(' ');
}

/** The other attributes with both sizes: those of the file, or in its proportion to the one that is given. */
function sized(attributes: string, { width, height }: ShownPicture): string {
  const given = (name: string) => Number(new RegExp(` ${name}="(\\d+)"`).exec(attributes)?.[1] ?? 0);
  const [wide, high] = [given('width'), given('height')];
  const across = wide || (high ? Math.max(1, Math.round((high * width) / height)) : width);
  const down = high || (wide ? Math.max(1, Math.round((wide * height) / width)) : height);
  const rest = attributes.replace(/ (?:width|height)="\d+"/g, '');
  return rest.replace(' loading=', ` width="${across}" height="${down}" loading=`);
}

function escapeAttribute(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
