import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { before, describe, test, type TestContext } from 'node:test';
import { TLSSocket, createSecureContext } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { portOf } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';
import { startSmtpServer } from '../support/smtp.ts';

const launcher = fileURLToPath(new URL('../../bin/masthead', import.meta.url));
const source = new URL('../../src/', import.meta.url).href;
const withoutOpenssl =
  spawnSync('openssl', ['version']).status === 0
    ? false
    : 'openssl is not installed: apt-get install openssl';
if (withoutOpenssl) console.error(`SKIPPED: ${withoutOpenssl}`);

const without = { NODE_USE_SYSTEM_CA: '0' };

describe("an authority of the system's store", { skip: withoutOpenssl }, () => {
  const folder = scratchFolder('authorities');
  let certificate: { readonly key: string; readonly cert: string };
  before(() => {
    const make = (what: string) =>
      execFileSync('openssl', ['req -x509 -newkey rsa:2048 -nodes -days 2', what].join(' ').split(' '), {
        cwd: folder,
        stdio: 'ignore',
      });
    make('-subj /CN=authority -keyout authority.key -out authority.pem');
    make(
      '-subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE ' +
        '-CA authority.pem -CAkey authority.key -keyout key.pem -out cert.pem',
    );
    const [key = '', cert = ''] = ['key.pem', 'cert.pem'].map((name) =>
      readFileSync(join(folder, name), 'utf8'),
    );
    certificate = { key, cert };
  });

  /** As on a machine whose store has the authority alone. */
  function run(command: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    const system = {
      PATH: process.env['PATH'],
      HOME: folder,
      SSL_CERT_FILE: join(folder, 'authority.pem'),
      SSL_CERT_DIR: '/var/empty',
    };
    return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(command, args, { env: { ...system, ...env }, cwd: folder }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
      );
    });
  }

  /** What a program of its own prints. */
  async function evaluate(code: string, env: Readonly<Record<string, string>>): Promise<string> {
    const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '-e', code], env);
    return stdout.trim() || stderr;
  }

  async function startWeb(t: TestContext) {
    const calls: unknown[] = [];
    const server = createHttpsServer(certificate, (request, response) => {
      calls.push(request.url);
      response.writeHead(404).end();
    });
    t.after(() => server.close());
    await once(server.listen(0, 'localhost'), 'listening');
    return { port: portOf(server), calls };
  }

  for (const [how, scheme, options] of [
    ['from the first byte', 'smtps', { tls: true }],
    ['by STARTTLS', 'smtp', { startTls: true }],
  ] as const)
    test(`is trusted of a mail server, with TLS ${how}`, async (t) => {
      const smtp = await startSmtpServer({ certificate, ...options });
      t.after(() => smtp.close());
      const SMTP_URL = `${scheme}://localhost:${smtp.port}`;
      const send = (env: Readonly<Record<string, string>>) =>
        run(launcher, ['mail', 'test', 'op@masthead.example'], { SMTP_URL, ...env });
      const refused = await send(without);
      assert.match(refused.stderr, /^It was not sent by .*: unable to verify the first certificate/m);
      assert.deepEqual([refused.code, smtp.messages.length], [1, 0]);
      const sent = await send({});
      assert.equal(sent.code, 0, sent.stderr);
      assert.equal(smtp.messages[0]?.encrypted, true);
    });

  test('is trusted of a PostgreSQL that is to have TLS', async (t) => {
    // It says that there is no such database, once somebody trusts it.
    const refusal = 'SFATAL\0C3D000\0Mno such database\0\0';
    const answer = Buffer.from(`E\0\0\0${String.fromCharCode(refusal.length + 4)}${refusal}`);
    const server = createServer((plain) => {
      plain.on('error', () => undefined);
      plain.once('data', () => {
        plain.write('S');
        const socket = new TLSSocket(plain, {
          isServer: true,
          secureContext: createSecureContext(certificate),
        });
        socket.on('error', () => undefined).once('data', () => socket.end(answer));
      });
    });
    t.after(() => server.close());
    await once(server.listen(0, 'localhost'), 'listening');
    const connect = (query: string, env: Readonly<Record<string, string>>) =>
      evaluate(
        `import { connect } from '${source}db/postgres/postgres-server.ts';
        await connect('postgres://u:p@localhost:${portOf(server)}/d${query}').catch(({ cause }) => console.log(cause.code));`,
        env,
      );
    const verify = '?sslmode=verify-full';
    assert.equal(await connect(verify, without), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
    assert.equal(await connect(verify, {}), '3D000');
    assert.equal(await connect('', { PGSSLMODE: 'verify-full' }), '3D000');
  });

  test('is trusted by doctor', async (t) => {
    const { port } = await startWeb(t);
    const fault = (env: Readonly<Record<string, string>>) =>
      evaluate(
        `import { probes } from '${source}cli/doctor/probes.ts';
        console.log((await probes.certificate('localhost', ${port})).fault);`,
        env,
      );
    assert.equal(await fault(without), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
    assert.equal(await fault({}), 'null');
  });

  test("is trusted by the agent's commands of masthead", async (t) => {
    const { port, calls } = await startWeb(t);
    const whoami = (env: Readonly<Record<string, string>>) =>
      run(launcher, ['whoami', '--url', `https://localhost:${port}`], { MASTHEAD_API_KEY: 'x', ...env });
    const refused = await whoami(without);
    assert.deepEqual([refused.code !== 0, calls], [true, []], refused.stdout);
    const answered = await whoami({});
    assert.notEqual(calls.length, 0, answered.stderr);
  });
});
