import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DatabaseError } from 'pg';
import { examineAll, type Subject } from '../src/cli/doctor/examine.ts';
import { examineBackup } from '../src/cli/doctor/machine.ts';
import { probes as ofThisMachine, type Probes } from '../src/cli/doctor/probes.ts';
import { askServers, examineServersFound } from '../src/cli/doctor/servers.ts';
import { loadConfig } from '../src/config/config.ts';
import { postgresStartError } from '../src/db/postgres/postgres-start.ts';
import { noteBackup } from '../src/db/sqlite/sqlite-backups.ts';
import { newProbe, probeHeader } from '../src/http/own-probe.ts';
import { createLog } from '../src/platform/log.ts';
import { openContext, type OpenContext } from '../src/process/open-context.ts';
import { startServer, type RunningServer } from '../src/server.ts';
import type { Finding } from '../src/services/upkeep/doctor.ts';
import { masthead } from './support/command-line.ts';
import { request } from './support/http.ts';
import { freePort, portOf, quickLoad } from './support/processes.ts';
import { scratchFolder } from './support/scratch-folder.ts';
import { sharedPostgres } from './support/shared-postgres.ts';
import { openSqlite } from './support/sqlite-file.ts';

const dir = scratchFolder('doctor');
let last = 0;
const log = createLog('silent');
const day = 86_400_000;
const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 1024,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).toString('base64');

type Env = Record<string, string>;
let env: Env = {};
let server: RunningServer;
/** The database of the service, opened once for all examinations that do not change it. */
let opened: OpenContext;

before(async () => {
  env = {
    DATA_DIR: join(dir, 'data'),
    PORT: String(await freePort()),
    BASE_URL: 'https://masthead.example',
    TRUST_PROXY: 'loopback',
    NEW_BLOGS: 'probation',
    SMTP_URL: 'smtps://user:hidden@smtp.masthead.example',
    DKIM_DOMAIN: 'masthead.example',
    DKIM_SELECTOR: 's1',
    DKIM_PRIVATE_KEY: privateKey,
  };
  server = await startServer(loadConfig(env), { log });
  for (const name of ['', 'masthead.db', 'secret'])
    chmodSync(join(dir, 'data', name), name === '' ? 0o700 : 0o600);
  noteBackup(join(dir, 'data/masthead.db'), new Date().toISOString());
  opened = await openContext(server.config, { existing: true, migrate: false, log });
});
after(async () => {
  await opened.close();
  await server.close();
});

/** What a proxy makes of the headers of a request. */
type Proxy = (headers: Record<string, string>) => Record<string, string>;
const good: Proxy = (headers) => ({ ...headers, 'x-forwarded-for': '198.51.100.7' });

/** An outside in which everything is as it should be, with a proxy that reaches the service. */
function outside(changes: Partial<Probes> = {}, proxy: Proxy = good, port = env['PORT']): Probes {
  const records: Record<string, string[]> = {
    'masthead.example': ['v=spf1 a:smtp.masthead.example -all', 'other'],
    's1._domainkey.masthead.example': [`v=DKIM1; k=rsa; p=${publicKey}`],
    '_dmarc.masthead.example': ['v=DMARC1; p=reject'],
  };
  return {
    now: Date.now,
    addresses: async () => ['198.51.100.1'],
    texts: async (name) => records[name] ?? [],
    certificate: async () => ({ validTo: Date.now() + 60 * day, fault: null }),
    async ask(url, sent) {
      const { host, ...headers } = proxy({ host: new URL(url).host, ...sent });
      const {
        status,
        headers: received,
        text,
      } = await request(`http://127.0.0.1:${port}`, {
        path: '/readyz',
        host: host ?? '',
        headers,
      });
      return { status, headers: received, body: text };
    },
    announce: async () => null,
    login: async () => undefined,
    isClockSynchronised: async () => true,
    ...changes,
  };
}

/** Examines the running service, or the database of another folder. */
async function examined(
  {
    settings = {},
    probes = outside(),
    fresh = false,
  }: { settings?: Env; probes?: Probes; fresh?: boolean } = {},
  more: Partial<Subject> = {},
): Promise<readonly Finding[]> {
  const given = { ...env, ...settings };
  const config = loadConfig(given);
  const subject: Subject = {
    config,
    env: given,
    probes,
    offline: false,
    async withDatabase(run) {
      if (!fresh) return run({ ...opened, config });
      const ctx = await openContext(config, { existing: true, migrate: false, secret: 'examined', log });
      try {
        return await run(ctx);
      } finally {
        await ctx.close();
      }
    },
    ...more,
  };
  return examineAll(subject);
}

/** A copy of the folder in which something is done. */
function folder(change: (path: string) => void): { settings: Env; fresh: true } {
  const path = join(dir, String(++last));
  cpSync(join(dir, 'data'), path, { recursive: true });
  change(path);
  return { settings: { DATA_DIR: path }, fresh: true };
}

/** A folder in which one is another user's. */
function foreignFolder(): string {
  if (process.getuid?.() !== 0) return '/usr';
  const path = join(dir, String(++last));
  mkdirSync(join(path, 'ab'), { recursive: true });
  chownSync(join(path, 'ab'), 65_534, 65_534);
  return path;
}

/** Less room on the disk than is worth a look is no fault of the program. */
const isOfService = ({ what }: Finding) => what !== 'disk' && what !== 'pictures';

test('a service in order has findings that say so, and nothing else', async () => {
  const findings = (await examined()).filter(isOfService);
  assert.deepEqual(
    findings.filter(({ state }) => state !== 'ok'),
    [],
  );
  for (const what of [
    'dns',
    'certificate',
    'way in',
    'proxy',
    'smtp',
    'spf',
    'dkim',
    'dmarc',
    'port',
    'backup',
  ])
    assert.ok(
      findings.some((finding) => finding.what === what),
      what,
    );
});

test('the policy of a domain above counts for mail from below it', async () => {
  const settings = { MAIL_FROM: 'Masthead <no-reply@news.mail.masthead.example>' };
  const found = (await examined({ settings })).find(({ what }) => what === 'dmarc');
  assert.deepEqual([found?.state, found?.detail], ['ok', '_dmarc.masthead.example: v=DMARC1; p=reject']);
});

describe('doctor names', () => {
  const sql = (statement: string) => (path: string) => {
    const database = openSqlite(join(path, 'masthead.db'));
    database.exec(statement);
    database.close();
  };
  const agent = (createdAt: string, avatarUrl: string) =>
    sql(`insert into agents (id, email, email_key, name, slug, avatar_url, created_at, registered_at)
      values ('01a00000-0000-7000-8000-000000000000', 'a@b.example', 'a@b.example', 'A', 'a-b',
        ${avatarUrl}, ${createdAt}, ${createdAt})`);
  const cutOff = (bytes: number) =>
    folder((path) => {
      sql('pragma wal_checkpoint(truncate)')(path);
      truncateSync(join(path, 'masthead.db'), bytes);
    });
  type Planted = Parameters<typeof examined>[0];
  const texts = (changes: Record<string, string[]>) =>
    outside({ texts: async (name) => changes[name] ?? outside().texts(name) });
  const answering = (status: number, body: string) =>
    outside({ ask: async () => ({ status, headers: {}, body }) });
  const refused = async () => Promise.reject(new Error('connect ECONNREFUSED'));

  const faults: [fault: string, what: string, state: Finding['state'], mend: RegExp, () => Planted][] = [
    [
      'a host without an address',
      'dns',
      'wrong',
      /^masthead\.example\. 300 IN A /,
      () => ({
        probes: outside({ addresses: async () => [] }),
      }),
    ],
    [
      'a missing wildcard',
      'dns',
      'wrong',
      /^\*\.masthead\.example\. 300 IN A 198\.51\.100\.1$/,
      () => ({
        probes: outside({ addresses: async (host) => (host === 'masthead.example' ? ['198.51.100.1'] : []) }),
      }),
    ],
    [
      'a former host without an address',
      'dns',
      'look',
      /^old\.example\. 300/,
      () => ({
        settings: { ALSO_HOSTS: 'old.example' },
        probes: outside({ addresses: async (host) => (host === 'old.example' ? [] : ['198.51.100.1']) }),
      }),
    ],
    [
      'a certificate that ended',
      'certificate',
      'wrong',
      /renew|reload/,
      () => ({
        probes: outside({ certificate: async () => ({ validTo: Date.now() - 3 * day, fault: 'expired' }) }),
      }),
    ],
    [
      'a certificate that ends soon',
      'certificate',
      'look',
      /renew|reload/,
      () => ({
        probes: outside({ certificate: async () => ({ validTo: Date.now() + 5 * day, fault: null }) }),
      }),
    ],
    [
      'a certificate without the wildcard',
      'certificate',
      'wrong',
      /-d '\*\.masthead\.example'/,
      () => ({
        probes: outside({
          certificate: async (host) => ({
            validTo: Date.now() + 60 * day,
            fault: host === 'masthead.example' ? null : 'not of this host',
          }),
        }),
      }),
    ],
    [
      'a wildcard that leads to another machine',
      'dns',
      'wrong',
      /^\*\.masthead\.example\. 300 IN A ADDRESS/,
      () => ({
        probes: outside({
          addresses: async (host) => [host === 'masthead.example' ? '198.51.100.1' : '198.51.100.9'],
          ask: async (url, headers, address) =>
            address === '198.51.100.9'
              ? { status: 200, headers: {}, body: 'parked' }
              : outside().ask(url, headers, address),
        }),
      }),
    ],
    [
      'one of two addresses that is another machine, which the system takes first',
      'dns',
      'wrong',
      /in place of 198\.51\.100\.9\)$/,
      () => ({
        probes: outside({
          addresses: async () => ['198.51.100.9', '198.51.100.1'],
          ask: async (url, headers, address) =>
            address === '198.51.100.1'
              ? outside().ask(url, headers, address)
              : { status: 200, headers: {}, body: 'parked' },
        }),
      }),
    ],
    [
      'one of two addresses that does not answer',
      'dns',
      'look',
      /^masthead\.example\. 300 IN AAAA ADDRESS/,
      () => ({
        probes: outside({
          addresses: async () => ['198.51.100.1', '2001:db8::9'],
          ask: async (url, headers, address) =>
            address === '2001:db8::9' ? refused() : outside().ask(url, headers, address),
        }),
      }),
    ],
    ...(
      [
        ['of its own', 'DEPTH_ZERO_SELF_SIGNED_CERT', /^certbot certonly .*-d '\*\.masthead/],
        ['of other hosts', 'ERR_TLS_CERT_ALTNAME_INVALID', /^certbot certonly .*-d '\*\.masthead/],
        ['without its chain', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', /ssl_certificate .*fullchain\.pem/],
        ['of an unknown authority', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /update-ca-certificates/],
      ] as const
    ).map(([which, fault, mend]): (typeof faults)[number] => [
      `a certificate ${which}`,
      'certificate',
      'wrong',
      mend,
      () => ({
        probes: outside({ certificate: async () => ({ validTo: Date.now() + 60 * day, fault }) }),
      }),
    ]),
    [
      'a BASE_URL that leads on to another',
      'way in',
      'wrong',
      /^BASE_URL=https:\/\/www\.masthead\.example$/,
      () => ({
        probes: outside({
          ask: async () => ({
            status: 301,
            headers: { location: 'https://www.masthead.example/readyz' },
            body: '',
          }),
        }),
      }),
    ],
    [
      'a proxy that sends to another port than PORT',
      'way in',
      'wrong',
      /server 127\.0\.0\.1:\d+ .*reverse_proxy 127\.0\.0\.1:\d+$/,
      () => ({
        probes: outside({
          ask: async (url, headers) =>
            url.startsWith('https:') ? { status: 502, headers: {}, body: '' } : outside().ask(url, headers),
        }),
      }),
    ],
    [
      'a proxy that takes smaller bodies',
      'way in',
      'wrong',
      /client_max_body_size 12m;.*\/api\/media/,
      () => ({
        probes: outside({ announce: async (_url, bytes) => (bytes > 8 * 1024 ** 2 ? 413 : null) }),
      }),
    ],
    [
      'a closed port',
      'way in',
      'wrong',
      /systemctl status caddy nginx/,
      () => ({
        probes: outside({ ask: refused }),
      }),
    ],
    [
      'a proxy that does not reach the service',
      'way in',
      'wrong',
      /systemctl restart masthead/,
      () => ({
        probes: answering(502, 'Bad Gateway'),
      }),
    ],
    [
      'another service at the address',
      'way in',
      'wrong',
      /^curl -i http:\/\/127/,
      () => ({
        probes: answering(200, '{"success":true}'),
      }),
    ],
    [
      'a proxy that changes Host',
      'way in',
      'wrong',
      /proxy_set_header Host/,
      () => ({
        probes: outside({}, (headers) => ({ ...good(headers), host: 'localhost' })),
      }),
    ],
    [
      'a proxy that believes what clients claim',
      'proxy',
      'wrong',
      /proxy_set_header X-Forwarded-For/,
      () => ({
        probes: outside({}, (headers) => headers),
      }),
    ],
    [
      'a proxy that sends no client address',
      'proxy',
      'wrong',
      /proxy_set_header X-Forwarded-For/,
      () => ({
        probes: outside({}, ({ host = '', [probeHeader]: probe = '' }) => ({ host, [probeHeader]: probe })),
      }),
    ],
    [
      'a mail server that refuses the login',
      'smtp',
      'wrong',
      /SMTP_URL/,
      () => ({
        probes: outside({
          login: async () => Promise.reject(new Error('the mail server answered 535 at AUTH')),
        }),
      }),
    ],
    ...(
      [
        [
          'smtps: at the port of STARTTLS',
          'smtps://u:p@m.example:587',
          'SSL: wrong version number',
          /=smtp:\/\/u:PASSWORD@m\.example:587$/,
        ],
        [
          'smtp: at the port of TLS',
          'smtp://u:p@m.example:465',
          'did not answer in time',
          /=smtps:\/\/u:PASSWORD@m\.example:465$/,
        ],
        [
          'no STARTTLS',
          'smtp://u:p@m.example',
          'STARTTLS is not offered',
          /=smtps:\/\/u:PASSWORD@m\.example:465$/,
        ],
        [
          'an unknown authority',
          'smtps://u:p@m.example',
          'self-signed certificate in certificate chain',
          /update-ca-certificates/,
        ],
      ] as const
    ).map(([which, url, reason, mend]): (typeof faults)[number] => [
      `a mail server with ${which}`,
      'smtp',
      'wrong',
      mend,
      () => ({
        settings: { SMTP_URL: url },
        probes: outside({ login: async () => Promise.reject(new Error(reason)) }),
      }),
    ]),
    [
      'an SPF record of another server',
      'spf',
      'look',
      /IN TXT "v=spf1 ip4:192\.0\.2\.0\/24 a:smtp\.masthead\.example -all"$/,
      () => ({ probes: texts({ 'masthead.example': ['v=spf1 ip4:192.0.2.0/24 -all'] }) }),
    ],
    [
      'a DMARC record that cannot be read',
      'dmarc',
      'wrong',
      /v=DMARC1; p=quarantine/,
      () => ({ probes: texts({ '_dmarc.masthead.example': ['v=DMARC1 p=reject'] }) }),
    ],
    [
      'a missing SPF record',
      'spf',
      'look',
      /IN TXT "v=spf1 a:smtp\.masthead\.example ~all"$/,
      () => ({
        probes: texts({ 'masthead.example': [] }),
      }),
    ],
    [
      'two SPF records',
      'spf',
      'wrong',
      /IN TXT/,
      () => ({
        probes: texts({ 'masthead.example': ['v=spf1 -all', 'v=spf1 mx -all'] }),
      }),
    ],
    [
      'a DKIM key that is another',
      'dkim',
      'wrong',
      /^s1\._domainkey\.masthead\.example\. .*p=MI/,
      () => ({
        probes: texts({ 's1._domainkey.masthead.example': ['v=DKIM1; k=rsa; p=MIIB'] }),
      }),
    ],
    [
      'a missing DMARC record',
      'dmarc',
      'look',
      /^_dmarc\.masthead\.example\. .*v=DMARC1/,
      () => ({
        probes: texts({ '_dmarc.masthead.example': [] }),
      }),
    ],
    [
      'a clock that follows no server',
      'time server',
      'look',
      /timedatectl set-ntp true/,
      () => ({
        probes: outside({ isClockSynchronised: async () => false }),
      }),
    ],
    [
      'a clock that is behind what is stored',
      'clock',
      'wrong',
      /timedatectl/,
      () => folder(agent(`'2999-01-01T00:00:00.000Z'`, 'null')),
    ],
    [
      'files that others may read',
      'permissions',
      'wrong',
      /^chmod go= '/,
      () => folder((path) => chmodSync(join(path, 'secret'), 0o644)),
    ],
    [
      'pictures that a command as root has put back',
      'permissions',
      'wrong',
      /^chown --recursive --reference='[^']+' '[^']+'$/,
      () => ({ settings: { MEDIA_DIR: foreignFolder() } }),
    ],
    [
      'a lost secret',
      'secret',
      'wrong',
      /adopt-secret/,
      () => folder((path) => rmSync(join(path, 'secret'))),
    ],
    [
      'another secret',
      'secret',
      'wrong',
      /adopt-secret/,
      () => folder((path) => writeFileSync(join(path, 'secret'), 'x'.repeat(64))),
    ],
    ['a database that was cut off', 'file', 'wrong', /masthead restore/, () => cutOff(60_000)],
    ['why that one is not opened', 'database', 'wrong', /masthead restore/, () => cutOff(50_000)],
    [
      'a database that a newer release has changed',
      'database',
      'wrong',
      /^npm install --global/,
      () => folder(sql(`insert into migrations values ('9999-later', '2026-01-01T00:00:00.000Z')`)),
    ],
    [
      'a database that lacks a step',
      'database',
      'wrong',
      /^masthead migrate --existing/,
      () => folder(sql(`delete from migrations where name = (select max(name) from migrations)`)),
    ],
    [
      'a lost database',
      'database',
      'wrong',
      /mv '[^']+\/instance' .* masthead restore BACKUP/,
      () => folder((path) => rmSync(join(path, 'masthead.db'))),
    ],
    [
      'an emptied database',
      'database',
      'wrong',
      /masthead restore BACKUP/,
      () => folder((path) => writeFileSync(join(path, 'masthead.db'), '')),
    ],
    [
      'a folder where the database was',
      'file',
      'wrong',
      /masthead restore BACKUP/,
      () =>
        folder((path) => {
          rmSync(join(path, 'masthead.db'));
          mkdirSync(join(path, 'masthead.db'));
        }),
    ],
    [
      'the database of another instance',
      'database',
      'wrong',
      /^mv '[^']+\/instance' /,
      () => folder((path) => writeFileSync(join(path, 'instance'), '00000000-0000-4000-8000-000000000000\n')),
    ],
    [
      'a folder without a database',
      'database',
      'wrong',
      /^masthead migrate$/,
      () =>
        folder((path) => {
          rmSync(path, { recursive: true });
          mkdirSync(path, { mode: 0o700 });
        }),
    ],
    [
      'a file as DATA_DIR',
      'files',
      'wrong',
      /^DATA_DIR=/,
      () =>
        folder((path) => {
          rmSync(path, { recursive: true });
          writeFileSync(path, '');
        }),
    ],
    [
      'a secret that was cut off',
      'secret',
      'wrong',
      /^mv '[^']+\/secret' .*; masthead adopt-secret$/,
      () => folder((path) => writeFileSync(join(path, 'secret'), 'abc')),
    ],
    [
      'a folder in place of the secret',
      'secret',
      'wrong',
      /^mv '[^']+\/secret' .*; masthead adopt-secret$/,
      () =>
        folder((path) => {
          rmSync(join(path, 'secret'));
          mkdirSync(join(path, 'secret'), { mode: 0o700 });
        }),
    ],
    ...(['masthead.db', 'mail', 'instance', 'media'] as const).map((name): (typeof faults)[number] => [
      `a ${name} that its own user may not write`,
      'permissions',
      'wrong',
      new RegExp(`^chmod --recursive u\\+rwX '[^']+/${name}'$`),
      () =>
        folder((path) => {
          const one = join(path, name);
          chmodSync(path, 0o700);
          mkdirSync(join(path, 'media', 'ab'), { recursive: true, mode: 0o700 });
          mkdirSync(join(path, 'mail'), { recursive: true, mode: 0o700 });
          chmodSync(one, statSync(one).mode & ~0o200);
        }),
    ]),
    [
      'a wrong count',
      'counts',
      'wrong',
      /report it/,
      () => folder(sql(`insert into counters values ('posts', 3, 5)`)),
    ],
    [
      'a backup that is old',
      'backup',
      'look',
      /masthead-backup\.timer/,
      () =>
        folder(
          (path) => void noteBackup(join(path, 'masthead.db'), new Date(Date.now() - 3 * day).toISOString()),
        ),
    ],
    [
      'a database that was never backed up',
      'backup',
      'look',
      /masthead-backup\.timer/,
      () => folder(sql(`delete from meta where key = 'last_backup_at'`)),
    ],
    [
      'a misspelt setting',
      'setting',
      'look',
      /^sed -i 's\/\^PROT=\/PORT=\/'/,
      () => ({ settings: { PROT: '1' } }),
    ],
    [
      'a proxy that TRUST_PROXY leaves out',
      'settings',
      'look',
      /^TRUST_PROXY=/,
      () => ({
        settings: { TRUST_PROXY: '' },
      }),
    ],
    [
      'an address of another machine as HOST',
      'port',
      'wrong',
      /^HOST=127/,
      () => ({
        settings: { HOST: '192.0.2.1' },
      }),
    ],
  ];
  for (const [fault, what, state, mend, plant] of faults)
    test(fault, async () => {
      const findings = await examined(plant());
      const found = findings.filter((finding) => finding.what === what && finding.state !== 'ok');
      assert.equal(found[0]?.state, state, JSON.stringify(findings, null, 1));
      assert.match(found[0]?.mend ?? '', mend);
      assert.doesNotMatch(JSON.stringify(findings), /hidden|\\n +at |node_modules/);
    });

  test('a damaged database is mended by the line that stands below it', async () => {
    const planted = cutOff(60_000);
    const found = (await examined(planted)).find(({ what }) => what === 'file');
    const programs = join(dir, 'programs');
    const [calls, backup] = [join(programs, 'calls'), join(programs, 'backup.db')];
    mkdirSync(programs);
    assert.equal((await masthead(['backup', backup], env)).code, 0);
    const program = fileURLToPath(new URL('../bin/masthead.mjs', import.meta.url));
    for (const [name, script] of [
      ['systemctl', `echo "systemctl $*" >> '${calls}'`],
      ['runuser', `echo "runuser $1 $2" >> '${calls}'; shift 3; exec "$@"`],
      ['masthead', `exec '${process.execPath}' '${program}' "$@"`],
    ] as const)
      writeFileSync(join(programs, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    execFileSync('sh', ['-c', (found?.mend ?? '').replace('BACKUP', `'${backup}'`)], {
      cwd: programs,
      env: { PATH: `${programs}:${process.env['PATH']}`, ...quickLoad() },
      stdio: 'pipe',
    });
    assert.deepEqual(readFileSync(calls, 'utf8').trim().split('\n'), [
      'systemctl stop masthead.socket masthead',
      `runuser -u ${userInfo().username}`,
      'systemctl start masthead',
    ]);
    const again = await examined(planted);
    for (const what of ['file', 'database'])
      assert.equal(again.find((finding) => finding.what === what)?.state, 'ok', what);
  });

  test('a database without a byte is not said to be whole', async () => {
    const findings = await examined(folder((path) => writeFileSync(join(path, 'masthead.db'), '')));
    assert.ok(!findings.some(({ what }) => what === 'file'));
  });

  for (const [code, mend] of [
    ['ECONNREFUSED', /^systemctl start postgresql/],
    ['28P01', /\\password/],
    ['3D000', /createdb/],
    ['53300', /max_connections/],
    ['57P03', /^journalctl/],
  ] as const)
    test(`what mends a PostgreSQL that says ${code}`, async () => {
      const refusal = Object.assign(
        code === 'ECONNREFUSED' ? new Error(code) : new DatabaseError(code, 0, 'error'),
        { code },
      );
      const findings = await examined(
        {},
        { withDatabase: () => Promise.reject(postgresStartError(refusal)), offline: true },
      );
      const found = findings.find(({ what, state }) => what === 'database' && state === 'wrong');
      assert.match(found?.mend ?? '', mend);
    });

  test('a port that another program has', async () => {
    const other = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const findings = await examined({
      settings: { PORT: String(portOf(other)) },
      probes: outside({}, good, String(portOf(other))),
    });
    other.close();
    assert.match(findings.find(({ what }) => what === 'port')?.mend ?? '', /^ss -ltnp/);
  });

  test('a proxy whose address is not trusted, as the service sees it', async () => {
    const untrusting = { ...env, PORT: String(await freePort()), TRUST_PROXY: '10.0.0.1' };
    const second = await startServer(loadConfig(untrusting), { log });
    const findings = await examined({ settings: untrusting, probes: outside({}, good, untrusting.PORT) });
    await second.close();
    const found = findings.find(({ what }) => what === 'proxy');
    assert.deepEqual([found?.state, found?.mend], ['wrong', 'TRUST_PROXY=loopback']);
  });

  test('what PostgreSQL says: an archive that fails, a clock that differs, replicas that are behind or gone', async () => {
    const now = Date.now();
    const archiving = { on: true, lastAt: now - day, failedAt: now - 1 };
    const replicas = [
      { address: 'a/m', lag: 30_000, fault: null },
      { address: 'b/m', lag: null, fault: 'it does not answer' },
      { address: 'c/m', lag: 0, fault: null },
    ];
    const findings = examineServersFound({ now: now + 60_000, archiving, replicas }, now);
    assert.deepEqual(
      findings.map(({ what, state, mend }) => [what, state, mend !== undefined]),
      [
        ['database clock', 'look', true],
        ['backup', 'wrong', true],
        ['replica', 'look', true],
        ['replica', 'wrong', true],
        ['replica', 'ok', false],
      ],
    );
    const url = await (await sharedPostgres()).createDatabase();
    const { database } = loadConfig({
      DATABASE_URL: url,
      DATABASE_REPLICA_URLS: url,
      SECRET: 's'.repeat(32),
    });
    assert.ok('urls' in database);
    const found = await askServers(database);
    assert.ok(found.now > now - day);
    assert.deepEqual(
      [found.archiving.on, found.replicas[0]?.fault],
      [false, 'it is no replica: it takes writes'],
    );
  });

  test('a variant that does not fit what is stored', async () => {
    const other = folder(agent(`''`, `'https://a.example/'`));
    const variant = (await examined(other)).find(({ what }) => what === 'variant');
    assert.deepEqual([variant?.state, variant?.mend], ['look', 'VARIANT=path']);
  });
});

test('a check that cannot be made says so and is no failure, and one of its own never ends the rest', async () => {
  const unreachable = async () => Promise.reject(new Error('queryA ETIMEOUT'));
  const findings = await examined({
    probes: outside({ addresses: unreachable, texts: unreachable, isClockSynchronised: async () => null }),
  });
  for (const what of ['dns', 'spf', 'dkim', 'dmarc', 'time server'])
    assert.equal(findings.find((finding) => finding.what === what)?.state, 'unknown', what);
  assert.equal(findings.find(({ what }) => what === 'way in')?.state, 'ok');
  assert.deepEqual(
    findings.filter(({ state }) => state === 'wrong'),
    [],
  );
});

test('nobody is asked with --offline, nor about a service of this machine alone', async () => {
  const nobody = new Proxy({} as Probes, {
    get: (_, name) =>
      name === 'now' || name === 'isClockSynchronised' || name === 'ask'
        ? Reflect.get(outside(), name)
        : () => assert.fail(`asked for ${String(name)}`),
  });
  const outsideOnly = ['dns', 'certificate', 'way in', 'smtp', 'spf'];
  const offline = await examined({ probes: nobody }, { offline: true });
  assert.deepEqual(
    offline.filter(({ what }) => outsideOnly.includes(what)),
    [],
  );
  const local = { BASE_URL: 'http://localhost:3000', SMTP_URL: '' };
  const own = await examined({ probes: nobody, settings: local });
  assert.ok(own.every(({ what }) => !outsideOnly.includes(what)));
});

test('the command prints each finding with its mend below it, and exits with 1 only where something is wrong', async () => {
  const path = join(dir, String(++last));
  mkdirSync(path, { mode: 0o700 });
  const settings = { DATA_DIR: path, PORT: String(await freePort()) };
  await masthead(['migrate'], settings);
  chmodSync(join(path, 'masthead.db'), 0o600);
  const healthy = await masthead(['doctor'], settings);
  assert.equal(healthy.code, 0, healthy.stdout);
  assert.match(healthy.stdout, /^look +settings +SMTP_URL is not set.*\n {4}SMTP_URL=smtps:/m);
  chmodSync(path, 0o755);
  const { code, stdout } = await masthead(['doctor', '--json'], settings);
  assert.equal(code, 1);
  const found = JSON.parse(stdout).data.find(({ what }: Finding) => what === 'permissions');
  assert.deepEqual([found.state, found.mend], ['wrong', `chmod go= '${path}'`]);
  assert.equal(examineBackup(Date.now() + day, null, Date.now()).state, 'look');
  assert.equal(examineBackup(Date.now() - 10 * day, null, Date.now()).state, 'wrong');
});

test('config refuses an address of another machine, and says when the port is taken', async () => {
  const refused = await masthead(['config'], { HOST: '192.0.2.1', DATA_DIR: dir });
  assert.match(refused.stderr, /^HOST 192\.0\.2\.1 is not an address of this machine/);
  assert.equal(refused.code, 1);
  const taken = await masthead(['config'], { PORT: env['PORT'] ?? '', DATA_DIR: dir });
  assert.match(taken.stderr, /^Port \d+ is in use: by this service, if it runs/m);
});

test('only who holds the secret learns how its request arrived', async () => {
  const port = Number(env['PORT']);
  const ask = (headers: Record<string, string>) =>
    request(`http://127.0.0.1:${port}`, { path: '/readyz', host: 'masthead.example', headers });
  const now = Date.now();
  const right = await ask({ [probeHeader]: newProbe(opened.secretKey, now).value });
  assert.equal(right.at('seen.client'), '127.0.0.1');
  const wrong = [
    newProbe(Buffer.alloc(32), now).value,
    newProbe(opened.secretKey, now - day).value,
    `${newProbe(opened.secretKey, now).value}x`,
    '',
  ];
  for (const value of wrong) assert.equal((await ask({ [probeHeader]: value })).at('seen'), undefined, value);
  assert.equal(typeof ofThisMachine.now(), 'number');
});
