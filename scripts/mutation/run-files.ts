import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A copy of the project in which faults are planted. */
export type Bench = {
  readonly folder: string;
  /** For what tests write, and leave behind where they are ended. */
  readonly temporary: string;
  readonly remove: () => void;
};

/** The first test that failed. */
export type Failure = {
  readonly test: string;
  /** Its file, as far as the report says. */
  readonly file: string;
  /** It was ended, since its time was over. */
  readonly isLate?: true;
};

/** A copy of what git knows of, as it is now, with the libraries linked. */
export function makeBench(root: string, name: string): Bench {
  const folder = join(root, '.mutants', name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0');
  for (const file of files)
    if (file !== '' && existsSync(join(root, file))) cpSync(join(root, file), join(folder, file));
  // Of its own: in a folder that the project's git ignores, the linter finds no file and fails.
  execFileSync('git', ['init', '--quiet'], { cwd: folder });
  execFileSync('cp', ['-al', join(root, 'node_modules'), folder]);
  execFileSync(process.execPath, ['test/support/bundled-libraries.ts'], { cwd: folder });
  const temporary = mkdtempSync(join(tmpdir(), 'mutate-'));
  const remove = () => {
    for (const path of [folder, temporary]) rmSync(path, { recursive: true, force: true, maxRetries: 10 });
  };
  return { folder, temporary, remove };
}

/**
 * Keeps the PostgreSQL that test files share, which each would start anew. It is that of the program as it is, and ends
 * with this process.
 */
export async function keepPostgres(root: string): Promise<() => void> {
  const code = `import { sharedPostgres } from '${root}/test/support/shared-postgres.ts';
    await sharedPostgres();
    console.log('ready');
    process.stdin.resume().on('end', () => process.exit());`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: root,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return () => child.kill();
}

/** A fault may fill the memory of the machine: no test needs a fourth of this, bytes. */
const mostMemory = 4 * 1024 ** 3;

type Run = {
  readonly ms: number;
  /** Folder to which V8 writes what ran; all tests are run then. */
  readonly coverage?: string;
  /** With a PostgreSQL of its own, made by the program with its fault. */
  readonly ownPostgres?: boolean;
};

/** Runs test files in one process until the first failure, and returns that; null where all pass. */
export async function runFiles(
  { folder, temporary }: Bench,
  files: readonly string[],
  { ms, coverage, ownPostgres = false }: Run,
): Promise<Failure | null> {
  rmSync(temporary, { recursive: true, force: true, maxRetries: 10 });
  mkdirSync(temporary, { mode: 0o755 });
  mkdirSync(join(folder, '.test-groups'), { recursive: true });
  const entry = join(folder, '.test-groups/mutate.test.mjs');
  const imports = files.map((file) => `import ${JSON.stringify(pathToFileURL(join(folder, file)).href)};\n`);
  writeFileSync(entry, imports.join(''));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const args = ['--import=./test/support/bundled-libraries.ts', '--test-reporter=tap', entry];
  // The shared one is that of the parent, which a shell is then.
  const command = ownPostgres
    ? ['/bin/sh', '-c', '"$@"; exit $?', 'sh', process.execPath]
    : [process.execPath];
  const [program = '', ...first] = command;
  const child = spawn(program, [...first, ...args], {
    cwd: folder,
    env: {
      ...env,
      TMPDIR: temporary,
      NODE_COMPILE_CACHE: join(folder, 'node_modules/.cache/masthead'),
      ...(coverage === undefined ? {} : { NODE_V8_COVERAGE: coverage }),
    },
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    // The rest of the files would say nothing more.
    if (coverage === undefined && failureIn(output) !== null) end('SIGTERM');
  });
  const end = (signal: NodeJS.Signals) => {
    try {
      process.kill(-(child.pid ?? 0), signal);
    } catch {
      // It has ended by itself.
    }
    if (signal === 'SIGTERM') setTimeout(end, 2_000, 'SIGKILL').unref();
  };
  const timer = setTimeout(end, Math.max(1_000, ms), 'SIGKILL');
  let isTooLarge = false;
  const watch = setInterval(() => {
    isTooLarge ||= memoryOf(child.pid) > mostMemory;
    if (isTooLarge) end('SIGKILL');
  }, 500);
  const code = await new Promise((resolve) => child.on('exit', resolve));
  clearTimeout(timer);
  clearInterval(watch);
  const failed = failureIn(output);
  if (failed !== null) return failed;
  if (code === 0) return null;
  const file = files[0] ?? '';
  if (isTooLarge) return { test: 'takes all memory', file };
  return code === null
    ? { test: 'does not end', file, isLate: true }
    : { test: 'a file that did not run', file };
}

/** What a process has in memory, bytes; 0 where that is not known. */
function memoryOf(pid: number | undefined): number {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return 1024 * Number(kibibytes ?? 0);
  } catch {
    return 0;
  }
}

/** Of the innermost test, which is reported first. */
function failureIn(tap: string): Failure | null {
  const found = /^ *not ok \d+ - (.*)\n(?:.*\n)*?(?=[ ]*(?:\.\.\.|location: '(.*?):\d+:\d+'))/m.exec(tap);
  if (found === null) return null;
  const file = /location: '(.*?):\d+:\d+'/.exec(tap.slice(found.index))?.[1] ?? '';
  return {
    test: found[1] ?? '',
    file: /(?:client\/)?test\/[^/]+(?:\/[^/]+)?\.test\.ts$/.exec(file)?.[0] ?? '',
  };
}
