import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { BuildOptions } from 'esbuild';
import { threadEntries } from '../../src/platform/thread-entry.ts';

/**
 * Libraries of hundreds of small modules, which every process and thread of a test would load one by one: as many
 * files as the published program bundles them into, they load in a twentieth of the time. `npm test` bundles them
 * first and imports this module into each process; without that they are loaded as they are.
 */
const libraries = ['kysely', 'typebox', '@modelcontextprotocol/server', '@modelcontextprotocol/client'];

/**
 * With TEST_THREADS=bundled the threads of a service in this process begin with one file each, in place of half of
 * `src`. Not where sources change after they were bundled, as where faults are planted.
 */
const bundlesThreads = process.env['TEST_THREADS'] === 'bundled';
const threads = [threadEntries.render, threadEntries.writer];

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, 'node_modules/.cache/masthead-libraries');
const list = join(folder, 'list.json');
/** As deep as `dist`, from where the program finds its other files. */
const threadFolder = join(root, '.test-threads');

const bundling = {
  absWorkingDir: root,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  bundle: true,
  legalComments: 'none',
  logLevel: 'warning',
} satisfies BuildOptions;

if (import.meta.main) {
  await bundleLibraries();
  if (bundlesThreads) await bundleThreads();
} else if (existsSync(list)) useBundles(JSON.parse(readFileSync(list, 'utf8')) as Record<string, string>);

function useBundles(files: Readonly<Record<string, string>>): void {
  const addresses = new Map(
    Object.entries(files).map(([name, file]) => [name, pathToFileURL(join(folder, file)).href]),
  );
  const begin = new Map(
    (bundlesThreads ? threads : []).map((path) => [
      pathToFileURL(join(root, 'src', path)).href,
      pathToFileURL(join(threadFolder, `${basename(path, '.ts')}.mjs`)).href,
    ]),
  );
  // Not in an installed package, whose own libraries are what is tested.
  const here = ['src/', 'test/', 'client/'].map((part) => pathToFileURL(join(root, part)).href);
  registerHooks({
    resolve: (specifier, context, next) => {
      const bundled = addresses.get(specifier);
      const isOurs = here.some((part) => context.parentURL?.startsWith(part));
      return next(bundled !== undefined && isOurs ? bundled : (begin.get(specifier) ?? specifier), context);
    },
  });
}

async function bundleThreads(): Promise<void> {
  const { build } = await import('esbuild');
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  await build({
    ...bundling,
    entryPoints: threads.map((path) => join('src', path)),
    entryNames: '[name]',
    outdir: threadFolder,
    outExtension: { '.js': '.mjs' },
    external: Object.keys(dependencies),
  });
}

/** Every name that code imports of a library gets a file; what they have in common is there once. */
async function bundleLibraries(): Promise<void> {
  const { build } = await import('esbuild');
  const imported = new RegExp(`from '((?:${libraries.join('|')})(?:/[^']*)?)'`, 'g');
  const names = new Set(
    globSync('{src,test,client/src,client/test}/**/*.ts', { cwd: root }).flatMap((path) =>
      [...readFileSync(join(root, path), 'utf8').matchAll(imported)].map(([, name = '']) => name),
    ),
  );
  const files = Object.fromEntries([...names].map((name) => [name, name.replaceAll(/\W+/g, '-')]));
  await build({
    ...bundling,
    entryPoints: Object.fromEntries(Object.entries(files).map(([name, file]) => [file, name])),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    splitting: true,
  });
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    list,
    JSON.stringify(Object.fromEntries(Object.entries(files).map(([name, file]) => [name, `${file}.mjs`]))),
  );
}
