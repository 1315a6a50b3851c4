import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../src/config/config.ts';
import { createHostTable, type HostMatch } from '../src/rules/hosts.ts';
import { canonicalHost } from '../src/rules/hosts.ts';

const base: HostMatch = { kind: 'base' };
const malformed: HostMatch = { kind: 'malformed' };
const blog = (slug: string): HostMatch => ({ kind: 'blog', slug });
const former = (slug: string): HostMatch => ({ kind: 'blog', slug, former: true });

const local = createHostTable(loadConfig({}));
const live = createHostTable(
  loadConfig({ BASE_URL: 'https://masthead.example', ALSO_HOSTS: 'www.masthead.example,10.0.0.5:3000' }),
);
const apart = createHostTable(
  loadConfig({ BASE_URL: 'https://api.masthead.example', BLOG_DOMAIN: 'blogs.example:8443' }),
);
const paths = createHostTable(loadConfig({ VARIANT: 'path', BASE_URL: 'https://masthead.example' }));
const moved = createHostTable(
  loadConfig({
    VARIANT: 'path',
    BASE_URL: 'https://new.example',
    ALSO_HOSTS: 'old.example:8443,new.example',
  }),
);

test('a well-formed host is the base, a blog, or unknown by its received form', () => {
  const cases: [ReturnType<typeof createHostTable>, string, HostMatch | 'unknown'][] = [
    [local, 'localhost:3000', base],
    [local, 'LocalHost:3000', base],
    [local, 'localhost.:3000', base],
    [local, 'localhost:03000', base],
    [local, '127.0.0.1:3000', base],
    [local, '[::1]:3000', base],
    [local, '[0:0:0:0:0:0:0:1]:3000', base],
    [local, 'ada.localhost:3000', blog('ada')],
    [local, 'ADA.localhost:3000', blog('ada')],
    [local, 'ada.localhost.:3000', blog('ada')],
    [local, 'ada.127.0.0.1:3000', 'unknown'],
    [local, 'localhost', 'unknown'],
    [local, 'localhost:3001', 'unknown'],
    [local, 'ada.localhost', 'unknown'],
    [local, '127.0.0.2:3000', 'unknown'],
    [live, 'masthead.example', base],
    [live, 'masthead.example:443', base],
    [live, 'masthead.example:', base],
    [live, 'www.masthead.example', base],
    [live, '10.0.0.5:3000', base],
    [live, '10.0.0.5', 'unknown'],
    [live, 'masthead.example:80', 'unknown'],
    [live, 'localhost', 'unknown'],
    [live, 'ada.masthead.example', blog('ada')],
    [live, 'ada.masthead.example:443', blog('ada')],
    [live, 'api.masthead.example', blog('api')],
    [live, `${'a'.repeat(63)}.masthead.example`, blog('a'.repeat(63))],
    [live, `${'a'.repeat(64)}.masthead.example`, 'unknown'],
    [live, 'ad.masthead.example', 'unknown'],
    [live, '-ada.masthead.example', 'unknown'],
    [live, 'ada-.masthead.example', 'unknown'],
    [live, 'a_a.masthead.example', 'unknown'],
    [live, 'xn--ada.masthead.example', 'unknown'],
    [live, 'ada.lovelace.masthead.example', 'unknown'],
    [live, 'adamasthead.example', 'unknown'],
    [live, 'masthead.example.evil.example', 'unknown'],
    [apart, 'api.masthead.example', base],
    [apart, 'blogs.example:8443', base],
    [apart, 'ada.blogs.example:8443', blog('ada')],
    [apart, 'ada.blogs.example', 'unknown'],
    [apart, 'ada.masthead.example', 'unknown'],
    [paths, 'masthead.example', base],
    [paths, 'ada.masthead.example', 'unknown'],
    [live, 'ada.www.masthead.example', former('ada')],
    [moved, 'old.example:8443', base],
    [moved, 'ada.old.example:8443', former('ada')],
    [moved, 'ADA.new.example:443', former('ada')],
    [moved, 'ada.old.example', 'unknown'],
    [moved, 'a.b.new.example', 'unknown'],
  ];
  for (const [table, host, expected] of cases) {
    const match = expected === 'unknown' ? { kind: 'unknown', received: host } : expected;
    assert.deepEqual(table(host), match, host);
  }
});

test('what is not a host is malformed', () => {
  const headers = [
    undefined,
    '',
    ' ',
    ':3000',
    'localhost:3000 ',
    'localhost:3000, localhost:3000',
    'localhost:65536',
    'localhost:-1',
    'localhost:3000:3000',
    'localhost..',
    '.localhost:3000',
    'a..localhost:3000',
    'ada@localhost:3000',
    'http://localhost:3000',
    'localhost:3000/x',
    'localhost:3000?x',
    'ada\u0000.localhost:3000',
    'ada%2e.localhost:3000',
    'ädä.localhost:3000',
    '[::1',
    '[::1].:3000',
    '[:::1]:3000',
    '[localhost]:3000',
    `${'a.'.repeat(130)}a`,
  ];
  for (const header of headers) assert.deepEqual(local(header), malformed, String(header));
});

test('a canonical host drops the port that its protocol implies, and no other', () => {
  assert.equal(canonicalHost('A.example:80', 'http:'), 'a.example');
  assert.equal(canonicalHost('a.example:80', 'https:'), 'a.example:80');
  assert.equal(canonicalHost('a.example:443', 'https:'), 'a.example');
  assert.equal(canonicalHost('a.example:0', 'https:'), 'a.example:0');
  assert.equal(canonicalHost('[2001:DB8:0:0::1]:443', 'https:'), '[2001:db8::1]');
});
