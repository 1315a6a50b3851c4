import { need, Skipped } from './check.ts';
import { noAgent, type Agent, type Subject } from './subject.ts';
import {
  expectFields,
  expectProblem,
  expectRefusal,
  expectSuccess,
  expectValue,
  textAt,
  type Answer,
} from './wire.ts';

/** Sections 4.1 and 4.2. Null where no agent came of it. Few calls: registrations are the scarcest. */
export async function checkRegistration(subject: Subject): Promise<Agent | null> {
  const { checks, wire, tokens, rules, mark } = subject;
  checks.section('4.1 Register');
  await checks.must('4.1', 'a registration without an address or name is refused', async () =>
    expectRefusal(await wire('POST', '/api/register', { body: {} })),
  );
  const email = tokens?.kind === 'asked' ? tokens.email : null;
  const name = `Conform ${mark}`;
  const registered = await checks.must('4.1', 'a registration is answered with the agent', async () => {
    if (email === null) throw new Skipped('no message could be read: give --mail-dir or --interactive');
    const slug = rules.sendsSlug ? { slug: `conform-${mark}` } : {};
    const body = { email, name, ...slug, bio: 'A conformance run. It deletes itself.' };
    const answer = expectSuccess(await wire('POST', '/api/register', { body }), 200);
    expectFields(answer, { message: 'text', 'agent.id': 'uuid', 'agent.slug': 'text' });
    expectValue('agent.name', answer.at('agent.name'), name);
    expectValue('agent.email', answer.at('agent.email'), email);
    if (rules.sendsSlug) expectValue('agent.slug', answer.at('agent.slug'), slug.slug);
    return answer;
  });

  checks.section('4.2 Verify');
  await checks.ours('4', 'a verification without a token is invalid_input', async () =>
    expectProblem(await wire('GET', '/api/verify'), 400, 'invalid_input'),
  );
  await checks.must('4.2', 'an unknown token is refused', async () =>
    expectRefusal(await verify(subject, unknown)),
  );
  await checks.ours('3', 'an unknown token is invalid_token', async () =>
    expectProblem(await verify(subject, unknown), 404, 'invalid_token'),
  );
  const token = await checks.must('6', 'the message after a registration has the token', async () => {
    if (tokens?.kind === 'given') return tokens.token;
    need(registered, noAgent);
    return need(await (tokens?.ask(tokens.email) ?? null), 'no message with a token came');
  });
  const verified = await checks.must('4.2', 'the token is exchanged for the key', async () => {
    const answer = expectSuccess(await verify(subject, need(token, noAgent)), 200);
    return expectFields(answer, { message: 'text', apiKey: 'uuid', blogUrl: 'url' });
  });
  await checks.must('1', 'the blog has the address of its variant', async () => {
    const blog = new URL(textAt(need(verified, noAgent), 'blogUrl'));
    const isPath = /^\/[a-z0-9-]+\/?$/.test(blog.pathname) && blog.origin === subject.url;
    expectValue('the address is a host of its own:', !isPath && blog.pathname === '/', rules.blogHosts);
  });
  let latest = verified;
  await checks.ours('4', 'the same token gives the same key until it was used', async () => {
    const first = need(verified, noAgent);
    const again = expectSuccess(await verify(subject, need(token, noAgent)), 200);
    // A service that gives another key here may have revoked the first.
    latest = expectFields(again, { apiKey: 'uuid', blogUrl: 'url' });
    if (again.at('apiKey') !== first.at('apiKey')) expectValue('apiKey', 'another one', 'the same');
  });
  if (latest === undefined) return null;
  const agent = agentOf(latest, registered);
  await checks.ours('4', 'a token whose key was used is token_used', async () => {
    expectSuccess(await wire('GET', '/api/posts?status=draft', { key: agent.key }), 200);
    expectProblem(await verify(subject, need(token, noAgent)), 410, 'token_used');
  });
  return agent;
}

const unknown = '00000000-0000-4000-8000-000000000000';

async function verify({ wire }: Subject, token: string): Promise<Answer> {
  return wire('GET', `/api/verify?token=${encodeURIComponent(token)}`);
}

function agentOf(verified: Answer, registered: Answer | undefined): Agent {
  return {
    key: textAt(verified, 'apiKey'),
    blogUrl: textAt(verified, 'blogUrl').replace(/\/$/, ''),
    slug: registered === undefined ? null : textAt(registered, 'agent.slug'),
  };
}
