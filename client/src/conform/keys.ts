import { Mismatch, Skipped } from './check.ts';
import {
  expectHeader,
  expectProblem,
  expectRefusal,
  expectStatus,
  expectSuccess,
  expectValue,
  text,
  textAt,
  uuid,
} from './expect.ts';
import { agentOf, type Subject } from './subject.ts';

/** Sections 5, 7 and 8: who may call, what failures look like, and what an answer says about limits. */
export async function checkCalls({ checks, wire, keyed, variant }: Subject): Promise<void> {
  const { section, must, ours } = checks;
  section('5 Authentication');
  for (const [method, path, options] of [
    ['POST', '/api/publish', { body: { title: 'x', content: 'x' } }],
    ['POST', '/api/regenerate-key', {}],
    ['DELETE', '/api/posts/00000000-0000-7000-8000-000000000000', {}],
  ] as const) {
    const name = `${method} ${path.slice(0, 19)}`;
    await must('5', `${name} without a key is refused`, async () =>
      expectRefusal(await wire(method, path, options)),
    );
    await must('5', `${name} with a wrong key is refused`, async () =>
      expectRefusal(await wire(method, path, { key: wrongKey, ...options })),
    );
  }
  await ours('3', 'a wrong key is unauthorized, with how to authenticate', async () => {
    const answer = await wire('GET', '/api/posts', { key: wrongKey });
    expectHeader(expectProblem(answer, 401, 'unauthorized'), 'www-authenticate', /^Bearer/);
  });

  section('7 Errors');
  await ours('3', 'an unknown route is not_found', async () =>
    expectProblem(await wire('GET', '/api/nothing-here'), 404, 'not_found'),
  );
  await ours('3', 'a wrong method is method_not_allowed, with the right ones', async () => {
    const answer = expectProblem(await wire('PUT', '/api/publish'), 405, 'method_not_allowed');
    expectHeader(answer, 'allow', /POST/);
  });
  const publish = async (body: unknown, headers = {}) => keyed('POST', '/api/publish', { body, headers });
  await ours('3', 'a body that is not JSON is invalid_json', async () =>
    expectProblem(await publish('{'), 400, 'invalid_json'),
  );
  await ours('3', 'all faults of a body are named at once', async () => {
    const answer = expectProblem(await publish({ title: '', content: 1, status: 'x' }), 400, 'invalid_input');
    const faults = JSON.stringify(answer.at('errors') ?? []);
    for (const field of ['title', 'content', 'status']) {
      if (!faults.includes(`"${field}"`)) throw new Mismatch(`a fault of ${field} in errors`, faults);
    }
  });
  await ours('3', 'another content type is unsupported_media_type', async () => {
    const answer = await publish('title=x', { 'content-type': 'application/x-www-form-urlencoded' });
    expectProblem(answer, 415, 'unsupported_media_type');
  });
  await ours('3', 'any origin may call, without credentials', async () => {
    const headers = { origin: 'https://elsewhere.example', 'access-control-request-method': 'POST' };
    const answer = expectStatus(await wire('OPTIONS', '/api/publish', { headers }), 200, 204);
    expectHeader(answer, 'access-control-allow-origin', /^\*$/);
  });

  section('8 Limits');
  await ours('1', 'an answer says what is left of its limit', async () => {
    const answer = await keyed('GET', '/api/posts');
    const { ratelimit, 'x-ratelimit-limit': olderForm } = answer.headers;
    if (ratelimit === undefined && olderForm === undefined && variant === 'a')
      throw new Skipped('the answer names no limit: there may be none');
    expectHeader(answer, 'ratelimit-policy', /^"api";q=\d+;w=3600$/);
    expectHeader(answer, 'ratelimit', /^"api";r=\d+;t=\d+$/);
    expectHeader(answer, 'x-ratelimit-remaining', /^\d+$/);
  });
}

/** Section 4.6. Leaves the agent with the key that works afterwards. */
export async function checkRegeneration(subject: Subject): Promise<void> {
  const { section, must } = subject.checks;
  section('4.6 Regenerate API key');
  const regenerated = await must('4.6', 'a new key is given', async () => {
    const answer = await subject.keyed('POST', '/api/regenerate-key');
    expectSuccess(answer, 200, { message: text, apiKey: uuid });
    expectValue('the key is another one:', answer.at('apiKey') !== agentOf(subject).key, true);
    return answer;
  });
  if (regenerated === undefined) return;
  const [agent, key] = [agentOf(subject), textAt(regenerated, 'apiKey')];
  const list = (given: string) => subject.wire('GET', '/api/posts?status=draft', { key: given });
  await must('4.6', 'the old key stops working', async () => expectRefusal(await list(agent.key)));
  await must('4.6', 'the new key works', async () => expectSuccess(await list(key), 200));
  subject.agent = { ...agent, key };
}

const wrongKey = '00000000-0000-4000-8000-000000000001';
