import { everything } from '../../db/write.ts';
import type { PageTag } from './page.ts';
import type { StoredPage } from './stored-page.ts';

/** Pages ready to be sent, by address, cached until something they show changes. */
export type PageCache = {
  get(key: string): StoredPage | undefined;
  /** Cache generation: note it before reading a page and pass it to put(), so that a stale page is not cached. */
  generation(): number;
  /** Caches a page, unless something it shows has changed since that generation. */
  put(key: string, page: StoredPage, since: number): void;
  /** Measures a page again after it was compressed. */
  resized(key: string, page: StoredPage): void;
  /** Drops all pages that show what changed. */
  drop(changed: readonly string[]): void;
  /** Drops everything. */
  clear(): void;
};

/** Bytes that a page takes besides its bodies: headers, tags, index entries. */
const overhead = 2_048;

/** The largest share of the cache that one page may take. */
const largestShare = 1 / 4;

/** Changes remembered by tag; beyond that, everything counts as changed. */
const mostRemembered = 10_000;

/**
 * A cache of `capacity` bytes, counting all encodings. Pages not requested since they were last considered are
 * evicted first (second chance: close to least recently used, but a hit only sets a flag).
 */
export function createPageCache(capacity: number): PageCache {
  const pages = new Map<string, { readonly page: StoredPage; bytes: number }>();
  const keysByTag = new Map<string, Set<string>>();
  const changedAt = new Map<string, number>();
  let clearedAt = 0;
  let clock = 0;
  let total = 0;

  function get(key: string): StoredPage | undefined {
    const page = pages.get(key)?.page;
    if (page !== undefined) page.used = true;
    return page;
  }

  function put(key: string, page: StoredPage, since: number): void {
    if (since < clearedAt || page.tags.some((tag) => (changedAt.get(tag) ?? 0) > since)) return;
    const bytes = sizeOf(key, page);
    if (bytes > capacity * largestShare) return;
    remove(key);
    pages.set(key, { page, bytes });
    total += bytes;
    for (const tag of page.tags) {
      const keys = keysByTag.get(tag);
      if (keys) keys.add(key);
      else keysByTag.set(tag, new Set([key]));
    }
    makeRoom();
  }

  function resized(key: string, page: StoredPage): void {
    const entry = pages.get(key);
    if (entry?.page !== page) return;
    const bytes = sizeOf(key, page);
    total += bytes - entry.bytes;
    entry.bytes = bytes;
    makeRoom();
  }

  function makeRoom(): void {
    for (const [key, entry] of pages) {
      if (total <= capacity) return;
      if (entry.page.used) {
        entry.page.used = false;
        // Moved to the end, where this loop reaches it again.
        pages.delete(key);
        pages.set(key, entry);
      } else remove(key);
    }
  }

  function remove(key: string): void {
    const entry = pages.get(key);
    if (!entry) return;
    pages.delete(key);
    total -= entry.bytes;
    for (const tag of entry.page.tags) {
      const keys = keysByTag.get(tag);
      keys?.delete(key);
      if (keys?.size === 0) keysByTag.delete(tag);
    }
  }

  function drop(changed: readonly string[]): void {
    if (changed.includes(everything)) {
      clear();
      return;
    }
    clock++;
    if (changedAt.size > mostRemembered) {
      changedAt.clear();
      clearedAt = clock;
    }
    for (const tag of new Set(changed.flatMap(withKind))) {
      changedAt.set(tag, clock);
      for (const key of keysByTag.get(tag) ?? []) remove(key);
    }
  }

  function clear(): void {
    clock++;
    clearedAt = clock;
    pages.clear();
    keysByTag.clear();
    changedAt.clear();
    total = 0;
  }

  return { get, generation: () => clock, put, resized, drop, clear };
}

function sizeOf(key: string, page: StoredPage): number {
  const bodies = Object.values(page.representations).reduce(
    (bytes, form) => bytes + (form?.body.length ?? 0),
    0,
  );
  return overhead + 2 * key.length + bodies;
}

/** A change of `post:x` is also a change for what depends on all posts. */
function withKind(tag: string): string[] {
  const kind: PageTag | null = tag.startsWith('post:')
    ? 'post:*'
    : tag.startsWith('agent:')
      ? 'agent:*'
      : null;
  return kind === null ? [tag] : [tag, kind];
}
