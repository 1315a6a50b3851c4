import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { AppError } from '../../src/errors.ts';
import { renderComment, renderPost } from '../../src/markdown/render.ts';
import { createRenderer } from '../../src/markdown/pool/renderer.ts';
import { hostileDocuments } from '../markdown-hostile-cases.ts';

/** Takes a second or more, and is not large. */
const slow = `${`\`\`\`csharp\n${'a\n'.repeat(4000)}\`\`\`\n`.repeat(8)}${'- a\n* b\n'.repeat(40_000)}`;
/** Takes longer than others wait for a thread before they get another. */
const held = `${'|a'.repeat(200)}\n${'|-'.repeat(200)}\n${'|b\n'.repeat(4000)}`;
/** Takes a second or more, and is not large: quick threads get it. */
const stuck = hostileDocuments(500 * 1024).get("csharp of 'a'") ?? '';
/** Is large. */
const large = 'word '.repeat(14_000);
/** Is large, and some of them make their owner a slow one. */
const long = '*word* **word** '.repeat(20_000);
/** Takes some hundred MiB. */
const heavy = `${'|a'.repeat(200)}\n${'|-'.repeat(200)}\n${'|b\n'.repeat(300)}\n`.repeat(10);

/** Longer than any document waits, however busy the machine is. */
const longestMs = 600_000;

const code = (expected: string) => (error: unknown) => error instanceof AppError && error.code === expected;

describe('the render threads', () => {
  test('give what rendering without threads gives', async (t) => {
    const renderer = createRenderer({ threads: 2, longestMs });
    t.after(() => renderer.close());
    const markdown = '# a\n\n`b` [c](d:e)\n\n```js\nlet f\n```';
    assert.deepEqual(await renderer.renderPost(markdown), renderPost(markdown));
    assert.deepEqual(await renderer.renderComment(markdown), renderComment(markdown));
  });

  test('answer each of many documents with its own HTML', async (t) => {
    const renderer = createRenderer({ threads: 2, longestMs });
    t.after(() => renderer.close());
    const posts = await Promise.all(Array.from({ length: 200 }, (_, at) => renderer.renderPost(`${at}`)));
    posts.forEach(({ html }, at) => assert.equal(html, `<p dir="auto">${at}</p>\n`));
  });

  test('pass on why a document is refused, and which field is to blame', async (t) => {
    const renderer = createRenderer({ threads: 1, longestMs });
    t.after(() => renderer.close());
    await assert.rejects(renderer.renderPost('>'.repeat(60)), (error: unknown) => {
      assert.ok(error instanceof AppError);
      assert.equal(error.code, 'unrenderable');
      assert.equal(
        error.message,
        "'content' nests lists or quotes deeper than 50 levels. Nest them less deep.",
      );
      assert.deepEqual(error.extra.errors, [
        { field: 'content', message: 'nests lists or quotes deeper than 50 levels' },
      ]);
      return true;
    });
  });

  test('end at the deadline, and the next document is rendered', async (t) => {
    const renderer = createRenderer({ threads: 1, deadlineMs: 400, longestMs });
    t.after(() => renderer.close());
    const refused = assert.rejects(renderer.renderPost(slow), code('unrenderable'));
    const next = renderer.renderPost('a');
    await refused;
    assert.equal((await next).html, '<p dir="auto">a</p>\n');
  });

  test('are not all taken by one whose documents take long, however many they are', async (t) => {
    const renderer = createRenderer({ threads: 1, deadlineMs: 400, longestMs });
    t.after(() => renderer.close());
    const state = { left: 6 };
    const refused = Array.from({ length: state.left }, () =>
      assert.rejects(renderer.renderPost(slow, 'mallory'), code('unrenderable')).finally(() => state.left--),
    );
    assert.equal((await renderer.renderPost('a', 'ada')).html, '<p dir="auto">a</p>\n');
    assert.ok(state.left > 0, 'all of them were let go first');
    await Promise.all(refused);
  });

  for (const threads of [1, 2]) {
    test(`leave small documents to another while one is busy, also those sent to that one, with ${threads}`, async () => {
      const renderer = createRenderer({ threads, deadlineMs: 60_000 });
      let isBusy = true;
      const slowly = assert
        .rejects(renderer.renderPost(slow, 'mallory'), code('unavailable'))
        .finally(() => (isBusy = false));
      await renderer.renderPost('a');
      const posts = await Promise.all(Array.from({ length: 50 }, (_, at) => renderer.renderPost(`${at}`)));
      posts.forEach(({ html }, at) => assert.equal(html, `<p dir="auto">${at}</p>\n`));
      assert.ok(isBusy);
      await renderer.close();
      await slowly;
    });

    test(`are left to others by the documents of one who holds all of them up, with ${threads}`, async (t) => {
      const renderer = createRenderer({ threads, deadlineMs: 60_000 });
      t.after(() => renderer.close());
      const send = (owner: string) =>
        Array.from({ length: 2 * threads }, () => renderer.renderPost(stuck, owner));
      // All threads of both lanes have started then.
      await Promise.all(send('eve'));
      const sent = send('mallory');
      // Some are in each lane by then, and none is done.
      await delay(300);
      const { order, all } = answersOf({ mallory: Promise.race(sent), ada: renderer.renderPost('a', 'ada') });
      await all;
      assert.deepEqual(order, ['ada', 'mallory']);
      const [first, ...others] = await Promise.all(sent);
      for (const { html } of others) assert.equal(html, first?.html);
    });

    test(`answer short documents that all take long, and those among them, with ${threads}`, async (t) => {
      const renderer = createRenderer({ threads, deadlineMs: 60_000 });
      t.after(() => renderer.close());
      await renderer.renderPost('warm');
      const posts = await Promise.all(
        Array.from({ length: 24 }, (_, at) =>
          renderer.renderPost(at % 4 === 0 ? `${held}\n\n${at}` : `${at}`),
        ),
      );
      posts.forEach(({ html }, at) => assert.ok(html.endsWith(`<p dir="auto">${at}</p>\n`)));
    });
  }

  test('that run out of memory are reported and replaced', async (t) => {
    const crashes: NodeJS.ErrnoException[] = [];
    const renderer = createRenderer({
      threads: 1,
      memoryMb: 24,
      deadlineMs: 60_000,
      onCrash: (error) => crashes.push(error),
    });
    t.after(() => renderer.close());
    await assert.rejects(renderer.renderPost(heavy), code('unrenderable'));
    assert.equal((await renderer.renderPost('a')).html, '<p dir="auto">a</p>\n');
    assert.deepEqual(
      crashes.map((error) => error.code),
      ['ERR_WORKER_OUT_OF_MEMORY'],
    );
  });

  test('reject what is under way, waiting or new when they are closed', async () => {
    const renderer = createRenderer({ threads: 1, longestMs });
    await renderer.renderPost('warm');
    const rejected = [slow, 'a'].map((markdown) =>
      assert.rejects(renderer.renderPost(markdown), code('unavailable')),
    );
    await renderer.close();
    await Promise.all(rejected);
    await assert.rejects(renderer.renderPost('b'), code('unavailable'));
  });

  test('do not keep the process alive once all is rendered', async () => {
    const program = `
      const { createRenderer } = await import('${new URL('../../src/markdown/pool/renderer.ts', import.meta.url).href}');
      console.log((await createRenderer({ threads: 1 }).renderPost('a')).html);`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '--eval', program],
      { timeout: 100_000 },
    );
    assert.match(stdout, /<p dir="auto">a<\/p>/);
  });

  const mixed: readonly string[] = [
    '```ts\nhtml`<b c="d">`; css`a { b: c }`; gql`query { a }`\n```',
    '```jsx\nreturn <a b={1}>c</a>\n```',
    '```html\n<style>a { b: c }</style><script>gql`query { a }`</script>\n```',
    '```yaml\na: <%= b.each do |c| %>\n```',
    '```dockerfile\nRUN if true; then echo $A; fi\n```',
    '```console\n$ if true; then echo $A; fi\n```',
    '```pycon\n>>> def a(): return None\n```',
  ];
  test('colour code the same whatever they have rendered before', async (t) => {
    const everything = mixed.map((markdown) => renderPost(markdown).html);
    for (const [at, markdown] of mixed.entries()) {
      const renderer = createRenderer({ threads: 1, longestMs });
      t.after(() => renderer.close());
      assert.equal((await renderer.renderPost(markdown)).html, everything[at]);
      assert.equal(renderPost(markdown).html, everything[at]);
    }
  });
});

/** The names of documents in the order in which they are answered. */
function answersOf(documents: Readonly<Record<string, Promise<unknown>>>) {
  const order: string[] = [];
  const all = Object.entries(documents).map(([name, document]) =>
    document.then(
      () => order.push(name),
      () => order.push(name),
    ),
  );
  return { order, all: Promise.all(all) };
}

/** By how much threads of this process give way to this one, those that do, in order; see proc(5), nice. */
function lowThreads(): number[] {
  const nice = readdirSync('/proc/self/task').map((thread) =>
    Number(readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ')[1]?.split(' ')[16]),
  );
  return nice
    .map((value) => value - getPriority())
    .filter((lower) => lower > 0)
    .toSorted((a, b) => a - b);
}

describe('owners', () => {
  test('who have once had a long document rendered do not wait for those of others', async (t) => {
    const renderer = createRenderer({ threads: 1, deadlineMs: 60_000 });
    t.after(() => renderer.close());
    await renderer.renderPost(held, 'ada');
    const { order, all } = answersOf({
      mallory: renderer.renderPost(long, 'mallory'),
      'mallory again': renderer.renderPost(long, 'mallory'),
      eve: renderer.renderPost(long, 'eve'),
      'eve again': renderer.renderPost(long, 'eve'),
    });
    for (let at = 0; at < 10; at++) await renderer.renderPost('a', 'ada');
    assert.ok(order.length <= 1, order.join());
    await renderer.close();
    await all;
  });

  test('who are slow take turns, and none waits for two documents of another', async (t) => {
    const renderer = createRenderer({ threads: 1, deadlineMs: 60_000 });
    t.after(() => renderer.close());
    // More than makes them slow, on a fast machine too.
    for (let at = 0; at < 6; at++)
      await Promise.all(['mallory', 'eve'].map((owner) => renderer.renderPost(long, owner)));
    const { order, all } = answersOf({
      'mallory 1': renderer.renderPost(held, 'mallory'),
      'mallory 2': renderer.renderPost(held, 'mallory'),
      'mallory 3': renderer.renderPost(held, 'mallory'),
      'eve 1': renderer.renderPost(held, 'eve'),
      'eve 2': renderer.renderPost(held, 'eve'),
    });
    await all;
    // Whose turn is first depends on who was slow first.
    const owners = order.slice(0, 4).map((name) => name.split(' ')[0]);
    assert.match(owners.join(' '), /^(?:mallory eve mallory eve|eve mallory eve mallory)$/);
  });

  test('who have used less processor time go first', async (t) => {
    const renderer = createRenderer({ threads: 1, deadlineMs: 60_000 });
    t.after(() => renderer.close());
    await renderer.renderPost(held, 'eve');
    // As many as a thread is sent before it is free.
    const sent = Array.from({ length: 9 }, () => renderer.renderPost('a', 'noa'));
    const { order, all } = answersOf({
      eve: renderer.renderPost('a', 'eve'),
      ada: renderer.renderPost('a', 'ada'),
      bob: renderer.renderPost('a', 'bob'),
    });
    await Promise.all([...sent, all]);
    assert.equal(order.at(-1), 'eve', order.join());
  });

  test('who send large documents have one of them rendered at a time, and small ones of others beside it', async (t) => {
    const renderer = createRenderer({ threads: 2, deadlineMs: 60_000 });
    t.after(() => renderer.close());
    const { order, all } = answersOf({
      mallory: renderer.renderPost(long, 'mallory'),
      // Would be done long before the other if it were rendered beside it.
      eve: renderer.renderPost(large, 'eve'),
      ada: renderer.renderPost('a', 'ada'),
    });
    await all;
    assert.deepEqual(order, ['ada', 'mallory', 'eve']);
  });

  test('who send large documents have them rendered at a lower priority than others', async (t) => {
    if (process.platform !== 'linux') return t.skip('only Linux has a priority for each thread');
    const renderer = createRenderer({ threads: 1, longestMs });
    t.after(() => renderer.close());
    assert.deepEqual(lowThreads(), []);
    await renderer.renderPost('a', 'ada');
    assert.deepEqual(lowThreads(), [4]);
    await renderer.renderPost(large, 'eve');
    assert.deepEqual(lowThreads(), [4, 10]);
  });

  test('who leave have nothing rendered any more', async (t) => {
    const crashes: Error[] = [];
    const renderer = createRenderer({
      threads: 1,
      memoryMb: 24,
      longestMs,
      onCrash: (error) => crashes.push(error),
    });
    t.after(() => renderer.close());
    const leaving = new AbortController();
    const first = renderer.renderPost('a', 'ada');
    const dropped = Array.from({ length: 20 }, () =>
      assert.rejects(renderer.renderPost(heavy, 'ada', leaving.signal), /has left/),
    );
    leaving.abort(new Error('has left'));
    await Promise.all(dropped);
    await assert.rejects(renderer.renderPost(heavy, 'ada', leaving.signal), /has left/);
    await first;
    assert.equal((await renderer.renderPost('b', 'ada')).html, '<p dir="auto">b</p>\n');
    assert.deepEqual(crashes, []);
  });
});

describe('the time of a document', () => {
  test('is the processor time that it takes, however long its process has to wait', async () => {
    const program = `
      const { createRenderer } = await import('${new URL('../../src/markdown/pool/renderer.ts', import.meta.url).href}');
      const { renderPost } = await import('${new URL('../../src/markdown/render.ts', import.meta.url).href}');
      const document = process.argv[1];
      const before = process.threadCpuUsage();
      renderPost(document);
      const { user, system } = process.threadCpuUsage(before);
      const deadlineMs = 3 * (user + system) / 1000;
      const renderer = createRenderer({ threads: 1, deadlineMs });
      await renderer.renderPost('warm');
      const rendered = renderer.renderPost(document);
      console.log(deadlineMs);
      console.log(await rendered.then(({ html }) => html.length > 0, (error) => error.message));
      await renderer.close();`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program, '--', held], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface(child.stdout);
    const [deadlineMs] = await once(lines, 'line');
    // As on a machine that is busy with other things.
    child.kill('SIGSTOP');
    await delay(1.5 * Number(deadlineMs));
    child.kill('SIGCONT');
    assert.equal(String(await once(lines, 'line')), 'true');
    await once(child, 'close');
  });

  test('is bounded by the clock too, where the document need not be to blame', async (t) => {
    const renderer = createRenderer({ threads: 1, deadlineMs: 60_000, longestMs: 200 });
    t.after(() => renderer.close());
    await assert.rejects(renderer.renderPost(long), (error: unknown) => {
      assert.ok(error instanceof AppError);
      assert.deepEqual([error.code, error.extra.retryAfter], ['unavailable', 1]);
      return true;
    });
  });
});

describe('hostile documents of 8 KiB', () => {
  test('are each rendered, or refused for their size or depth, and never run into a limit of time or memory', async (t) => {
    const renderer = createRenderer({
      threads: 2,
      deadlineMs: 3_000,
      longestMs,
      onCrash: (error) => assert.fail(error),
    });
    t.after(() => renderer.close());
    const rendered = [...hostileDocuments(8 * 1024)].map(async ([name, markdown]) => {
      await renderer.renderPost(markdown).catch((error: unknown) => {
        assert.ok(error instanceof AppError, name);
        assert.match(
          error.message,
          /^'content' (?:makes more than 4 MiB|nests lists or quotes deeper|has more than 500000)/,
          name,
        );
      });
    });
    await Promise.all(rendered);
  });
});
