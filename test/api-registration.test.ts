import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { restoreAgent, suspendAgent, verifyByOperator } from '../src/services/operators/moderation.ts';
import {
  assertOk,
  assertProblem,
  describeInstances,
  engines,
  startInstance,
  tokenOf,
} from './support/instance.ts';

const hour = 3_600_000;

describeInstances('registration', {}, (the, variant) => {
  const choosesSlug = variant === 'subdomain';
  /** A registration with the slug where the variant takes one. */
  const body = (slug: string, more: object = {}) => ({
    email: `${slug}@example.com`,
    name: slug,
    ...(choosesSlug ? { slug } : {}),
    ...more,
  });

  test('answers the agent and what comes next, and mails one token to the address as typed', async () => {
    const answer = assertOk(
      await the().call('POST', '/api/register', { body: body('first', { email: ' First@example.com ' }) }),
    );
    assert.match(String(answer.at('agent.id')), /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    assert.deepEqual(
      [answer.at('agent.name'), answer.at('agent.slug'), answer.at('agent.email')],
      ['first', 'first', 'First@example.com'],
    );
    assert.equal(answer.at('next.method'), 'GET');
    assert.equal(answer.at('next.url'), `${the().baseUrl}/api/verify?token=TOKEN`);
    const mails = await the().mails('First@example.com');
    assert.equal(mails.length, 1);
    assert.equal(mails[0]?.email.subject, 'Confirm the agent first');
    assert.match(mails[0]?.email.text ?? '', /\/verify\?token=/);
  });

  test('again, unchanged, keeps the id and the earlier token', async () => {
    const one = await the().call('POST', '/api/register', { body: body('repeated') });
    const earlier = await the().token('repeated@example.com');
    const two = await the().call('POST', '/api/register', {
      body: body('repeated', { email: 'REPEATED@example.com' }),
    });
    assert.equal(two.at('agent.id'), one.at('agent.id'));
    assert.notEqual(await the().token('REPEATED@example.com'), earlier);
    assertOk(await the().call('GET', `/api/verify?token=${earlier}`));
  });

  test('again with another picture keeps the earlier token, which confirms what it was mailed for', async () => {
    await the().call('POST', '/api/register', { body: body('pictured') });
    const earlier = await the().token('pictured@example.com');
    const avatarUrl = 'https://example.com/p.png';
    await the().call('POST', '/api/register', { body: body('pictured', { avatarUrl }) });
    const { apiKey } = await the().client().verify(earlier);
    assert.equal((await the().client(apiKey).me()).agent.avatarUrl, null);
  });

  test('again with another name confirms that by its own token, whose use voids the earlier one', async () => {
    await the().call('POST', '/api/register', { body: body('renamed') });
    const earlier = await the().token('renamed@example.com');
    await the().call('POST', '/api/register', {
      body: body('renamed', { name: 'Renamed agent', bio: 'new' }),
    });
    const token = await the().token('renamed@example.com');
    const { apiKey } = await the().client().verify(token);
    assertProblem(await the().call('GET', `/api/verify?token=${earlier}`), 'token_expired');
    const { agent } = await the().client(apiKey).me();
    assert.deepEqual([agent.name, agent.bio], ['Renamed agent', 'new']);
    assert.equal(agent.slug, choosesSlug ? 'renamed' : 'renamed-agent');
  });

  test('of a verified address is refused and mails nothing', async () => {
    await the().agent('Taken');
    const before = (await the().mails('taken@example.com')).length;
    const answer = assertProblem(
      await the().call('POST', '/api/register', { body: body('other', { email: 'TAKEN@example.com' }) }),
      'email_taken',
    );
    assert.equal(answer.at('errors.0.field'), 'email');
    assert.equal((await the().mails('taken@example.com')).length, before);
  });

  test('names every fault at once', async () => {
    const answer = assertProblem(
      await the().call('POST', '/api/register', {
        body: { email: 'no address', name: ' ', slug: 'No Slug!', bio: 'b'.repeat(5001) },
      }),
      'invalid_input',
    );
    const fields = [0, 1, 2, 3].map((i) => answer.at(`errors.${i}.field`));
    assert.deepEqual(
      fields.filter((field) => typeof field === 'string').toSorted(),
      choosesSlug ? ['bio', 'email', 'name', 'slug'] : ['bio', 'email', 'name'],
    );
  });

  test('takes fields of the other variant with a warning', async () => {
    const answer = assertOk(
      await the().call('POST', '/api/register', {
        body: { ...body('foreign'), slug: 'foreign', avatarUrl: 'https://example.com/a.png', nmae: 1 },
      }),
    );
    const warnings = JSON.stringify(answer.at('warnings'));
    assert.match(warnings, choosesSlug ? /avatarUrl/ : /'slug' ignored/);
    assert.match(warnings, /unknown field 'nmae' ignored; did you mean 'name'\?/);
    const { apiKey } = await the()
      .client()
      .verify(await the().token('foreign@example.com'));
    const { agent } = await the().client(apiKey).me();
    assert.equal(agent.avatarUrl, choosesSlug ? null : 'https://example.com/a.png');
  });

  test('holds the slug of an unverified agent for one hour, then gives it to who asks', async () => {
    const { clock } = the();
    await the().call('POST', '/api/register', { body: body('held') });
    const late = await the().token('held@example.com');
    const rival = () =>
      the().call('POST', '/api/register', { body: { ...body('held'), email: 'rival@example.com' } });

    clock.advance(hour - 60_000);
    const early = await rival();
    if (choosesSlug) {
      assert.match(String(assertProblem(early, 'slug_taken').at('hint')), /'held-2'/);
    } else {
      assert.equal(early.at('agent.slug'), 'held-2');
    }

    clock.advance(61_000);
    const fresh = await the().call('POST', '/api/register', {
      body: { ...body('held'), email: 'third@example.com' },
    });
    assert.equal(assertOk(fresh).at('agent.slug'), 'held');
    if (choosesSlug) {
      assertProblem(await the().call('GET', `/api/verify?token=${late}`), 'slug_taken');
      assert.equal((await the().call('HEAD', `/api/verify?token=${late}`)).status, 409);
      assert.equal((await the().call('GET', `/verify?token=${late}`)).status, 409);
      return;
    }
    assert.match((await the().call('GET', `/verify?token=${late}`)).text, /held-3/);
    for (const method of ['GET', 'POST', 'GET', 'POST']) {
      const answer = assertOk(
        method === 'GET'
          ? await the().call('GET', `/api/verify?token=${late}`)
          : await the().call('POST', '/api/verify', { body: { token: late } }),
      );
      assert.match(
        String(answer.at('message')),
        /The slug 'held' went to another agent.*this one is 'held-3'/,
      );
      assert.equal(answer.at('blogUrl'), `${the().baseUrl}/held-3`);
    }
  });
});

describeInstances('slugs that the client chooses', { variants: ['subdomain'] }, (the) => {
  const register = (slug: string, email = 'slugs@example.com') =>
    the().call('POST', '/api/register', { body: { email, name: 'Sue', slug } });

  for (const slug of ['ab', '-abc', 'abc-', 'Abc', 'a_b', 'xn--abc', 'a'.repeat(64), 'ädä', 'a.b', '']) {
    test(`refuses '${slug.slice(0, 10)}' (${slug.length}) and says what is allowed`, async () => {
      const answer = assertProblem(await register(slug), 'invalid_input');
      assert.equal(answer.at('errors.0.field'), 'slug');
    });
  }

  for (const slug of ['www', 'api', 'admin', 'mail', 'status', 'docs', 'help', 'autoconfig', 'wpad', 'mcp']) {
    test(`keeps '${slug}' for itself`, async () => {
      const refused = assertProblem(await register(slug), 'slug_reserved');
      assert.match(String(refused.at('hint')), /^A free one: 'sue'\.$/);
    });
  }

  test('takes 3 and 63 characters', async () => {
    assertOk(await register('abc', 'three@example.com'));
    assertOk(await register('a'.repeat(63), 'many@example.com'));
  });

  test('never gives out the slug of a deleted agent again', async () => {
    const gone = await the().agent('Gone');
    await gone.client.deleteMe({ confirm: gone.slug });
    assertProblem(await register('gone'), 'slug_reserved');
    assertOk(await register('gone-2', 'gone@example.com'));
  });

  test('limits bios to 500 characters, counted as code points', async () => {
    const bio = (text: string) =>
      the().call('POST', '/api/register', {
        body: { email: 'bio@example.com', name: 'B', slug: 'bio', bio: text },
      });
    assertOk(await bio('🦊'.repeat(500)));
    assertProblem(await bio('🦊'.repeat(501)), 'invalid_input');
  });
});

describeInstances('slugs that come from the name', { variants: ['path'] }, (the) => {
  let count = 0;
  const slugOf = async (name: string) => {
    const answer = await the().call('POST', '/api/register', {
      body: { name, email: `name-${count++}@example.com` },
    });
    return assertOk(answer).at('agent.slug');
  };

  for (const [name, slug] of [
    ['Ada Lovelace', 'ada-lovelace'],
    ['  Åse -- Øvre_Gård ', 'ase-ovre-gard'],
    ['Лев Толстой', 'lev-tolstoi'],
    ['x'.repeat(70), 'x'.repeat(63)],
  ] as const) {
    test(`derives '${slug.slice(0, 20)}' from '${name.slice(0, 20)}'`, async () => {
      assert.equal(await slugOf(name), slug);
    });
  }

  for (const name of ['🦊', 'ab', 'API', '日本', '!!!']) {
    test(`makes a random one for '${name}'`, async () => {
      assert.match(String(await slugOf(name)), /^agent-[a-z0-9]{8}$/);
    });
  }

  test('numbers names that are taken, within 63 characters', async () => {
    assert.deepEqual(
      [await slugOf('Twin'), await slugOf('Twin'), await slugOf('twin!')],
      ['twin', 'twin-2', 'twin-3'],
    );
    const long = 'y'.repeat(63);
    assert.deepEqual([await slugOf(long), await slugOf(long)], [long, `${'y'.repeat(61)}-2`]);
  });
});

describeInstances('verification', {}, (the, variant) => {
  const registered = async (slug: string) => {
    await the()
      .client()
      .register({ email: `${slug}@example.com`, name: slug, ...(variant === 'subdomain' ? { slug } : {}) });
    return the().token(`${slug}@example.com`);
  };
  const verify = (token: string, method = 'GET') => the().call(method, `/api/verify?token=${token}`);

  test('gives the same key again until that key is used, then 410', async () => {
    const token = await registered('twice');
    const first = assertOk(await verify(token));
    assert.equal(first.headers['cache-control'], 'no-store');
    assert.equal(first.at('next.url'), `${the().baseUrl}/api/publish`);
    const key = String(first.at('apiKey'));
    assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    assert.equal((await verify(token.toUpperCase())).at('apiKey'), key);

    await the().client(key).me();
    assertProblem(await verify(token), 'token_used');
    const mails = await the().mails('twice@example.com');
    assert.deepEqual(
      mails.map((mail) => mail.email.subject),
      ['Confirm the agent twice', 'API key of the agent twice'],
    );
    assert.ok(mails[1]?.email.text?.includes(key));
    assert.equal(tokenOf(mails[1] ?? assert.fail()), null, 'a program must not take the key for a token');
  });

  test('by HEAD changes nothing', async () => {
    const token = await registered('headed');
    const head = await verify(token, 'HEAD');
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.equal((await the().mails('headed@example.com')).length, 1);
    assert.equal((await verify('0'.repeat(36), 'HEAD')).status, 404);
    assertOk(await verify(token));
  });

  test('refuses a missing, doubled and unknown token', async () => {
    for (const query of ['', '?token=', '?token=a&token=b']) {
      assertProblem(await the().call('GET', `/api/verify${query}`), 'invalid_input');
    }
    assertProblem(await verify('3f0c9a52-5b0e-4d7e-8a53-6f2d1c7b9e04'), 'invalid_token');
    assertProblem(await verify('%00'), 'invalid_token');
    assertProblem(await verify('x'.repeat(2_000)), 'invalid_token');
  });

  test('refuses a token after 24 hours, and another registration gives a new one', async () => {
    const token = await registered('slow');
    the().clock.advance(24 * hour);
    assertProblem(await verify(token), 'token_expired');
    assertOk(await verify(await registered('slow')));
  });

  test('with one of several tokens voids the others, whichever it is', async () => {
    const tokens = [await registered('double'), await registered('double')];
    await the().client().recover('double@example.com');
    tokens.push(await the().token('double@example.com'));
    const first = assertOk(await verify(tokens[1] ?? ''));
    for (const token of [tokens[0], tokens[2]]) {
      const refused = assertProblem(await verify(token ?? ''), 'token_expired');
      assert.match(String(refused.at('detail')), /was verified without it/);
      assert.match(String(refused.at('hint')), /api\/recover/);
      assert.equal((await verify(token ?? '', 'HEAD')).status, 410);
    }
    assert.equal((await verify(tokens[1] ?? '')).at('apiKey'), first.at('apiKey'), 'it can be repeated');
  });

  test('remembers an expired token for 30 days', async () => {
    const { ctx, clock } = the();
    const token = await registered('forgotten');
    const { sweep } = await import('../src/services/upkeep/maintenance.ts');
    clock.advance(30 * 24 * hour);
    await ctx().engine.write(sweep, null);
    assertProblem(await verify(token), 'token_expired');
    clock.advance(2 * 24 * hour);
    await ctx().engine.write(sweep, null);
    assertProblem(await verify(token), 'invalid_token');
  });
});

describeInstances('keys', {}, (the) => {
  test('regenerating revokes the old key at once and mails the new one', async () => {
    const { client, key, email } = await the().agent('Rekeyed');
    const { apiKey } = await client.regenerateKey();
    assertProblem(await the().call('GET', '/api/me', { key }), 'unauthorized');
    assertOk(await the().call('GET', '/api/me', { key: apiKey }));
    const newest = (await the().mails(email)).at(-1);
    assert.ok(newest?.email.text?.includes(apiKey));
  });

  test('regenerating ends the repeatability of the token', async () => {
    const instance = the();
    const { email, key } = await instance.agent('Replaced');
    await instance.client(key).regenerateKey();
    assertProblem(
      await instance.call('GET', `/api/verify?token=${await instance.token(email)}`),
      'token_used',
    );
  });

  test('the key is accepted in any spelling of Bearer, and no other scheme is', async () => {
    const { key } = await the().agent('Bearer');
    for (const authorization of [`bearer ${key}`, `BEARER ${key.toUpperCase()}`, `Bearer  ${key} `])
      assertOk(await the().call('GET', '/api/me', { headers: { authorization } }));
    for (const authorization of [
      key,
      `Basic ${key}`,
      'Bearer',
      `Bearer ${key} x`,
      `Token ${key}`,
      'Bearer é',
    ]) {
      const answer = await the().call('GET', '/api/me', { headers: { authorization } });
      assertProblem(answer, 'unauthorized');
      const isKey = /^Bearer \S+$/.test(authorization);
      const error = isKey ? ', error="invalid_token"' : '';
      assert.equal(answer.headers['www-authenticate'], `Bearer realm="masthead"${error}`);
      assert.ok(!answer.text.includes(key));
    }
    assertProblem(await the().call('GET', '/api/me'), 'unauthorized');
  });

  test('recovery answers alike for known and unknown addresses, and mails a token to the known one', async () => {
    const { email, key } = await the().agent('Lost');
    const known = await the().call('POST', '/api/recover', { body: { email: 'LOST@example.com' } });
    const unknown = await the().call('POST', '/api/recover', { body: { email: 'nobody@example.com' } });
    assert.equal(assertOk(known).text, assertOk(unknown).text);
    assert.deepEqual(await the().mails('nobody@example.com'), []);
    const newest = (await the().mails(email)).at(-1);
    assert.equal(newest?.email.subject, 'New API key for the agent lost?');
    assertOk(await the().call('GET', '/api/me', { key }), 200);

    const token = await the().token(email);
    const confirm = () => the().call('POST', '/api/recover/confirm', { body: { token } });
    const confirmed = assertOk(await confirm());
    assert.equal(confirmed.headers['cache-control'], 'no-store');
    assertProblem(await the().call('GET', '/api/me', { key }), 'unauthorized');
    assert.equal((await confirm()).at('apiKey'), confirmed.at('apiKey'), 'a lost answer can be had again');
    assertOk(await the().call('GET', '/api/me', { key: String(confirmed.at('apiKey')) }));
    assertProblem(await confirm(), 'token_used');
  });

  test('a recovery token does not verify, nor a verification token recover', async () => {
    const { email } = await the().agent('Mixed');
    const used = await the().token(email);
    assertProblem(
      await the().call('POST', '/api/recover/confirm', { body: { token: used } }),
      'invalid_token',
    );
    await the().client().recover(email);
    assertProblem(await the().call('GET', `/api/verify?token=${await the().token(email)}`), 'invalid_token');
  });

  test('a recovery token expires after 24 hours', async () => {
    const { email, key } = await the().agent('Tardy');
    await the().client().recover(email);
    const token = await the().token(email);
    the().clock.advance(24 * hour);
    assertProblem(await the().call('POST', '/api/recover/confirm', { body: { token } }), 'token_expired');
    assertOk(await the().call('GET', '/api/me', { key }));
  });
});

describeInstances('a token that was sent', {}, (the) => {
  const confirm = (token: string) => the().call('POST', '/api/recover/confirm', { body: { token } });
  const verify = (token: string) => the().call('GET', `/api/verify?token=${token}`);
  const recoveryToken = async (email: string) => {
    await the().client().recover(email);
    return the().token(email);
  };
  /** Asserts that the token gives nothing, in words that are true of any cause. */
  const assertVoid = async (token: string) => {
    const refused = assertProblem(await confirm(token), 'token_expired');
    assert.match(String(refused.at('detail')), /^This token was made void after it was sent: /);
    assert.match(String(refused.at('hint')), /api\/recover/);
  };

  test('gives no key once a later one was used, nor once the key was replaced after that', async () => {
    const { email } = await the().agent('Overtaken');
    const stale = await recoveryToken(email);
    const later = await recoveryToken(email);
    const recovered = String(assertOk(await confirm(later)).at('apiKey'));
    await assertVoid(stale);
    assert.equal((await confirm(later)).at('apiKey'), recovered, 'the one that was used can be repeated');
    const { apiKey } = await the().client(recovered).regenerateKey();
    await assertVoid(stale);
    assertProblem(await confirm(later), 'token_used');
    assertOk(await the().call('GET', '/api/me', { key: apiKey }));
  });

  test('gives no key once the owner has replaced the key', async () => {
    const { client, email } = await the().agent('Regenerated');
    const tokens = [await recoveryToken(email), await recoveryToken(email)];
    const { apiKey } = await client.regenerateKey();
    for (const token of tokens) await assertVoid(token);
    assertOk(await the().call('GET', '/api/me', { key: apiKey }));
    // What is asked for afterwards works.
    assertOk(await confirm(await recoveryToken(email)));
    assertProblem(await the().call('GET', '/api/me', { key: apiKey }), 'unauthorized');
  });

  test('gives no key once the agent was suspended, not even when it is restored', async () => {
    const { slug, email, key } = await the().agent('Halted');
    const [unused, first] = [await recoveryToken(email), await the().mails(email)];
    const used = /^[0-9a-f-]{36}$/m.exec(first[0]?.email.text ?? '')?.[0] ?? '';
    assert.equal((await verify(used)).at('apiKey'), key, 'the key has not been used yet');
    const { engine } = the().ctx();
    await engine.write(suspendAgent, { slug, reason: 'first' });
    await assertVoid(unused);
    assertProblem(await verify(used), 'token_used');
    const meanwhile = await recoveryToken(email);
    await engine.write(suspendAgent, { slug, reason: 'second' });
    await engine.write(restoreAgent, { slug });
    for (const token of [unused, meanwhile]) await assertVoid(token);
    assertOk(await the().call('GET', '/api/me', { key }));
  });

  test('says that it works no more where it is sent for a key', async () => {
    const { client, email } = await the().agent('Confused');
    const token = await recoveryToken(email);
    await client.regenerateKey();
    const refused = assertProblem(await the().call('GET', '/api/me', { key: token }), 'unauthorized');
    assert.match(String(refused.at('detail')), /works no more/);
  });
});

describeInstances('one’s own profile', {}, (the, variant) => {
  test('can be read and changed but for slug and address', async () => {
    const { client, slug, email } = await the().agent('Profiled', { bio: 'old' });
    const { agent } = await client.me();
    assert.deepEqual([agent.slug, agent.email, agent.bio, agent.postCount], [slug, email, 'old', 0]);
    const changed = await client.updateMe({ name: 'New Name', avatarUrl: 'https://example.com/p.png' });
    assert.deepEqual(changed.agent, { ...agent, name: 'New Name', avatarUrl: 'https://example.com/p.png' });
    assert.deepEqual((await client.me()).agent, changed.agent);
  });

  test('null takes bio and picture away; a name cannot be taken away', async () => {
    const { key, client } = await the().agent('Nulled', { bio: 'words' });
    await client.updateMe({ avatarUrl: 'https://example.com/p.png' });
    const answer = assertOk(
      await the().call('PATCH', '/api/me', { key, body: { bio: null, avatarUrl: null } }),
    );
    assert.deepEqual([answer.at('agent.bio'), answer.at('agent.avatarUrl')], [null, null]);
    assertProblem(await the().call('PATCH', '/api/me', { key, body: { name: null } }), 'invalid_input');
  });

  for (const avatarUrl of ['http://example.com/a.png', 'javascript:alert(1)', '/a.png', 'https://a b/', 5]) {
    test(`refuses the picture ${avatarUrl}`, async () => {
      const { key } = await the().agent(`Pic-${String(avatarUrl).replaceAll(/[^a-z0-9]/g, '')}`);
      assertProblem(await the().call('PATCH', '/api/me', { key, body: { avatarUrl } }), 'invalid_input');
    });
  }

  test('deletion takes everything, and the address can register again', async () => {
    const instance = the();
    const { client, key, email, slug } = await instance.agent('Leaving');
    const { post } = await client.publish({ title: 'T', content: 'c', status: 'published' });
    const answer = assertOk(await instance.call('DELETE', `/api/me?confirm=${slug}`, { key }));
    assert.match(String(answer.at('message')), /leaving/);
    assertProblem(await instance.call('GET', '/api/me', { key }), 'unauthorized');
    assertProblem(await instance.call('GET', `/api/posts/${post.id}`), 'not_found');
    const again = await instance.call('POST', '/api/register', {
      body: { email, name: 'Leaving', ...(variant === 'subdomain' ? { slug: 'arriving' } : {}) },
    });
    assert.notEqual(assertOk(again).at('agent.slug'), 'leaving');
  });
});

describe('mail caps', () => {
  for (const engine of engines) {
    test(`a mailbox has 5 messages an hour and 10 a day, of which one is for recovery, however its address is spelled (${engine})`, async (t) => {
      const instance = await startInstance({ engine, variant: 'path' });
      t.after(() => instance.close());
      const register = (email: string) =>
        instance.call('POST', '/api/register', { body: { email, name: 'Capped' } });
      const owner = await instance.agent('Box', { email: 'box@gmail.com' });
      instance.clock.advance(25 * hour);
      const before = (await instance.mails()).length;
      const sent = async () => (await instance.mails()).length - before;
      for (let i = 0; i < 4; i++) assertOk(await register(`b.ox+${i}@googlemail.com`));
      const capped = assertOk(await register('bo.x@gmail.com'));
      assert.match(String(capped.at('message')), /^Registered, but no message was sent: .* latest one/);
      const changed = { email: 'b.ox+1@googlemail.com', name: 'Changed' };
      const kept = assertOk(await instance.call('POST', '/api/register', { body: changed }));
      assert.match(
        String(kept.at('message')),
        /^No message was sent: .* was not changed: its name is still 'Capped' and its slug '[\w-]+'\. Use the token of the latest/,
      );
      assert.equal(await sent(), 4);
      const recover = (email: string) => instance.call('POST', '/api/recover', { body: { email } });
      // A recovery of another address of the mailbox does not use up the owner's.
      assertOk(await recover('b.ox+1@googlemail.com'));
      assert.equal(await sent(), 4);
      for (let i = 0; i < 2; i++) assertOk(await recover(owner.email));
      assert.equal(await sent(), 5);
      assert.equal(
        (await instance.mails(owner.email)).at(-1)?.email.subject,
        `New API key for the agent box?`,
      );

      instance.clock.advance(hour + 1);
      for (let i = 0; i < 6; i++) assertOk(await register('b.o.x@gmail.com'));
      assert.equal(await sent(), 9);
      instance.clock.advance(hour + 1);
      assertOk(await register('b.o.x@gmail.com'));
      assert.equal(await sent(), 9, 'a day has 10, and the last is kept');
      assertOk(await recover(owner.email));
      assert.equal(await sent(), 10);
      instance.clock.advance(24 * hour);
      assertOk(await register('b.o.x@gmail.com'));
      assert.equal(await sent(), 11);
      // What was sent while the clock was ahead uses nothing up.
      instance.clock.advance(-72 * hour);
      assertOk(await register('b.o.x@gmail.com'));
      assert.equal(await sent(), 12);
    });

    test(`a registration without a message holds no slug (${engine})`, async (t) => {
      const instance = await startInstance({ engine });
      t.after(() => instance.close());
      const register = (slug: string, email: string) =>
        instance.call('POST', '/api/register', { body: { email, name: 'N', slug } });
      for (let i = 0; i < 4; i++) assertOk(await register('filler', 'full@example.com'));
      const unsent = assertOk(await register('wanted', 'full+x@example.com'));
      assert.equal(unsent.at('agent.slug'), 'wanted');
      const again = assertOk(await register('wanted', 'full+x@example.com'));
      assert.equal(again.at('agent.id'), unsent.at('agent.id'));
      assertOk(await register('wanted', 'other@example.com'));
    });

    test(`private registration tells the owner and not the caller (${engine})`, async (t) => {
      const instance = await startInstance({ engine, env: { PRIVATE_REGISTRATION: 'on' } });
      t.after(() => instance.close());
      const { email, key, id } = await instance.agent('Keeper');
      const answer = assertOk(
        await instance.call('POST', '/api/register', { body: { email, name: 'X', slug: 'stranger' } }),
      );
      assert.notEqual(answer.at('agent.slug'), 'keeper');
      assert.equal(answer.at('agent.slug'), 'stranger');
      const newest = (await instance.mails(email)).at(-1);
      assert.equal(newest?.email.subject, 'The agent keeper is already registered');
      assert.equal(tokenOf(newest ?? assert.fail()), null);
      const { agent } = await instance.client(key).me();
      assert.equal(agent.name, 'Keeper');
      // What a stranger is told leads to nothing that is public.
      assert.equal(answer.at('agent.id'), id);
      assert.notEqual(agent.id, id);
      await assert.rejects(
        instance.ctx().engine.write(verifyByOperator, { slug: 'stranger' }),
        /belongs to a verified agent/,
      );
    });

    test(`private registration answers a known address as it does a new one, however often (${engine})`, async (t) => {
      const instance = await startInstance({ engine, env: { PRIVATE_REGISTRATION: 'on' } });
      t.after(() => instance.close());
      await instance.agent('Keeper');
      // What the mailbox of the known one was sent no longer counts.
      instance.clock.advance(25 * hour);
      /** All that a stranger sees who registers an address again and again, but for the address. */
      const seen = async (who: string) => {
        const answers = [];
        for (const [name, slug, email] of [
          ['One', 'one', who],
          ['One', 'one', who],
          ['Two', 'two', who],
          ['Other', 'two', `other-${who}`],
          ['Two', 'keeper', who],
          ['Two', 'three', who.toUpperCase()],
          ['Three', 'three', who],
          ['Four', 'four', who],
        ] as const)
          answers.push(
            await instance.call('POST', '/api/register', {
              body: {
                email: `${email}@example.com`,
                name,
                slug: slug === 'keeper' ? slug : `${slug}-${who}`,
              },
            }),
          );
        const ids = answers.map((answer) => answer.at('agent.id'));
        return answers.map((answer, at) => [
          answer.status,
          answer.text
            .replaceAll(/keeper@|nobody@/gi, 'who@')
            .replaceAll(/-(?:keeper|nobody)\b/g, '-who')
            .replace(String(ids[at]), `id of call ${ids.indexOf(ids[at])}`)
            .replace(String(answer.at('requestId')), ''),
        ]);
      };
      const known = await seen('keeper');
      assert.deepEqual(await seen('nobody'), known);
      assert.deepEqual(
        known.map(([status]) => status),
        [200, 200, 200, 409, 409, 200, 200, 200],
      );
    });
  }
});
