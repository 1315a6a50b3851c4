// Makes the files of a release in release/: npm run release. The two packages, what they are made of (CycloneDX), all
// licences, and checksums of the four. The same commit and npm make the same bytes. `-- FOLDER` takes another, and empties it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

type Component = {
  readonly name: string;
  readonly version: string;
  readonly 'bom-ref': string;
  readonly licenses?: readonly { readonly license?: { readonly id?: string } }[];
  readonly [more: string]: unknown;
};
type Dependency = { readonly ref: string; readonly dependsOn?: readonly string[] };
type Bom = {
  readonly metadata: { timestamp?: string; readonly component: Component };
  serialNumber?: string;
  readonly components: readonly Component[];
  readonly dependencies: readonly Dependency[];
};

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? join(root, 'release'));
  makeRelease(folder);
  process.stdout.write(readFileSync(join(folder, 'SHA256SUMS'), 'utf8'));
}

/** Writes all files of a release into a folder, which is emptied. */
function makeRelease(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const workspace of [[], ['--workspace=client']])
    npm(['pack', '--pack-destination', folder, ...workspace]);
  const bom = readBom();
  const { version } = bom.metadata.component;
  writeFileSync(join(folder, `masthead-${version}.cdx.json`), `${JSON.stringify(bom, null, 2)}\n`);
  writeFileSync(join(folder, 'LICENCES.txt'), licences(bom));
  const sums = readdirSync(folder)
    .toSorted()
    .map((name) => {
      const hash = createHash('sha256').update(readFileSync(join(folder, name)));
      return `${hash.digest('hex')}  ${name}\n`;
    });
  writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
}

/**
 * What is installed with the package by its lock file, for any machine, and what the build has put into it; without time
 * and serial number.
 */
function readBom(): Bom {
  const { serialNumber: _serial, ...all } = sbom();
  const { timestamp: _time, ...metadata } = all.metadata;
  const bundled = new Set(readdirSync(join(root, 'dist/licences')).map((name) => name.replace(/\.txt$/, '')));
  const components = installedBy(readLock())
    .concat(all.components.filter(({ name }) => bundled.has(name.replace('/', '-'))))
    .map((one) => all.components.find((known) => known['bom-ref'] === one['bom-ref']) ?? one);
  const byRef = new Map(components.map((one) => [one['bom-ref'], one]));
  // npm names the root after its folder.
  const component = { ...metadata.component, name: metadata.component['bom-ref'].replace(/@[^@]*$/, '') };
  const refs = new Set([component['bom-ref'], ...byRef.keys()]);
  const dependencies = all.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }));
  const sorted = [...byRef.keys()].toSorted().flatMap((ref) => byRef.get(ref) ?? []);
  return { ...all, metadata: { ...metadata, component }, components: sorted, dependencies };
}

type Locked = {
  readonly version: string;
  readonly dev?: true;
  readonly link?: true;
  readonly license?: string;
};

function readLock(): [path: string, Locked][] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  return Object.entries(lock.packages);
}

function installedBy(lock: readonly [string, Locked][]): Component[] {
  return lock.flatMap(([path, { version, dev, link, license }]) => {
    const [, name] = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
    if (name === undefined || dev || link) return [];
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    const licenses = license === undefined ? [] : [{ license: { id: license } }];
    return [{ 'bom-ref': `${name}@${version}`, type: 'library', name, version, purl, licenses }];
  });
}

function sbom(): Bom {
  const text = npm(['sbom', '--sbom-format=cyclonedx']);
  return JSON.parse(text.slice(text.indexOf('{'))) as Bom;
}

/** The text of each licence, by package. */
function licences({ metadata, components }: Bom): string {
  const text = ({ name, licenses }: Component, folder: string) => {
    const files = existsSync(folder) ? readdirSync(folder) : [];
    const file = files.find((each) => /^(?:licen[cs]e|copying)(?:\.\w+)?$/i.test(each));
    if (file !== undefined) return readFileSync(join(folder, file), 'utf8').trim();
    const ids = (licenses ?? []).flatMap(({ license }) => license?.id ?? []);
    return `${ids.join(', ') || `not stated: see the package ${name}`} (no text of it at hand)`;
  };
  const places: [Component, string][] = [
    [metadata.component, root],
    ...components.map((one): [Component, string] => [one, join(root, 'node_modules', one.name)]),
  ];
  return places
    .map(([one, folder]) => `${one.name} ${one.version}\n${'='.repeat(72)}\n${text(one, folder)}\n`)
    .join('\n\n');
}

function npm(args: readonly string[]): string {
  try {
    return execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    const isOld = args[0] === 'sbom' && /Unknown command/i.test(String(Reflect.get(Object(error), 'stderr')));
    throw isOld
      ? new Error("This npm has no 'npm sbom': take npm 10.1 or newer (npx npm@11 run release).")
      : error;
  }
}
