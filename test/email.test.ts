import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { mailboxKeyOf, parseEmail } from '../src/rules/email.ts';

fc.configureGlobal({ seed: 1 });

test('a plain address is kept as typed, and compared in lower case and without its tag', () => {
  const cases: [input: string, address: string, key: string, mailboxKey: string][] = [
    ['ada@example.com', 'ada@example.com', 'ada@example.com', 'ada@example.com'],
    [' Ada@Example.COM\n', 'Ada@Example.COM', 'ada@example.com', 'ada@example.com'],
    ['Ada+Blog+x@example.com', 'Ada+Blog+x@example.com', 'ada+blog+x@example.com', 'ada@example.com'],
    ['+x@example.com', '+x@example.com', '+x@example.com', '+x@example.com'],
    ['a@bücher.example', 'a@xn--bcher-kva.example', 'a@xn--bcher-kva.example', 'a@xn--bcher-kva.example'],
    ["o'neil.{x}@a-b.co.uk", "o'neil.{x}@a-b.co.uk", "o'neil.{x}@a-b.co.uk", "o'neil.{x}@a-b.co.uk"],
    ['a@１.Example', 'a@1.example', 'a@1.example', 'a@1.example'],
  ];
  for (const [input, address, key, mailboxKey] of cases) {
    assert.deepEqual(parseEmail(input), { ok: true, address, key, mailboxKey });
  }
});

test('all spellings of a mailbox of a large provider count as one, and of others only the tag goes', () => {
  const mailboxes = [
    [
      'ada.lovelace@gmail.com',
      'adalovelace@gmail.com',
      'A.D.A.Lovelace+x@GoogleMail.com',
      'adalovelace+a.b@gmail.com',
    ],
    ['ada.l@proton.me', 'adal@protonmail.com', 'a-d_a.l+x@pm.me'],
    ['ada.l@yandex.ru', 'ada-l@ya.ru', 'ada.l+x@yandex.com'],
    ['ada@icloud.com', 'Ada+x@me.com', 'ada@mac.com'],
    ['ada@yahoo.com', 'ada-shop@yahoo.com', 'ada-a-b+x@yahoo.com'],
    ['ada@fastmail.com', 'ada+x@fastmail.com', 'x@ada.fastmail.com', 'y+z@Ada.fastmail.com'],
    ['ada@fastmail.co.uk', 'x@ada.fastmail.co.uk'],
    ['ada@example.com', 'ada+x@EXAMPLE.com', 'ADA+@example.com'],
    // What no provider is known to fold.
    ['ada.l@example.com'],
    ['a-l@outlook.com', 'a-l+x@outlook.com'],
    ['al@outlook.com'],
    ['ada@yahoo.de'],
    ['ada.l@gmail.com.example'],
    ['x@ada.fastmail.com.example'],
    ['x@ada.example.com'],
    // Nothing is left of these, so they stay as they are.
    ['_-_@proton.me', '_-_+x@pm.me'],
  ];
  const keys = mailboxes.map((spellings) => new Set(spellings.map((typed) => keyOf(typed))));
  for (const [at, found] of keys.entries()) assert.equal(found.size, 1, mailboxes[at]?.join());
  assert.equal(new Set(keys.flatMap((found) => [...found])).size, mailboxes.length);
});

function keyOf(typed: string): string {
  const parsed = parseEmail(typed);
  assert.ok(parsed.ok, typed);
  assert.equal(mailboxKeyOf(parsed.address), parsed.mailboxKey);
  return parsed.mailboxKey;
}

test('the longest address and the longest local part are accepted, one more is not', () => {
  const domain = `${'d'.repeat(60)}.${'d'.repeat(60)}.${'d'.repeat(60)}.example`;
  const local = 'l'.repeat(254 - domain.length - 1);
  assert.equal(parseEmail(`${local}@${domain}`).ok, true);
  expectFault(`${local}l@${domain}`, /longer than 254/);
  assert.equal(parseEmail(`${'l'.repeat(64)}@example.com`).ok, true);
  expectFault(`${'l'.repeat(65)}@example.com`, /more than 64/);
  expectFault(
    `a@${'ü'.repeat(50)}.${'ü'.repeat(50)}.${'ü'.repeat(50)}.${'ü'.repeat(50)}.${'ü'.repeat(40)}`,
    /longer|domain/,
  );
});

test('everything else is refused with the reason', () => {
  const cases: [input: string, reason: RegExp][] = [
    ['', /^is empty/],
    ['  ', /^is empty/],
    ['ada', /exactly one '@'/],
    ['a@b@example.com', /exactly one '@'/],
    ['@example.com', /nothing before/],
    ['é@example.com', /outside ASCII/],
    ['.a@example.com', /a dot at an end/],
    ['a..b@example.com', /two in a row/],
    ['"a b"@example.com', /quote/],
    ['a(comment)@example.com', /bracket/],
    ['Ada <ada@example.com>', /bracket/],
    ['a@example.com,b@example.com', /comma/],
    ['a@example.com;b@example.com', /comma|bracket/],
    ['a@example.com\r\nBcc: b@example.com', /line break/],
    ['a@exam\u00adple.com', /invisible/],
    ['a\u202e@example.com', /invisible/],
    ['a\0@example.com', /invisible/],
    ['a\ud800@example.com', /invisible/],
    ['a:b@example.com', /before the '@' that this service does not accept/],
    ['-oQ/tmp@example.com', /begins with a hyphen/],
    ['-a@example.com', /begins with a hyphen/],
    ...Array.from('!%|/$`&*?', (mark): [string, RegExp] => [
      `v${mark}evil@example.com`,
      /a command or route/,
    ]),
    ['a.%b@example.com', /a command or route/],
    ['a\\b@example.com', /before the '@' that this service does not accept/],
    ['a@[127.0.0.1]', /address literal/],
    ['a@127.0.0.1', /no valid domain/],
    ['a@localhost', /no valid domain/],
    ['a@', /no valid domain/],
    ['a@.com', /no valid domain/],
    ['a@example.com.', /no valid domain/],
    ['a@example..com', /no valid domain/],
    ['a@-x.example', /no valid domain/],
    ['a@x_y.example', /no valid domain/],
    ['a@x%41.example', /no valid domain/],
    ['a@xn--\u00fc.example', /no valid domain/],
    [`a@${'d'.repeat(64)}.example`, /no valid domain/],
  ];
  for (const [input, reason] of cases) expectFault(input, reason);
});

test('no text that is accepted can hold a second recipient or a header', () => {
  const part = fc.string({
    unit: fc.constantFrom(...Array.from('aZ9.+-@,;:<>()"\\[]\r\n\t é。ｅ%\u00ad\ud800')),
    maxLength: 8,
  });
  fc.assert(
    fc.property(part, part, (local, domain) => {
      const parsed = parseEmail(`${local}@${domain}.example`);
      if (!parsed.ok) return;
      for (const address of [parsed.address, parsed.key, parsed.mailboxKey]) {
        assert.match(address, /^[a-z0-9.+-]+@[a-z0-9.-]+$/i);
        assert.deepEqual(parseEmail(address).ok, true);
      }
      assert.equal(parsed.key, parsed.address.toLowerCase());
    }),
    { numRuns: 500 },
  );
});

function expectFault(input: string, reason: RegExp): void {
  const parsed = parseEmail(input);
  assert.match(parsed.ok ? 'accepted' : parsed.message, reason, input);
}
