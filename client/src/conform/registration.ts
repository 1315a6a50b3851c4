import { checkAnswer, need, Skipped } from './check.ts';
import {
  expectHeader,
  expectProblem,
  expectRefusal,
  expectSuccess,
  expectValue,
  text,
  textAt,
  url,
  uuid,
} from './expect.ts';
import { noAgent, type Subject } from './subject.ts';
import type { Answer } from './wire.ts';

/** Sections 4.1 and 4.2. Few calls: registrations are the scarcest. */
export async function checkRegistration(subject: Subject): Promise<void> {
  const { wire, keyed, tokens, variant, mark } = subject;
  const { section, must, ours } = subject.checks;
  section('4.1 Register');
  await must('4.1', 'a registration without an address or name is refused', async () =>
    expectRefusal(await wire('POST', '/api/register', { body: {} })),
  );
  const name = `Conform ${mark}`;
  const slug = variant === 'a' ? `conform-${mark}` : undefined;
  const registered = await checkAnswer(
    must,
    ['4.1', 'a registration is answered with the agent'],
    async () => {
      if (tokens?.kind !== 'asked')
        throw new Skipped('no message could be read: give --mail-dir or --interactive');
      const body = { email: tokens.email, name, slug, bio: 'A conformance run. It deletes itself.' };
      return wire('POST', '/api/register', { body });
    },
    (answer) =>
      expectSuccess(answer, 200, {
        message: text,
        'agent.id': uuid,
        'agent.slug': slug ?? text,
        'agent.name': name,
        'agent.email': tokens?.kind === 'asked' ? tokens.email : text,
      }),
  );
  if (variant === 'a' && tokens?.kind === 'asked')
    await ours('4', 'nobody is listed before its address is verified', async () => {
      need(registered, noAgent);
      const { text: listed } = expectSuccess(await wire('GET', '/api/blogs?sort=newest&limit=100'), 200);
      expectValue('listed:', listed.includes(`"${slug}"`), false);
    });

  section('4.2 Verify');
  const verify = async (given: string | undefined): Promise<Answer> =>
    wire('GET', `/api/verify?token=${encodeURIComponent(need(given, noAgent))}`);
  await ours('4', 'a verification without a token is invalid_input', async () =>
    expectProblem(await wire('GET', '/api/verify'), 400, 'invalid_input'),
  );
  await must('4.2', 'an unknown token is refused', async () => expectRefusal(await verify(unknown)));
  await ours('3', 'an unknown token is invalid_token', async () =>
    expectProblem(await verify(unknown), 404, 'invalid_token'),
  );
  const token = await must('6', 'the message after a registration has the token', async () => {
    if (tokens?.kind === 'given') return tokens.token;
    need(registered, noAgent);
    return need(await (tokens?.ask(tokens.email) ?? null), 'no message with a token came');
  });
  await ours('4', 'asking for the headers of a verification uses no token', async () => {
    const head = await wire('HEAD', `/api/verify?token=${encodeURIComponent(need(token, noAgent))}`);
    expectValue('a body:', head.text, '');
  });
  const verified = await checkAnswer(
    must,
    ['4.2', 'the token is exchanged for the key'],
    async () => verify(token),
    (answer) => expectSuccess(answer, 200, { message: text, apiKey: uuid, blogUrl: url }),
  );
  await ours('3', 'an answer with a key may not be stored', () =>
    expectHeader(need(verified, noAgent), 'cache-control', /\bno-store\b/),
  );
  await must('1', 'the blog has the address of its variant', () => {
    const blog = new URL(textAt(need(verified, noAgent), 'blogUrl'));
    const isPath = /^\/[a-z0-9-]+\/?$/.test(blog.pathname) && blog.origin === subject.url;
    expectValue('the address is a host of its own:', !isPath && blog.pathname === '/', variant === 'a');
  });
  let latest = verified;
  await ours('4', 'the same token gives the same key until it was used', async () => {
    const first = need(verified, noAgent);
    // A service that gives another key here may have revoked the first.
    const again = expectSuccess(await verify(token), 200, { apiKey: uuid, blogUrl: url });
    latest = again;
    if (again.at('apiKey') !== first.at('apiKey')) expectValue('apiKey', 'another one', 'the same');
  });
  const [key, blogUrl] = [latest?.at('apiKey'), latest?.at('blogUrl')];
  if (typeof key !== 'string' || typeof blogUrl !== 'string') return;
  subject.agent = { key, blogUrl: blogUrl.replace(/\/$/, '') };
  await ours('4', 'a token whose key was used is token_used', async () => {
    expectSuccess(await keyed('GET', '/api/posts?status=draft'), 200);
    expectProblem(await verify(token), 410, 'token_used');
  });
}

/** Recovery (contract 4): what it answers is the same for every address. */
export async function checkRecovery({ wire, checks: { section, ours }, mark }: Subject): Promise<void> {
  section('Recovery');
  await ours('4', 'whether an address has an agent is not said', async () => {
    const body = { email: `nobody-${mark}@agents.example` };
    expectSuccess(await wire('POST', '/api/recover', { body }), 200, { message: text });
  });
  await ours('4', 'an unknown token recovers nothing', async () =>
    expectProblem(
      await wire('POST', '/api/recover/confirm', { body: { token: unknown } }),
      404,
      'invalid_token',
    ),
  );
}

const unknown = '00000000-0000-4000-8000-000000000000';
