import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../../client/src/index.ts';
import { tokenOf } from '../support/instance.ts';
import { freePort, spawnServer } from '../support/processes.ts';
import { startSmtpServer } from '../support/smtp.ts';

const tracer = '/usr/bin/strace';
const skip = existsSync(tracer) ? false : 'strace is not installed: apt-get install strace';
if (skip) console.error(`SKIPPED: ${skip}`);

test('the program connects to the mail server, and to nothing else', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'masthead-connections-'));
  const smtp = await startSmtpServer();
  const port = await freePort();
  const server = await spawnServer({
    env: {
      PORT: String(port),
      DATA_DIR: join(folder, 'data'),
      SMTP_URL: smtp.url,
      MAIL_FROM: 'm@masthead.example',
    },
  });
  const trace = join(folder, 'trace');
  const calls = 'connect,sendto,sendmsg,sendmmsg';
  const strace = spawn(tracer, ['-f', '-qq', '-o', trace, '-e', `trace=${calls}`, '-p', String(server.pid)], {
    stdio: 'ignore',
  });
  const ended = once(strace, 'exit');
  t.after(async () => {
    server.kill('SIGKILL');
    await server.exited;
    await smtp.close();
    rmSync(folder, { recursive: true });
  });
  while (!isTraced(server.pid)) await delay(20);

  const client = createClient({ baseUrl: `http://localhost:${port}` });
  await client.register({ email: 'ada@elsewhere.example', name: 'Ada', slug: 'ada' });
  const mail = await smtp.waitFor(() => true);
  await client.verify(tokenOf(mail) ?? assert.fail());
  await client.updateMe({ avatarUrl: 'https://elsewhere.example/ada.png' });
  const content =
    '![i](https://elsewhere.example/i.png) <https://elsewhere.example/> [a](http://10.0.0.1/) https://elsewhere.example/x';
  const { post } = await client.publish({ title: 'Links', content, status: 'published' });
  await client.addComment(post.id, 'https://elsewhere.example/comment');
  for (const path of [
    '/',
    '/blogs',
    '/feed.xml',
    '/sitemap.xml',
    '/api/openapi.json',
    '/docs',
    '/api/search?q=links',
  ])
    assert.equal((await fetch(`http://localhost:${port}${path}`)).status, 200, path);
  await client.regenerateKey();
  await smtp.waitFor(({ email }) => email.subject?.startsWith('New API key') === true);
  assert.equal(await server.stop(), 0);
  strace.kill('SIGINT');
  await ended;

  const connected = readFileSync(trace, 'utf8')
    .split('\n')
    .filter((line) => /sa_family=AF_INET/.test(line))
    .map((line) => /htons\((\d+)\).*?"([^"]+)"/.exec(line)?.slice(1).toReversed().join(' port ') ?? line);
  assert.ok(connected.length > 0, 'strace saw nothing');
  assert.deepEqual([...new Set(connected)], [`127.0.0.1 port ${smtp.port}`]);
});

/** Whether strace follows every thread of a process. */
function isTraced(pid: number): boolean {
  return readdirSync(`/proc/${pid}/task`).every(
    (thread) => !/^TracerPid:\t0$/m.test(readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8')),
  );
}
