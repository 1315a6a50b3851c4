/**
 * Lists the files of src that run for one warm publish, by V8's coverage of all threads: how much code one has to know
 * to follow a publish. Run it with `npm exec -- node bench/publish-files.ts`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Session, type Profiler } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../client/src/index.ts';
import { loadConfig } from '../src/config/config.ts';
import { awaitNewestMail } from '../src/mail/stored-mail.ts';
import { createLog } from '../src/platform/log.ts';
import { startServer } from '../src/server.ts';

type Coverage = Profiler.TakePreciseCoverageReturnType;

const source = new URL('../src/', import.meta.url).href;
const session = new Session();
session.connect();
/** One function a thread: it takes what ran since it was called last. */
const threads: (() => Promise<Coverage>)[] = [await watch((method, params) => post(method, params))];
await watchWorkers();

const dataDir = mkdtempSync(join(tmpdir(), 'masthead-bench-'));
const server = await startServer(loadConfig({ DATA_DIR: dataDir, PORT: '0' }), { log: createLog('error') });
try {
  const baseUrl = `http://127.0.0.1:${server.port}`;
  const { apiKey } = await newAgent(baseUrl);
  const client = createClient({ baseUrl, apiKey });
  const publish = (n: number) =>
    client.publish({ title: `Post ${n}`, content: 'A plain paragraph.', status: 'published' });
  for (let n = 0; n < 20; n++) await publish(n);
  // What follows a publish, mail and counts, is over by then.
  await delay(3_000);
  await take();
  await publish(20);
  const files = await take();
  process.stdout.write(`${files.join('\n')}\n${files.length} files run for one publish\n`);
} finally {
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
}

/** The files with a function that has run since this was called last, in any thread. */
async function take(): Promise<string[]> {
  const taken = await Promise.all(threads.map((each) => each()));
  const ran = taken.flatMap(({ result }) =>
    result
      .filter(
        ({ url, functions }) =>
          url.startsWith(source) && functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0),
      )
      .map(({ url }) => url.slice(source.length)),
  );
  return [...new Set(ran)].toSorted();
}

type Post = (method: string, params?: object) => Promise<object>;

async function post(method: string, params?: object): Promise<object> {
  return (await session.post(method, params)) as unknown as object;
}

/** Counts the calls of every function of a thread from here on. */
async function watch(send: Post): Promise<() => Promise<Coverage>> {
  await send('Profiler.enable');
  await send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  return async () => (await send('Profiler.takePreciseCoverage')) as Coverage;
}

/** The same in each thread that is started: its inspector is reached through this thread's. */
async function watchWorkers(): Promise<void> {
  const waiting = new Map<number, (result: object) => void>();
  let calls = 0;
  session.on('NodeWorker.receivedMessageFromWorker', ({ params }) => {
    const { id, result } = JSON.parse(params.message) as { id?: number; result?: object };
    if (id !== undefined) waiting.get(id)?.(result ?? {});
  });
  session.on('NodeWorker.attachedToWorker', ({ params: { sessionId } }) => {
    const send: Post = (method, params = {}) => {
      const id = ++calls;
      const answer = new Promise<object>((resolve) => waiting.set(id, resolve));
      void post('NodeWorker.sendMessageToWorker', {
        sessionId,
        message: JSON.stringify({ id, method, params }),
      });
      return answer;
    };
    const watching = watch(send);
    threads.push(async () => (await watching)());
    void watching.then(() => send('Runtime.runIfWaitingForDebugger'));
  });
  await post('NodeWorker.enable', { waitForDebuggerOnStart: true });
}

async function newAgent(baseUrl: string): Promise<{ apiKey: string }> {
  const client = createClient({ baseUrl });
  await client.register({ name: 'Measured', slug: 'measured', email: 'measured@example.org' });
  const mail = await awaitNewestMail(join(dataDir, 'mail'), { holdingToken: true }, 30_000);
  return client.verify(mail?.token ?? '');
}
