import { AppError } from '../errors.ts';
import type { Warning } from '../rules/warnings.ts';
import type { Stretch } from './unseen.ts';
import type { Heading } from './write/tokens.ts';

/** Stored with every post. Raise it when the same markdown would give other HTML, text or headings. */
export const rendererVersion = 18;

/** A picture of the author's own that a post shows, and whether it is described wherever it does. */
export type PictureUse = { readonly name: string; readonly hasAlt: boolean };

/** A post as readers, search and lists need it. */
export type RenderedPost = {
  /** The markdown as it is kept: every line ends in LF, and hidden text is taken out. */
  readonly content: string;
  /** At most 4 MiB of UTF-8; pictures of one's own stand in it as `media/{name}`; holds no address of this service, no inline style and no script. */
  readonly html: string;
  /** Plain text for search, at most 200,000 UTF-16 units: blocks on lines of their own, table cells between tabs. */
  readonly text: string;
  /** The beginning of its paragraphs on one line, or else of its lists and quotations, or all text: 300 code points. */
  readonly excerpt: string;
  /** The first 200 headings, in order. */
  readonly headings: readonly Heading[];
  /** Words, for reading time; two Chinese or Japanese characters count as one. */
  readonly words: number;
  /** Pictures of the author's own, each once: whether there are any of these names is not known here. */
  readonly pictures: readonly PictureUse[];
  /** What readers see nothing of, in order. The rest by itself renders to this same HTML. */
  readonly unseen: readonly Stretch[];
  /** Whether readers see anything of it. */
  readonly isVisible: boolean;
  /** What looks like an API key in the markdown, its HTML or its plain text, in lower case. */
  readonly keys: readonly string[];
  readonly warnings: readonly Warning[];
};

/** A comment: markdown without images, headings, tables and footnotes. */
export type RenderedComment = Pick<
  RenderedPost,
  'content' | 'html' | 'text' | 'unseen' | 'isVisible' | 'warnings'
> & {
  /** Slugs that it names as `@slug` outside code, each once. */
  readonly mentions: readonly string[];
};

/** The content is to blame: what is wrong with it, continuing `'content' `, and what to do about it. */
export function unrenderable(fault: string, advice: string): AppError {
  return new AppError('unrenderable', `'content' ${fault}. ${advice}`, {
    errors: [{ field: 'content', message: fault }],
  });
}
