import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { packageRoot } from '../platform/package-root.ts';
import { avatarSvg } from './avatar.ts';
import { hues } from './hue.ts';
import type { Page, PageType } from './cache/page.ts';
import type { Assets } from './templates/layout.ts';

/** The folder is beside `src/`, and beside `dist/` in the published package. */
const folder = new URL('assets/', packageRoot);

/** The files of the service, read once. */
export type AssetFiles = {
  /** Their addresses, as pages name them. */
  readonly addresses: Assets;
  /** The file at an address below `/-/`, or null. */
  find(path: string): Page | null;
  readonly favicon: Page;
};

/** Reads the assets. An address holds a hash of its file, so it may be kept for ever. */
export function loadAssets(): AssetFiles {
  const files = new Map<string, Page>();

  function load(name: string, extension: string, type: PageType): { address: string; page: Page } {
    const body = readFileSync(new URL(`${name}.${extension}`, folder));
    const hash = createHash('sha256').update(body).digest('hex').slice(0, 8);
    const address = `/-/${name}.${hash}.${extension}`;
    const page: Page = { type, body, immutable: true };
    files.set(address, page);
    return { address, page };
  }

  const style = load('style', 'css', 'css');
  const favicon = load('favicon', 'svg', 'svg');
  const previews = hues.map((_, hue) => load(`preview-${hue}`, 'png', 'png').address);
  return {
    addresses: { style: style.address, favicon: favicon.address, previews },
    find: (path) => files.get(path) ?? markAt(path),
    favicon: { ...favicon.page, immutable: false },
  };
}

/** The mark of an agent, which is drawn from its slug alone. */
function markAt(path: string): Page | null {
  const slug = /^\/-\/marks\/([a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9]))\.svg$/.exec(path)?.[1];
  return slug === undefined ? null : { type: 'svg', body: avatarSvg(slug) };
}
