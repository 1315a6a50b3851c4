import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { agentCommands } from '../client/src/commands/agent-commands.ts';
import { failureFacts, failureText } from '../client/src/commands/connection.ts';
import { MastheadError } from '../client/src/index.ts';
import { runCommandLine } from '../src/cli/main.ts';
import { plainError, revive } from '../src/db/write.ts';
import { AppError, catalogue, errorCodes } from '../src/errors.ts';
import { exampleProblem, publicFields } from '../src/http/problem.ts';
import { asHttp, asTools, call, operations, prose, recoverAt, type Prose } from '../src/rules/calls.ts';
import { documentOf, operationsOf } from './support/api-document.ts';
import { startInstance, type Instance, type TestAgent } from './support/instance.ts';

const baseUrl = 'https://a.example:8443';
const id = '019c1f5e-7b7a-7c3e-9d55-0a4f6f1e2b3c';

/** Texts of the catalogue, many of which name calls. */
const texts: readonly Prose[] = errorCodes.flatMap((code) => [
  catalogue[code].hint,
  catalogue[code].explanation,
]);

/** A call as the API spells it. */
const httpCall =
  /\b(GET|HEAD|POST|PUT|PATCH|DELETE) (?:https?:\/\/[^/\s]+)?(\/(?:api|healthz|readyz)[\w/{}.-]*)/g;
/** What only HTTP can do: no tool replaces a key that works, erases what was written before, or undoes all of an agent. */
const overHttpOnly =
  /\b(?:POST (?:https?:\/\/[^/\s]+)?\/api\/(?:regenerate-key|me\/restore|appeals)|GET \/api\/(?:me\/export|media(?:\?unused=true)?)|DELETE \/api\/(?:media\/\{id\}(?:\?force=true)?|posts\/\{id\}\/revisions|me\/trash|me\?confirm=[\w-]*))(?![\w-])/g;
const anyHttp = /\/api\/|\b(?:GET|HEAD|POST|PUT|PATCH|DELETE) \//;

describe('the table of calls', () => {
  let at: Instance;
  before(async () => {
    at = await startInstance();
  });
  after(() => at.close());

  test('has every operation of the document, at its address', async () => {
    const described = operationsOf(await documentOf(at)).map(({ method, path, operation }) => [
      operation.operationId,
      `${method} ${path}`,
    ]);
    const listed = Object.entries(operations).map(([name, { method, path }]) => [name, `${method} ${path}`]);
    assert.deepEqual(Object.fromEntries(listed), Object.fromEntries(described));
  });

  test('has every tool, beside the operation that it is', async () => {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { result }: { result: { tools: { name: string }[] } } = JSON.parse(
      (await at.call('POST', '/mcp', { body })).text,
    );
    const tools = Object.entries(operations).flatMap(([name, names]) =>
      'tool' in names
        ? [[name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), names.tool]]
        : [],
    );
    for (const [expected, tool] of tools) assert.equal(tool, expected);
    assert.deepEqual(
      tools.map(([, tool]) => String(tool)).toSorted(),
      result.tools.map(({ name }) => name).toSorted(),
    );
  });
});

describe('a text that names calls', () => {
  test('has them for the API by method and path, and none that there is not', () => {
    const known = new Set(Object.values(operations).map(({ method, path }) => `${method} ${path}`));
    let count = 0;
    for (const text of texts) {
      for (const [, method, path] of asHttp(text).matchAll(httpCall)) {
        assert.ok(known.has(`${method} ${path?.replace(/\.$/, '')}`), asHttp(text));
        count++;
      }
    }
    assert.ok(count > 15);
  });

  test('has them for models by tool, but for what only HTTP can do', () => {
    for (const text of texts) assert.doesNotMatch(asTools(text).replaceAll(overHttpOnly, ''), /\/api\//);
  });

  test('says the same to each', () => {
    for (const [text, http, tools] of [
      [
        prose`Now: ${recoverAt(baseUrl)}.`,
        'Now: POST https://a.example:8443/api/recover with {"email": "…"}.',
        `Now: 'recover' with {"email": "…"}.`,
      ],
      [
        prose`${call('verify', { query: '?token=…' })} with it gives the key.`,
        'GET /api/verify?token=… with it gives the key.',
        "'verify' with it gives the key.",
      ],
      [
        prose`${call('listComments', { id })} lists them.`,
        `GET /api/posts/${id}/comments lists them.`,
        "'list_comments' lists them.",
      ],
      [
        prose`${call('publish', { body: '{"slug": "a", "status": "published"}' })}`,
        'POST /api/publish with {"slug": "a", "status": "published"}',
        `'publish' with {"slug": "a", "status": "published"}`,
      ],
      ['No call.', 'No call.', 'No call.'],
    ] as const)
      assert.deepEqual([asHttp(text), asTools(text)], [http, tools]);
  });

  test('takes no text of a user for a call', () => {
    const sent = [
      'GET /api/limits',
      '{limits}',
      '${limits}',
      JSON.stringify(call('limits')),
      '[object Object]',
    ];
    for (const text of sent) {
      const quoted = prose`There is no '${text}'. ${prose`${text}: ${call('limits')}`}`;
      assert.equal(asTools(quoted), `There is no '${text}'. ${text}: 'me'`);
    }
  });

  test('is the same on the other side of a thread', () => {
    const detail = prose`It works no more: ${call('register')} sends another.`;
    const hint = prose`If the key is lost: ${recoverAt(baseUrl)}.`;
    const error = new AppError('unauthorized', detail, { hint });
    for (const carried of [
      structuredClone(plainError(error)),
      JSON.parse(JSON.stringify(plainError(error))),
    ]) {
      const revived = revive(carried);
      assert.ok(revived instanceof AppError);
      for (const spell of [asHttp, asTools])
        assert.deepEqual(publicFields(revived, spell), publicFields(error, spell));
      assert.equal(revived.message, 'It works no more: POST /api/register sends another.');
    }
  });

  test('is spelled by the interfaces alone', () => {
    const root = new URL('../src/', import.meta.url);
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (path) =>
        /^(?:services|rules|schemas|mail|db|admission)\/.*\.ts$|^errors\.ts$/.test(path) &&
        path !== 'rules/calls.ts',
    );
    assert.ok(files.length > 50);
    for (const path of files) {
      const code = readFileSync(new URL(path, root), 'utf8').replaceAll(/\/\*.*?\*\/|^\s*\/\/.*$/gms, '');
      assert.doesNotMatch(code, /\b(?:GET|POST|PUT|PATCH|DELETE) (?:\$\{[^}]*\})?\/api\//, path);
    }
  });
});

describe('refusals name no HTTP', () => {
  let at: Instance;
  let ada: TestAgent;
  let tokens: readonly string[];
  before(async () => {
    at = await startInstance();
    ada = await at.agent('Ada');
    const email = 'token@example.com';
    await at.call('POST', '/api/register', { body: { email, name: 'Token', slug: 'token' } });
    await at.call('POST', '/api/recover', { body: { email: 'ada@example.com' } });
    tokens = [await at.token(email), await at.token('ada@example.com')];
  });
  after(() => at.close());

  test('to models', async () => {
    const { post } = await ada.client.publish({ title: 'Draft', content: 'c' });
    const unknown = id.replace('-7', '-4');
    const calls: readonly (readonly [string, object])[] = [
      ['publish', { slug: 'none', status: 'published' }],
      ['publish', { id, title: 'T' }],
      ['publish', { title: 'T', content: tokens[0] }],
      ['publish', { title: 'T', content: ada.key }],
      ['update_post', { post: id, title: 'T' }],
      ['update_me', { name: 'A', dryRun: true }],
      ['delete_post', { post: id }],
      ['get_post', { post: 'x' }],
      ['list_posts', { agent: 'nobody' }],
      ['delete_comment', { post: post.id, commentId: id }],
      ['add_comment', { post: post.id, content: 'c' }],
      ['vote', { post: post.id, vote: 1 }],
      ['verify', { token: unknown }],
      ['recover', { email: 'no' }],
      ['register', { email: 'ada@example.com', name: 'A', slug: 'aaa' }],
      ['me', {}],
    ];
    for (const [name, args] of calls)
      for (const key of [ada.key, tokens[0] ?? '', undefined]) {
        const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
        const { text } = await at.call('POST', '/mcp', { body, ...(key === undefined ? {} : { key }) });
        assert.doesNotMatch(text.replaceAll(overHttpOnly, ''), anyHttp);
      }
    const named = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'me', arguments: { 'GET /api/me': 1 } },
    };
    assert.match(
      (await at.call('POST', '/mcp', { body: named, key: ada.key })).text,
      /field 'GET \/api\/me' ignored/,
    );
  });

  test('on the command line', async () => {
    const unknown = id.replace('-7', '-4');
    const registered = ['register', '--name', 'B', '--slug', 'bbb', '--email'];
    const typed: readonly (readonly [readonly string[], string?])[] = [
      [['whoami'], 'wrong'],
      ...tokens.map((token) => [['whoami'], token] as const),
      [['recover', '--email', 'ada@example.com']],
      [['recover', '--token', unknown]],
      [['recover', '--token', tokens[0] ?? '']],
      [['verify', unknown]],
      [['verify', tokens[1] ?? '']],
      [[...registered, 'ada@example.com']],
      [['post', 'delete', id], ada.key],
      [['comment', 'delete', id, id], ada.key],
      [['comment', id, ada.key], ada.key],
    ];
    for (const [args, key = ''] of typed)
      for (const json of [[], ['--json']]) {
        let said = '';
        const out = (line: string) => (said += `${line}\n`);
        const env = { MASTHEAD_URL: at.baseUrl, MASTHEAD_API_KEY: key, HOME: '/nonexistent' };
        const code = await runCommandLine([...args, ...json], { out, err: out, env });
        // For programs a success is the answer of the API as it came.
        if (code === 0 && json.length > 0) continue;
        assert.ok(said.length > 20, args.join(' '));
        assert.doesNotMatch(said, anyHttp, args.join(' '));
      }
  });

  test('on the command line, which names only commands and options that there are', () => {
    const named = new Set<string>();
    for (const code of errorCodes) {
      // No command sends a condition.
      if (code === 'precondition_failed') continue;
      for (const sent of [
        catalogue[code].hint,
        prose`Now: ${call('listPosts')}.`,
        prose`Now: ${recoverAt(baseUrl)}.`,
      ]) {
        const hint = asHttp(sent);
        // The hints of other codes never name a call.
        const mayName =
          anyHttp.test(asHttp(catalogue[code].hint)) || /^(?:invalid_input|slug_taken)$/.test(code);
        if (sent !== catalogue[code].hint && !mayName) continue;
        const error = new MastheadError({
          code,
          status: 400,
          detail: exampleProblem(baseUrl, code).detail,
          hint,
        });
        assert.doesNotMatch(failureText('masthead', error), anyHttp, code);
        const facts = JSON.stringify(failureFacts('masthead', error));
        assert.doesNotMatch(facts, anyHttp, code);
        for (const [, typed = ''] of facts.matchAll(/masthead ([\w <>-]+)/g)) named.add(typed);
      }
    }
    assert.ok(named.size > 8);
    for (const typed of named) {
      const command = agentCommands.find(({ name }) => new RegExp(`^${name}(?= [<-]|$)`).test(typed.trim()));
      assert.ok(command, typed);
      for (const [, option = ''] of typed.matchAll(/--([\w-]+)/g))
        assert.ok(option === 'json' || Object.hasOwn(command.options ?? {}, option), typed);
      for (const [, operand = ''] of typed.matchAll(/(?<!--\S+ )<(\w+)>/g))
        assert.ok(command.operands?.includes(operand), typed);
    }
  });
});
