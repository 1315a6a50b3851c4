import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import fastify from 'fastify';
import { Compile } from 'typebox/compile';
import { Type, type TSchema } from 'typebox';
import { AppError } from '../src/errors.ts';
import * as agentSchemas from '../src/schemas/agents.ts';
import { doneAnswer } from '../src/schemas/answer-parts.ts';
import * as engagementSchemas from '../src/schemas/engagement.ts';
import * as listSchemas from '../src/schemas/lists.ts';
import * as postSchemas from '../src/schemas/posts.ts';
import * as serviceSchemas from '../src/schemas/service.ts';
import {
  blogsQuery,
  confirmBody,
  ignoredAtRegistration,
  recoverBody,
  registerBody,
  updateMeBody,
  verifyQuery,
} from '../src/schemas/agents.ts';
import { commentBody, commentsQuery, voteBody } from '../src/schemas/engagement.ts';
import { discoverPostsQuery, featuredQuery, listPostsQuery, searchQuery } from '../src/schemas/lists.ts';
import { markdownQuery, patchPostBody, publishBody, publishQuery } from '../src/schemas/posts.ts';
import { problem } from '../src/schemas/problem.ts';
import { parseSince } from '../src/rules/times.ts';
import { createCheck, throwIfFaulty, type Checked } from '../src/schemas/validate.ts';
import { variants } from '../src/variant.ts';

const textsOf = (warnings: readonly { readonly text: string }[]) => warnings.map(({ text }) => text);

const { subdomain, path } = variants;

const bodies = {
  registerA: registerBody(subdomain),
  registerB: registerBody(path),
  publish: publishBody,
  patch: patchPostBody,
  recover: recoverBody,
  confirm: confirmBody,
  comment: commentBody,
  vote: voteBody,
  meA: updateMeBody(subdomain),
  meB: updateMeBody(path),
};

const queries = {
  listA: listPostsQuery(subdomain),
  listB: listPostsQuery(path),
  discover: discoverPostsQuery(subdomain),
  blogs: blogsQuery,
  featured: featuredQuery,
  comments: commentsQuery,
  search: searchQuery,
  verify: verifyQuery,
  dryRun: publishQuery,
  publishQuery: markdownQuery,
};

const checks = {
  registerA: createCheck(bodies.registerA, { ignored: ignoredAtRegistration(subdomain) }),
  registerB: createCheck(bodies.registerB, { ignored: ignoredAtRegistration(path) }),
  publish: createCheck(bodies.publish),
  patch: createCheck(bodies.patch),
  recover: createCheck(bodies.recover),
  confirm: createCheck(bodies.confirm),
  comment: createCheck(bodies.comment),
  vote: createCheck(bodies.vote),
  meA: createCheck(bodies.meA),
  meB: createCheck(bodies.meB),
  listA: createCheck(queries.listA, { coerce: true }),
  listB: createCheck(queries.listB, { coerce: true }),
  discover: createCheck(queries.discover, { coerce: true }),
  blogs: createCheck(queries.blogs, { coerce: true }),
  featured: createCheck(queries.featured, { coerce: true }),
  comments: createCheck(queries.comments, { coerce: true }),
  search: createCheck(queries.search, { coerce: true }),
  verify: createCheck(queries.verify, { coerce: true }),
  dryRun: createCheck(queries.dryRun, { coerce: true }),
  publishQuery: createCheck(queries.publishQuery, { coerce: true }),
};

type Door = keyof typeof checks;

/** Every schema of an answer, by name. */
const answers: Readonly<Record<string, TSchema>> = {
  ...Object.fromEntries(
    [agentSchemas, engagementSchemas, listSchemas, postSchemas, serviceSchemas, { doneAnswer }]
      .flatMap((schemas) => Object.entries<unknown>(schemas))
      .filter(
        (entry): entry is [string, TSchema] => entry[0].endsWith('Answer') && typeof entry[1] === 'object',
      ),
  ),
  pathPosts: listSchemas.listPostsAnswer(path),
  subdomainPosts: listSchemas.listPostsAnswer(subdomain),
};

const ada = { email: 'ada@example.com', name: 'Ada', slug: 'ada' };
const key = '3f0c9a52-5b0e-4d7e-8a53-6f2d1c7b9e04';

describe('The schemas of bodies and queries', () => {
  const allowed: [Door, unknown][] = [
    ['registerA', ada],
    ['registerA', { ...ada, slug: 'a-1', bio: '' }],
    ['registerA', { ...ada, slug: 'a'.repeat(63), bio: '🦉'.repeat(500), name: 'é'.repeat(100) }],
    ['registerA', { ...ada, email: 'a@bücher.example' }],
    ['registerB', { email: ada.email, name: 'Ada', bio: 'x'.repeat(5000) }],
    ['registerB', { email: ada.email, name: 'Ada', avatarUrl: 'https://example.com/a%20b.png?s=80#x' }],
    ['registerB', { email: ada.email, name: 'Ada', avatarUrl: 'http://[::1]:3000/a.png' }],
    ['publish', {}],
    ['publish', { slug: 'x', status: 'published' }],
    ['publish', { title: '🦉'.repeat(200), content: '  indented\r\n\tcode\n' }],
    ['publish', { title: 't', content: 'c', tags: Array.from({ length: 10 }, (_, i) => `tag ${i}`) }],
    ['publish', { title: 't', content: 'c', lang: null, excerpt: null, disclosure: 'ai-assisted' }],
    [
      'publish',
      { title: 't', content: 'c', lang: 'zh-Hant', excerpt: 'e'.repeat(300), slug: 'p'.repeat(100) },
    ],
    ['patch', { slug: 'new-address', tags: [] }],
    ['recover', { email: 'Ada+blog@Example.com' }],
    ['confirm', { token: key }],
    ['comment', { content: 'c'.repeat(2000) }],
    ['comment', { content: 'two\nlines' }],
    ['vote', { vote: 1 }],
    ['vote', { vote: -1 }],
    ['meA', { name: 'Ada', bio: null, avatarUrl: null }],
    ['meB', { bio: 'x'.repeat(5000), avatarUrl: 'https://example.com/' }],
  ];
  for (const [door, value] of allowed) {
    it(`let ${door} take ${JSON.stringify(value).slice(0, 70)}`, () => {
      assert.deepEqual(checks[door](value), { value, faults: [], warnings: [] });
    });
  }

  const slugRule =
    "allowed are 3 to 63 of a-z, 0-9 and '-', with no hyphen at either end and no 'xn--' at the start";
  const avatarRule = "must be an absolute https address like 'https://example.com/ada.png'";
  const refused: [Door, unknown, Record<string, string>][] = [
    ['registerA', [], { body: 'must be a JSON object, not a list' }],
    ['registerA', null, { body: 'must be a JSON object, not null' }],
    ['registerA', 'ada', { body: 'must be a JSON object, not a string' }],
    ['registerA', undefined, { body: "is missing; send a JSON object with 'email', 'name', 'slug'" }],
    ['registerA', {}, { email: 'is required', name: 'is required', slug: 'is required' }],
    ['registerB', {}, { email: 'is required', name: 'is required' }],
    ['registerA', { ...ada, name: 5 }, { name: 'must be a string, not a number' }],
    [
      'registerA',
      { ...ada, email: true },
      { email: "must be a string like 'ada@example.com', not a boolean" },
    ],
    [
      'publish',
      { publishAt: 1_799_107_200 },
      { publishAt: "must be a string like '2026-12-01T09:00:00.000Z', not a number" },
    ],
    ['registerA', { ...ada, name: null }, { name: 'must be a string, not null' }],
    ['registerA', { ...ada, name: '   ' }, { name: 'must be 1 to 100 characters, is empty' }],
    ['registerA', { ...ada, name: 'é'.repeat(101) }, { name: 'must be 1 to 100 characters, is 101' }],
    [
      'registerA',
      { ...ada, name: 'A\0' },
      { name: 'contains a control character (U+0000) at character 2; remove it' },
    ],
    [
      'registerA',
      { ...ada, name: 'A\u202Eda' },
      { name: 'contains invisible text (1 direction override); remove it' },
    ],
    ['registerA', { ...ada, slug: 'ad' }, { slug: `is 2 characters long; ${slugRule}` }],
    [
      'registerA',
      { ...ada, slug: `${'a'.repeat(62)}-b` },
      { slug: `is 64 characters long; ${slugRule}; '${'a'.repeat(62)}' would do` },
    ],
    [
      'registerA',
      { ...ada, slug: 'Ada Lovelace' },
      { slug: `contains 'A'; ${slugRule}; 'ada-lovelace' would do` },
    ],
    [
      'registerA',
      { ...ada, slug: 'xn--ada' },
      { slug: `begins with 'xn--', which marks an encoded host name; ${slugRule}; 'xn-ada' would do` },
    ],
    ['registerA', { ...ada, bio: 'x'.repeat(501) }, { bio: 'must be at most 500 characters, is 501' }],
    ['registerA', { ...ada, bio: null }, { bio: 'must be a string, not null; leave it out instead' }],
    [
      'registerB',
      { email: ada.email, name: 'Ada', avatarUrl: 'http://example.com/a.png' },
      { avatarUrl: `${avatarRule}; http is for loopback only` },
    ],
    ['publish', { title: 't'.repeat(201) }, { title: 'must be 1 to 200 characters, is 201' }],
    ['publish', { content: '' }, { content: 'must be at least 1 character, is empty' }],
    [
      'publish',
      { content: 'a\u0007' },
      { content: 'contains a control character (U+0007) at character 2; remove it' },
    ],
    [
      'publish',
      { status: 'publish' },
      { status: "must be 'draft' or 'published', not 'publish'; did you mean 'published'?" },
    ],
    ['publish', { status: key }, { status: "must be 'draft' or 'published', not a string" }],
    ['publish', { status: { x: 1 } }, { status: "must be 'draft' or 'published', not an object" }],
    [
      'publish',
      { slug: 'index' },
      {
        slug: `'index' is an address that every blog keeps for itself; choose another; 'post-1bc04b52' would do`,
      },
    ],
    ['publish', { tags: 'a, b' }, { tags: 'must be a list like ["history","computing"], not a string' }],
    ['publish', { tags: Array(11).fill('t') }, { tags: 'must have at most 10 entries, has 11' }],
    [
      'publish',
      { tags: ['ok', '', 3] },
      { 'tags[1]': 'must be 1 to 40 characters, is empty', 'tags[2]': 'must be a string, not a number' },
    ],
    [
      'publish',
      { slug: ' ' },
      { slug: 'is empty; leave it out, and the post keeps its slug, or gets one from its title' },
    ],
    ['publish', { image: '' }, { image: 'is empty; send null to remove it' }],
    ['publish', { excerpt: '' }, { excerpt: 'is empty; send null to remove it' }],
    ['publish', { excerpt: 'e'.repeat(301) }, { excerpt: 'must be 1 to 300 characters, is 301' }],
    [
      'publish',
      { disclosure: 'human' },
      {
        disclosure:
          "must be 'unspecified', 'ai-autonomous', 'ai-generated', 'ai-assisted' or 'none', not 'human'",
      },
    ],
    ['comment', { content: ' \n ' }, { content: 'must be 1 to 2000 characters, is empty' }],
    ['comment', { content: '\u200B' }, { content: 'has no visible character' }],
    ['comment', { content: 'c'.repeat(2001) }, { content: 'must be 1 to 2000 characters, is 2001' }],
    ['vote', { vote: 0 }, { vote: 'must be 1 or -1, not 0' }],
    ['vote', { vote: '1' }, { vote: "must be 1 or -1, not the string '1'" }],
    ['vote', { vote: true }, { vote: 'must be 1 or -1, not true' }],
    ['meA', { name: '' }, { name: 'must be 1 to 100 characters, is empty' }],
    ['meA', { bio: 7 }, { bio: 'must be a string, not a number' }],
    ['discover', { limit: '0' }, { limit: 'must be an integer from 1 to 100, is 0' }],
    ['discover', { limit: '1e1' }, { limit: "must be an integer from 1 to 100, not '1e1'" }],
    ['discover', { limit: ' 10' }, { limit: "must be an integer from 1 to 100, not ' 10'" }],
    ['discover', { limit: ['1', '2'] }, { limit: 'must be given once, not 2 times' }],
    ['listA', { limit: '1001' }, { limit: 'must be an integer from 1 to 1000, is 1001' }],
    ['listA', { offset: '10001' }, { offset: 'must be an integer from 0 to 10000, is 10001' }],
    [
      'listA',
      { sort: 'newst', agent: 'ada', since: '2026-02-30' },
      {
        sort: "must be 'newest' or 'oldest', not 'newst'; did you mean 'newest'?",
        since: "must be an ISO 8601 date or date-time like '2026-01-31' or '2026-01-31T09:30:00Z'",
      },
    ],
    ['blogs', { sort: 'age' }, { sort: "must be 'newest', 'posts' or 'name', not 'age'" }],
    ['featured', { limit: '51' }, { limit: 'must be an integer from 1 to 50, is 51' }],
    ['comments', { limit: '-1' }, { limit: 'must be an integer from 1 to 1000, is -1' }],
    ['search', {}, { q: 'is required' }],
    ['search', { q: ' ' }, { q: 'must be 1 to 200 characters, is empty' }],
    ['verify', {}, { token: 'is required' }],
    ['verify', { token: '' }, { token: 'must be at least 1 character, is empty' }],
    ['dryRun', { dryRun: '1' }, { dryRun: "must be true or false, not '1'" }],
  ];
  for (const [door, value, faults] of refused) {
    it(`make ${door} refuse ${JSON.stringify(value)?.slice(0, 70)}`, () => {
      assert.deepEqual(faultsOf(checks[door](value)), faults);
    });
  }

  it('refuse addresses of pictures that only look like one', () => {
    const base = { email: ada.email, name: 'Ada' };
    for (const avatarUrl of [
      'ftp://example.com/a.png',
      '//example.com/a.png',
      'https:example.com',
      'javascript:alert(1)',
      'https://a b',
      'https://u:p@example.com/',
      'https://example.com/é',
      'https://example.com/a\nb',
      'https://example.com:99999/',
      'https://example.com/"',
      'https://exa\u200Bmple.com/',
      'http://localhost.example.com/',
      'https://',
      '',
    ]) {
      assert.deepEqual(
        Object.keys(faultsOf(checks.registerB({ ...base, avatarUrl }))),
        ['avatarUrl'],
        avatarUrl,
      );
    }
  });

  it('take no key or address into a message', () => {
    const given = {
      status: key,
      disclosure: `x ${key}`,
      slug: key.replaceAll('-', '_'),
      [key]: 1,
      lang: key,
      tags: [key.toUpperCase() + '/..'],
    };
    const shown = JSON.stringify([
      checks.publish(given),
      checks.vote({ vote: key }),
      checks.dryRun({ dryRun: key }),
    ]);
    assert.ok(!shown.toLowerCase().includes(key), shown);
    const email = 'ada@example.com, eve@example.com';
    assert.ok(!JSON.stringify(checks.recover({ email })).includes('eve'));
  });
});

describe('A check', () => {
  it('trims texts, but leaves markdown and what is not known', () => {
    const given = {
      title: '\uFEFF\u00A0\u3000\t A title \n\u2029',
      content: '    code\n',
      tags: [' a ', 'b'],
      lang: ' en ',
    };
    const value = { title: 'A title', content: '    code\n', tags: ['a', 'b'], lang: 'en' };
    assert.deepEqual(checks.publish(given).value, value);
    assert.deepEqual(
      checks.registerA({ email: ' ada@example.com\n', name: ' Ada', slug: 'ada ' }).value,
      ada,
    );
  });

  it('reads integers, booleans and lists from the texts of a query', () => {
    const query = {
      limit: '20',
      offset: '0',
      cursor: 'abc',
      since: '2026-01-31',
      agent: 'ada',
      sort: 'oldest',
    };
    assert.deepEqual(checks.discover(query).value, { ...query, limit: 20, offset: 0 });
    assert.deepEqual(checks.publishQuery({ dryRun: 'true', tags: 'a, b' }).value, {
      dryRun: true,
      tags: ['a', 'b'],
    });
    assert.deepEqual(checks.publishQuery({ dryRun: 'false', tags: '' }).value, { dryRun: false, tags: [] });
    assert.deepEqual(checks.publishQuery({ tags: ['a', 'b'] }).value, { tags: ['a', 'b'] });
  });

  it('takes no text for a number or truth outside queries', () => {
    const asJson = createCheck(discoverPostsQuery(subdomain));
    assert.deepEqual(asJson({ limit: 20 }).value, { limit: 20 });
    assert.deepEqual(faultsOf(asJson({ limit: '20', offset: 1.5 })), {
      limit: "must be an integer from 1 to 100, not the string '20'",
      offset: 'must be an integer from 0 to 10000, not 1.5',
    });
    assert.deepEqual(faultsOf(createCheck(publishQuery)({ dryRun: 'true' })), {
      dryRun: "must be true or false, not the string 'true'",
    });
  });

  it('ignores what it does not know, and warns with the nearest name', () => {
    const given = { slug: 'x', statsu: 'draft', published_at: null, zebra: 1 };
    const { value, warnings } = checks.publish(given);
    assert.deepEqual(value, { slug: 'x' });
    assert.deepEqual(textsOf(warnings), [
      "unknown field 'statsu' ignored; did you mean 'status'?",
      "unknown field 'published_at' ignored",
      "unknown field 'zebra' ignored",
    ]);
    assert.deepEqual(textsOf(checks.listB({ limt: '5', agent: 'ada' }).warnings), [
      "unknown query parameter 'limt' ignored; did you mean 'limit'?",
      "unknown query parameter 'agent' ignored: this list takes 'status', 'since', 'limit', 'offset', 'cursor' and nothing else",
    ]);
    assert.deepEqual(
      textsOf(createCheck(publishBody, { coerce: true, names: 'field' })({ date: 'x' }).warnings),
      ["unknown field 'date' ignored"],
    );
  });

  it('explains the fields that only the other variant takes at registration', () => {
    const inA = checks.registerA({ ...ada, avatarUrl: 5 });
    assert.deepEqual(inA.value, ada);
    assert.deepEqual(textsOf(inA.warnings), [
      "field 'avatarUrl' ignored: it is set after verification, with PATCH /api/me",
    ]);
    const inB = checks.registerB({ ...ada, avatarUrl: 'https://example.com/a.png' });
    assert.deepEqual(inB.value, { email: ada.email, name: 'Ada', avatarUrl: 'https://example.com/a.png' });
    assert.deepEqual(textsOf(inB.warnings), [
      "field 'slug' ignored: the slug is derived from 'name'; the answer has it",
    ]);
  });

  it('reads own properties only, whatever they are called', () => {
    const body: unknown = JSON.parse('{"__proto__":{"slug":"x"},"constructor":1,"toString":2,"title":"t"}');
    const { value, warnings } = checks.publish(body);
    assert.deepEqual(value, { title: 't' });
    assert.equal(warnings.length, 3);
    assert.deepEqual(checks.publish(Object.create({ title: 't' })).value, {});
  });

  it('is not made for a schema that it would not enforce', () => {
    for (const title of [
      { type: 'string', multipleOf: 2 },
      { type: 'string', format: 'email' },
      { type: 'number' },
      {},
    ]) {
      assert.throws(() => createCheck(Type.Object({ title })), /no check reads/);
    }
  });
});

describe('A faulty input', () => {
  it('is thrown with all its faults at once, each said once, and where they are in the sentence', () => {
    const body = { title: 1, content: 2, status: 3, slug: 4, tags: 5, lang: 6 };
    const checked = checks.publish(body);
    const faults = [...checked.faults, { field: 'dryRun', message: 'is odd' }];
    const thrown = failureOf(() => throwIfFaulty({ ...checked, faults }));
    assert.equal(thrown.code, 'invalid_input');
    assert.deepEqual(
      thrown.extra.errors?.map(({ field }) => field),
      ['title', 'slug', 'status', 'tags', 'lang', 'content', 'dryRun'],
    );
    assert.equal(thrown.extra.hint, undefined);
    assert.equal(
      thrown.message,
      "'title' must be a string, not a number; errors also has 'slug', 'status', 'tags', 'lang', 'content' and 1 more",
    );
  });

  it('passes when there is no fault, and fails for a fault from elsewhere', () => {
    const passed = checks.vote({ vote: 1 });
    throwIfFaulty(passed);
    assert.equal(passed.value.vote, 1);
    const faults = [{ field: 'Idempotency-Key', message: 'is empty' }];
    const thrown = failureOf(() => throwIfFaulty({ ...passed, faults }));
    assert.equal(thrown.message, "'Idempotency-Key' is empty");
    assert.equal(thrown.extra.hint, undefined);
  });
});

describe('A time that a list begins at', () => {
  const read: [string, string][] = [
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2026-01-31T09:30', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:15.1234567Z', '2026-01-31T09:30:15.123Z'],
    ['2026-01-31 09:30:15', '2026-01-31T09:30:15.000Z'],
    ['2026-01-31t09:30:15z', '2026-01-31T09:30:15.000Z'],
    ['2026-01-31T00:30:00+01:00', '2026-01-30T23:30:00.000Z'],
    ['2026-01-31T00:30:00 01:00', '2026-01-30T23:30:00.000Z'],
    ['2026-01-31T00:30:00-0530', '2026-01-31T06:00:00.000Z'],
    ['0000-01-01', '0000-01-01T00:00:00.000Z'],
  ];
  for (const [text, time] of read) {
    it(`reads ${text} as ${time}`, () => {
      assert.equal(new Date(parseSince(text) ?? NaN).toISOString(), time);
    });
  }

  it('is refused unless it is a real one', () => {
    for (const text of [
      '',
      'yesterday',
      '2026',
      '2026-01',
      '2026-1-31',
      '2026-02-30',
      '2025-02-29',
      '2026-13-01',
      '2026-00-10',
      '2026-01-00',
      '2026-01-31T',
      '2026-01-31T24:00',
      '2026-01-31T09:60',
      '2026-01-31T09:30:60',
      '2026-01-31T09:30+25:00',
      '2026-01-31Z',
      ' 2026-01-31',
      '2026-01-31\n',
      '20260131',
      '+002026-01-31',
      '0000-01-01T00:00+01:00',
      '9999-12-31T23:59-01:00',
      '1738315800',
    ]) {
      assert.equal(parseSince(text), null, text);
    }
  });
});

describe('The schemas', () => {
  const all: [string, TSchema][] = Object.entries({ ...bodies, ...queries });

  it('say the same to TypeBox as to the check, for any input', () => {
    for (const [name, schema] of Object.entries(bodies)) {
      const check = createCheck(schema);
      const typebox = Compile(schema);
      const input = fc.oneof(fc.anything(), inputFor(schema));
      fc.assert(
        fc.property(input, (value) => {
          const { value: copy, faults } = check(value);
          if (copy !== null) assert.ok(typebox.Check(copy), name);
          else assert.ok(faults.length > 0 && !typebox.Check(trimmed(value)), name);
        }),
        { numRuns: 300, seed: 7 },
      );
    }
  });

  it('let no input do worse than 400, with one message for each place', () => {
    for (const [name, check] of Object.entries(checks)) {
      const schema = all.find(([other]) => other === name)?.[1];
      assert.ok(schema);
      fc.assert(
        fc.property(fc.oneof(fc.anything(), inputFor(schema)), (value) => {
          const checked: Checked<unknown> = check(value);
          const fields = checked.faults.map(({ field }) => field);
          assert.equal(new Set(fields).size, fields.length);
          for (const { message } of checked.faults) assert.match(message, /^[^\p{C}]+$/u);
          try {
            throwIfFaulty(checked);
          } catch (error) {
            assert.ok(error instanceof AppError && error.code === 'invalid_input');
          }
        }),
        { numRuns: 200, seed: 7 },
      );
    }
  });

  it('document every property with a description and examples that pass', () => {
    for (const [name, schema] of all) {
      const { properties = {} } = keywordsOf(schema);
      for (const [property, part] of Object.entries(properties)) {
        const { description, examples = [] } = keywordsOf(part);
        assert.ok(description, `${name}.${property}`);
        assert.ok(examples.length > 0, `${name}.${property}`);
        for (const example of examples) assert.ok(Compile(part).Check(example), `${name}.${property}`);
      }
      for (const example of keywordsOf(schema).examples ?? [])
        assert.ok(Compile(schema).Check(example), name);
    }
  });

  it('are documents that any JSON Schema reader understands', () => {
    const text = JSON.stringify([all, Object.values(answers), problem]);
    const formats = new Set([...text.matchAll(/"format":"([^"]*)"/g)].map(([, format]) => format));
    assert.deepEqual(formats, new Set(['email', 'uri', 'uuid', 'date-time']));
    assert.ok(!text.includes('"~'));
  });
});

describe('The schemas of answers', () => {
  it('lose nothing that they name when the server writes them, null or not', async () => {
    const app = fastify();
    const wanted: unknown[] = [];
    for (const schema of [...Object.values(answers), problem]) {
      for (const nulls of [true, false]) {
        const payload = sample(schema, nulls);
        assert.ok(Compile(schema).Check(payload), JSON.stringify(payload));
        app.get(`/${wanted.push(payload) - 1}`, { schema: { response: { 200: schema } } }, () => payload);
      }
    }
    for (const [at, payload] of wanted.entries())
      assert.deepEqual((await app.inject(`/${at}`)).json(), payload);
    await app.close();
  });

  it('document examples that they allow', () => {
    for (const [name, schema] of parts([answers, problem])) {
      for (const example of keywordsOf(schema).examples ?? [])
        assert.ok(Compile(schema).Check(example), name);
    }
  });
});

function faultsOf({ value, faults }: Checked<unknown>): Record<string, string> {
  assert.equal(value, null);
  return Object.fromEntries(faults.map(({ field, message }) => [field, message]));
}

function failureOf(call: () => void): AppError {
  let failure: unknown;
  try {
    call();
  } catch (error) {
    failure = error;
  }
  assert.ok(failure instanceof AppError);
  return failure;
}

type Keywords = {
  type?: string | string[];
  const?: unknown;
  items?: TSchema;
  properties?: Record<string, TSchema>;
  description?: string;
  examples?: readonly unknown[];
};

function keywordsOf(schema: TSchema): Keywords {
  return schema;
}

const oddCharacter = fc.constantFrom(...Array.from('aZ9-. \n\0é🦉\u0301\u200B\u202E\ud800'));

/** Objects with the schema's properties, filled with examples of all of them and with anything else. */
function inputFor(schema: TSchema): fc.Arbitrary<unknown> {
  const { properties = {} } = keywordsOf(schema);
  const examples = Object.values(properties).flatMap((part) => keywordsOf(part).examples ?? []);
  const text = fc.oneof(fc.string(), fc.string({ unit: oddCharacter, maxLength: 5 }));
  const scalar = fc.oneof(
    text,
    fc.integer({ min: -2, max: 120 }),
    fc.constantFrom(null, true, '', ' x ', 1.5),
  );
  const list = fc.array(fc.oneof(text, fc.constantFrom('a', ' B ', null)), { maxLength: 12 });
  const value = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...examples) },
    scalar,
    list,
    fc.jsonValue(),
  );
  const right = Object.entries(properties).map(([name, part]) => [name, keywordsOf(part).examples?.[0]]);
  const names = fc.constantFrom(...Object.keys(properties), '__proto__', 'constructor', 'x');
  return fc
    .tuple(fc.array(fc.tuple(names, value), { maxLength: 4 }), fc.boolean())
    .map(([entries, complete]) => Object.fromEntries([...(complete ? right : []), ...entries]));
}

/** As the check trims before it looks: every text but a post's markdown. */
function trimmed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([name, field]): [string, unknown] => [
    name,
    trimmedField(field),
  ]);
  return Object.fromEntries(entries);
}

function trimmedField(field: unknown): unknown {
  if (typeof field === 'string') return field.trim();
  return Array.isArray(field) ? field.map((item) => (typeof item === 'string' ? item.trim() : item)) : field;
}

/** Every schema inside a value, with where it is. */
function parts(value: unknown, at = ''): [string, TSchema][] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.entries(value)
    .filter(([name]) => name !== 'examples')
    .flatMap(([name, part]) => parts(part, `${at}/${name}`));
  return 'examples' in value ? [[at, value], ...inner] : inner;
}

/** A value with everything that the schema names, and null wherever that is allowed if `nulls`. */
function sample(schema: TSchema, nulls: boolean): unknown {
  const { type = 'object', const: only, items, properties, examples = [] } = keywordsOf(schema);
  if (only !== undefined) return only;
  if (nulls && type.includes('null')) return null;
  if (items !== undefined) return [sample(items, nulls), sample(items, !nulls)];
  if (properties !== undefined) {
    return Object.fromEntries(Object.entries(properties).map(([name, part]) => [name, sample(part, nulls)]));
  }
  return examples[0] ?? { boolean: false, string: 'a "text"', object: { name: 'value' } }[String(type)];
}
