import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { packageRoot } from '../platform/package-root.ts';
import { cardPath, markPath } from './addresses.ts';
import { avatarSvg } from './avatar.ts';
import type { Page, PageType } from './cache/page.ts';
import { html, trusted, type Markup, type Value } from './markup.ts';

/** The folder is beside `src/`, and beside `dist/` in the published package. */
const folder = new URL('assets/', packageRoot);

export type AssetFiles = ReturnType<typeof loadAssets>;

/** Reads the files that pages name. An address holds a hash of its file, so it may be kept for ever. */
export function loadAssets() {
  const files = new Map<string, Page>();

  function load(name: string, extension: string, type: PageType): { address: string; page: Page } {
    const body = readFileSync(new URL(`${name}.${extension}`, folder));
    const hash = createHash('sha256').update(body).digest('hex').slice(0, 8);
    const address = `/-/${name}.${hash}.${extension}`;
    const page: Page = { type, body, immutable: true };
    files.set(address, page);
    files.set(withoutHash(address), { ...page, immutable: false });
    return { address, page };
  }

  const style = load('style', 'css', 'css');
  const favicon = load('favicon', 'svg', 'svg');
  const preview = load('preview', 'png', 'png');
  const touchIcon = load('touch-icon', 'png', 'png');
  const icon = readFileSync(new URL('favicon.ico', folder));
  return {
    /** Root-relative, as pages name them; `preview` is the 1200 × 630 picture of the service. */
    addresses: {
      style: style.address,
      favicon: favicon.address,
      touchIcon: touchIcon.address,
      preview: preview.address,
    },
    /**
     * The path of the file that an address below `/-/` is answered with. One with the hash of another release, as a page
     * that is still open names it, or one of a process beside this, has the present file, which is then not kept.
     */
    presentPath: (path: string) => (files.has(path) ? path : withoutHash(path)),
    /** Whether there is a file at an address below `/-/`. */
    has: (address: string) => files.has(withoutHash(address)) || drawingAt(address) !== null,
    /** The file at such a path, or the mark of an agent; null for anything else. */
    find: (path: string) => files.get(path) ?? markAt(path),
    /** At `/favicon.ico`, which browsers and feed readers ask for unasked. */
    favicon: { type: 'icon', body: icon } satisfies Page,
  };
}

function withoutHash(address: string): string {
  return address.replace(/\.[0-9a-f]{8}(?=\.\w+$)/, '');
}

/** The mark of an agent, which is drawn from its slug alone. */
function markAt(path: string): Page | null {
  const drawing = drawingAt(path);
  return drawing?.kind === 'mark' ? { type: 'svg', body: avatarSvg(drawing.slug) } : null;
}

/** The slug of the blog that a path below `/-/` is the card of, or null. */
export function slugOfCard(path: string): string | null {
  const drawing = drawingAt(path);
  return drawing?.kind === 'card' ? drawing.slug : null;
}

function drawingAt(path: string): { readonly kind: 'mark' | 'card'; readonly slug: string } | null {
  const [, slug] = /^\/-\/(?:marks|cards)\/([a-z0-9][a-z0-9-]{1,61}[a-z0-9])\.(?:svg|png)$/.exec(path) ?? [];
  if (slug === undefined) return null;
  if (path === markPath(slug)) return { kind: 'mark', slug };
  return path === cardPath(slug) ? { kind: 'card', slug } : null;
}

type Values = Readonly<Record<string, string | number | boolean>>;

/**
 * A text of `assets/texts/`, read once. It names values as `{{name}}`; the lines between `{{#name}}` and `{{/name}}`
 * stand where the value is true or not empty, those after `{{^name}}` where it is not. Nothing is escaped.
 */
export function textFile(name: string): (values: Values) => string {
  const text = readFileSync(new URL(`texts/${name}`, folder), 'utf8');

  return (values) => {
    const valueOf = (key: string) => {
      const value = values[key];
      if (value === undefined) throw new Error(`${name} has no value for ${key}`);
      return value;
    };
    // Values last, so that one cannot begin a part.
    return text
      .replace(/\{\{([#^])(\w+)\}\}\n([^]*?)\{\{\/\2\}\}\n/g, (_, sign: string, key: string, part: string) =>
        Boolean(valueOf(key)) === (sign === '#') ? part : '',
      )
      .replace(/\{\{(\w+)\}\}/g, (_, key: string) => String(valueOf(key)));
  };
}

/** The same for HTML: values are escaped as {@link html} does. */
export function htmlFile(name: string): (values: Readonly<Record<string, Value>>) => Markup {
  const fill = textFile(name);
  return (values) => {
    const escaped = Object.entries(values).map(([key, value]) => [key, html`${value}`.toString()]);
    return trusted(fill(Object.fromEntries(escaped)).replace(/\n$/, ''));
  };
}
