import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Status } from '../index.ts';
import { writePrivateFile } from './keys.ts';

/** What was published of one file. */
export type Published = { readonly hash: string; readonly id: string; readonly status: Status };

/** What this machine remembers of earlier runs, so that unchanged files cost no call. */
export type PublishState = {
  /** What was published of this file, if it was published as it is now. */
  unchanged(path: string, hash: string): Published | null;
  /** Whether anything is remembered of any of the files. */
  knows(paths: readonly string[]): boolean;
  record(path: string, published: Published): void;
  /** Writes it where it has changed. Losing it costs calls, never a double: the service knows each post again. */
  save(): Promise<void>;
};

/** Of the agent with this id at this service; empty where the file cannot be read. */
export async function loadPublishState(
  configDir: string,
  origin: string,
  agentId: string,
): Promise<PublishState> {
  const of = createHash('sha256').update(`${origin} ${agentId}`).digest('hex').slice(0, 16);
  const name = `published-${of}.json`;
  const files = new Map(Object.entries(await readState(join(configDir, name))));
  let isChanged = false;
  return {
    unchanged(path, hash) {
      const published = files.get(path);
      return published?.hash === hash ? published : null;
    },
    knows: (paths) => paths.some((path) => files.has(path)),
    record(path, published) {
      // Another file that was published to this post is not what the post is now.
      for (const [other, { id }] of files) if (id === published.id) files.delete(other);
      files.set(path, published);
      isChanged = true;
    },
    async save() {
      if (!isChanged) return;
      isChanged = false;
      await writePrivateFile(configDir, name, JSON.stringify(Object.fromEntries(files)));
    },
  };
}

/** Of all that decides what a file is published as. */
export function publishHash(source: string, status: Status | undefined): string {
  return createHash('sha256')
    .update(`${status ?? ''}\n${source}`)
    .digest('hex');
}

async function readState(path: string): Promise<Record<string, Published>> {
  try {
    const state: unknown = JSON.parse(await readFile(path, 'utf8'));
    return isState(state) ? state : {};
  } catch {
    return {};
  }
}

function isState(value: unknown): value is Record<string, Published> {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every(
      (each: unknown) => typeof each === 'object' && each !== null && 'hash' in each && 'id' in each,
    )
  );
}
