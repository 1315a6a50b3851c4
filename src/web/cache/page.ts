import type { ChangeTag } from '../../context.ts';
import type { Markup } from '../markup.ts';

/** What a page depends on: a {@link ChangeTag}, or all posts or all agents. */
export type PageTag = ChangeTag | 'post:*' | 'agent:*';

/** What readers and programs are sent, before compression. */
export type Page = {
  readonly type: PageType;
  readonly body: string | Markup | Buffer;
  /** It is made again when one of these changes; never, if there are none. */
  readonly tags?: readonly PageTag[];
  /** Absolute address of the markdown twin. A client that prefers markdown is sent that. */
  readonly twin?: string;
  /** Further members of the `Link` header. */
  readonly links?: readonly string[];
  /** Origin that its forms may submit to; none by default. */
  readonly formTarget?: string;
  /** Whether the address changes with the content, so that it can be cached for ever. */
  readonly immutable?: boolean;
};

/** What there is at an address. */
export type Outcome =
  | Page
  /** Absolute address that it has moved to. */
  | { readonly kind: 'moved'; readonly url: string }
  /** Nothing there, or no longer, and the page that says so. */
  | { readonly kind: 'absent'; readonly status: 404 | 410; readonly body: Markup };

/** Media types, and whether a type is worth compressing. */
export const pageTypes = {
  html: { mediaType: 'text/html; charset=utf-8', compressible: true },
  markdown: { mediaType: 'text/markdown; charset=utf-8', compressible: true },
  text: { mediaType: 'text/plain; charset=utf-8', compressible: true },
  atom: { mediaType: 'application/atom+xml; charset=utf-8', compressible: true },
  rss: { mediaType: 'application/rss+xml; charset=utf-8', compressible: true },
  jsonFeed: { mediaType: 'application/feed+json', compressible: true },
  xml: { mediaType: 'application/xml; charset=utf-8', compressible: true },
  opml: { mediaType: 'text/x-opml; charset=utf-8', compressible: true },
  json: { mediaType: 'application/json', compressible: true },
  linkSet: {
    mediaType: 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    compressible: true,
  },
  css: { mediaType: 'text/css; charset=utf-8', compressible: true },
  svg: { mediaType: 'image/svg+xml', compressible: true },
  png: { mediaType: 'image/png', compressible: false },
} as const;

export type PageType = keyof typeof pageTypes;
