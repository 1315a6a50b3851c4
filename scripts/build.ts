import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { threadEntries } from '../src/platform/thread-entry.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** In modules there is no `require`, with which libraries in CommonJS take those of Node. */
const requiring = `import { createRequire } from 'node:module';const require = createRequire(import.meta.url);`;

if (import.meta.main) await (process.argv[2] === 'client' ? buildClient() : buildProgram(join(root, 'dist')));

/** Writes `client/dist`: the SDK as modules with their types, and the agent's command line as few files. */
async function buildClient(): Promise<void> {
  const folder = join(root, 'client/dist');
  rmSync(folder, { recursive: true, force: true });
  execFileSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(root, 'client')],
    {
      stdio: 'inherit',
    },
  );
  await build({
    absWorkingDir: root,
    entryPoints: { 'masthead-agent': 'client/src/cli.ts' },
    outdir: folder,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[hash]',
    legalComments: 'none',
    logLevel: 'warning',
  });
}

/**
 * Writes the program as it is published into `folder`, which is emptied: JavaScript in few files. Dependencies are
 * left to be installed; libraries that stand among the development dependencies become part of it, with their
 * licences, since loading their hundreds of files was the larger part of a start.
 */
async function buildProgram(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const options = {
    absWorkingDir: root,
    entryNames: '[name]',
    outdir: folder,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    bundle: true,
    external: Object.keys(dependencies),
    legalComments: 'none',
    // Blanks and comments were a fifth, and a dash in a comment made the largest file twice as large in memory.
    minifyWhitespace: true,
    lineLimit: 120,
    metafile: true,
    logLevel: 'warning',
  } as const;
  // A thread in one file each: split from the program, the one that writes loaded fifty, and started later.
  const threads = Object.values(threadEntries).map((path) => `src/${path}`);
  const built = await Promise.all([
    build({ ...options, entryPoints: ['src/cli.ts'], splitting: true, banner: { js: requiring } }),
    build({ ...options, entryPoints: threads }),
  ]);
  const bundled = built
    .flatMap(({ metafile }) => Object.keys(metafile.inputs))
    .flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  for (const name of new Set(bundled)) keepLicence(name, join(folder, 'licences'));
}

/** Lays the package out in a folder as it is published: compiled, without source. Returns its folder. */
export async function layOutPackage(folder: string): Promise<string> {
  const target = join(folder, 'package');
  await buildProgram(join(target, 'dist'));
  for (const part of ['bin', 'assets', 'docs', 'package.json'])
    cpSync(join(root, part), join(target, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(target, 'node_modules'));
  return target;
}

function keepLicence(name: string, folder: string): void {
  const files = ['LICENSE', 'LICENSE.md', 'license'].map((file) => join(root, 'node_modules', name, file));
  const licence = files.find((file) => existsSync(file));
  const target = join(folder, `${name.replace('/', '-')}.txt`);
  mkdirSync(folder, { recursive: true });
  if (licence !== undefined) return cpSync(licence, target);
  // Of some it is only stated.
  const manifest = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
  const { version, license, author, homepage } = JSON.parse(manifest) as Record<string, unknown>;
  if (license === undefined) throw new Error(`${name} has no licence that could go with it`);
  writeFileSync(target, `${JSON.stringify({ name, version, license, author, homepage }, null, 2)}\n`);
}
