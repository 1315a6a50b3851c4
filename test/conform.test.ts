import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCommandLine } from '../src/cli/main.ts';
import { loadConfig } from '../src/config/config.ts';
import type { Result } from '../client/src/conform/check.ts';
import { createLog } from '../src/platform/log.ts';
import { readNewestMail } from '../src/mail/stored-mail.ts';
import { startServer, type RunningServer } from '../src/server.ts';
import { countWaitingMail } from '../src/services/outbox.ts';
import { request } from './support/http.ts';
import { variantNames } from './support/instance.ts';

for (const variant of variantNames) {
  describe(`masthead conform (${variant})`, () => {
    let dir = '';
    let server: RunningServer;
    let url = '';
    const mail = (): string[] => ['--mail-dir', server.config.mail.dir];
    before(async () => {
      dir = await mkdtemp(join(tmpdir(), 'masthead-conform-'));
      const env = { DATA_DIR: dir, PORT: '0', VARIANT: variant };
      server = await startServer(loadConfig(env), { log: createLog('silent') });
      url = server.config.site.baseUrl;
    });
    after(async () => {
      await server.close();
      await rm(dir, { recursive: true });
    });

    test('finds that this service is what it says it is, and leaves nothing behind', async () => {
      const { code, report } = await conform([url, ...mail()]);
      assert.deepEqual(
        report.results.filter(({ outcome }) => outcome !== 'ok'),
        [],
      );
      assert.equal(code, 0);
      assert.equal(report.variant, variant === 'subdomain' ? 'a' : 'b');
      for (const table of ['agents', 'posts', 'comments', 'votes'] as const) {
        assert.deepEqual(await server.ctx.db.selectFrom(table).selectAll().execute(), [], table);
      }
    });

    test('checks what needs no agent where no message can be read, and says what it left out', async () => {
      const { code, report } = await conform([url]);
      assert.deepEqual([code, report.failed], [0, 0]);
      assert.ok(report.passed > 10 && report.skipped > 10);
      for (const { outcome, reason } of report.results)
        assert.equal(outcome === 'skip', reason !== undefined && reason !== '');
    });

    test('takes the token of an agent that is registered already, and keeps that agent', async () => {
      const body = { email: 'ada@agents.example', name: 'Ada', slug: 'ada' };
      await request(url, {
        method: 'POST',
        path: '/api/register',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      while ((await countWaitingMail(server.ctx)) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      const token = (await readNewestMail(server.config.mail.dir))?.token ?? '';
      const { code, report } = await conform([url, '--token', token]);
      assert.deepEqual([code, report.failed, report.skipped], [0, 0, 2]);
      const agents = await server.ctx.db.selectFrom('agents').select('email').execute();
      assert.deepEqual(
        agents.map(({ email }) => email),
        ['ada@agents.example'],
      );
      assert.deepEqual(await server.ctx.db.selectFrom('posts').selectAll().execute(), []);
    });
  });
}

describe('masthead conform, with a service that is not as written', () => {
  let dir = '';
  let server: RunningServer;
  let between: Server;
  let url = '';
  let spoil: Spoil = () => null;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'masthead-spoilt-'));
    const env = { DATA_DIR: dir, PORT: '0', LIMIT_REGISTER: '0' };
    server = await startServer(loadConfig(env), { log: createLog('silent') });
    const passOn = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
      const answer = await pass(server.config.site.baseUrl, incoming);
      const spoilt = { ...answer, ...spoil(`${incoming.method} ${incoming.url}`, answer) };
      outgoing.writeHead(spoilt.status, { 'content-type': answer.type, ...answer.kept });
      outgoing.end(spoilt.text);
    };
    between = createServer((incoming, outgoing) => void passOn(incoming, outgoing));
    between.listen(0, '127.0.0.1');
    await once(between, 'listening');
    const address = between.address();
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  });
  after(async () => {
    between.closeAllConnections();
    between.close();
    await server.close();
    await rm(dir, { recursive: true });
  });

  const faults: [what: string, spoil: Spoil, title: RegExp, level: Result['level']][] = [
    [
      'answers a new post with 200',
      (path, { status }) => (path === 'POST /api/publish' && status === 201 ? { status: 200 } : null),
      /^a new post is answered with 201/,
      'specification',
    ],
    [
      'gives no time of publication',
      (path, { text }) =>
        path === 'POST /api/publish' ? { text: text.replace(/"publishedAt":"/, '"published":"') } : null,
      /^a new post is answered with 201/,
      'specification',
    ],
    [
      'lists blogs under another name',
      (path, { text }) =>
        path.startsWith('GET /api/blogs?') ? { text: text.replace('"blogs"', '"items"') } : null,
      /^a new blog is among the newest/,
      'contract',
    ],
    [
      'takes the old key for good',
      (path, { status }) =>
        path.startsWith('GET /api/posts?status') && status === 401 ? { status: 200 } : null,
      /^the old key stops working/,
      'specification',
    ],
  ];
  for (const [what, fault, title, level] of faults) {
    test(`finds one that ${what}`, async () => {
      spoil = fault;
      const args = [url, '--variant', 'a', '--mail-dir', server.config.mail.dir];
      const { code, report } = await conform(args);
      assert.equal(code, 1);
      const failure = report.results.find((result) => title.test(result.title));
      assert.deepEqual([failure?.outcome, failure?.level], ['fail', level]);
      assert.ok(failure?.expected && failure.received);
      const counted = await conform([...args, '--level', 'specification']);
      assert.equal(counted.code, level === 'contract' ? 0 : 1);
    });
  }

  test('prints a failure with both of its sides, and no key', async () => {
    spoil = (path) => (path.startsWith('POST /api/regenerate-key') ? { status: 299 } : null);
    const args = ['conform', url, '--variant', 'a', '--mail-dir', server.config.mail.dir];
    let output = '';
    const print = (line: string): void => void (output += `${line}\n`);
    assert.equal(await runCommandLine(args, { out: print, err: print, env: {} }), 1);
    assert.match(
      output,
      / {2}fail {2}a new key is given \(specification 4\.6\)\n {8}expected status 200\n {8}received 299: .*"apiKey":"\(a key, token or id\)"/,
    );
    assert.match(output, /\nVariant A: \d+ hold, \d+ fail, \d+ skipped\.\n$/);
  });

  const misunderstood: [args: string[], code: number, message: RegExp][] = [
    [['http://127.0.0.1:1'], 1, /^There is no service at http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/],
    [['masthead.example'], 1, /not the address of a service/],
    [
      ['http://localhost', '--token', 'x', '--interactive'],
      2,
      /one of --token, --mail-dir and --interactive/,
    ],
    [['http://localhost', '--interactive'], 2, /--interactive needs --email/],
    [['http://localhost', '--variant', 'c'], 2, /--variant is a or b/],
    [['http://localhost', '--level', 'all'], 2, /--level is specification or contract/],
  ];
  for (const [args, expected, message] of misunderstood) {
    test(`says why it cannot check: ${args.join(' ')}`, async () => {
      let err = '';
      const code = await runCommandLine(['conform', ...args], {
        out: () => assert.fail('there is a result'),
        err: (line) => (err += line),
        env: {},
      });
      assert.equal(code, expected);
      assert.match(err, message);
    });
  }
});

type Passed = { readonly status: number; readonly text: string; readonly type: string };

/** What is changed of an answer; null: nothing. */
type Spoil = (path: string, answer: Passed) => Partial<Pick<Passed, 'status' | 'text'>> | null;

type Report = {
  readonly variant: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly results: readonly Result[];
};

async function conform(args: readonly string[]): Promise<{ code: number; report: Report }> {
  let output = '';
  const code = await runCommandLine(['conform', ...args, '--json'], {
    out: (line) => (output += line),
    err: (line) => assert.fail(line),
    env: {},
  });
  return { code, report: JSON.parse(output) };
}

/** Passes a request on to the service. */
async function pass(
  baseUrl: string,
  incoming: IncomingMessage,
): Promise<Passed & { kept: Record<string, string> }> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(Buffer.from(chunk));
  const headers = new Headers();
  for (const name of ['authorization', 'content-type', 'origin', 'access-control-request-method']) {
    const value = incoming.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  const body = chunks.length === 0 ? null : Buffer.concat(chunks);
  const response = await fetch(baseUrl + String(incoming.url), {
    method: incoming.method ?? 'GET',
    headers,
    body,
  });
  const kept: Record<string, string> = {};
  for (const [name, value] of response.headers) {
    if (!/^(?:content|transfer|connection|keep)/.test(name)) kept[name] = value;
  }
  return {
    status: response.status,
    text: await response.text(),
    type: response.headers.get('content-type') ?? '',
    kept,
  };
}
