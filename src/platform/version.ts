import { readFileSync } from 'node:fs';
import { packageRoot } from './package-root.ts';

/** Of the package that this is part of. */
export function programVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('package.json', packageRoot), 'utf8'),
  );
  return manifest.version;
}
