import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../src/config/config.ts';
import { findSecret } from '../src/process/instance-secret.ts';
import {
  keyFromSecret,
  keyFromToken,
  keyedHash,
  newApiKey,
  newToken,
  seal,
  sha256,
  shortRandom,
  unseal,
  uuidV4Pattern,
  uuidv7,
} from '../src/rules/secrets.ts';
import { scratchFolder } from './support/scratch-folder.ts';

const secret = '0123456789abcdef0123456789abcdef';
const key = keyFromSecret(secret);

test('Keys and tokens are random UUIDs of version 4 in lower case.', () => {
  const made = Array.from({ length: 500 }, () => [newApiKey(), newToken()]).flat();
  for (const uuid of made) assert.match(uuid, uuidV4Pattern);
  assert.equal(new Set(made).size, 1000);
});

test('The hash of a text is the SHA-256 of its UTF-8 in hex.', () => {
  assert.equal(sha256('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  assert.equal(sha256('ü'), '607474ca475a9724d7360aba71a56d5df77e61350e3f724cfa1f46e857e2d85f');
});

test('What was sealed opens again with the same key and context.', () => {
  for (const plain of ['', 'a', 'grüße 😀\n', 'x'.repeat(100_000)]) {
    assert.equal(unseal(key, seal(key, plain, 'outbox:1'), 'outbox:1'), plain);
  }
});

test('Sealing the same text twice gives two texts, and neither shows it.', () => {
  const [first, second] = [seal(key, 'a very plain text', 'c'), seal(key, 'a very plain text', 'c')];
  assert.notEqual(first, second);
  assert.match(first, /^v1\.[A-Za-z0-9_-]+$/);
  assert.ok(!Buffer.from(first.slice(3), 'base64url').includes('plain'));
});

test('A sealed text does not open with another key or context, or under another version.', () => {
  const sealed = seal(key, 'text', 'outbox:1');
  assert.equal(unseal(keyFromSecret(`${secret}x`), sealed, 'outbox:1'), null);
  assert.equal(unseal(key, sealed, 'outbox:2'), null);
  assert.equal(unseal(key, sealed.replace('v1.', 'v2.'), 'outbox:1'), null);
});

test('A sealed text does not open when any one bit of it was changed.', () => {
  const bytes = Buffer.from(seal(key, 'text', 'c').slice(3), 'base64url');
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    assert.equal(unseal(key, `v1.${changed.toString('base64url')}`, 'c'), null, `bit ${bit}`);
  }
});

test('A sealed text that was cut, lengthened or spelt another way does not open.', () => {
  const sealed = seal(key, 'text', 'c');
  const changed = [
    '',
    'v1.',
    'v1.AAAA',
    sealed.slice(0, -2),
    `${sealed}=`,
    `${sealed}\n`,
    `${sealed}AAAA`,
    ` ${sealed}`,
  ];
  for (const text of changed) assert.equal(unseal(key, text, 'c'), null, JSON.stringify(text));
});

test('Texts sealed and keys derived by earlier releases stay readable.', () => {
  const sealed = 'v1.yKSHl63jDqlRixzx82_jTTdJS2AU7udnsHI38BZMiowIPKg';
  assert.equal(unseal(key, sealed, 'outbox:1'), 'grüße');
  assert.equal(
    keyFromToken('7f0e8f4e-5b0f-4f6e-9d0c-3b8a5f3e2d1c').toString('hex'),
    'af8e1cc4afab9948fe7b9b025b2025a0d508b35d90675b6e654aa4cb2e1ee1f9',
  );
});

test('A token and a secret of the same text give different keys.', () => {
  assert.notDeepEqual(keyFromToken(secret), keyFromSecret(secret));
});

test('Equal texts of different kinds, and under different keys, have different names.', () => {
  const names = [
    keyedHash(key, 'mailbox', 'ada@example.com'),
    keyedHash(key, 'reporter', 'ada@example.com'),
    keyedHash(keyFromToken(secret), 'mailbox', 'ada@example.com'),
  ];
  assert.equal(new Set(names).size, 3);
  assert.equal(keyedHash(key, 'mailbox', 'ada@example.com'), names[0]);
});

test('An id is a UUID of version 7 that begins with its time.', () => {
  const now = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  const id = uuidv7(now);
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16), now);
});

test('Ids of one millisecond ascend, and so do ids of later ones.', () => {
  const ids = Array.from({ length: 40_000 }, (_, index) =>
    uuidv7(1_767_000_000_000 + Math.floor(index / 20_000)),
  );
  assert.deepEqual(ids, ids.toSorted());
  assert.equal(new Set(ids).size, ids.length);
});

test('Short random text has the asked length and uses every letter and digit.', () => {
  assert.match(shortRandom(8), /^[a-z0-9]{8}$/);
  assert.equal(shortRandom(0), '');
  assert.equal(new Set(shortRandom(10_000)).size, 36);
});

test('A secret that another process makes at the same time is taken, and stays.', async () => {
  const dataDir = scratchFolder('secret');
  const file = join(dataDir, 'secret');
  // It has looked for the file when this returns.
  const finding = findSecret(loadConfig({ DATA_DIR: dataDir }), '', { existing: false, secret: 'adopted' });
  writeFileSync(file, `${secret}\n`, { flag: 'wx' });
  assert.deepEqual((await finding).secretKey, key);
  assert.equal(readFileSync(file, 'utf8'), `${secret}\n`);
});
