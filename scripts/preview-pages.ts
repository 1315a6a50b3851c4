/**
 * Writes every kind of page, with the texts of the tests, to a folder, and the assets beside them, so that they
 * can be looked at: `node scripts/preview-pages.ts FOLDER`.
 */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fixturePages } from '../test/web-fixtures.ts';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: node scripts/preview-pages.ts FOLDER');

mkdirSync(folder, { recursive: true });
cpSync(new URL('../assets', import.meta.url).pathname, join(folder, 'assets'), { recursive: true });
for (const [name, page] of fixturePages()) {
  const local = page
    .replace(/href="\/-\/style\.[^"]*"/, 'href="assets/style.css"')
    .replace(/href="\/-\/(?:favicon|marks)[^"]*"/, 'href="assets/favicon.svg"');
  writeFileSync(join(folder, `${name}.html`), local);
}
