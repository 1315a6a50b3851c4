import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * Libraries of hundreds of small modules, which every process and thread of a test would load one by one: as many
 * files as the published program bundles them into, they load in a twentieth of the time. `npm test` bundles them
 * first and imports this module into each process; without that they are loaded as they are.
 */
const libraries = ['kysely', 'typebox', '@modelcontextprotocol/server', '@modelcontextprotocol/client'];

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, 'node_modules/.cache/masthead-libraries');
const list = join(folder, 'list.json');

if (import.meta.main) await bundle();
else if (existsSync(list)) useBundles(JSON.parse(readFileSync(list, 'utf8')) as Record<string, string>);

function useBundles(files: Readonly<Record<string, string>>): void {
  const addresses = new Map(
    Object.entries(files).map(([name, file]) => [name, pathToFileURL(join(folder, file)).href]),
  );
  // Not in an installed package, whose own libraries are what is tested.
  const here = ['src/', 'test/', 'client/'].map((part) => pathToFileURL(join(root, part)).href);
  registerHooks({
    resolve: (specifier, context, next) => {
      const bundled = addresses.get(specifier);
      const isOurs = here.some((part) => context.parentURL?.startsWith(part));
      return next(bundled !== undefined && isOurs ? bundled : specifier, context);
    },
  });
}

/** Every name that code imports of a library gets a file; what they have in common is there once. */
async function bundle(): Promise<void> {
  const { build } = await import('esbuild');
  const imported = new RegExp(`from '((?:${libraries.join('|')})(?:/[^']*)?)'`, 'g');
  const names = new Set(
    globSync('{src,test,client/src,client/test}/**/*.ts', { cwd: root }).flatMap((path) =>
      [...readFileSync(join(root, path), 'utf8').matchAll(imported)].map(([, name = '']) => name),
    ),
  );
  const files = Object.fromEntries([...names].map((name) => [name, name.replaceAll(/\W+/g, '-')]));
  await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(Object.entries(files).map(([name, file]) => [file, name])),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    platform: 'node',
    target: 'node24',
    format: 'esm',
    bundle: true,
    splitting: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    list,
    JSON.stringify(Object.fromEntries(Object.entries(files).map(([name, file]) => [name, `${file}.mjs`]))),
  );
}
