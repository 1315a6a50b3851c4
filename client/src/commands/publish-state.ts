import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Status } from '../index.ts';
import { writePrivateFile } from './private-file.ts';
import type { Sent } from './publish-status.ts';

/** What was published of one file. */
export type Published = { readonly hash: string; readonly id: string; readonly status: Status };

export type PublishState = Awaited<ReturnType<typeof loadPublishState>>;

/**
 * The record of earlier runs on this machine, so that unchanged files cost no call: for the agent with this id at
 * this service. Empty where the file cannot be read.
 */
export async function loadPublishState(configDir: string, origin: string, agentId: string) {
  const name = `published-${sha256(`${origin} ${agentId}`).slice(0, 16)}.json`;
  const files = await readState(join(configDir, name));
  let isChanged = false;
  let written: Promise<void> = Promise.resolve();
  return {
    /** What was published of this file, if it was published as it is now. */
    unchanged(path: string, hash: string): Published | null {
      const published = files.get(path);
      return published?.hash === hash ? published : null;
    },
    /** What was last published of this file. */
    last: (path: string): Published | null => files.get(path) ?? null,
    /** Whether any of the files was published before. */
    knows: (paths: readonly string[]): boolean => paths.some((path) => files.has(path)),
    /** Each file with what was last published of it. */
    files: (): readonly (readonly [path: string, published: Published])[] => [...files],
    forget: (path: string): void => {
      files.delete(path);
      isChanged = true;
    },
    record(path: string, published: Published): void {
      // A file published to the same post earlier no longer says what the post is.
      for (const [other, { id }] of files) if (id === published.id) files.delete(other);
      files.set(path, published);
      isChanged = true;
    },
    /** Writes it if it has changed. Losing it costs calls: the service knows each post again, but for those that only `--move` gave their title. */
    async save(): Promise<void> {
      // Also waits for a write that is still in progress: the process may end after the last one.
      const before = written.catch(() => undefined);
      if (isChanged) {
        isChanged = false;
        const text = JSON.stringify(Object.fromEntries(files));
        written = before.then(() => writePrivateFile(configDir, name, text));
      }
      await written;
    },
  };
}

/** Of everything that decides what a file is published as. */
export function publishHash({ source, status, publishAt = '' }: Sent): string {
  return sha256(`${status ?? ''}${publishAt}\n${source}`);
}

async function readState(path: string): Promise<Map<string, Published>> {
  try {
    const files = JSON.parse(await readFile(path, 'utf8')) as Record<string, Published | null>;
    return new Map(Object.entries(files).flatMap(([file, each]) => (each?.hash ? [[file, each]] : [])));
  } catch {
    return new Map();
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
