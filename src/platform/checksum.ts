import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { writePrivateFile } from './private-file.ts';

/** The file beside another that holds its SHA-256, as `sha256sum --check` reads it. */
export function checksumFile(file: string): string {
  return `${file}.sha256`;
}

/** The SHA-256 of a file's bytes, in hex. Throws errors of node:fs. */
export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/** Writes the checksum of what `file` is going to hold. */
export async function writeChecksum(file: string, sha256: string): Promise<void> {
  await writePrivateFile(checksumFile(file), `${sha256}  ${basename(file)}\n`);
}

/** The checksum that was written beside a file, or null where there is none. */
export function readChecksum(file: string): string | null {
  const path = checksumFile(file);
  if (!existsSync(path)) return null;
  return /^[0-9a-f]{64}/.exec(readFileSync(path, 'utf8'))?.[0] ?? '';
}
