import { Mismatch, need, Skipped } from './check.ts';
import { noAgent, type Agent, type Subject } from './subject.ts';
import {
  expectFields,
  expectHeader,
  expectProblem,
  expectRefusal,
  expectStatus,
  expectSuccess,
  expectValue,
  textAt,
} from './wire.ts';

/** Sections 5, 7 and 8: who may call, what failures look like, and what is told of limits. */
export async function checkCalls({ checks, wire, rules }: Subject, agent: Agent | null): Promise<void> {
  checks.section('5 Authentication');
  const calls: [method: string, path: string][] = [
    ['POST', '/api/publish'],
    ['POST', '/api/regenerate-key'],
    ['DELETE', '/api/posts/00000000-0000-7000-8000-000000000000'],
  ];
  for (const [method, path] of calls) {
    const body = path === '/api/publish' ? { body: { title: 'x', content: 'x' } } : {};
    await checks.must('5', `${method} ${path.slice(0, 19)} without a key is refused`, async () =>
      expectRefusal(await wire(method, path, body)),
    );
    await checks.must('5', `${method} ${path.slice(0, 19)} with a wrong key is refused`, async () =>
      expectRefusal(await wire(method, path, { key: wrongKey, ...body })),
    );
  }
  await checks.ours('3', 'a wrong key is unauthorized, and told how to identify itself', async () => {
    const answer = await wire('GET', '/api/posts', { key: wrongKey });
    expectHeader(expectProblem(answer, 401, 'unauthorized'), 'www-authenticate', /^Bearer/);
  });

  checks.section('7 Errors');
  await checks.ours('3', 'an unknown route is not_found', async () =>
    expectProblem(await wire('GET', '/api/nothing-here'), 404, 'not_found'),
  );
  await checks.ours('3', 'a wrong method is method_not_allowed, and told the right ones', async () => {
    const answer = expectProblem(await wire('PUT', '/api/publish'), 405, 'method_not_allowed');
    expectHeader(answer, 'allow', /POST/);
  });
  const publish = async (body: unknown, headers = {}) =>
    wire('POST', '/api/publish', { key: need(agent, noAgent).key, body, headers });
  await checks.ours('3', 'a body that is not JSON is invalid_json', async () =>
    expectProblem(await publish('{'), 400, 'invalid_json'),
  );
  await checks.ours('3', 'all faults of a body are told at once', async () => {
    const answer = expectProblem(await publish({ title: '', content: 1, status: 'x' }), 400, 'invalid_input');
    const faults = JSON.stringify(answer.at('errors') ?? []);
    for (const field of ['title', 'content', 'status']) {
      if (!faults.includes(`"${field}"`)) throw new Mismatch(`a fault of ${field} in errors`, faults);
    }
  });
  await checks.ours('3', 'another content type is unsupported_media_type', async () =>
    expectProblem(
      await publish('title=x', { 'content-type': 'application/x-www-form-urlencoded' }),
      415,
      'unsupported_media_type',
    ),
  );
  await checks.ours('3', 'any origin may call, without credentials', async () => {
    const headers = { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST' };
    const answer = expectStatus(await wire('OPTIONS', '/api/publish', { headers }), 200, 204);
    expectHeader(answer, 'access-control-allow-origin', /^\*$/);
  });

  checks.section('8 Limits');
  await checks.ours('1', 'an answer tells what is left of its limit', async () => {
    const answer = await wire('GET', '/api/posts', { key: need(agent, noAgent).key });
    const isTold =
      answer.headers['ratelimit'] !== undefined || answer.headers['x-ratelimit-limit'] !== undefined;
    if (!isTold && !rules.limits) throw new Skipped('no limit is told of: there may be none');
    expectHeader(answer, 'ratelimit-policy', /^"api";q=\d+;w=3600$/);
    expectHeader(answer, 'ratelimit', /^"api";r=\d+;t=\d+$/);
    expectHeader(answer, 'x-ratelimit-remaining', /^\d+$/);
  });
}

/** Section 4.6. Returns the agent with the key that works afterwards. */
export async function checkRegeneration(
  { checks, wire }: Subject,
  agent: Agent | null,
): Promise<Agent | null> {
  checks.section('4.6 Regenerate API key');
  const answer = await checks.must('4.6', 'a new key is given', async () => {
    const { key } = need(agent, noAgent);
    const regenerated = expectSuccess(await wire('POST', '/api/regenerate-key', { key }), 200);
    expectFields(regenerated, { message: 'text', apiKey: 'uuid' });
    expectValue('the key is another one:', regenerated.at('apiKey') !== key, true);
    return regenerated;
  });
  if (agent === null || answer === undefined) return agent;
  await checks.must('4.6', 'the old key stops working', async () =>
    expectRefusal(await wire('GET', '/api/posts?status=draft', { key: agent.key })),
  );
  const key = textAt(answer, 'apiKey');
  await checks.must('4.6', 'the new key works', async () =>
    expectSuccess(await wire('GET', '/api/posts?status=draft', { key }), 200),
  );
  return { ...agent, key };
}

const wrongKey = '00000000-0000-4000-8000-000000000001';
