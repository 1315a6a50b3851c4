import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { parseEnv } from 'node:util';
import { ConfigError, describeConfig, loadConfig, misspeltSettings, withPort } from '../src/config/config.ts';
import { settings } from '../src/config/settings.ts';
import { startupBlock, startupNotes } from '../src/config/startup.ts';
import { variants } from '../src/variant.ts';
import { envExample, operatorsGuide } from '../scripts/settings.ts';
import { scratchFolder } from './support/scratch-folder.ts';

const dir = scratchFolder('config');

const cwd = '/srv';
const secret = 'k'.repeat(32);
const postgres = { DATABASE_URL: 'postgres://u:hidden@db.example/m', SECRET: secret };
const rsaKey = generateKeyPairSync('rsa', {
  modulusLength: 1024,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
}).privateKey;
const ecKey = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

function file(name: string, content: string): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(env);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    assert.equal(error.message, error.faults.join('\n'));
    return error.faults;
  }
}

test('an empty environment is a complete configuration for one machine', () => {
  assert.deepEqual(loadConfig({}, { cwd }), {
    port: 3000,
    host: '127.0.0.1',
    internal: null,
    variant: variants.subdomain,
    site: {
      baseUrl: 'http://localhost:3000',
      blogDomain: 'localhost:3000',
      name: 'Masthead',
      description: null,
      lang: 'en',
    },
    contact: { email: null, abuse: null, legalUrl: null },
    alsoHosts: [],
    dataDir: '/srv/data',
    database: { engine: 'sqlite', file: '/srv/data/masthead.db' },
    media: { dir: '/srv/data/media', max: 10_485_760 },
    secret: null,
    mail: {
      smtpUrl: null,
      budget: 500,
      from: 'Masthead <masthead@localhost>',
      dir: '/srv/data/mail',
      dkim: null,
    },
    trustProxy: [],
    limits: { register: 60, publish: 600, comment: 120, report: 10, api: 6000, anonymous: 6000 },
    quota: {
      posts: 10_000,
      bytes: 268_435_456,
      media: 1_073_741_824,
      mediaNew: 52_428_800,
      revisions: 67_108_864,
    },
    revisionDays: 30,
    trashDays: 30,
    accountGraceDays: 7,
    auditDays: 730,
    pageMaxAge: 0,
    pageCacheBytes: 12_582_912,
    compressApi: true,
    privateRegistration: false,
    registration: { admits: 'open', domains: [] },
    trust: { newBlogs: 'open', afterDays: 3 },
    readOnly: false,
    workers: 1,
    logLevel: 'info',
    logRequests: 'off',
  });
});

test('every setting has its effect', () => {
  const env = {
    PORT: '8080',
    HOST: '::',
    INTERNAL_PORT: '[fd00::5]:9464',
    VARIANT: 'path',
    BASE_URL: 'HTTPS://Masthead.Example.:443/',
    BLOG_DOMAIN: 'Blogs.example:443',
    SITE_NAME: 'The Wire',
    SITE_DESCRIPTION: 'Field notes.',
    SITE_LANG: 'de-at',
    CONTACT_EMAIL: 'Op@masthead.example',
    ABUSE_EMAIL: 'abuse@masthead.example',
    LEGAL_URL: 'https://masthead.example/legal',
    ALSO_HOSTS: 'www.masthead.example:443, 10.0.0.5:3000,',
    DATA_DIR: 'var',
    DATABASE_URL: 'postgres://a/m, postgresql://b/m',
    DATABASE_DIRECT_URL: 'postgres://c/m',
    DATABASE_REPLICA_URLS: 'postgres://d/m,postgres://e/m',
    MEDIA_DIR: '/srv/pictures',
    MEDIA_MAX: '5000',
    SECRET: secret,
    SMTP_URL: 'smtps://u:p@smtp.example:465',
    MAIL_BUDGET: '0',
    MAIL_FROM: '"The Press, Inc." <press@masthead.example>',
    MAIL_DIR: '/tmp/mail',
    DKIM_DOMAIN: 'masthead.example',
    DKIM_SELECTOR: 'mail2026',
    DKIM_PRIVATE_KEY: rsaKey.replaceAll('\n', '\\n'),
    TRUST_PROXY: 'loopback, 10.0.0.0/8',
    LIMIT_REGISTER: '1',
    LIMIT_PUBLISH: '2',
    LIMIT_COMMENT: '3',
    LIMIT_REPORT: '6',
    LIMIT_API: '0',
    LIMIT_ANONYMOUS: '4',
    QUOTA_POSTS: '5',
    QUOTA_BYTES: '6',
    QUOTA_REVISIONS: '0',
    QUOTA_MEDIA: '7',
    QUOTA_MEDIA_NEW: '8',
    REVISION_DAYS: '8',
    TRASH_DAYS: '9',
    ACCOUNT_GRACE_DAYS: '3',
    AUDIT_DAYS: '9',
    PAGE_MAX_AGE: '7',
    PAGE_CACHE_MB: '0',
    COMPRESS_API: 'off',
    PRIVATE_REGISTRATION: 'TRUE',
    REGISTRATION: 'domains',
    REGISTRATION_DOMAINS: '@Masthead.example, bücher.example',
    NEW_BLOGS: 'probation',
    TRUST_AFTER_DAYS: '0',
    READ_ONLY: '1',
    WORKERS: '2',
    LOG_LEVEL: 'debug',
    LOG_REQUESTS: 'slow',
  };
  assert.deepEqual(Object.keys(env), Object.keys(settings));
  assert.deepEqual(loadConfig(env, { cwd }), {
    port: 8080,
    host: '::',
    internal: { host: 'fd00::5', port: 9464 },
    variant: variants.path,
    site: {
      baseUrl: 'https://masthead.example',
      blogDomain: 'blogs.example',
      name: 'The Wire',
      description: 'Field notes.',
      lang: 'de-AT',
    },
    contact: {
      email: 'Op@masthead.example',
      abuse: 'abuse@masthead.example',
      legalUrl: 'https://masthead.example/legal',
    },
    alsoHosts: ['www.masthead.example', '10.0.0.5:3000'],
    dataDir: '/srv/var',
    database: {
      engine: 'postgres',
      urls: ['postgres://a/m', 'postgresql://b/m'],
      directUrl: 'postgres://c/m',
      replicaUrls: ['postgres://d/m', 'postgres://e/m'],
    },
    media: { dir: '/srv/pictures', max: 5_000 },
    secret,
    mail: {
      smtpUrl: 'smtps://u:p@smtp.example:465',
      budget: 0,
      from: '"The Press, Inc." <press@masthead.example>',
      dir: '/tmp/mail',
      dkim: { domain: 'masthead.example', selector: 'mail2026', privateKey: rsaKey.trim() },
    },
    trustProxy: ['loopback', '10.0.0.0/8'],
    // Variant B has no comments, whatever is set.
    limits: { register: 1, publish: 2, comment: 0, report: 6, api: 0, anonymous: 4 },
    quota: { posts: 5, bytes: 6, media: 7, mediaNew: 8, revisions: 0 },
    revisionDays: 8,
    trashDays: 9,
    accountGraceDays: 3,
    auditDays: 9,
    pageMaxAge: 7,
    pageCacheBytes: 0,
    compressApi: false,
    privateRegistration: true,
    registration: { admits: 'domains', domains: ['masthead.example', 'xn--bcher-kva.example'] },
    trust: { newBlogs: 'probation', afterDays: 0 },
    readOnly: true,
    workers: 2,
    logLevel: 'debug',
    logRequests: 'slow',
  });
});

test('limits are the variant’s unless they are set', () => {
  assert.deepEqual(loadConfig({ VARIANT: 'path', LIMIT_API: '7' }).limits, {
    register: 5,
    publish: 100,
    comment: 0,
    report: 10,
    api: 7,
    anonymous: 6000,
  });
});

test('a configuration is frozen in all its parts', () => {
  for (const config of [loadConfig(postgres), withPort(loadConfig({}), 1)]) {
    for (const part of [
      config,
      config.site,
      config.mail,
      config.limits,
      config.database,
      config.trustProxy,
    ]) {
      assert.ok(Object.isFrozen(part));
    }
  }
});

test('an unusable value is a fault that names the setting, the problem and an example', () => {
  const cases: [env: Record<string, string>, fault: RegExp][] = [
    [{ PORT: '65536' }, /^PORT is "65536", not a whole number from 0 to 65535\. Example: PORT=3000$/],
    [{ PORT: '3e3' }, /^PORT is "3e3"/],
    [{ SITE_LANG: 'english' }, /^SITE_LANG is "english", which is not a BCP 47 language tag/],
    [{ SITE_LANG: 'de_AT' }, /^SITE_LANG is "de_AT", which is not a BCP 47/],
    [{ PORT: '0x50' }, /^PORT is "0x50"/],
    [{ HOST: '127.0.0.1:80' }, /^HOST is .* not an address or a host name/],
    [{ HOST: '[::1]' }, /^HOST is .*no brackets/],
    [{ HOST: '3000' }, /^HOST is "3000", not an address or a host name/],
    [{ HOST: '10.0.0' }, /^HOST is "10\.0\.0", not an address/],
    [{ INTERNAL_PORT: '4798:1' }, /^INTERNAL_PORT is "4798:1", not a port/],
    [{ INTERNAL_PORT: '10.0.0:9464' }, /^INTERNAL_PORT is .*not a port/],
    [{ INTERNAL_PORT: '0x7f000001:9464' }, /^INTERNAL_PORT is .*not a port/],
    [{ BASE_URL: 'http://3000' }, /^BASE_URL is not an http/],
    [{ BASE_URL: 'https://10.0.0:3000' }, /^BASE_URL is not an http/],
    [{ VARIANT: 'path', BLOG_DOMAIN: '3000' }, /^BLOG_DOMAIN is "3000", not a host/],
    [{ ALSO_HOSTS: '3000' }, /^ALSO_HOSTS has "3000", not a host/],
    [{ SMTP_URL: 'smtp://587' }, /^SMTP_URL is not an smtp:/],
    [{ SMTP_URL: 'smtp://mail.example:0' }, /^SMTP_URL is not an smtp:/],
    [{ INTERNAL_PORT: '0' }, /^INTERNAL_PORT is "0", not a port from 1 to 65535/],
    [{ INTERNAL_PORT: '[1.2.3]:9464' }, /^INTERNAL_PORT is .*not a port/],
    [{ INTERNAL_PORT: '3000' }, /^INTERNAL_PORT is the port that everybody reaches, PORT/],
    [{ VARIANT: 'constructor' }, /^VARIANT is "constructor", not one of subdomain, path\. /],
    [{ BASE_URL: 'masthead.example' }, /^BASE_URL is not an http:\/\/ or https:\/\/ address/],
    [{ BASE_URL: 'ftp://masthead.example' }, /^BASE_URL is not an http/],
    [{ BASE_URL: 'https:masthead.example' }, /^BASE_URL is not an http/],
    [{ BASE_URL: 'https://exa!mple' }, /^BASE_URL is not an http/],
    [{ BASE_URL: 'https://masthead.example/blog' }, /^BASE_URL must be .* without path/],
    [{ BASE_URL: 'https://masthead.example/?' }, /^BASE_URL must be/],
    [{ BASE_URL: 'https://masthead.example/#' }, /^BASE_URL must be/],
    [{ BASE_URL: 'https://user:hidden@masthead.example' }, /^BASE_URL must be .* user/],
    [{ BASE_URL: 'http://192.0.2.1' }, /^BLOG_DOMAIN is an IP address, .* VARIANT=path/],
    [{ BLOG_DOMAIN: '[::1]:3000' }, /^BLOG_DOMAIN is an IP address/],
    [{ BLOG_DOMAIN: 'https://masthead.example' }, /^BLOG_DOMAIN is "https:.*not a host/],
    [{ BLOG_DOMAIN: 'blogs.999' }, /^BLOG_DOMAIN is .*not a host/],
    [{ ALSO_HOSTS: 'good.example, *.bad.example' }, /^ALSO_HOSTS has "\*\.bad\.example", not a host/],
    [{ CONTACT_EMAIL: 'Op <op@masthead.example>' }, /^CONTACT_EMAIL contains a space/],
    [{ LEGAL_URL: 'javascript:alert(1)' }, /^LEGAL_URL is not an http/],
    [{ LEGAL_URL: 'https://u:hidden@masthead.example/' }, /^LEGAL_URL is not .* or has a user in it/],
    [{ REGISTRATION: 'close' }, /^REGISTRATION is "close", not one of open, closed, domains/],
    [{ REGISTRATION: 'domains' }, /^REGISTRATION_DOMAINS is missing/],
    [
      { REGISTRATION_DOMAINS: 'a.example' },
      /^REGISTRATION_DOMAINS has no effect without REGISTRATION=domains/,
    ],
    [
      { REGISTRATION: 'domains', REGISTRATION_DOMAINS: '*.a.example' },
      /^REGISTRATION_DOMAINS has .* not a domain/,
    ],
    [{ DATABASE_URL: 'mysql://u:hidden@db/m' }, /^DATABASE_URL is neither sqlite: nor a postgres:/],
    [{ DATABASE_URL: ',' }, /^DATABASE_URL is neither sqlite/],
    [{ DATABASE_URL: 'sqlite::memory:' }, /^DATABASE_URL must name a file/],
    [{ DATABASE_URL: 'sqlite:x.db?mode=ro' }, /^DATABASE_URL must name a file/],
    [{ ...postgres, DATABASE_URL: 'postgres://u:hid,den@db/m' }, /^DATABASE_URL is .* and , as/],
    [{ ...postgres, DATABASE_URL: 'postgres:u:hidden@db/m' }, /^DATABASE_URL is neither/],
    [{ ...postgres, DATABASE_URL: 'postgres://u:1/hidden@db/m' }, /^DATABASE_URL is neither/],
    [{ ...postgres, DATABASE_URL: 'postgres://u:1?hidden@db/m' }, /^DATABASE_URL is neither/],
    [{ ...postgres, DATABASE_URL: 'postgres://u:1#hidden@db/m' }, /^DATABASE_URL is neither/],
    [{ ...postgres, DATABASE_DIRECT_URL: 'hidden' }, /^DATABASE_DIRECT_URL is not a postgres:/],
    [{ ...postgres, DATABASE_REPLICA_URLS: 'postgres://d/m,hidden' }, /^DATABASE_REPLICA_URLS is not/],
    [{ DATABASE_DIRECT_URL: 'postgres://u:hidden@db/m' }, /^DATABASE_DIRECT_URL is for PostgreSQL/],
    [{ DATABASE_URL: postgres.DATABASE_URL }, /^SECRET is required with PostgreSQL/],
    [{ SECRET: 'hidden' }, /^SECRET is shorter than 32 characters\. Example: SECRET_FILE=/],
    [{ SMTP_URL: 'https://u:hidden@smtp.example' }, /^SMTP_URL is not an smtp:/],
    [{ SMTP_URL: 'smtp://u:hid/den@smtp.example' }, /^SMTP_URL is not an smtp:.* write/],
    [{ SMTP_URL: 'smtp://u:25/hidden@smtp.example' }, /^SMTP_URL is not an smtp:/],
    [{ SMTP_URL: 'smtp:' }, /^SMTP_URL is not an smtp:/],
    [{ SMTP_URL: 'smtp://mail.example?tls=never' }, /^SMTP_URL has a parameter that is not one of/],
    [{ MAIL_FROM: 'a..b@press.example' }, /^MAIL_FROM is/],
    [{ MAIL_FROM: 'Masthead' }, /^MAIL_FROM is "Masthead", neither an address/],
    [{ MAIL_FROM: 'a@b.example, c@d.example' }, /^MAIL_FROM is/],
    [{ MAIL_FROM: 'Press\r\nBcc: x <a@b.example>' }, /^MAIL_FROM is "Press\\r\\nBcc/],
    [{ TRUST_PROXY: 'true' }, /^TRUST_PROXY has "true", which is not an address/],
    [{ TRUST_PROXY: '0.0.0.0/0' }, /^TRUST_PROXY has .*would trust every client/],
    [{ LIMIT_API: '-1' }, /^LIMIT_API is "-1", not a whole number of at least 0/],
    [{ QUOTA_POSTS: '0' }, /^QUOTA_POSTS is "0"/],
    [{ WORKERS: '1.5' }, /^WORKERS is "1\.5"/],
    [{ READ_ONLY: 'maybe' }, /^READ_ONLY is "maybe", neither on nor off/],
    [{ LOG_LEVEL: 'x'.repeat(500) }, /^LOG_LEVEL is "x{80}…", not one of debug/],
  ];
  for (const [env, expected] of cases) {
    const faults = faultsOf(env);
    assert.equal(faults.length, 1, `${JSON.stringify(env)}: ${faults.join(' | ')}`);
    assert.match(faults[0] ?? '', expected);
    assert.match(faults[0] ?? '', / Example: [A-Z_]+=\S/);
    assert.doesNotMatch(faults[0] ?? '', /hid,?\/?den/);
  }
});

test('all faults are reported at once', () => {
  const faults = faultsOf({
    PORT: 'x',
    VARIANT: 'y',
    BASE_URL: 'z',
    DKIM_DOMAIN: 'a b',
    DKIM_SELECTOR_FILE: '/s',
    LOG_LEVEL: 'loud',
  });
  assert.deepEqual(
    faults.map((fault) => fault.split(' ')[0]),
    ['PORT', 'VARIANT', 'BASE_URL', 'DKIM_SELECTOR', 'DKIM_PRIVATE_KEY', 'DKIM_DOMAIN', 'LOG_LEVEL'],
  );
});

test('a DKIM key is one that mail can be signed with', () => {
  const dkim = { DKIM_DOMAIN: 'masthead.example', DKIM_SELECTOR: 'mail2026' };
  for (const key of ['hidden', ecKey]) {
    const faults = faultsOf({ ...dkim, DKIM_PRIVATE_KEY: key });
    assert.match(faults.join(), /^DKIM_PRIVATE_KEY is not an RSA private key/);
    assert.ok(!faults.join().includes(key));
  }
});

test('a secret may come from a file', () => {
  const config = loadConfig({
    SECRET_FILE: file('secret', `${secret}\n`),
    SMTP_URL_FILE: file('smtp', 'smtp://u:p@smtp.example'),
    DATABASE_URL_FILE: relative(process.cwd(), file('database', 'sqlite:/srv/blog.db')),
    DKIM_DOMAIN: 'masthead.example',
    DKIM_SELECTOR: 'mail2026',
    DKIM_PRIVATE_KEY_FILE: file('dkim.pem', rsaKey),
  });
  assert.equal(config.secret, secret);
  assert.equal(config.mail.smtpUrl, 'smtp://u:p@smtp.example');
  assert.deepEqual(config.database, { engine: 'sqlite', file: '/srv/blog.db' });
  assert.equal(config.mail.dkim?.privateKey, rsaKey.trim());
});

test('a secret’s file that cannot be used is one fault, which does not show the secret', () => {
  const cases: [env: Record<string, string>, fault: RegExp][] = [
    [{ SECRET_FILE: join(dir, 'absent') }, /^SECRET cannot be read from ".*absent", .* \(ENOENT\)/],
    [{ SECRET_FILE: dir }, /^SECRET cannot be read .* \(EISDIR\)/],
    [{ SECRET_FILE: file('empty', '\n') }, /^SECRET is empty in the file/],
    [{ SECRET_FILE: file('short', 'hidden') }, /^SECRET is shorter/],
    [{ SECRET_FILE: file('both', 'hidden'), SECRET: secret }, /^SECRET is given twice/],
  ];
  for (const [env, expected] of cases) {
    const faults = faultsOf({ ...env, DATABASE_URL: postgres.DATABASE_URL });
    assert.equal(faults.length, 1, faults.join(' | '));
    assert.match(faults[0] ?? '', expected);
    assert.doesNotMatch(faults[0] ?? '', /hidden|kkkk/);
  }
});

test('a SQLite address is a file, relative ones from the working directory', () => {
  const cases: [url: string, path: string][] = [
    ['sqlite:', '/data/masthead.db'],
    ['sqlite:/var/blog.db', '/var/blog.db'],
    ['sqlite:///var/blog.db', '/var/blog.db'],
    ['SQLite:blog.db', '/srv/blog.db'],
    ['sqlite:../blog.db', '/blog.db'],
  ];
  for (const [url, path] of cases) {
    const { database } = loadConfig({ DATA_DIR: '/data', DATABASE_URL: url }, { cwd });
    assert.deepEqual(database, { engine: 'sqlite', file: path }, url);
  }
});

/** How a service is named that its operator has not named. */
const unnamed = { name: 'Masthead', description: null, lang: 'en' };

test('the site follows BASE_URL, and a loopback address has its blogs under localhost', () => {
  const cases: [env: Record<string, string>, baseUrl: string, blogDomain: string][] = [
    [{ PORT: '80' }, 'http://localhost', 'localhost'],
    [{ BASE_URL: 'http://127.0.0.1:3000' }, 'http://127.0.0.1:3000', 'localhost:3000'],
    [{ BASE_URL: 'http://[::1]' }, 'http://[::1]', 'localhost'],
    [{ BASE_URL: 'https://münchen.example' }, 'https://xn--mnchen-3ya.example', 'xn--mnchen-3ya.example'],
    [{ BASE_URL: 'http://192.0.2.1', VARIANT: 'path' }, 'http://192.0.2.1', '192.0.2.1'],
  ];
  for (const [env, baseUrl, blogDomain] of cases) {
    assert.deepEqual(loadConfig(env).site, { ...unnamed, baseUrl, blogDomain });
  }
});

test('port 0 is replaced by the port that was given, in the addresses too', () => {
  const config = withPort(loadConfig({ PORT: '0' }), 40_123);
  assert.equal(config.port, 40_123);
  assert.deepEqual(config.site, {
    ...unnamed,
    baseUrl: 'http://localhost:40123',
    blogDomain: 'localhost:40123',
  });

  const proxied = withPort(loadConfig({ PORT: '0', BASE_URL: 'https://masthead.example' }), 40_123);
  assert.deepEqual(proxied.site, {
    ...unnamed,
    baseUrl: 'https://masthead.example',
    blogDomain: 'masthead.example',
  });
});

test('a variable that only looks like a setting is named, and its value is not', () => {
  const others = {
    HOME: '/',
    PORT_2: '1',
    HOSTNAME: 'a',
    POSTS: '1',
    SECRET_FILE: 'f',
    LANG: 'C',
    MAIL: '/m',
  };
  const misspelt = { PROT: '1', LIMIT_REGISTR: '1', DATABSE_URL_FIL: 'f', HOSTS: 'h' };
  const env = {
    BASEURL: 'hidden',
    MASTHEAD_PORT: '1',
    data_dir: 'x',
    BASE_URL: 'y',
    ...others,
    ...misspelt,
  };
  assert.deepEqual(misspeltSettings(env), [
    'BASEURL is not a setting; did you mean BASE_URL?',
    'MASTHEAD_PORT is not a setting; did you mean PORT?',
    'data_dir is not a setting; did you mean DATA_DIR?',
    'PROT is not a setting; did you mean PORT?',
    'LIMIT_REGISTR is not a setting; did you mean LIMIT_REGISTER?',
    'DATABSE_URL_FIL is not a setting; did you mean DATABASE_URL_FILE?',
    'HOSTS is not a setting; did you mean HOST?',
  ]);
});

test('a described configuration has every setting and no secret', () => {
  const rows = describeConfig(
    loadConfig({
      SECRET: 'hidden'.repeat(8),
      DATABASE_URL: 'postgres://u:hidden@a/m,postgres:///m?host=/run&password=hidden',
      DATABASE_REPLICA_URLS: 'postgres://u:hidden@b/m',
      SMTP_URL: 'smtp://u:hidden@smtp.example',
      DKIM_DOMAIN: 'masthead.example',
      DKIM_SELECTOR: 'mail2026',
      DKIM_PRIVATE_KEY: rsaKey,
    }),
  );
  const values = new Map(rows.map(({ name, value }) => [name, value]));
  assert.deepEqual([...values.keys()], Object.keys(settings));
  assert.equal(values.get('DATABASE_URL'), 'postgres://u:***@a/m, postgres:///m?host=%2Frun&password=***');
  assert.equal(values.get('DATABASE_REPLICA_URLS'), 'postgres://u:***@b/m');
  assert.equal(values.get('SMTP_URL'), 'smtp://u:***@smtp.example');
  assert.equal(values.get('SECRET'), 'set');
  assert.equal(values.get('DKIM_PRIVATE_KEY'), 'set');
  assert.doesNotMatch(JSON.stringify(rows), /hidden|BEGIN/);
});

test('.env.example is made from the table of settings', () => {
  const path = new URL('../.env.example', import.meta.url);
  assert.equal(readFileSync(path, 'utf8'), envExample(), 'npm run settings writes it');
});

test('a shell reads every example of .env.example as Node does', () => {
  const examples = envExample().replaceAll(/^# (?=[A-Z_]+=)/gm, '');
  const path = join(dir, 'examples.env');
  writeFileSync(path, examples);
  const names = Object.keys(parseEnv(examples));
  assert.equal(names.length, Object.keys(settings).length);
  const script = `set -ae; . "$0"; for name; do eval 'printf "%s\\n" "$'"$name"'"'; done`;
  const read = execFileSync('sh', ['-c', script, path, ...names], { env: {}, encoding: 'utf8' });
  assert.deepEqual(read.trimEnd().split('\n'), Object.values(parseEnv(examples)));
});

test("the operator's guide is made from the table of settings", () => {
  const guide = readFileSync(new URL('../docs/operations.md', import.meta.url), 'utf8');
  assert.equal(guide, operatorsGuide(guide), 'npm run settings writes it');
});

test('every example can be used as it stands, but for secrets that a file must hold', () => {
  for (const [name, { example }] of Object.entries(settings)) {
    const line = /^([A-Z_]+)="?([^"]+)"?$/.exec(example);
    const [, key = '', value = ''] = line ?? [];
    assert.ok(key === name || key === `${name}_FILE`, example);
    if (key !== name || name.startsWith('DKIM_')) continue;
    const beside = name.startsWith('DATABASE_')
      ? postgres
      : name === 'REGISTRATION_DOMAINS'
        ? { REGISTRATION: 'domains' }
        : {};
    assert.deepEqual(faultsOf({ ...beside, [key]: value }), [], name);
  }
});

test('the notes name what is not ready for others', () => {
  const ready = {
    BASE_URL: 'https://masthead.example',
    SMTP_URL: 'smtp://smtp.example',
    TRUST_PROXY: 'loopback',
    NEW_BLOGS: 'probation',
  };
  assert.deepEqual(startupNotes(loadConfig(ready)), []);
  const cases: [env: Record<string, string>, note: RegExp][] = [
    [{ BASE_URL: 'http://masthead.example' }, /^BASE_URL is http: API keys travel in clear/],
    [{ BASE_URL: 'http://blog.localhost' }, /^BASE_URL is http:\/\/blog\.localhost: .* this machine only/],
    [{ SMTP_URL: '' }, /^SMTP_URL is not set: mail goes to files in /],
    [{ TRUST_PROXY: '' }, /^TRUST_PROXY is empty/],
    [postgres, /^MEDIA_DIR is not set: with PostgreSQL the service does not start/],
    [{ INTERNAL_PORT: '0.0.0.0:9464' }, /^INTERNAL_PORT is at 0\.0\.0\.0: let nobody else reach it/],
    [{ MAIL_FROM: 'masthead@localhost' }, /^MAIL_FROM is masthead@localhost/],
    [{ LIMIT_API: '0', LIMIT_PUBLISH: '0' }, /^Limits are off for: publish, api\.$/],
    [{ NEW_BLOGS: '' }, /^NEW_BLOGS is open: .*NEW_BLOGS=probation/],
    [{ READ_ONLY: 'on' }, /^READ_ONLY is on/],
  ];
  for (const [env, expected] of cases) {
    const notes = startupNotes(loadConfig({ ...ready, ...env }));
    assert.equal(notes.length, 1, notes.join(' | '));
    assert.match(notes[0] ?? '', expected);
  }
});

test('the start-up block says where things are', () => {
  const block = startupBlock(loadConfig({ HOST: '::1' }, { cwd }), {
    version: '1.2.3',
    database: 'SQLite 3',
  });
  assert.equal(
    block,
    `Masthead 1.2.3

  address    http://localhost:3000
  blogs      http://{slug}.localhost:3000
  listening  [::1]:3000
  variant    subdomain
  database   SQLite 3, /srv/data/masthead.db
  mail       files in /srv/data/mail

Before others use it:
  - BASE_URL is http://localhost:3000: addresses in pages and mail work on this machine only.
  - SMTP_URL is not set: mail goes to files in /srv/data/mail, not to its recipients.
`,
  );
  const live = startupBlock(
    loadConfig({
      ...postgres,
      MEDIA_DIR: '/srv/media',
      VARIANT: 'path',
      BASE_URL: 'https://masthead.example',
      TRUST_PROXY: 'loopback',
      SMTP_URL: 'smtp://u:hidden@smtp.example',
      NEW_BLOGS: 'probation',
    }),
    { version: '1.2.3', database: 'PostgreSQL 18' },
  );
  assert.match(live, /blogs {6}https:\/\/masthead\.example\/\{slug\}\n/);
  assert.match(
    live,
    /PostgreSQL 18, postgres:\/\/u:\*\*\*@db\.example\/m\n {2}mail {7}smtp:\/\/u:\*\*\*@smtp\.example\n$/,
  );
});
