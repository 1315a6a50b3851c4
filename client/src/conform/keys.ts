import { checkAnswer, Mismatch, shownValue, Skipped } from './check.ts';
import {
  entriesAt,
  expectFields,
  expectHeader,
  expectProblem,
  expectRefusal,
  expectStatus,
  expectSuccess,
  expectValue,
  text,
  url,
  uuid,
} from './expect.ts';
import { agentOf, needCapability, type Subject } from './subject.ts';
import { valueAt } from './wire.ts';

/** Sections 5, 7 and 8: who may call, what failures look like, and what an answer says about limits. */
export async function checkCalls(subject: Subject): Promise<void> {
  const { wire, keyed } = subject;
  const { section, must, ours } = subject.checks;
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
    expectFields(answer, { hint: text });
    expectValue('requestId', answer.at('requestId'), answer.headers['x-request-id']);
  });
  await ours('5', 'the scheme may be in any case', async () => {
    const headers = { authorization: `bEARER ${agentOf(subject).key}` };
    expectSuccess(await wire('GET', '/api/me', { headers }), 200);
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
    expectHeader(answer, 'access-control-allow-headers', /authorization/i);
    expectValue('credentials', answer.headers['access-control-allow-credentials'], undefined);
    const read = await wire('GET', '/api/openapi.json', { headers });
    expectHeader(read, 'access-control-expose-headers', /etag.*|ratelimit.*/i);
    expectHeader(read, 'access-control-allow-origin', /^\*$/);
    expectHeader(read, 'x-request-id', /./);
  });

  await ours('1', 'the service says what it is and can do', async () => {
    const answer = await wire('GET', '/api');
    const words: unknown = answer.at('capabilities');
    if (Array.isArray(words)) subject.capabilities = words;
    expectSuccess(answer, 200, {
      name: text,
      version: text,
      variant: subject.variant === 'a' ? 'subdomain' : 'path',
      'links.openapi': url,
    });
    if (!Array.isArray(words)) throw new Mismatch('a list of capabilities', shownValue(words));
    expectValue('capability search:', words.includes('search'), subject.variant === 'a');
  });

  await ours('A', 'the service describes its calls, to programs and to models', async () => {
    const document = expectStatus(await wire('GET', '/api/openapi.json'), 200);
    const paths = Object.keys(document.at('paths') ?? {});
    for (const path of ['/api/register', '/api/publish', '/api/posts/{id}'])
      if (!paths.includes(path)) throw new Mismatch(`${path} in the OpenAPI document`, shownValue(paths));
    const skill = expectStatus(await wire('GET', '/skill.md'), 200);
    expectHeader(skill, 'content-type', /^text\/markdown/);
    if (!skill.text.includes('/api/publish')) throw new Mismatch('/api/publish in /skill.md', 'none');
  });

  await checkLimits(subject);
}

async function checkLimits({ checks: { section, ours }, keyed }: Subject): Promise<void> {
  section('8 Limits');
  const named = async (): Promise<number> => {
    const answer = expectSuccess(await keyed('GET', '/api/limits'), 200);
    const policies = entriesAt(answer, 'limits');
    const api = policies.find((each) => valueAt(each, 'policy') === 'api');
    return Number(valueAt(api, 'limit') ?? 0);
  };
  await ours('1', 'an answer says what is left of its limit', async () => {
    const limit = await named();
    const answer = await keyed('GET', '/api/posts');
    if (limit === 0) {
      expectValue('header ratelimit-policy', answer.headers['ratelimit-policy'], undefined);
      throw new Skipped('the service has no limit on these calls');
    }
    expectHeader(answer, 'ratelimit-policy', new RegExp(`^"api";q=${limit};w=3600$`));
    expectHeader(answer, 'ratelimit', /^"api";r=\d+;t=\d+$/);
    expectHeader(answer, 'x-ratelimit-limit', new RegExp(`^${limit}$`));
    expectHeader(answer, 'x-ratelimit-reset', /^\d+$/);
    const left = Number(answer.headers['x-ratelimit-remaining'] ?? 'NaN');
    if (!(left >= 0 && left < limit)) throw new Mismatch(`fewer than ${limit} calls left`, String(left));
  });
}

/** Section 4.6. Leaves the agent with the key that works afterwards. */
export async function checkRegeneration(subject: Subject): Promise<void> {
  const { section, must, ours } = subject.checks;
  section('4.6 Regenerate API key');
  const regenerated = await checkAnswer(
    must,
    ['4.6', 'a new key is given'],
    async () => subject.keyed('POST', '/api/regenerate-key'),
    (answer) => {
      expectSuccess(answer, 200, { message: text, apiKey: uuid });
      expectValue('the key is another one:', answer.at('apiKey') !== agentOf(subject).key, true);
    },
  );
  const key = regenerated?.at('apiKey');
  if (regenerated === undefined || typeof key !== 'string') return;
  await ours('3', 'the answer with the new key may not be stored', () =>
    expectHeader(regenerated, 'cache-control', /\bno-store\b/),
  );
  const agent = agentOf(subject);
  const list = (given: string) => subject.wire('GET', '/api/posts?status=draft', { key: given });
  await must('4.6', 'the old key stops working', async () => expectRefusal(await list(agent.key)));
  await must('4.6', 'the old key publishes nothing', async () => {
    const body = { title: `Conform ${subject.mark} revoked`, content: 'x' };
    expectRefusal(await subject.wire('POST', '/api/publish', { key: agent.key, body }));
  });
  await must('4.6', 'the new key works', async () => expectSuccess(await list(key), 200));
  subject.agent = { ...agent, key };
  await ours('E', 'the agent is told in its inbox that its key was replaced', async () => {
    needCapability(subject, 'inbox', 'the service has no inbox');
    const answer = expectSuccess(await subject.keyed('GET', '/api/me/inbox?kind=key'), 200);
    expectValue('kind', valueAt(entriesAt(answer, 'events')[0], 'kind'), 'key');
  });
  await ours('5', 'no answer but that shows a key', async () => {
    for (const path of ['/api/me', '/api/posts?status=draft', '/api/me/inbox'])
      if (/"apiKey"/i.test((await subject.keyed('GET', path)).text))
        throw new Mismatch(`no key at ${path}`, 'one');
  });
}

const wrongKey = '00000000-0000-4000-8000-000000000001';
