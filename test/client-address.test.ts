import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createClientAddress, trustProxyFault } from '../src/rules/client-address.ts';

const alone = createClientAddress([]);
const proxied = createClientAddress(['loopback', 'private', '203.0.113.9', '2001:db8:ffff::/48']);

test('an address counts as IPv4 whole, as IPv6 by its /64', () => {
  const cases: [peer: string, subject: string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002:ffff::1', '2001:db8:1:2::/64'],
    ['2001:db8::5:0:0:1', '2001:db8:0:0::/64'],
    ['2001:db8:1:2::192.0.2.1', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['', ''],
  ];
  for (const [peer, subject] of cases) assert.equal(alone(peer, undefined), subject, peer);
});

test('X-Forwarded-For is read from the right, past trusted proxies only', () => {
  const cases: [peer: string, forwardedFor: string | undefined, subject: string][] = [
    ['127.0.0.1', undefined, '127.0.0.1'],
    ['127.0.0.1', '', '127.0.0.1'],
    ['127.0.0.1', '192.0.2.1', '192.0.2.1'],
    ['::1', '192.0.2.1', '192.0.2.1'],
    ['::ffff:10.0.0.1', '192.0.2.1', '192.0.2.1'],
    ['203.0.113.9', '192.0.2.1', '192.0.2.1'],
    ['2001:db8:ffff::1', '192.0.2.1', '192.0.2.1'],
    ['2001:db8:fffe::1', '192.0.2.1', '2001:db8:fffe:0::/64'],
    ['192.0.2.7', '192.0.2.1', '192.0.2.7'],
    ['127.0.0.1', '198.51.100.1, 192.0.2.1', '192.0.2.1'],
    ['127.0.0.1', '10.0.0.1, 192.0.2.1', '192.0.2.1'],
    ['127.0.0.1', '198.51.100.1, 192.0.2.1, 10.0.0.1,172.16.0.1', '192.0.2.1'],
    ['127.0.0.1', '10.0.0.2, 10.0.0.1', '10.0.0.2'],
    ['127.0.0.1', '::ffff:192.0.2.1', '192.0.2.1'],
    ['127.0.0.1', '2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['127.0.0.1', '192.0.2.1:4711', '192.0.2.1'],
    ['127.0.0.1', '[2001:db8:1:2::9]:4711', '2001:db8:1:2::/64'],
    ['127.0.0.1', '[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
    ['127.0.0.1', 'unknown', '127.0.0.1'],
    ['127.0.0.1', '192.0.2.1, unknown, 10.0.0.1', '10.0.0.1'],
    ['127.0.0.1', '192.0.2.1,', '127.0.0.1'],
    ['127.0.0.1', '192.0.2.01', '127.0.0.1'],
    ['127.0.0.1', '192.0.2.1/24', '127.0.0.1'],
    ['127.0.0.1', '0300.0.2.1, 3221225985', '127.0.0.1'],
  ];
  for (const [peer, forwardedFor, subject] of cases) {
    assert.equal(proxied(peer, forwardedFor), subject, `${peer} with '${forwardedFor}'`);
  }
});

test('a header of many proxies is read only so far', () => {
  assert.equal(proxied('127.0.0.1', `192.0.2.1${', 10.0.0.1'.repeat(19)}`), '192.0.2.1');
  assert.equal(proxied('127.0.0.1', `192.0.2.1${', 10.0.0.1'.repeat(5000)}`), '10.0.0.1');
});

test('nothing that a client sends changes the address that it counts as', () => {
  const header = fc.oneof(fc.string(), fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string())).map(String));
  fc.assert(
    fc.property(header, (sent) => {
      assert.equal(alone('192.0.2.1', sent), '192.0.2.1');
      assert.equal(proxied('192.0.2.1', sent), '192.0.2.1');
      assert.equal(proxied('10.0.0.1', `${sent}, 192.0.2.1`), '192.0.2.1');
    }),
    { seed: 1, numRuns: 200 },
  );
});

test('an entry of TRUST_PROXY is an address, a range or a keyword that trusts less than everyone', () => {
  const good = ['loopback', 'private', '10.0.0.1', '10.0.0.0/8', '192.0.2.1/32', '::1', 'fd00::/8'];
  for (const entry of good) assert.equal(trustProxyFault(entry), null, entry);
  const bad = [
    '',
    'proxy.example',
    'constructor',
    '1',
    'true',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    '10.0.0.0/8.0',
    '0.0.0.0/0',
    '::/0',
    'fd00::/129',
    'fe80::1%eth0',
    '::ffff:10.0.0.1',
    '::ffff:10.0.0.0/104',
  ];
  for (const entry of bad) assert.equal(typeof trustProxyFault(entry), 'string', entry);
});
