import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, before, beforeEach, describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/config/config.ts';
import { StartError } from '../../src/rules/failure.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { startServer, type RunningServer } from '../../src/server.ts';
import { register } from '../../src/services/agents/registration.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { masthead } from '../support/command-line.ts';
import { engines, type EngineName } from '../support/instance.ts';
import { query } from '../support/postgres.ts';
import { freePort, quickLoad } from '../support/processes.ts';
import { sharedPostgres } from '../support/shared-postgres.ts';
import { startSmtpServer, type TestSmtpServer } from '../support/smtp.ts';
import { openSqlite } from '../support/sqlite-file.ts';

type Env = Readonly<Record<string, string>>;

const script = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
const hour = 3_600_000;
const notTheOne = /is not the one that this database was served with: put that one back.*adopt-secret'\.$/;
const missing = /^There is no secret at .*\/secret, and SECRET is not set: put it back.*adopt-secret'\.$/;

let dir = '';
let last = 0;
let smtp: TestSmtpServer;
before(async () => {
  dir = scratchFolder('slips');
});
beforeEach(async () => {
  smtp = await startSmtpServer();
});
afterEach(() => smtp.close());

const bySmtp = () => ({ SMTP_URL: smtp.url, MAIL_FROM: 'masthead@masthead.example' });
const wrong = { SECRET: 'w'.repeat(32) };

/** A database that does not exist yet, as settings; with PostgreSQL its secret is one of them. */
async function newPlace(engine: EngineName): Promise<Env> {
  const env = { DATA_DIR: join(dir, String(++last)), PORT: String(await freePort()) };
  if (engine === 'sqlite') return env;
  return {
    ...env,
    DATABASE_URL: await (await sharedPostgres()).createDatabase(),
    SECRET: 's'.repeat(32),
    MEDIA_DIR: join(env.DATA_DIR, 'media'),
  };
}

async function sql(env: Env, statement: string): Promise<Record<string, unknown>[]> {
  if (env['DATABASE_URL'] !== undefined) return query(env['DATABASE_URL'], statement);
  const database = openSqlite(join(String(env['DATA_DIR']), 'masthead.db'));
  try {
    return database.prepare(statement).all();
  } finally {
    database.close();
  }
}

/** Registers an agent where nothing sends: its message waits. */
async function queueMail(env: Env, slug: string): Promise<void> {
  const ctx = await openContext(loadConfig(env), { existing: false, log: createLog('silent') });
  await register(ctx, { email: `${slug}@example.com`, name: slug, slug });
  await ctx.close();
}

type ServeOptions = { readonly existing?: boolean; readonly later?: number };

async function serve(t: TestContext, env: Env, { existing = true, later = 0 }: ServeOptions = {}) {
  const lines: string[] = [];
  const log = createLog('info', (line) => lines.push(line));
  const server = await startServer(loadConfig(env), { existing, log, now: () => Date.now() + later });
  t.after(() => server.close());
  return { server, warnings: () => lines.filter((line) => line.includes('mail is not going out')) };
}

async function assertRefused(env: Env, message: RegExp, starts = [true, false]): Promise<void> {
  for (const existing of starts) {
    const start = startServer(loadConfig(env), { existing, log: createLog('silent') });
    const error = await start.then(
      (server) => server.close(),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof StartError, String(error));
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /\n/);
  }
}

async function doctor(env: Env) {
  const { code, stdout } = await masthead(['doctor', '--json'], env);
  const findings: { what: string; state: string; detail: string }[] = JSON.parse(stdout).data;
  return { code, about: (name: string) => findings.find(({ what }) => what === name) };
}

/** Runs `masthead migrate` in a process of its own. */
function migrateInProcess(env: Env): Promise<{ code: number; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [script, 'migrate'],
      { env: { ...quickLoad(), ...env } },
      (error, _stdout, stderr) => resolve({ code: error === null ? 0 : 1, stderr }),
    );
  });
}

const mailTo = (slug: string) => smtp.waitFor(({ to }) => to.includes(`${slug}@example.com`));

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error('what the test waits for did not happen within a minute');
    await delay(10);
  }
}

async function filesIn({ server }: { server: RunningServer }): Promise<string[]> {
  const { dir: folder } = server.config.mail;
  const names = await readdir(folder).catch(() => []);
  const eml = names.filter((name) => name.endsWith('.eml') && !name.startsWith('.'));
  return Promise.all(
    eml.map(async (name) => /^To: <?(.*?)>?\r$/m.exec(await readFile(join(folder, name), 'utf8'))?.[1] ?? ''),
  );
}

for (const engine of engines) {
  describe(`another secret (${engine})`, () => {
    test('is refused by every start and command, in one line, and the mail goes out with the right one', async (t) => {
      const env = { ...(await newPlace(engine)), ...bySmtp() };
      await queueMail(env, 'ada');
      const slip = { ...env, ...wrong };
      await assertRefused(slip, new RegExp(`^SECRET ${notTheOne.source}`));
      for (const command of [['migrate'], ['admin', 'agents', 'list'], ['rerender']]) {
        const { code, stdout, stderr } = await masthead(command, slip);
        assert.deepEqual([code, stdout], [1, '']);
        assert.match(stderr, notTheOne);
      }
      const examined = await doctor(slip);
      assert.equal(examined.code, 1);
      assert.equal(examined.about('secret')?.state, 'wrong');
      assert.match(examined.about('secret')?.detail ?? '', notTheOne);
      assert.match(examined.about('mail')?.detail ?? '', /^1 messages wait/);
      assert.equal((await doctor(env)).about('secret')?.state, 'ok');

      await serve(t, env);
      await mailTo('ada');
    });

    test('can be adopted; what was sealed before waits, and goes out when its own is adopted again', async (t) => {
      const env = { ...(await newPlace(engine)), ...bySmtp() };
      await queueMail(env, 'ada');
      const other = { ...env, ...wrong };
      const adopted = await masthead(['adopt-secret', '--json'], other);
      assert.deepEqual(JSON.parse(adopted.stdout).data, { adopted: true, unreadable: 1 });

      const { server, warnings } = await serve(t, other);
      await register(server.ctx, { email: 'bob@example.com', name: 'Bob', slug: 'bob' });
      await mailTo('bob');
      const [{ attempts: tried = 0 } = {}] = await sql(env, 'select attempts from outbox order by id');
      await until(async () => {
        const [row] = await sql(env, 'select * from outbox order by id');
        assert.ok(row);
        assert.deepEqual([typeof row['sealed'], row['dead_at']], ['string', null]);
        return Number(row['attempts']) > Number(tried);
      });
      const [warning = '', ...more] = warnings();
      assert.match(warning, /it was sealed with another secret: .*; 1 messages wait/);
      assert.deepEqual(more, []);
      await server.close();

      await assertRefused(env, notTheOne);
      assert.equal((await masthead(['adopt-secret'], env)).code, 0);
      await serve(t, env, { later: hour });
      await mailTo('ada');
      assert.equal(smtp.messages.length, 2);
    });

    test('is refused as well where an older release has recorded none, if mail waits that it cannot open', async (t) => {
      const env = { ...(await newPlace(engine)), ...bySmtp() };
      await queueMail(env, 'ada');
      const forget = () => sql(env, "delete from meta where key = 'secret_fingerprint' returning value");
      const [recorded] = await forget();
      assert.match(String(recorded?.['value']), /^[0-9a-f]{16}$/);
      await assertRefused({ ...env, ...wrong }, notTheOne);
      assert.deepEqual(await forget(), []);

      const { server } = await serve(t, env);
      await mailTo('ada');
      await server.close();
      await assertRefused({ ...env, ...wrong }, notTheOne);
      assert.deepEqual(await forget(), [recorded]);
      await until(
        async () => (await sql(env, 'select id from outbox where sealed is not null')).length === 0,
      );
      const anew = await serve(t, { ...env, ...wrong });
      await anew.server.close();
      await assertRefused(env, notTheOne);
    });

    test('is refused to who comes second, of several processes that make a database at once', async () => {
      const env = await newPlace(engine);
      const secrets = ['a', 'b', 'a'].map((letter) => letter.repeat(32));
      const made = await Promise.all(secrets.map((SECRET) => migrateInProcess({ ...env, SECRET })));
      const going = new Set(secrets.filter((_, n) => made[n]?.code === 0));
      assert.equal(going.size, 1, made.map(({ stderr }) => stderr).join(''));
      for (const [n, { stderr }] of made.entries())
        if (!going.has(secrets[n] ?? '')) assert.match(stderr.trimEnd(), notTheOne);
    });

    test('is not recorded, and nothing else is, by a service that only reads', async (t) => {
      const env = await newPlace(engine);
      await queueMail(env, 'ada');
      await sql(env, "delete from meta where key = 'secret_fingerprint' returning value");
      const { server } = await serve(t, { ...env, READ_ONLY: 'on' });
      await server.close();
      assert.deepEqual(await sql(env, "select value from meta where key = 'secret_fingerprint'"), []);
    });
  });

  describe(`a start without SMTP_URL (${engine})`, () => {
    const others: Readonly<Record<string, { existing: boolean; env: Env; earlier?: true }>> = {
      'with --existing': { existing: true, env: {} },
      'with --existing, of what an older release has queued': { existing: true, env: {}, earlier: true },
      'with an https address': { existing: false, env: { BASE_URL: 'https://masthead.example' } },
      'with an address of another machine': { existing: false, env: { BASE_URL: 'http://masthead.example' } },
    };
    for (const [how, { existing, env: more, earlier }] of Object.entries(others)) {
      test(`${how} leaves mail for the server, says so, and it goes out once that is set again`, async (t) => {
        const env = { ...(await newPlace(engine)), ...more };
        await queueMail({ ...env, ...bySmtp() }, 'ada');
        if (earlier) await sql(env, 'update outbox set route = null returning id');

        const started = await serve(t, env, { existing });
        await register(started.server.ctx, { email: 'bob@example.com', name: 'Bob', slug: 'bob' });
        await until(async () => (await filesIn(started)).length > 0);
        assert.deepEqual(await filesIn(started), ['bob@example.com']);
        const [row] = await sql(env, 'select * from outbox order by id');
        assert.deepEqual(
          [typeof row?.['sealed'], Number(row?.['attempts']), row?.['delivered_at']],
          ['string', 0, null],
        );
        await until(async () =>
          started.warnings().some((line) => line.includes('1 messages queued for SMTP wait: set SMTP_URL')),
        );
        const mail = (await doctor(env)).about('mail');
        assert.equal(mail?.state, 'look');
        assert.match(mail.detail, /^1 messages wait, 1 queued for SMTP: set SMTP_URL to send them;/);
        await started.server.close();

        const { warnings } = await serve(t, { ...env, ...bySmtp() }, { existing });
        await mailTo('ada');
        assert.deepEqual(
          smtp.messages.flatMap(({ to }) => to),
          ['ada@example.com'],
        );
        assert.deepEqual(warnings(), []);
      });
    }

    test("on one's own machine puts it into files, as all mail there", async (t) => {
      const env = await newPlace(engine);
      await queueMail({ ...env, ...bySmtp() }, 'ada');
      const started = await serve(t, env, { existing: false });
      await until(async () => (await filesIn(started)).length > 0);
      assert.deepEqual(await filesIn(started), ['ada@example.com']);
      assert.deepEqual(started.warnings(), []);
    });

    test('beside a process that has it leaves that one its mail', async (t) => {
      const env = await newPlace(engine);
      await queueMail({ ...env, ...bySmtp() }, 'ada');
      const without = await serve(t, env);
      const having = await serve(t, { ...env, ...bySmtp(), PORT: String(await freePort()) });
      await register(having.server.ctx, { email: 'bob@example.com', name: 'Bob', slug: 'bob' });
      await Promise.all([mailTo('ada'), mailTo('bob')]);
      assert.deepEqual(await filesIn(without), []);
    });
  });
}

describe('a lost DATA_DIR/secret', () => {
  test('is named by every start and command, none makes another, and put back it opens the mail', async (t) => {
    // Long, so that nothing that says what to do is cut.
    const place = join(dir, 'a'.repeat(200));
    const env: Env = { ...(await newPlace('sqlite')), DATA_DIR: place, ...bySmtp() };
    await queueMail(env, 'ada');
    const file = join(env['DATA_DIR'] ?? '', 'secret');
    await rename(file, `${file}-lost`);
    const found = await readdir(env['DATA_DIR'] ?? '');

    await assertRefused(env, missing);
    for (const command of [['migrate'], ['migrate', '--existing'], ['admin', 'agents', 'list']]) {
      const { code, stderr } = await masthead(command, env);
      assert.equal(code, 1);
      assert.match(stderr, missing);
    }
    const examined = await doctor(env);
    assert.equal(examined.code, 1);
    assert.match(examined.about('secret')?.detail ?? '', missing);
    assert.equal(examined.about('counts')?.state, 'ok');
    assert.match((await masthead(['doctor'], env)).stdout, /^wrong +secret .*'masthead adopt-secret'\.$/m);
    await writeFile(file, 'cut short');
    assert.match((await doctor(env)).about('secret')?.detail ?? '', /is shorter than 32 characters/);
    await rm(file);
    assert.deepEqual(await readdir(env['DATA_DIR'] ?? ''), found);

    await rename(`${file}-lost`, file);
    await serve(t, env);
    await mailTo('ada');
  });

  test('of a restored database is told of, and another can be made for it on purpose', async (t) => {
    const env = await newPlace('sqlite');
    await queueMail(env, 'ada');
    const copy = join(dir, 'copy.db');
    assert.equal((await masthead(['backup', copy], env)).code, 0);
    const there = await newPlace('sqlite');
    const restored = await masthead(['restore', copy], there);
    assert.match(restored.stderr, /^There is no secret: put it back before a start/);
    await assertRefused(there, missing);
    await writeFile(join(there['DATA_DIR'] ?? '', 'secret'), 'x'.repeat(64));
    await assertRefused(there, new RegExp(`^The secret in .* ${notTheOne.source}`));

    await rm(join(there['DATA_DIR'] ?? '', 'secret'));
    const { code, stdout, stderr } = await masthead(['adopt-secret'], there);
    assert.deepEqual([code, stdout], [0, 'The secret is the one of this database from now on.']);
    assert.match(stderr, /^1 messages wait for the former one/);
    assert.equal((await stat(join(there['DATA_DIR'] ?? '', 'secret'))).mode & 0o777, 0o600);
    await serve(t, there);
  });

  test('is made by a plain start, and by no other, where the database never had one', async (t) => {
    const env = await newPlace('sqlite');
    await masthead(['migrate'], env);
    // As after a crash between the two.
    await rm(join(env['DATA_DIR'] ?? '', 'secret'));
    await sql(env, "delete from meta where key = 'secret_fingerprint' returning value");
    await assertRefused(env, missing, [true]);
    assert.equal((await doctor(env)).about('secret')?.state, 'wrong');
    await serve(t, env, { existing: false });
    assert.equal((await doctor(env)).about('secret')?.state, 'ok');
  });

  test('is missed after a move to PostgreSQL too', async (t) => {
    const env: Env = { ...(await newPlace('sqlite')), ...bySmtp() };
    await queueMail(env, 'ada');
    const url = await (await sharedPostgres()).createDatabase();
    assert.equal((await masthead(['migrate-to', url], env)).code, 0);
    const there = { ...env, DATABASE_URL: url, MEDIA_DIR: join(env['DATA_DIR'] ?? '', 'media') };
    await assertRefused({ ...there, ...wrong }, notTheOne);
    await serve(t, { ...there, SECRET_FILE: join(env['DATA_DIR'] ?? '', 'secret') });
    await mailTo('ada');
  });
});
