import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runCommandLine } from '../../src/cli/main.ts';
import { loadConfig } from '../../src/config/config.ts';
import type { Result } from '../../client/src/conform/check.ts';
import { createLog } from '../../src/platform/log.ts';
import { readNewestMail } from '../../src/mail/stored-mail.ts';
import { startServer, type RunningServer } from '../../src/server.ts';
import { countWaitingMail } from '../../src/services/outbox.ts';
import { request } from '../support/http.ts';
import { variantNames } from '../support/instance.ts';
import { freePort } from '../support/processes.ts';

for (const variant of variantNames) {
  describe(`masthead conform (${variant})`, () => {
    let dir = '';
    let server: RunningServer;
    let url = '';
    const mail = (): string[] => ['--mail-dir', server.config.mail.dir];
    before(async () => {
      dir = await mkdtemp(join(tmpdir(), 'masthead-conform-'));
      const env = { DATA_DIR: dir, PORT: String(await freePort()), VARIANT: variant };
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

/** An answer on its way, to be changed. */
type Passed = {
  status: number;
  text: string;
  readonly headers: Record<string, string | string[] | undefined>;
};

/** One thing that is changed: of what the service is sent, or of what it answers. */
type Fault = {
  readonly request?: (call: string, headers: IncomingHttpHeaders) => void;
  readonly answer?: (call: string, answer: Passed) => void;
};

/** Changes the answers to calls that begin so, or match. */
function on(calls: string | RegExp, change: (answer: Passed) => unknown): NonNullable<Fault['answer']> {
  return (call, answer) => {
    if (typeof calls === 'string' ? call.startsWith(calls) : calls.test(call)) change(answer);
  };
}

function rename(call: string, name: string, other: string): NonNullable<Fault['answer']> {
  return on(call, (answer) => (answer.text = answer.text.replaceAll(`"${name}":`, `"${other}":`)));
}

function replace(call: string | RegExp, part: string | RegExp, other: string): NonNullable<Fault['answer']> {
  return on(call, (answer) => (answer.text = answer.text.replace(part, other)));
}

function without(call: string | RegExp, header: string): NonNullable<Fault['answer']> {
  return on(call, (answer) => delete answer.headers[header]);
}

/** The service does not see a header of requests. */
function unseen(call: string, header: string): Fault {
  return {
    request: (sent, headers) => {
      if (sent.startsWith(call)) delete headers[header];
    },
  };
}

/** The list at the top of a JSON answer as another one. */
function relisted(
  calls: string | RegExp,
  name: string,
  change: (list: readonly unknown[]) => readonly unknown[] | undefined,
): NonNullable<Fault['answer']> {
  return on(calls, (answer) => {
    if (!answer.text.startsWith('{')) return;
    const json = JSON.parse(answer.text) as Record<string, unknown>;
    if (Array.isArray(json[name])) answer.text = JSON.stringify({ ...json, [name]: change(json[name]) });
  });
}

const ownList = /^GET .api.posts\?status/;
const postPage = /^GET .conform-[0-9a-f]+$/;

/**
 * Single faults of this service's own answers, and the check that finds each. Those of one round are made together: none
 * of them fails the check of another, or hides it. What a new fault does is seen best in a round of its own.
 */
const faults: [round: number, what: string, title: RegExp, fault: Fault, level?: Result['level']][] = [
  [
    4,
    'answers a new post with 200',
    /^a new post is answered with 201/,
    { answer: on('POST /api/publish', (answer) => answer.status === 201 && (answer.status = 200)) },
    'specification',
  ],
  [
    5,
    'gives no time of publication',
    /^a new post is answered with 201/,
    { answer: replace('POST /api/publish', /"publishedAt":"/, '"published":"') },
    'specification',
  ],
  [
    4,
    'lists blogs under another name',
    /^a new blog is among/,
    { answer: rename('GET /api/blogs?', 'blogs', 'items') },
  ],
  [
    5,
    'takes the old key for good',
    /^the old key stops working/,
    { answer: on(ownList, (answer) => answer.status === 401 && (answer.status = 200)) },
    'specification',
  ],
  [1, 'ignores If-Match of a change', /^a change is made where If-Match/, unseen('PATCH', 'if-match')],
  [2, 'ignores If-Match of a publish', /^a publish with If-Match/, unseen('POST /api/publish', 'if-match')],
  [3, 'ignores If-None-Match: *', /^If-None-Match: \* only creates/, unseen('POST', 'if-none-match')],
  [6, 'ignores If-None-Match of a read', /^what a client has/, unseen('GET /api', 'if-none-match')],
  [1, 'adds a repeated comment', /^a comment with the same/, unseen('POST /api/posts', 'idempotency-key')],
  [
    2,
    'lets a key be stored',
    /^an answer with a key/,
    { answer: without('GET /api/verify', 'cache-control') },
  ],
  [
    3,
    'lets a new key be stored',
    /^the answer with the new key/,
    { answer: without('POST /api/regenerate-key', 'cache-control') },
  ],
  [
    4,
    'lists comments newest first',
    /^comments come oldest first/,
    { answer: relisted(/comments$/, 'comments', (list) => list.toReversed()) },
  ],
  [
    5,
    "lists one's own posts oldest first",
    /^one's own posts come newest first/,
    { answer: relisted(ownList, 'posts', (list) => list.toReversed()) },
  ],
  [
    6,
    "leaves revisions out of the list of one's own posts",
    /^one's own posts of a tag/,
    { answer: rename('GET /api/me/posts', 'etag', 'x') },
  ],
  [
    1,
    "lists one's own posts of any tag",
    /^one's own posts of a tag/,
    { answer: relisted('GET /api/me/posts?tag=', 'posts', () => [{}]) },
  ],
  [
    6,
    'lists posts of all oldest first',
    /posts come newest first, each/,
    {
      // A list of one post is the same either way.
      answer: relisted('GET /api/posts?limit=100', 'posts', (list) => [...list, { publishedAt: '2999' }]),
    },
  ],
  [
    1,
    'knows nothing of a deleted post',
    /^a post deleted after its publication/,
    { answer: on('GET', (answer) => answer.status === 410 && (answer.status = 404)) },
  ],
  [
    2,
    'answers a method that a call has not with 404',
    /^a wrong method/,
    { answer: on(/^PUT (?!.api.media)/, (answer) => (answer.status = 404)) },
  ],
  [3, 'leaves Allow out', /^a wrong method/, { answer: without('PUT', 'allow') }],
  [4, 'does not say how to authenticate', /^a wrong key is/, { answer: without('GET', 'www-authenticate') }],
  [
    5,
    'sends problems as plain JSON',
    /^an unknown route/,
    {
      answer: on(
        'GET',
        (answer) => answer.status === 404 && (answer.headers['content-type'] = 'application/json'),
      ),
    },
  ],
  [
    6,
    'hides how a text came about',
    /^a page says how/,
    { answer: replace(postPage, /<p class="disclosure">.*?<\/p>/s, '') },
  ],
  [
    1,
    'does not tell machines how a text came about',
    /^a page says how/,
    { answer: replace(postPage, /<meta name="ai-disclosure"[^>]*>/, '') },
  ],
  [
    2,
    'forgets the disclosure',
    /^a published post is read/,
    { answer: rename('GET /api/posts/', 'disclosure', 'x') },
  ],
  [
    3,
    'lets pages run scripts',
    /^a page lets nothing run/,
    { answer: without(postPage, 'content-security-policy') },
  ],
  [
    2,
    'writes markup of a text as markup',
    /^markup in a text/,
    {
      answer: on(postPage, (answer) => (answer.text = answer.text.replaceAll('&lt;script&gt;', '<script>'))),
    },
  ],
  [
    4,
    'runs a script in the page of a post',
    /^markup in a text/,
    { answer: replace(postPage, '</article>', '<script>0</script></article>') },
  ],
  [
    5,
    'handles an event in the page of a post',
    /^markup in a text/,
    { answer: replace(postPage, '<body', "<body onload='0'") },
  ],
  [
    6,
    'loads a style from elsewhere',
    /^a page loads nothing/,
    {
      answer: replace(
        postPage,
        '</head>',
        '<link rel="stylesheet" href="https://fonts.example/a.css"></head>',
      ),
    },
  ],
  [
    1,
    'sets a cookie',
    /^a page loads nothing/,
    { answer: on(postPage, (answer) => (answer.headers['set-cookie'] = 'a=b')) },
  ],
  [
    2,
    'does not say the language of a page',
    /^a page says its language/,
    { answer: replace(postPage, /<html lang="[^"]*"/, '<html') },
  ],
  [
    3,
    'shows previews without a title',
    /^a page says its language/,
    { answer: replace(postPage, 'property="og:title"', 'property="x"') },
  ],
  [
    4,
    'cuts a feed',
    /^rss\.xml has the post/,
    { answer: on(/rss\.xml$/, (answer) => (answer.text = answer.text.slice(0, -8))) },
  ],
  [
    5,
    'leaves the disclosure out of the markdown of a post',
    /^a page names its one/,
    { answer: on(/\.md$/, (answer) => (answer.text = answer.text.replaceAll('ai-generated', 'x'))) },
  ],
  [
    6,
    'runs what is in a comment',
    /^comments come oldest first/,
    { answer: replace(postPage, /(A comment )&lt;(img[^&]*)&gt;/, '$1<$2>') },
  ],
  [
    1,
    'counts comments wrong in a list',
    /^comments come oldest first/,
    { answer: replace('GET /api/posts?limit=100', /"comments":2/g, '"comments":3') },
  ],
  [
    6,
    'makes a post anew that is sent again',
    /^a new post with the same/,
    unseen('POST /api/publish', 'idempotency-key'),
  ],
  [2, 'lists no revisions', /^what a post was/, { answer: relisted(/revisions$/, 'revisions', () => []) }],
  [
    3,
    'shows a key in an answer',
    /^no answer but that/,
    { answer: replace('GET /api/me', '"agent":{', '"agent":{"apiKey":"x",') },
  ],
  [
    4,
    'tells nothing in an inbox',
    /^the agent is told in its inbox/,
    { answer: relisted('GET /api/me/inbox?kind=key', 'events', () => []) },
  ],
  [
    5,
    'leaves its calls without a description',
    /^the service describes/,
    { answer: on('GET /skill.md', (answer) => (answer.status = 404)) },
  ],
  [
    1,
    'counts posts wrong',
    /^the agent reads what/,
    { answer: replace('GET /api/me', /"postCount":\d+/, '"postCount":99') },
  ],
  [
    6,
    'exports nothing',
    /^the agent can take all/,
    { answer: on('GET /api/me/export', (answer) => (answer.text = '')) },
  ],
  [
    1,
    'names an e-mail address in a list',
    /^nothing public names/,
    {
      answer: relisted('GET /api/blogs', 'blogs', (list) =>
        list.map((blog) => ({ ...(blog as object), email: 'bob@agents.example' })),
      ),
    },
  ],
  [
    2,
    'says that no list goes on',
    /^a cursor goes on/,
    { answer: replace('GET /api/', /"nextCursor":"[^"]*"/, '"nextCursor":null') },
  ],
  [
    3,
    'says that a list of comments goes on',
    /^comments are read page/,
    { answer: replace(/comments\?/, '"nextCursor":null', '"nextCursor":"x"') },
  ],
  [
    3,
    'passes on the standing of links',
    /^markup in a text/,
    { answer: on(postPage, (answer) => (answer.text = answer.text.replaceAll('nofollow', ''))) },
  ],
  [
    4,
    'names no canonical address',
    /^a page names its one/,
    { answer: replace(postPage, 'rel="canonical"', 'rel="x"') },
  ],
  [
    5,
    'has feeds of another type',
    /^feed\.xml has the post/,
    { answer: on(/feed\.xml$/, (answer) => (answer.headers['content-type'] = 'text/xml')) },
  ],
  [
    4,
    'leaves answers to keys in shared caches',
    /^answers to calls with a key/,
    { answer: without(ownList, 'cache-control') },
  ],
  [5, 'does not vary on the key', /^answers to calls with a key/, { answer: without(ownList, 'vary') }],
  [6, 'names no limits', /^an answer says what is left/, { answer: without('GET /api/posts', 'ratelimit') }],
  [
    1,
    'counts no calls',
    /^an answer says what is left/,
    {
      answer: on(
        'GET /api/posts',
        (answer) => (answer.headers['x-ratelimit-remaining'] = answer.headers['x-ratelimit-limit']),
      ),
    },
  ],
  [
    2,
    'forgets a time of publication',
    /^a draft takes a time ahead/,
    { answer: replace(/^PATCH /, /"publishAt":"[^"]+"/, '"publishAt":null') },
  ],
  [
    3,
    'lets caches store a preview',
    /^a link shows a draft/,
    { answer: without(/^GET .-.preview/, 'cache-control') },
  ],
  [6, 'names no capabilities', /^the service says what/, { answer: rename('GET /api', 'capabilities', 'x') }],
  [
    1,
    'shows in an inbox what was marked as seen',
    /^what is marked as seen/,
    {
      answer: on(
        'POST /api/me/inbox/seen',
        (answer) => (answer.text = answer.text.replace(/"unseen":0/, '"unseen":1')),
      ),
    },
  ],
  [
    2,
    'counts a vote twice',
    /^the same vote again/,
    { answer: replace(/vote$/, '"upvotes":1', '"upvotes":2') },
  ],
  [
    3,
    'sets the time of publication anew',
    /^an update is 200/,
    {
      answer: on('POST /api/publish', (answer) => {
        if (answer.status === 200)
          answer.text = answer.text.replace(/"publishedAt":"\d{4}/, '"publishedAt":"2001');
      }),
    },
  ],
  [
    2,
    'shows drafts to all',
    /^a draft is read with the key/,
    { answer: on('GET /api/posts/', (answer) => answer.text.includes('not_found') && (answer.status = 200)) },
  ],
  [
    4,
    'says nothing of unknown fields',
    /^an unknown field is named/,
    { answer: relisted('POST /api/publish', 'warnings', () => undefined) },
  ],
  [
    5,
    'names one fault of several',
    /^all faults of a body/,
    { answer: relisted('POST /api/publish', 'errors', (list) => list.slice(0, 1)) },
  ],
  [
    6,
    'stores a text with a key',
    /^a text with the caller/,
    { answer: on('POST /api/publish', (answer) => answer.status === 422 && (answer.status = 201)) },
  ],
  [
    1,
    'leaves no redirect',
    /^a post with a new slug/,
    { answer: on('GET', (answer) => answer.status === 301 && (answer.status = 404)) },
  ],
  [3, 'names no request', /^a wrong key is/, { answer: without('GET', 'x-request-id') }],
  [
    2,
    'gives the same page of a list again',
    /^a cursor goes on/,
    { answer: relisted(/^GET .*cursor=/, 'posts', () => []) },
  ],
  [
    4,
    'leaves in a picture who made it',
    /^a picture is stored/,
    { answer: replace('POST /api/media', '"removed":["text"]', '"removed":[]') },
  ],
  [
    5,
    'stores a picture twice',
    /^the same bytes again/,
    { answer: on('POST /api/media', (answer) => answer.status === 200 && (answer.status = 201)) },
  ],
  [
    3,
    'takes half a picture',
    /^what is not a whole picture/,
    { answer: on('POST /api/media', (answer) => answer.status === 422 && (answer.status = 201)) },
  ],
  [
    1,
    'lets a picture run',
    /^a picture is served/,
    { answer: without(/^GET .media.[0-9a-f]/, 'content-security-policy') },
  ],
  [
    2,
    'serves other bytes',
    /^a picture is served/,
    { answer: on(/^GET .media.[0-9a-f]/, (answer) => answer.status === 200 && (answer.text += '\n')) },
  ],
  [3, 'lists no pictures', /^pictures are listed/, { answer: relisted('GET /api/media', 'media', () => []) }],
  [
    4,
    'takes a link for something else',
    /^a link takes the picture/,
    { answer: on('PUT /api/media', (answer) => answer.status === 404 && (answer.status = 200)) },
  ],
  [
    5,
    'shows a post without its picture',
    /^a published post has a picture/,
    { answer: replace(postPage, /property="og:image"/, 'property="x"') },
  ],
  [
    4,
    'deletes a picture that is shown',
    /^a published post has a picture/,
    { answer: on('DELETE /api/media', (answer) => answer.status === 409 && (answer.status = 200)) },
  ],
  [
    1,
    'shows a picture that was deleted',
    /^a deleted picture is gone/,
    { answer: on(/^GET .media.[0-9a-f]/, (answer) => answer.status === 404 && (answer.status = 200)) },
  ],
];

describe('masthead conform, with a service that is not as written', () => {
  let dir = '';
  let server: RunningServer;
  let between: Server;
  let url = '';
  let fault: Fault = {};
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'masthead-spoilt-'));
    between = createServer((incoming, outgoing) => void passOn(server, incoming, outgoing, fault));
    between.listen(0, '127.0.0.1');
    await once(between, 'listening');
    const address = between.address();
    url = `http://localhost:${typeof address === 'object' ? address?.port : ''}`;
    const limits = { LIMIT_REGISTER: '0', LIMIT_REPORT: '0' };
    const env = { DATA_DIR: dir, PORT: String(await freePort()), BASE_URL: url, ...limits };
    server = await startServer(loadConfig(env), { log: createLog('silent') });
  });
  after(async () => {
    between.closeAllConnections();
    between.close();
    await server.close();
    await rm(dir, { recursive: true });
  });
  const run = async (given: Fault, ...more: string[]) => {
    fault = given;
    return conform([url, '--variant', 'a', '--mail-dir', server.config.mail.dir, ...more]);
  };
  const failedIn = ({ results }: Report): string[] =>
    results.filter(({ outcome }) => outcome === 'fail').map(({ title }) => title);

  test('finds nothing where nothing is changed on the way', async () => {
    const { code, report } = await run({});
    assert.deepEqual(failedIn(report), []);
    assert.equal(code, 0);
  });

  test('asks once what a service can do, and leaves out the trash of one that keeps nothing', async () => {
    let asked = 0;
    const answer: Fault['answer'] = (call, passed) => {
      if (call === 'GET /api' && ++asked) passed.text = passed.text.replace('"trash"', '"other"');
      if (call.includes('/trash')) passed.status = 404;
    };
    const { code, report } = await run({ answer });
    assert.deepEqual([code, asked, failedIn(report)], [0, 1, []]);
    const skipped = report.results.filter(({ reason }) => reason === 'the service has no trash');
    assert.equal(skipped.length, 3);
  });

  const rounds = new Map<number, ReturnType<typeof conform>>();
  /** The report on all faults of a round. */
  const runRound = (round: number) => {
    const together = faults.flatMap(([of, , , each]) => (of === round ? [each] : []));
    const all: Fault = {
      request: (call, headers) => together.forEach((each) => each.request?.(call, headers)),
      answer: (call, answer) => together.forEach((each) => each.answer?.(call, answer)),
    };
    const ran = rounds.get(round) ?? run(all);
    rounds.set(round, ran);
    return ran;
  };

  for (const [round, what, title, , level = 'contract'] of faults.toSorted(([a], [b]) => a - b)) {
    test(`finds one that ${what}`, async () => {
      const { code, report } = await runRound(round);
      assert.equal(code, 1);
      const failure = report.results.find((result) => result.outcome === 'fail' && title.test(result.title));
      assert.ok(failure, `failed: ${failedIn(report).join('; ') || 'nothing'}`);
      assert.ok(failure.expected);
      assert.equal(failure.level, level);
    });
  }

  test('counts for the specification only what it asks', async () => {
    const renamed = { answer: rename('GET /api/blogs?', 'blogs', 'items') };
    assert.equal((await run(renamed, '--level', 'specification')).code, 0);
    const kept = {
      answer: on('POST /api/publish', (answer) => answer.status === 201 && (answer.status = 200)),
    };
    assert.equal((await run(kept, '--level', 'specification')).code, 1);
  });

  test('goes on after an odd status: nothing else is left out', async () => {
    const odd = {
      answer: on(/^(?:POST .api.(?:register|publish|regenerate-key)|GET .api.verify)/, (answer) => {
        if (answer.status === 200 || answer.status === 201) answer.status = 202;
      }),
    };
    const { report } = await run(odd);
    // Lists of one page alone have no cursor; nothing else is left out.
    assert.ok(
      report.skipped <= 1,
      JSON.stringify(report.results.filter(({ outcome }) => outcome === 'skip')),
    );
    assert.ok(failedIn(report).includes('a registration is answered with the agent'));
  });

  test('sends again what a busy service refuses', async () => {
    let refused = 0;
    const busy = {
      answer: on('GET /api/posts', (answer) => {
        if (refused++ % 4 !== 0) return;
        answer.status = 503;
        answer.headers['retry-after'] = '0';
      }),
    };
    const { code, report } = await run(busy);
    assert.deepEqual([failedIn(report), code], [[], 0]);
    assert.ok(refused > 0);
    const down = {
      answer: on(/^GET .api$/, (answer) => {
        answer.status = 503;
        answer.headers['retry-after'] = '0';
      }),
    };
    assert.equal((await run(down)).code, 1, 'but not for ever');
  });

  test('is not satisfied where a limit kept checks from being made', async () => {
    const limited = {
      answer: on('POST /api/register', (answer) => {
        answer.status = 429;
        answer.headers['retry-after'] = '3000';
      }),
    };
    const { code, report } = await run(limited);
    assert.deepEqual([code, report.failed], [1, 0]);
    assert.ok(report.limited > 0);
    assert.equal(report.results.filter((result) => result.limited).length, report.limited);
  });

  test('prints a failure with both of its sides, and no key', async () => {
    fault = { answer: on('POST /api/regenerate-key', (answer) => (answer.status = 299)) };
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

type Report = {
  readonly variant: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly limited: number;
  readonly results: readonly Result[];
};

async function conform(args: readonly string[]): Promise<{ code: number; report: Report }> {
  let output = '';
  const code = await runCommandLine(['conform', ...args, '--json'], {
    out: (line) => (output += line),
    err: (line) => assert.fail(line),
    env: {},
  });
  return { code, report: JSON.parse(output).data };
}

/** Passes a request on to the service, and its answer back, with one fault. */
async function passOn(
  server: RunningServer,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  fault: Fault,
): Promise<void> {
  const call = `${incoming.method} ${incoming.url}`;
  const headers = { ...incoming.headers };
  fault.request?.(call, headers);
  const asked = httpRequest({
    host: '127.0.0.1',
    port: server.port,
    method: incoming.method,
    path: incoming.url,
    headers,
    agent: false,
  });
  incoming.pipe(asked);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const isBinary = /^(?:image\/|application\/gzip)/.test(response.headers['content-type'] ?? '');
  const encoding = isBinary ? 'latin1' : 'utf8';
  let text = '';
  for await (const chunk of response.setEncoding(encoding)) text += String(chunk);
  const answer: Passed = { status: response.statusCode ?? 0, text, headers: { ...response.headers } };
  fault.answer?.(call, answer);
  delete answer.headers['transfer-encoding'];
  const hasBody = incoming.method !== 'HEAD' && answer.status !== 304 && answer.status !== 204;
  if (hasBody) answer.headers['content-length'] = String(Buffer.byteLength(answer.text, encoding));
  outgoing.writeHead(answer.status, { ...answer.headers, connection: 'close' });
  outgoing.end(hasBody ? answer.text : '', encoding);
}
