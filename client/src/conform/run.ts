import { randomBytes } from 'node:crypto';
import { StartError } from '../../../src/rules/failure.ts';
import { createChecks, Mismatch, need, Skipped, type Result } from './check.ts';
import { checkCommunity } from './community.ts';
import { checkCalls, checkRegeneration } from './keys.ts';
import { checkDeletion, checkPosts } from './posts.ts';
import { checkRegistration } from './registration.ts';
import { noAgent, rules, type Agent, type Subject, type TokenSource } from './subject.ts';
import { createWire, entriesAt, expectSuccess, valueAt, type Wire } from './wire.ts';

export type ConformOptions = {
  /** Origin of the service. */
  readonly url: string;
  /** Null: found out by whether blogs are listed. */
  readonly variant: 'a' | 'b' | null;
  readonly tokens: TokenSource | null;
  readonly onResult: (result: Result) => void;
  /** Told of each wait for a limit, in seconds. */
  readonly onWait: (seconds: number) => void;
};

/**
 * Checks a service against the specification and the contract, section by section, and deletes what it made: the
 * posts, and where it registered the agent itself, that too. Returns the variant that was checked. Throws
 * StartError where there is no service.
 */
export async function runConformance(options: ConformOptions): Promise<'a' | 'b'> {
  const { url, tokens } = options;
  const wire = createWire(url, options.onWait);
  const variant = options.variant ?? (await findVariant(url, wire));
  const mark = randomBytes(4).toString('hex');
  const checks = createChecks(options.onResult);
  const subject: Subject = { checks, wire, url, rules: rules[variant], tokens, mark };

  let agent = await checkRegistration(subject);
  try {
    await checkCalls(subject, agent);
    const post = await checkPosts(subject, agent);
    await checkCommunity(subject, agent, post);
    agent = await checkRegeneration(subject, agent);
    await checkDeletion(subject, agent, post);
  } finally {
    await cleanUp(subject, agent);
  }
  return variant;
}

async function findVariant(url: string, wire: Wire): Promise<'a' | 'b'> {
  try {
    return (await wire('GET', '/api/blogs')).status === 200 ? 'a' : 'b';
  } catch (error) {
    if (error instanceof Mismatch) throw new StartError(`There is no service at ${url}: ${error.message}.`);
    if (error instanceof Skipped) throw new StartError(`${url} cannot be checked now: ${error.message}.`);
    throw error;
  }
}

async function cleanUp({ checks, wire, tokens, mark }: Subject, agent: Agent | null): Promise<void> {
  checks.section('Clean-up');
  await checks.must('4.5', 'the posts of this run are deleted', async () => {
    const { key } = need(agent, noAgent);
    for (const status of ['draft', 'published'] as const) {
      const answer = expectSuccess(await wire('GET', `/api/posts?status=${status}`, { key }), 200);
      for (const post of entriesAt(answer, 'posts')) {
        if (!String(valueAt(post, 'title')).includes(mark)) continue;
        expectSuccess(await wire('DELETE', `/api/posts/${String(valueAt(post, 'id'))}`, { key }), 200);
      }
    }
  });
  await checks.ours('4', 'the agent of this run is deleted', async () => {
    const { key } = need(agent, noAgent);
    if (tokens?.kind === 'given') throw new Skipped('the agent was registered by somebody else: it is kept');
    expectSuccess(await wire('DELETE', '/api/me', { key }), 200);
  });
}
