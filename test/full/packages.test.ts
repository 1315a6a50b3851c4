import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { awaitNewestMail } from '../../src/mail/stored-mail.ts';
import { spawnServer, type ServerProcess } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

describe('a package, packed and installed alone in an empty folder', () => {
  let dir = '';
  let server: ServerProcess;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'masthead-packages-'));
  });
  after(async () => {
    await server.stop();
    await rm(dir, { recursive: true });
  });

  test('serves', async () => {
    const folder = await installed('masthead', root);
    const { dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    assert.deepEqual(
      Object.keys(dependencies).filter((name) => name.startsWith('masthead')),
      [],
    );
    server = await spawnServer({
      script: join(folder, 'bin/masthead.mjs'),
      env: { DATA_DIR: join(dir, 'data'), NODE_DISABLE_COMPILE_CACHE: '1' },
      readyWithin: 60_000,
    });
    const { stdout } = await run(join(folder, 'bin/masthead.mjs'), ['post', 'publish', '--help']);
    assert.match(stdout, /^Usage: masthead post publish <file…>/);
  });

  test('is an agent of it, of less than 1 MB, under the oldest Node at hand', async () => {
    const folder = await installed('masthead-client', join(root, 'client'));
    assert.ok((await sizeOf(join(folder, '../..'))) < 1_000_000);
    const env = {
      PATH: (process.env['PATH'] ?? '')
        .split(':')
        .filter((part) => !part.includes('node_modules'))
        .join(':'),
      HOME: join(dir, 'home'),
      MASTHEAD_URL: server.baseUrl.replace('127.0.0.1', 'localhost'),
    };
    await mkdir(env.HOME);
    const agent = async (...args: string[]) =>
      (await run(join(folder, '../.bin/masthead-agent'), args, { env, cwd: env.HOME })).stdout;

    assert.match(await agent('--version'), /^\d+\.\d+\.\d+\n$/);
    const said = await agent('register', '--email', 'ada@example.com', '--name', 'Ada', '--slug', 'ada');
    assert.match(said, /masthead-agent verify -/);
    const mail = await awaitNewestMail(join(dir, 'data/mail'), { holdingToken: true }, 10_000);
    await agent('verify', mail?.token ?? '');
    await writeFile(join(env.HOME, 'note.md'), '# Note\n\nWoven.\n');
    assert.match(await agent('post', 'publish', 'note.md', '--publish'), /^created: note\.md -> http/);
    const sdk = `import { createClient } from 'masthead-client';
      const client = createClient({ baseUrl: '${env.MASTHEAD_URL}' });
      console.log((await client.discoverPosts()).posts[0].title);`;
    const script = join(folder, '../../sdk.mjs');
    await writeFile(script, sdk);
    assert.equal((await run('node', [script], { env })).stdout, 'Note\n');
  });

  /** The folder of the installed package. */
  async function installed(name: string, from: string): Promise<string> {
    const folder = join(dir, name);
    await mkdir(folder);
    await writeFile(join(folder, 'package.json'), '{"private":true}');
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', dir], { cwd: from });
    const [packed] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }];
    // A cache of compiled code, named relative to where npm runs, would count as part of what is installed.
    const { NODE_COMPILE_CACHE: _, ...env } = process.env;
    await run('npm', ['install', '--no-audit', '--no-fund', join(dir, packed.filename)], {
      cwd: folder,
      env,
    });
    return join(folder, 'node_modules', name);
  }
});

const tooOld =
  spawnSync('npm', ['sbom', '--help']).status === 0 ? false : 'this npm has no sbom: npm 10.1 or later';
if (tooOld) console.error(`SKIPPED: ${tooOld}`);

// In this file, since it builds dist/ too.
test(
  'a release has both packages, what they are made of, all licences and checksums',
  { skip: tooOld },
  () => {
    const folder = join(scratchFolder('release'), 'release');
    execFileSync('npm', ['run', '--silent', 'release', '--', folder], { cwd: root, stdio: 'ignore' });
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const { version } = manifest;
    assert.deepEqual(readdirSync(folder).toSorted(), [
      'LICENCES.txt',
      'SHA256SUMS',
      `masthead-${version}.cdx.json`,
      `masthead-${version}.tgz`,
      `masthead-client-${version}.tgz`,
    ]);
    execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: folder, stdio: 'ignore' });

    const bom = JSON.parse(readFileSync(join(folder, `masthead-${version}.cdx.json`), 'utf8'));
    const names: string[] = bom.components.map(({ name }: { name: string }) => name);
    const bundled = ['kysely', 'typebox', '@modelcontextprotocol/server'];
    const wanted = [
      ...Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }),
      ...bundled,
    ];
    assert.deepEqual(
      wanted.filter((name) => !names.includes(name)),
      [],
    );
    assert.equal(bom.metadata.component.name, 'masthead');
    assert.ok(!names.includes('typescript') && !names.includes('oxlint'));
    const licences = readFileSync(join(folder, 'LICENCES.txt'), 'utf8');
    for (const name of names) assert.ok(licences.includes(`\n${name} `), name);
    assert.doesNotMatch(licences + JSON.stringify(bom), /not stated|file:|127\.0\.0\.1:/);
  },
);

async function sizeOf(folder: string): Promise<number> {
  const paths = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(paths.map(async (path) => (await stat(join(folder, path))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
