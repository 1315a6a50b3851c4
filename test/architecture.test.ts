import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createApp } from '../src/app.ts';
import { createRateLimiter } from '../src/services/limits/rate-limiter.ts';
import { writes } from '../src/services/writes.ts';
import { reservedAgentSlugs } from '../src/rules/slug.ts';
import { describeInstances } from './support/instance.ts';

const root = fileURLToPath(new URL('../src', import.meta.url));

/** A source file: its path below src, its folder there (or the file itself), what it imports, its code. */
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => {
    const code = readFileSync(join(root, path), 'utf8');
    const imports = [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, to = '']) =>
      to.startsWith('.') ? normalize(join(dirname(path), to)) : to,
    );
    return { path, folder: folderOf(path), imports, code };
  });

function folderOf(path: string): string {
  return path.split('/')[0] ?? path;
}

const interfaces = ['api', 'web', 'mcp'];
const aboveInterfaces = ['app.ts', 'server.ts', 'cli.ts', 'cli', 'workers'];
const above = ['admission', 'http', 'process', ...interfaces, ...aboveInterfaces];

describe('a folder imports only from below', () => {
  for (const [folder, forbidden] of [
    ['api', ['web', 'mcp', 'process', ...aboveInterfaces]],
    ['web', ['api', 'mcp', 'process', ...aboveInterfaces]],
    ['mcp', ['api', 'web', 'process', ...aboveInterfaces]],
    ['admission', ['process', ...interfaces, ...aboveInterfaces]],
    ['workers', ['admission', 'http', 'process', ...interfaces, 'app.ts', 'server.ts', 'cli']],
    ['process', ['admission', 'http', ...interfaces, ...aboveInterfaces]],
    [
      'http',
      [
        'services',
        'schemas',
        'db',
        'mail',
        'markdown',
        'admission',
        'process',
        ...interfaces,
        ...aboveInterfaces,
      ],
    ],
    ['services', above],
    ['db', ['services', 'schemas', 'mail', 'markdown', ...above]],
    ['mail', ['services', 'schemas', 'db', 'markdown', ...above]],
    ['markdown', ['services', 'schemas', 'db', 'mail', ...above]],
    ['schemas', ['services', 'db', 'mail', 'markdown', ...above]],
    ['media', ['services', 'schemas', 'db', 'mail', 'markdown', ...above]],
    ['config', ['services', 'schemas', 'db', 'mail', 'markdown', 'media', ...above]],
    ['rules', ['services', 'schemas', 'db', 'mail', 'markdown', 'media', ...above]],
    ['platform', ['config', 'rules', 'services', 'schemas', 'db', 'mail', 'markdown', 'media', ...above]],
  ] as const) {
    test(`${folder}: nothing of ${forbidden.join(', ')}`, () => {
      const within = files.filter((file) => file.folder === folder);
      assert.ok(within.length > 0);
      const wrong = within.flatMap(({ path, imports }) =>
        imports
          .filter((to) => forbidden.some((name) => name === folderOf(to)))
          .map((to) => `${path} imports ${to}`),
      );
      assert.deepEqual(wrong, []);
    });
  }
});

test('no files import each other: what one of them defines might not be there yet', () => {
  const values = new Map(
    files.map(({ path, code }) => [
      path,
      [...code.matchAll(/^(?:import|export) (?!type )[^;]*?'(\.[^']+)'/gm)]
        .filter(([statement]) => !/\{(\s*type \w+,?)+\s*\} from/.test(statement))
        .map(([, to = '']) => normalize(join(dirname(path), to))),
    ]),
  );
  // What imports nothing that is left is in no circle.
  for (let before = Infinity; values.size < before;) {
    before = values.size;
    for (const [path, imports] of values) if (!imports.some((to) => values.has(to))) values.delete(path);
  }
  assert.deepEqual([...values.keys()], []);
});

test('the client package holds nothing of the server but pure rules', () => {
  const client = fileURLToPath(new URL('../client/src', import.meta.url));
  const outside = readdirSync(client, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) =>
      [...readFileSync(join(client, path), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)]
        .map(([, to = '']) => normalize(join(dirname(path), to)))
        .filter((to) => to.startsWith('../../src/'))
        .map((to) => `${path} imports ${to.slice('../../src/'.length)}`),
    );
  assert.ok(outside.length > 0);
  assert.deepEqual(
    outside.filter(
      (use) => !/^(commands|conform|terminal)\/.* imports (rules\/|mail\/stored-mail\.ts)/.test(use),
    ),
    [],
  );
});

test('every folder is in the picture', () => {
  const picture = readFileSync(new URL('../docs/architecture.md', import.meta.url), 'utf8').split(/[\s,]+/);
  const folders = [...new Set(files.map(({ path, folder }) => (path === folder ? folder : `${folder}/`)))];
  assert.deepEqual(
    folders.filter((folder) => !picture.includes(folder)),
    [],
  );
});

test('a folder holds at most 20 files, and src itself 8', () => {
  const counts = new Map<string, number>();
  for (const { path } of files) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  assert.deepEqual(
    // The steps since a release stand in one list, however many there are.
    [...counts].filter(([folder, count]) => folder !== 'db/migrations' && count > (folder === '.' ? 8 : 20)),
    [],
  );
});

describe('a library is used in its place only', () => {
  for (const [library, places] of [
    ['fastify', ['app.ts', 'http', ...interfaces]],
    ['kysely', ['db', 'services', 'context.ts']],
    ['pg', ['db']],
    ['node:sqlite', ['db']],
    ['nodemailer', ['mail']],
    ['markdown-it', ['markdown']],
    ['typebox', ['schemas', ...interfaces]],
    ['@modelcontextprotocol/server', ['mcp']],
  ] as const) {
    test(library, () => {
      const users = files.filter(({ imports }) =>
        imports.some((to) => to === library || to.startsWith(`${library}/`)),
      );
      assert.ok(users.length > 0);
      assert.deepEqual(
        users.filter(({ folder }) => !places.some((place) => place === folder)).map(({ path }) => path),
        [],
      );
    });
  }
});

describe('threads load no large library that only others need', () => {
  for (const [entry, ...libraries] of [
    ['server.ts', 'markdown-it', 'highlight.js'],
    ['app.ts', 'markdown-it', 'highlight.js'],
    ['process/writer-thread.ts', 'markdown-it', 'highlight.js', 'typebox', 'fastify'],
    ['markdown/pool/render-thread.ts', 'typebox', 'fastify', 'kysely'],
  ] as const) {
    test(`${entry}: not ${libraries.join(', ')}`, () => {
      const loaded = loadedBy(entry);
      assert.ok(loaded.size > 10);
      assert.deepEqual(
        libraries.flatMap((library) => loaded.get(library) ?? []),
        [],
      );
    });
  }
});

/** What loading a file loads at once, and a path to it from there: not types, nor what is imported on demand. */
function loadedBy(entry: string): ReadonlyMap<string, string> {
  const loaded = new Map([[entry, entry]]);
  for (const [path, way] of loaded) {
    const { code = '' } = files.find((file) => file.path === path) ?? {};
    for (const [, names = '', to = ''] of code.matchAll(
      /^(?:import|export) ([^;']*?)(?:from )?'([^']+)'/gm,
    )) {
      const isOfTypes = names.startsWith('type ') || /^\{(?:\s*type [^,}]+,?)+\s*\} $/.test(names);
      const file = to.startsWith('.')
        ? normalize(join(dirname(path), to))
        : to.replace(/^((?:@[^/]+\/)?[^/]+).*/, '$1');
      if (!isOfTypes && !loaded.has(file)) loaded.set(file, `${way} > ${file}`);
    }
  }
  return loaded;
}

describe('the code', () => {
  const holding = (pattern: RegExp, ...exceptions: string[]) =>
    files
      .filter(
        ({ path, code }) =>
          pattern.test(code) && !exceptions.includes(path) && !exceptions.includes(folderOf(path)),
      )
      .map(({ path }) => path);

  test('loads no client of the web, which an import of node:http brings along', () => {
    assert.deepEqual(holding(/^import (?!type ).*'node:http'/m, 'cli'), []);
  });

  test('reads the environment in config/ only', () => {
    assert.deepEqual(holding(/process\.env/, 'config'), []);
  });

  test('asks the clock of its context only', () => {
    // Where the clock is made, the time of a log line, and the wait for a database before there is a context.
    const makers = [
      'server.ts',
      'process/open-context.ts',
      'cli/commands/backup.ts',
      'cli/commands/database.ts',
      'cli/commands/mail.ts',
      'cli/doctor/probes.ts',
      'cli/verify-backup.ts',
      'platform/log.ts',
      'db/postgres/postgres-start.ts',
    ];
    assert.deepEqual(holding(/Date\.now\b|new Date\(\)/, ...makers), []);
  });

  test('has no pattern with two parts that match the same spaces, which takes quadratic time', () => {
    const greedy = /(?:(?<!\\)\.|\[\^(?:\\[^s]|[^\]\\])*\])[*+]\)*\\s[*+]/;
    assert.match(String.raw`([^[\]{},]*)\s*`, greedy);
    assert.deepEqual(holding(greedy), []);
  });

  test('compares no name of a variant or engine', () => {
    const compared = /(?:\.name|engine|variant)\s*[!=]==?\s*'(?:subdomain|path|sqlite|postgres)'/i;
    // The settings of a database are of two forms, told apart by its name.
    assert.deepEqual(holding(compared, 'variant.ts', 'db', 'config'), []);
  });

  test('lists every write operation under its name', () => {
    const declared = files.flatMap(({ code }) =>
      [...code.matchAll(/= defineWrite\(\s*'([^']+)'/g)].map(([, name = '']) => name),
    );
    assert.ok(declared.length > 20);
    assert.deepEqual([...writes.keys()].toSorted(), declared.toSorted());
  });
});

describe('a test', () => {
  const tests = fileURLToPath(new URL('.', import.meta.url));
  for (const [what, pattern, example, instead] of [
    [
      'opens a SQLite file only with time to wait for its lock',
      /DatabaseSync\)?\((?!.*\btimeout:)/,
      'new DatabaseSync(file)',
      'use openSqlite of test/support/sqlite-file.ts',
    ],
    [
      'removes no folder in a hook, which may run before the one that stops a server',
      /after\((?:async )?\(\) => (?:await )?rm(?:Sync)?\(/,
      'after(() => rm(folder))',
      'use scratchFolder of test/support/scratch-folder.ts',
    ],
  ] as const)
    test(what, () => {
      assert.match(example, pattern);
      const holding = readdirSync(tests, { recursive: true, encoding: 'utf8' }).filter(
        (path) => path.endsWith('.ts') && pattern.test(readFileSync(join(tests, path), 'utf8')),
      );
      assert.deepEqual(holding, ['architecture.test.ts'], instead);
    });
});

describeInstances('every first segment that the program serves', {}, (the) => {
  test('is a slug that no agent can have', async () => {
    const ctx = the().ctx();
    const limiter = createRateLimiter(ctx, () => 1);
    const app = await createApp(ctx, { limiter, health: { state: () => 'ready', writable: () => true } });
    await app.ready();
    const tree = app.printRoutes({ commonPrefix: false });
    const segments = [...tree.matchAll(/^ {4}[├└]── ([a-z0-9-]{3,63})\b/gm)].map(
      ([, segment = '']) => segment,
    );
    assert.ok(segments.includes('api') && segments.includes('healthz'));
    assert.deepEqual(
      segments.filter((segment) => !reservedAgentSlugs.has(segment)),
      [],
    );
    await app.close();
    await limiter.close();
  });
});
