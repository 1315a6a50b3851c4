import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createApp } from '../src/app.ts';
import { createCallCounter } from '../src/services/call-counter.ts';
import { operations } from '../src/services/operations.ts';
import { reservedAgentSlugs } from '../src/slug.ts';
import { describeInstances } from './support/instance.ts';

const root = fileURLToPath(new URL('../src', import.meta.url));

/** A source file: its path below src, its room (the first folder, or the file itself), what it imports, its code. */
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => {
    const code = readFileSync(join(root, path), 'utf8');
    const imports = [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, to = '']) =>
      to.startsWith('.') ? normalize(join(dirname(path), to)) : to,
    );
    return { path, room: roomOf(path), imports, code };
  });

function roomOf(path: string): string {
  return path.split('/')[0] ?? path;
}

const doors = ['api', 'web', 'mcp'];
const aboveDoors = ['app.ts', 'server.ts', 'cli.ts', 'cli', 'workers'];
const above = [...doors, 'admission', ...aboveDoors];

describe('a room imports only from below', () => {
  for (const [room, forbidden] of [
    ['api', ['web', 'mcp', ...aboveDoors]],
    ['web', ['api', 'mcp', ...aboveDoors]],
    ['mcp', ['api', 'web', ...aboveDoors]],
    ['admission', [...doors, ...aboveDoors]],
    ['workers', [...doors, 'admission', 'app.ts', 'server.ts', 'cli']],
    ['services', above],
    ['db', ['services', 'schemas', 'mail', 'markdown', ...above]],
    ['mail', ['services', 'schemas', 'db', 'markdown', ...above]],
    ['markdown', ['services', 'schemas', 'db', 'mail', ...above]],
    ['schemas', ['services', 'db', 'mail', 'markdown', ...above]],
    ['config', ['services', 'db', 'mail', 'markdown', ...above]],
  ] as const) {
    test(`${room}: nothing of ${forbidden.join(', ')}`, () => {
      const inRoom = files.filter((file) => file.room === room);
      assert.ok(inRoom.length > 0);
      const wrong = inRoom.flatMap(({ path, imports }) =>
        imports
          .filter((to) => forbidden.some((name) => name === roomOf(to)))
          .map((to) => `${path} imports ${to}`),
      );
      assert.deepEqual(wrong, []);
    });
  }
});

test('every room is in the picture', () => {
  const picture = readFileSync(new URL('../docs/architecture.md', import.meta.url), 'utf8').split(/[\s,]+/);
  const rooms = [...new Set(files.map(({ path, room }) => (path === room ? room : `${room}/`)))];
  assert.deepEqual(
    rooms.filter((room) => !picture.includes(room)),
    [],
  );
});

describe('a library is used in its place only', () => {
  for (const [library, places] of [
    ['fastify', ['app.ts', 'methods.ts', 'request-body.ts', ...doors]],
    ['kysely', ['db', 'services', 'context.ts']],
    ['pg', ['db']],
    ['node:sqlite', ['db']],
    ['nodemailer', ['mail']],
    ['markdown-it', ['markdown']],
    ['typebox', ['schemas', ...doors]],
    ['@modelcontextprotocol/server', ['mcp']],
  ] as const) {
    test(library, () => {
      const users = files.filter(({ imports }) =>
        imports.some((to) => to === library || to.startsWith(`${library}/`)),
      );
      assert.ok(users.length > 0);
      assert.deepEqual(
        users.filter(({ room }) => !places.some((place) => place === room)).map(({ path }) => path),
        [],
      );
    });
  }
});

describe('the code', () => {
  const holding = (pattern: RegExp, ...exceptions: string[]) =>
    files
      .filter(
        ({ path, code }) =>
          pattern.test(code) && !exceptions.includes(path) && !exceptions.includes(roomOf(path)),
      )
      .map(({ path }) => path);

  test('reads the environment in config.ts only', () => {
    assert.deepEqual(holding(/process\.env/, 'config.ts'), []);
  });

  test('asks the clock of its context only', () => {
    // Where the clock is made, the time of a log line, and the wait for a database before there is a context.
    const makers = ['server.ts', 'open-context.ts', 'cli/migrate-to.ts', 'log.ts', 'db/postgres-start.ts'];
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
    assert.deepEqual(holding(compared, 'variant.ts', 'db', 'config.ts', 'config'), []);
  });

  test('lists every write operation under its name', () => {
    const declared = files.flatMap(({ code }) =>
      [...code.matchAll(/= operation\(\s*'([^']+)'/g)].map(([, name = '']) => name),
    );
    assert.ok(declared.length > 20);
    assert.deepEqual([...operations.keys()].toSorted(), declared.toSorted());
  });
});

describeInstances('every first segment that the program serves', {}, (the) => {
  test('is a slug that no agent can have', async () => {
    const ctx = the().ctx();
    const counter = createCallCounter(ctx, () => 1);
    const app = await createApp(ctx, { counter, health: { state: () => 'ready', writable: () => true } });
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
    await counter.close();
  });
});
