import { publicly, type Context } from '../../context.ts';
import { everything } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { newestChange, readChanges } from '../../services/changes.ts';
import type { PageTag, StoredPage } from './page.ts';

export type PageCache = ReturnType<typeof createPageCache>;

/** Bytes that a page takes besides its bodies: headers, tags, index entries. */
const overhead = 2_048;

/** The largest share of the cache that one page may take. */
const largestShare = 1 / 2;

/** Changes remembered by tag; beyond that, everything counts as changed. */
const mostRemembered = 10_000;

/** `page` is null once it has left the cache: V8 keeps the entries of a Map that were deleted until a full collection. */
type Entry = { page: StoredPage | null; bytes: number };

/**
 * Pages ready to be sent, by address, until something they show changes. At most `capacity` bytes, counting all encodings. Pages not requested since they were last considered are
 * evicted first (second chance: close to least recently used, but a hit only sets a flag).
 */
export function createPageCache(capacity: number) {
  const pages = new Map<string, Entry>();
  const keysByTag = new Map<string, Set<string>>();
  const changedAt = new Map<string, number>();
  let clearedAt = 0;
  let clock = 0;
  let total = 0;

  function get(key: string): StoredPage | undefined {
    const page = pages.get(key)?.page;
    if (page) page.used = true;
    return page ?? undefined;
  }

  /** Cache generation: note it before reading a page and pass it to put(), so that a stale page is not cached. */
  function generation(): number {
    return clock;
  }

  /** Caches a page, unless something it shows has changed since that generation. */
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

  /** Measures a page again after it was compressed. */
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
      if (entry.page?.used) {
        entry.page.used = false;
        // Moved to the end, where this loop reaches it again.
        pages.delete(key);
        pages.set(key, entry);
      } else remove(key);
    }
  }

  function remove(key: string): void {
    const entry = pages.get(key);
    if (!entry?.page) return;
    const { tags } = entry.page;
    pages.delete(key);
    entry.page = null;
    total -= entry.bytes;
    for (const tag of tags) {
      const keys = keysByTag.get(tag);
      keys?.delete(key);
      if (keys?.size === 0) keysByTag.delete(tag);
    }
  }

  /** Drops all pages that show what changed. */
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

  // `bytes`: of all pages.
  return { get, generation, put, resized, drop, clear, bytes: () => total };
}

function sizeOf(key: string, page: StoredPage): number {
  let bytes = overhead + 2 * key.length;
  for (const form of Object.values(page.representations)) bytes += form?.body.length ?? 0;
  return bytes;
}

/** A change of `post:x` is also a change for what depends on all posts. */
function withKind(tag: string): string[] {
  const kinds: PageTag[] = ['post:*', 'agent:*', 'blog:*'];
  return [tag, ...kinds.filter((kind) => tag.startsWith(kind.slice(0, -1)))];
}

/** Ms between two looks for other processes' changes: less than half of how far behind pages may be. */
const lookEvery = 400;

/**
 * How long a change may stay uncommitted after its number was assigned, ms. As long as changes are sure to be
 * stored, since a commit can wait for a synchronous standby that is down until somebody brings it back.
 */
const commitsWithin = 300_000;

/** Changes are kept for ten minutes; a process that has not looked for half of that may have missed some. */
const forgottenAfter = 300_000;

/** A larger gap is not commits in progress but the start of a new or restored database. */
const largestGap = 1_000;

/**
 * Keeps a cache true to the database: what this process changes is dropped before the caller is answered, what
 * others change within a second. Numbers may become visible out of order (PostgreSQL), so a gap is checked again
 * until it is filled or too old to be a commit in progress.
 */
export function followChanges(ctx: Context, cache: PageCache) {
  const missing = new Map<number, number>();
  let last: number | null = null;
  let version = -1;
  let lookedAt = ctx.now();
  let failing = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let looking = Promise.resolve();

  ctx.engine.onCommit(({ changed }) => cache.drop(changed));

  async function catchUp(): Promise<void> {
    const begun = performance.now();
    const before = ctx.engine.version();
    if (ctx.engine.primaryChanged()) startAnew();
    if (before === version && missing.size === 0) {
      lookedAt = ctx.now();
      return;
    }
    const mayLack = ctx.now() - lookedAt > forgottenAfter;
    if (mayLack) cache.clear();
    let isCurrent = true;
    const { after, changes } = await readOn(ctx).catch((error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      // Where no primary is, what is left of the database shows its changes late, but shows them.
      isCurrent = false;
      return readOn(publicly(ctx));
    });
    if (isCurrent) ctx.engine.followed(begun);
    if (mayLack || changes.length > 0) {
      // First, so that a page is not made again from a replica that lacks the change it was dropped for.
      ctx.engine.catchUp();
      cache.drop(mayLack ? [everything] : changes.map((change) => change.tag));
    }
    last ??= after;
    for (const { seq } of changes) last = note(seq, last);
    for (const [seq, since] of missing) if (ctx.now() - since > commitsWithin) missing.delete(seq);
    version = before;
    lookedAt = ctx.now();
  }

  /** What was made meanwhile may be old for good, and the numbers of another server's changes may begin lower. */
  function startAnew(): void {
    cache.clear();
    missing.clear();
    last = null;
    version = -1;
  }

  async function readOn(source: Context) {
    const after = last ?? Math.max(0, (await newestChange(source)) - largestGap);
    return { after, changes: await readChanges(source, { after, missed: [...missing.keys()] }) };
  }

  /** Returns the highest number so far. */
  function note(seq: number, before: number): number {
    missing.delete(seq);
    if (seq <= before) return before;
    if (seq - before > largestGap) cache.clear();
    // Of a large gap too: what commits at this moment has numbers near to the first that is seen.
    for (let gap = Math.max(before + 1, seq - largestGap); gap < seq; gap++) missing.set(gap, ctx.now());
    return seq;
  }

  /** Looks for changes now; resolves when the cache reflects all that were committed before the call. */
  function look(): Promise<void> {
    looking = looking.then(tryToCatchUp);
    return looking;
  }

  async function tryToCatchUp(): Promise<void> {
    try {
      await catchUp();
      failing = false;
    } catch (error) {
      if (!failing)
        ctx.log.warn({ err: error }, 'changes of other processes cannot be read: pages may be old');
      failing = true;
    }
  }

  async function round(): Promise<void> {
    await look();
    if (!stopped) timer = setTimeout(() => void round(), lookEvery).unref();
  }
  void round();

  async function stop(): Promise<void> {
    stopped = true;
    clearTimeout(timer);
    await looking;
  }

  return { look, stop };
}
