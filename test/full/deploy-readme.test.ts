import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { request } from '../support/http.ts';
import { nginxVersion, startNginx } from '../support/nginx.ts';
import { freePort } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const readme = readFileSync(join(root, 'deploy/README.md'), 'utf8');
const folder = scratchFolder('deploy');

const runs = (program: string, argument: string) => spawnSync(program, [argument]).status === 0;
const withoutNginx =
  nginxVersion() !== null && runs('openssl', 'version')
    ? false
    : 'nginx or openssl is not installed: apt-get install nginx-light openssl';
const withoutCaddy = runs('caddy', 'version') ? false : 'Caddy is not installed: apt-get install caddy';
const withoutSystemd = runs('systemd-analyze', '--version') ? false : 'systemd is not installed';
for (const reason of [withoutNginx, withoutCaddy, withoutSystemd])
  if (reason) console.error(`SKIPPED: ${reason}`);

describe('deploy/README.md', () => {
  test('names files that there are, and at most twelve commands to the first post', () => {
    const named = [...readme.matchAll(/\bdeploy\/[\w./-]*\w/g), ...readme.matchAll(/\]\((?!#)([^)#]+)/g)].map(
      ([whole, link]) => (link === undefined ? whole : join('deploy', link)),
    );
    assert.ok(named.length > 8);
    for (const path of new Set(named))
      if (!path.endsWith('.env.masthead') && !path.endsWith('/masthead'))
        assert.ok(existsSync(join(root, path)), path);
    const commands = (from: string) => {
      const section = readme.slice(readme.indexOf(from) + from.length).split(/^## /m)[0] ?? '';
      return [...section.matchAll(/```sh\n([^]*?)```/g)].flatMap(([, block = '']) => block.trim().split('\n'))
        .length;
    };
    const [common, post] = [commands('## Before either'), commands('## The first post')];
    for (const way of ['## (a)', '## (b)']) assert.ok(common + commands(way) + post <= 12, way);
  });

  test(
    "makes of the shipped file one that Debian's nginx runs, with TLS",
    { skip: withoutNginx },
    async (t) => {
      const line =
        readme.split('\n').find((each) => each.startsWith('sed ') && each.includes('deploy/nginx')) ?? '';
      const [sed = ''] = line.split(' > ');
      const [live, home] = [join(folder, 'live'), join(folder, 'nginx')];
      for (const path of [live, home]) mkdirSync(path);
      const made = execFileSync('sh', ['-c', sed], {
        cwd: root,
        encoding: 'utf8',
        env: { ...process.env, DOMAIN: 'wire.example' },
      });
      assert.match(made, /^ {4}ssl_certificate {5}\/etc\/letsencrypt\/live\/wire\.example\/fullchain\.pem;/m);
      assert.match(made, /^server \{\n {4}listen 80 default_server;\n/m);
      assert.equal([...made.matchAll(/^ {4}listen /gm)].length, 2);
      execFileSync(
        'openssl',
        [
          'req -x509 -newkey rsa:2048 -nodes -subj /CN=wire.example -days 2'.split(' '),
          ['-keyout', join(live, 'privkey.pem'), '-out', join(live, 'fullchain.pem')],
        ].flat(),
        { stdio: 'ignore' },
      );
      const [port, tls, upstreamPort] = [await freePort(), await freePort(), await freePort()];
      const site = made
        .replaceAll('/etc/letsencrypt/live/wire.example', live)
        .replace('listen 443', `listen 127.0.0.1:${tls}`)
        .replace('/var/www/html', join(home, 'www'))
        .replace('listen 80 default_server;', 'listen 80 default_server; listen [::]:80 default_server;');
      const configuration = join(folder, 'masthead.conf');
      writeFileSync(configuration, site);
      const challenges = join(home, 'www/.well-known/acme-challenge');
      mkdirSync(challenges, { recursive: true });
      writeFileSync(join(challenges, 'token'), 'proof');
      const nginx = await startNginx({ folder: home, port, upstreamPort, configuration });
      t.after(() => nginx.stop());
      const ask = (path: string) => request(`http://127.0.0.1:${port}`, { path, host: 'wire.example' });
      // A renewal by HTTP-01 must not be sent on to the service.
      const challenge = await ask('/.well-known/acme-challenge/token');
      assert.deepEqual([challenge.status, challenge.text], [200, 'proof']);
      const page = await ask('/ada?x=1');
      assert.deepEqual([page.status, page.headers.location], [301, 'https://wire.example/ada?x=1']);
      assert.equal((await ask('/api/posts')).status, 403);
    },
  );

  test(
    "makes of the shipped file one that Debian's Caddy takes, with one certificate for the wildcard",
    { skip: withoutCaddy },
    () => {
      const commands = readme
        .split('\n')
        .flatMap((line) => /\bsed (?:-i )?((?:-e )?["'].*)$/.exec(line)?.[1] ?? []);
      const [domain = '', wildcard = ''] = commands
        .filter((command) => command.includes('Caddyfile'))
        .map((command) => command.replace(/ (?:deploy|\/etc)\/caddy\/Caddyfile.*$/, ''));
      const made = execFileSync('sh', ['-c', `sed ${domain} deploy/caddy/Caddyfile | sed ${wildcard}`], {
        cwd: root,
        encoding: 'utf8',
        env: { ...process.env, DOMAIN: 'wire.example' },
      });
      assert.doesNotMatch(made, /:masthead\.example|\ton_demand$/m);
      assert.match(made, /^\ttls \/etc\/caddy\/masthead\/fullchain\.pem/m);
      const file = join(folder, 'Caddyfile');
      writeFileSync(file, made);
      const { status, stderr } = spawnSync('caddy', ['adapt', '--config', file], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    },
  );

  test('tries the backup of a container on the volume of its data, not in memory', () => {
    const [, command = ''] = /exec -T masthead sh -c '([^'\n]*verify-backup[^'\n]*)'/.exec(readme) ?? [];
    const data = join(folder, 'data');
    const program = join(folder, 'masthead');
    writeFileSync(program, '#!/bin/sh\necho "$1 in $TMPDIR"\n', { mode: 0o755 });
    const env = { PATH: `${folder}:${process.env['PATH']}`, DATA_DIR: data, TMPDIR: '/tmp' };
    const said = execFileSync('sh', ['-c', command], { env, encoding: 'utf8' });
    assert.match(said, new RegExp(`^verify-backup in ${data}/`, 'm'));
    assert.deepEqual(readdirSync(data), ['backups']);
  });

  test('has units without a mistake', { skip: withoutSystemd }, () => {
    const units = join(root, 'deploy/systemd');
    for (const name of readdirSync(units)) {
      const { stderr } = spawnSync('systemd-analyze', ['verify', join(units, name)], { encoding: 'utf8' });
      const faults = stderr
        .split('\n')
        .filter((line) => line.includes(name) && !line.includes('not executable'));
      assert.deepEqual(faults, []);
    }
  });
});
