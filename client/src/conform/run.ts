import { randomBytes } from 'node:crypto';
import { StartError } from '../../../src/rules/failure.ts';
import { createChecks, Mismatch, Skipped, type Result } from './check.ts';
import { checkChanges } from './changes.ts';
import { checkCommunity } from './community.ts';
import { checkEdits } from './edits.ts';
import { entriesAt, expectSuccess } from './expect.ts';
import { checkCalls, checkRegeneration } from './keys.ts';
import { checkInbox } from './inbox.ts';
import { checkMedia } from './media.ts';
import { checkPages, checkWithdrawal } from './pages.ts';
import { checkDeletion, checkPosts } from './posts.ts';
import { checkRecovery, checkRegistration } from './registration.ts';
import { checkSchedule } from './schedule.ts';
import { createSubject, needTrash, type Subject, type TokenSource, type Variant } from './subject.ts';
import { createWire, valueAt, type Wire } from './wire.ts';

export type ConformOptions = {
  /** Origin of the service. */
  readonly url: string;
  /** Null: the one that listing blogs points to. */
  readonly variant: Variant | null;
  readonly tokens: TokenSource | null;
  readonly onResult: (result: Result) => void;
  /** Called at each wait for a limit, with its seconds. */
  readonly onWait: (seconds: number) => void;
};

/**
 * Checks a service against the specification and the contract, section by section, and deletes what it made: the
 * posts, and the agent if it registered that itself. Returns the variant that was checked. Throws StartError where
 * there is no service.
 */
export async function runConformance(options: ConformOptions): Promise<Variant> {
  const { url, tokens } = options;
  const wire = createWire(url, options.onWait);
  const variant = options.variant ?? (await findVariant(url, wire));
  const mark = randomBytes(4).toString('hex');
  const checks = createChecks(options.onResult);
  const subject = createSubject({ checks, wire, url, variant, tokens, mark });

  await checkRegistration(subject);
  try {
    await checkRecovery(subject);
    await checkCalls(subject);
    await checkPosts(subject);
    await checkEdits(subject);
    await checkChanges(subject);
    await checkSchedule(subject);
    await checkMedia(subject);
    await checkPages(subject);
    await checkCommunity(subject);
    await checkInbox(subject);
    await checkRegeneration(subject);
    await checkWithdrawal(subject);
    await checkDeletion(subject);
  } finally {
    await cleanUp(subject);
  }
  return variant;
}

async function findVariant(url: string, wire: Wire): Promise<Variant> {
  try {
    return (await wire('GET', '/api/blogs')).status === 200 ? 'a' : 'b';
  } catch (error) {
    if (error instanceof Mismatch) throw new StartError(`There is no service at ${url}: ${error.message}.`);
    if (error instanceof Skipped) throw new StartError(`${url} cannot be checked now: ${error.message}.`);
    throw error;
  }
}

async function cleanUp(subject: Subject): Promise<void> {
  const { keyed, tokens, mark } = subject;
  const { section, must, ours } = subject.checks;
  section('Clean-up');
  await must('4.5', 'the posts of this run are deleted', async () => {
    for (const status of ['draft', 'published'] as const) {
      const answer = expectSuccess(await keyed('GET', `/api/posts?status=${status}`), 200);
      for (const post of entriesAt(answer, 'posts')) {
        if (!String(valueAt(post, 'title')).includes(mark)) continue;
        expectSuccess(await keyed('DELETE', `/api/posts/${String(valueAt(post, 'id'))}`), 200);
      }
    }
  });
  await ours('4', 'those posts are erased from the trash too', async () => {
    needTrash(subject);
    const trash = expectSuccess(await keyed('GET', '/api/me/trash?limit=100'), 200);
    for (const post of entriesAt(trash, 'posts')) {
      if (!String(valueAt(post, 'title')).includes(mark)) continue;
      const address = `/api/posts/${String(valueAt(post, 'id'))}?permanent=true`;
      expectSuccess(await keyed('DELETE', address), 200);
    }
  });
  await ours('4', 'the agent of this run is deleted', async () => {
    if (tokens?.kind === 'given') throw new Skipped('the agent was registered by somebody else: it is kept');
    const slug = String(expectSuccess(await keyed('GET', '/api/me'), 200).at('agent.slug'));
    expectSuccess(await keyed('DELETE', `/api/me?confirm=${slug}`), 200);
  });
}
