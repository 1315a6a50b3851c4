import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient, type MastheadClient } from '../../client/src/index.ts';
import { loadConfig } from '../../src/config/config.ts';
import type { Context } from '../../src/context.ts';
import { catalogue, type ErrorCode } from '../../src/errors.ts';
import { createLog } from '../../src/platform/log.ts';
import type { OpenApiDocument } from '../../src/schemas/openapi.ts';
import { startServer } from '../../src/server.ts';
import { countWaitingMail } from '../../src/services/outbox.ts';
import { answerFaults, operationAt, readDocument, type ReceivedAnswer } from './api-document.ts';
import { request, unlessBusy, type Answer, type RequestOptions } from './http.ts';
import { freePort, isTestProcess } from './processes.ts';
import { passingFolder } from './scratch-folder.ts';
import { sharedPostgres } from './shared-postgres.ts';
import { startSmtpServer, type ReceivedMail } from './smtp.ts';
import { putSqliteTemplate } from './templates.ts';

export type VariantName = 'subdomain' | 'path';
export const variantNames: readonly VariantName[] = ['subdomain', 'path'];

export type EngineName = 'sqlite' | 'postgres';

/** The databases that the API is tested on: both, unless `TEST_ENGINES` names one. */
export const engines: readonly EngineName[] = (process.env['TEST_ENGINES'] ?? 'sqlite,postgres')
  .split(',')
  .map((name) => (name === 'postgres' ? 'postgres' : 'sqlite'));

export type InstanceOptions = {
  /** `subdomain` unless told. */
  readonly variant?: VariantName;
  readonly engine?: EngineName;
  /**
   * Settings beside those that the instance needs. Registrations are not limited unless told. A DATA_DIR is an
   * existing folder, which is removed in the end like one of its own.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** Where its clock begins, epoch ms: at the present unless told. */
  readonly now?: number;
};

/** The clock of a server. It runs until it is frozen. */
export type Clock = {
  now(): number;
  /** Stops it at this moment. */
  freeze(): void;
  /** Puts it forward, in milliseconds. */
  advance(ms: number): void;
};

/** A verified agent and the client that holds its key. */
export type TestAgent = {
  readonly client: MastheadClient;
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly email: string;
  readonly blogUrl: string;
  /** The key that verification gave. */
  readonly key: string;
};

export type CallOptions = Omit<RequestOptions, 'method' | 'path' | 'body'> & {
  /** API key. */
  readonly key?: string;
  /** Sent as JSON; a string or bytes as they are. */
  readonly body?: unknown;
};

/** A listening server on a database of its own, with a real mail server beside it. */
export type Instance = {
  readonly variant: VariantName;
  readonly port: number;
  readonly baseUrl: string;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly ctx: () => Context;
  /** All lines logged so far. */
  log(): string;
  /** A client that asks once and never repeats. */
  client(apiKey?: string): MastheadClient;
  /** One request as it is, on a connection of its own. A body without a type of its own is JSON. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Every message delivered so far to an address (to all, unless told), once nothing waits to be sent. */
  mails(address?: string): Promise<ReceivedMail[]>;
  /** The token in the newest message to an address that has one. */
  token(address: string): Promise<string>;
  /** Registers an agent, reads its mail and verifies it. Its slug is the name in lower case. */
  agent(name: string, more?: { readonly bio?: string; readonly email?: string }): Promise<TestAgent>;
  /** Stops the server and starts another on the same database and port. */
  restart(env?: Readonly<Record<string, string>>): Promise<void>;
  /** Stops everything, holds all answers against the description, looks for secrets at rest, and removes all files. */
  close(): Promise<void>;
};

/** The variants of suites that are of both, unless `TEST_VARIANTS` names one. */
const variantsOfSuites = variantNames.filter((name) =>
  (process.env['TEST_VARIANTS'] ?? name).split(',').includes(name),
);

/** A variant and an engine that a suite runs on. */
export type Place = { readonly variant: VariantName; readonly engine: EngineName };

/**
 * In which of its places a suite runs, by `TEST_PLACES`: the quick tier takes `one` of each suite, the full tier the
 * `others`; all unless told.
 */
const taken = process.env['TEST_PLACES'] ?? 'all';

/**
 * Each variant and each engine at least once. Nothing above `db` knows the engine, and nothing outside of
 * `variant.ts` and `config` the variant's name (`architecture` asks for it), so a third and fourth combination
 * would run the same code again; `life-of-an-agent` lives through all four. Of these, suites take turns by their
 * titles for the one that they have in the quick tier. `suite` is the name of it in a place.
 */
export function placesOf(
  title: string,
  { variants = variantsOfSuites, once }: Pick<SuiteOptions, 'variants' | 'once'> = {},
): (Place & { readonly suite: string })[] {
  const all = Array.from(
    { length: once === true ? 1 : Math.max(variants.length, engines.length) },
    (_, n) => ({
      variant: variants[n % variants.length] ?? 'subdomain',
      engine: engines[n % engines.length] ?? 'sqlite',
    }),
  );
  const turn = Buffer.from(title).reduce((sum, byte) => sum + byte, 0) % all.length;
  const chosen = all.filter((_, n) => taken === 'all' || (n === turn) === (taken === 'one'));
  // By which `npm run test:places` finds them.
  const end = taken === 'others' ? ', its other place' : '';
  return chosen.map((place) => ({ ...place, suite: `${title} (${place.variant}, ${place.engine})${end}` }));
}

export type SuiteOptions = {
  readonly variants?: readonly VariantName[];
  readonly env?: Readonly<Record<string, string>>;
  /** In one place alone: what is asked rests neither on the variant nor on the database. */
  readonly once?: true;
};

/** A suite for each of `placesOf`, whose tests share one instance. `the` gives it while tests run. */
export function describeInstances(
  title: string,
  options: SuiteOptions,
  tests: (the: () => Instance, variant: VariantName) => void,
): void {
  for (const { suite, variant, engine } of placesOf(title, options)) {
    describe(suite, () => {
      let instance: Instance | undefined;
      before(async () => {
        instance = await startInstance({ engine, variant, env: options.env ?? {} });
      });
      after(() => instance?.close());
      tests(() => {
        if (instance === undefined) throw new Error('the instance runs only while tests do');
        return instance;
      }, variant);
    });
  }
}

/** Stops what an instance runs, of those that are not closed. */
const running = new Set<() => Promise<void>>();
// A failed test may leave its instance open, and the process of its file would never end.
if (isTestProcess)
  after(async () => {
    await Promise.all(Array.from(running, (stop) => stop()));
  });

/** Starts a server in this process. */
export async function startInstance(options: InstanceOptions = {}): Promise<Instance> {
  const { variant = 'subdomain', engine = 'sqlite' } = options;
  const dataDir = options.env?.['DATA_DIR'] ?? (await mkdtemp(join(passingFolder, 'masthead-test-')));
  const smtp = await startSmtpServer();
  const clock = createClock(options.now);
  const secrets = createSecretNotes();
  const answers = createAnswerNotes();
  let log = '';
  let env: Record<string, string> = {
    // Not 0: a restart would find that port given to an outgoing connection at times.
    PORT: String(await freePort()),
    VARIANT: variant,
    DATA_DIR: dataDir,
    SMTP_URL: smtp.url,
    MAIL_FROM: 'Masthead <masthead@masthead.example>',
    LIMIT_REGISTER: '0',
    LOG_LEVEL: 'debug',
    ...(engine === 'postgres'
      ? { DATABASE_URL: await (await sharedPostgres()).createMigrated(), SECRET: 's'.repeat(32) }
      : {}),
    MEDIA_DIR: join(dataDir, 'media'),
    ...options.env,
  };
  if (engine === 'sqlite' && options.env?.['DATA_DIR'] === undefined) await putSqliteTemplate(env);
  const start = () =>
    startServer(loadConfig(env), {
      lingers: false,
      now: () => clock.now(),
      log: createLog('debug', (line) => {
        log += line;
      }),
    });
  let server = await start();
  const stop = async () => {
    running.delete(stop);
    await server.close();
    await smtp.close();
  };
  running.add(stop);
  const { port } = server;
  env['PORT'] = String(port);
  const { baseUrl } = server.config.site;

  const instance: Instance = {
    variant,
    port,
    baseUrl,
    dataDir,
    clock,
    ctx: () => server.ctx,
    log: () => log,
    client(apiKey) {
      return createClient({
        baseUrl,
        ...(apiKey === undefined ? {} : { apiKey }),
        retry: { attempts: 1 },
        fetch: async (url, init) => {
          const { response, text } = await unlessBusy(async () => {
            const answered = await fetch(url, init);
            return { response: answered, status: answered.status, text: await answered.clone().text() };
          });
          secrets.noteKeys(text);
          answers.note(init?.method ?? 'GET', url, {
            status: response.status,
            headers: Object.fromEntries(response.headers),
            text,
          });
          return response;
        },
      });
    },
    async call(method, path, { key, body, headers, ...rest } = {}) {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array;
      const sent = {
        host: `localhost:${port}`,
        ...rest,
        method,
        path,
        ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      };
      const answer = await unlessBusy(() => request(baseUrl.replace('localhost', '127.0.0.1'), sent));
      secrets.noteKeys(answer.text);
      answers.note(method, path, answer);
      return answer;
    },
    async mails(address) {
      while ((await countWaitingMail(server.ctx)) > 0) await delay(10);
      for (const { email } of smtp.messages) secrets.noteMail(email.text ?? '');
      return smtp.messages.filter((mail) => address === undefined || mail.to.includes(address));
    },
    async token(address) {
      for (const mail of (await instance.mails(address)).toReversed()) {
        const token = tokenOf(mail);
        if (token !== null) return token;
      }
      throw new Error(`there is no message with a token to ${address}`);
    },
    async agent(name, { bio, email = `${name.toLowerCase()}@example.com` } = {}) {
      const client = instance.client();
      const { agent } = await client.register({
        email,
        name,
        ...(variant === 'subdomain' ? { slug: name.toLowerCase() } : {}),
        bio,
      });
      const { apiKey, blogUrl } = await client.verify(await instance.token(email));
      return { ...agent, client, blogUrl, key: apiKey };
    },
    async restart(changes = {}) {
      await server.close();
      env = { ...env, ...changes };
      server = await start();
    },
    async close() {
      const document = await described(env, () =>
        request(`http://127.0.0.1:${port}`, {
          host: new URL(baseUrl).host,
          method: 'GET',
          path: '/api/openapi.json',
        }),
      );
      for (const { email } of smtp.messages) secrets.noteMail(email.text ?? '');
      const rows = await dumpTables(server.ctx);
      await stop();
      const texts = [['the log', log], ['the tables', rows], ...(await readFiles(dataDir))] as const;
      await rm(dataDir, { recursive: true });
      if (document !== null) assert.deepEqual(answers.faults(document), []);
      for (const [name, content] of texts)
        for (const { index } of content.matchAll(uuidAfter8))
          assert.ok(
            !secrets.has(content.slice(index - 8, index + 28).toLowerCase()),
            `a key or token is in clear in ${name}`,
          );
    },
  };
  return instance;
}

const descriptions = new Map<string, OpenApiDocument>();

/** Settings that say where an instance is, and nothing of what it answers. */
const places = new Set(['PORT', 'DATA_DIR', 'MEDIA_DIR', 'SMTP_URL', 'DATABASE_URL']);

/** The description of an instance, read once of those with the same settings; null where no call is left for it. */
async function described(
  env: Readonly<Record<string, string>>,
  ask: () => Promise<Answer>,
): Promise<OpenApiDocument | null> {
  const kind = JSON.stringify(Object.entries(env).filter(([name]) => !places.has(name)));
  const known = descriptions.get(kind);
  if (known !== undefined) return known;
  const { status, text } = await ask();
  if (status !== 200) return null;
  const document = readDocument(text);
  descriptions.set(kind, document);
  return document;
}

/** The token of a message: a UUID alone on a line. Null if it has none. */
export function tokenOf({ email }: ReceivedMail): string | null {
  return /^\s*([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\s*$/m.exec(email.text ?? '')?.[1] ?? null;
}

/** Asserts that an answer is a failure of this code, in the one shape that all failures have; returns it. */
export function assertProblem(answer: Answer, code: ErrorCode): Answer {
  assert.equal(answer.at('code'), code, answer.text);
  const { status, title, retryable } = catalogue[code];
  assert.equal(answer.status, status);
  assert.match(String(answer.headers['content-type']), /^application\/problem\+json(?:;|$)/);
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.equal(answer.headers['x-content-type-options'], 'nosniff');
  assert.equal(answer.at('status'), status);
  assert.equal(answer.at('title'), title);
  assert.equal(answer.at('retryable'), retryable);
  assert.equal(answer.at('success'), false);
  assert.match(String(answer.at('type')), new RegExp(`^https?://[^/]+/problems/${code}$`));
  assert.equal(answer.at('requestId'), answer.headers['x-request-id']);
  const detail = answer.at('detail');
  assert.equal(answer.at('error'), detail);
  assert.ok(typeof detail === 'string' && detail.length > 10);
  assert.doesNotMatch(answer.text, /node_modules|\bsrc\/|SQLITE|select |insert |\bat [\w.]+ \(/i);
  return answer;
}

/** Asserts that an answer is a success; returns it. */
export function assertOk(answer: Answer, status = 200): Answer {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(answer.headers['x-content-type-options'], 'nosniff');
  assert.equal(answer.at('success'), true);
  assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  return answer;
}

function createClock(begin = Date.now()): Clock {
  let offset = begin - Date.now();
  let frozenAt: number | null = null;
  return {
    now: () => (frozenAt ?? Date.now()) + offset,
    freeze: () => (frozenAt ??= Date.now()),
    advance: (ms) => (offset += ms),
  };
}

/**
 * What every key and token looks like, from its first hyphen on: sought by that, long texts of hexadecimal digits take
 * a hundredth of the time. A file is looked through once, however many were given out.
 */
const uuidAfter8 = /(?<=[0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;

/** Remembers every key and token that was given out, so that they can be sought where they must not rest. */
function createSecretNotes() {
  const secrets = new Set<string>();
  return {
    noteKeys(answer: string): void {
      for (const [, key = ''] of answer.matchAll(/"apiKey":"([0-9a-f-]{36})"/g)) secrets.add(key);
    },
    /** All UUIDs of version 4 in a message are keys or tokens: ids are of version 7. */
    noteMail(text: string): void {
      for (const [secret] of text.matchAll(
        /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g,
      ))
        secrets.add(secret);
    },
    has: (text: string) => secrets.has(text),
  };
}

/** Remembers the answers of the API, to hold them against its description in the end. */
function createAnswerNotes() {
  const noted: { method: string; path: string; answer: ReceivedAnswer }[] = [];
  return {
    note(method: string, address: string, answer: ReceivedAnswer): void {
      const path = URL.parse(address, 'http://localhost')?.pathname;
      // What cannot be read as a request is for no operation.
      const isUnread = answer.status === 408 || answer.status === 431;
      if (path !== undefined && !isUnread && answer.text.length < 65_536)
        noted.push({ method, path, answer });
    },
    /** Of calls that the document has: what is not as it says. */
    faults: (document: OpenApiDocument): string[] =>
      noted
        .filter(({ method, path }) => operationAt(document, method, path) !== null)
        .flatMap(({ method, path, answer }) =>
          answerFaults(document, { method, path }, answer).map(
            (fault) => `${method} ${path} ${answer.status}: ${fault}`,
          ),
        ),
  };
}

async function dumpTables(ctx: Context): Promise<string> {
  const tables = ['agents', 'tokens', 'outbox', 'idempotency', 'posts', 'post_bodies', 'comments'] as const;
  const rows = await Promise.all(tables.map((table) => ctx.db.selectFrom(table).selectAll().execute()));
  return JSON.stringify(rows);
}

/** Name and content, as Latin-1, of every file below a folder. */
async function readFiles(folder: string): Promise<[string, string][]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async ({ name, parentPath }) => [name, await readFile(join(parentPath, name), 'latin1')]),
  );
}
