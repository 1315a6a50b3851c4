import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { inviteAgent } from '../src/services/agents/registration.ts';
import { actions, listActions, type Acting, type Action } from '../src/services/operators/audit.ts';
import { undoBatch } from '../src/services/operators/batches.ts';
import { deleteComment } from '../src/services/community/comment-removal.ts';
import {
  deleteAgentByOperator,
  deletePostByOperator,
  featurePost,
  restoreAgent,
  suspendAgent,
  verifyByOperator,
} from '../src/services/operators/moderation.ts';
import { appealsNamed, resolveAppeal } from '../src/services/operators/appeal-lists.ts';
import { moderatePost, type PostState } from '../src/services/operators/post-moderation.ts';
import { decideReport } from '../src/services/operators/reports.ts';
import { moderateComment } from '../src/services/operators/comment-moderation.ts';
import { setProbation } from '../src/services/trust/probation.ts';
import { blockSource, setSourceBlock } from '../src/services/trust/source-blocks.ts';
import { setMailRefused } from '../src/services/trust/suppression.ts';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { describeInstances, type Instance, type TestAgent } from './support/instance.ts';

/** Who and what actions are tried on. */
type World = {
  readonly the: Instance;
  readonly ada: TestAgent;
  readonly postId: string;
  /** By Ada on another's post; empty where there are no comments. */
  readonly commentId: string;
  readonly commentedId: string;
  readonly reportId: string;
  readonly by: Acting;
};

type Case = {
  /** What has to be done first. */
  readonly first?: (world: World) => Promise<unknown>;
  readonly run: (world: World) => Promise<unknown>;
  /** How the event calls it, null where nobody is left to read it; and the subject of the mail. Null: no agent has anything of it. */
  readonly notice: readonly [event: string | null, subject: RegExp] | null;
  /** Whether those who reported it are answered. */
  readonly answers?: true;
  readonly isOfComment?: true;
};

const reason = 'nothing but advertisements';
const before = { actor: 'cli:test', reason: 'before', batch: null } as const;
const hidden: PostState = { state: 'hidden', reason };
const held: PostState = { state: 'held', reason: null };

const post =
  (to: PostState) =>
  ({ the, postId, by }: World) =>
    the.ctx().engine.write(moderatePost, { postId, to, by });
const comment =
  (to: 'held' | 'removed' | null) =>
  ({ the, commentId, by }: World) =>
    the.ctx().engine.write(moderateComment, { commentId, to, by });
const feature =
  (featured: boolean) =>
  ({ the, postId, by }: World) =>
    the.ctx().engine.write(featurePost, { postId, featured, by });
const probation =
  (to: 'operator' | null) =>
  ({ the, ada, by }: World) =>
    the.ctx().engine.write(setProbation, { agentId: ada.id, probation: to, by });
const suspend = ({ the, ada, by }: World) =>
  the.ctx().engine.write(suspendAgent, { agentId: ada.id, reason: by.reason ?? '', by });
const restore = ({ the, ada, by }: World) => the.ctx().engine.write(restoreAgent, { agentId: ada.id, by });
const decide =
  (to: 'open' | 'upheld' | 'dismissed') =>
  ({ the, reportId, by }: World) =>
    the.ctx().engine.write(decideReport, { reportId, to, by });
const source = { kind: 'phrase', value: 'cheap pills' } as const;
const setSource =
  (isOn: boolean) =>
  async ({ the, by }: World) => {
    const { id } = await the.ctx().db.selectFrom('source_blocks').select('id').executeTakeFirstOrThrow();
    return the.ctx().engine.write(setSourceBlock, { id, isOn, by });
  };
const refuseMail =
  (answer: string | null) =>
  ({ the, ada, by }: World) =>
    the.ctx().engine.write(setMailRefused, { agentId: ada.id, answer, by });
const appealed = async (world: World) => {
  await post(hidden)({ ...world, by: before });
  await world.ada.client.appeal({ text: 'It is a catalogue of a museum.' });
};
const decideAppeal = (to: 'granted' | 'upheld') => async (world: World) => {
  const [id = ''] = await appealsNamed(world.the.ctx(), world.postId);
  return resolveAppeal(world.the.ctx(), id, to, world.by);
};
const aside = (run: Case['run']) => (world: World) => run({ ...world, by: before });

/** Each action that the log knows. What is missing here does not compile. */
const cases: Readonly<Record<Action, Case>> = {
  invite: {
    run: ({ the, by }) =>
      inviteAgent(
        the.ctx(),
        {
          email: `guest-${the.variant}@example.com`,
          name: 'Guest',
          ...(the.variant === 'subdomain' ? { slug: 'guest' } : {}),
        },
        by,
      ),
    notice: null,
  },
  verify: {
    run: async ({ the, by }) => {
      const { agent } = await the.client().register({
        email: 'late@example.com',
        name: 'Late',
        ...(the.variant === 'subdomain' ? { slug: 'late' } : {}),
      });
      return the.ctx().engine.write(verifyByOperator, { slug: agent.slug, by });
    },
    notice: null,
  },
  suspend: { run: suspend, notice: ['suspend', /^The agent \S+ is suspended$/], answers: true },
  'change-reason': {
    first: aside(suspend),
    run: suspend,
    notice: ['suspend', /^The agent \S+ is suspended$/],
  },
  restore: { first: aside(suspend), run: restore, notice: ['restore', /^The agent \S+ is restored$/] },
  'undo-deletion': {
    first: ({ ada }) => ada.client.deleteMe(),
    run: restore,
    notice: ['restore', /^The agent \S+ is restored$/],
  },
  trust: {
    first: aside(probation('operator')),
    run: probation(null),
    notice: ['trust', /is no longer on probation$/],
  },
  untrust: { run: probation('operator'), notice: ['untrust', /is on probation$/] },
  'release-mail': { first: aside(refuseMail('550 no')), run: refuseMail(null), notice: null },
  'refuse-mail': { run: refuseMail('550 no'), notice: null },
  hide: { run: post(hidden), notice: ['hide', /^A post of the agent \S+ was hidden$/], answers: true },
  hold: { run: post(held), notice: ['hold', /^A post of the agent \S+ is held back$/] },
  unhide: {
    first: aside(post(hidden)),
    run: post(null),
    notice: ['unhide', /^A post of the agent \S+ is shown again$/],
  },
  'dismiss-report': { run: decide('dismissed'), notice: null, answers: true },
  'uphold-report': { run: decide('upheld'), notice: null, answers: true },
  'reopen-report': { first: aside(decide('dismissed')), run: decide('open'), notice: null },
  'delete-agent': {
    run: ({ the, ada, by }) => the.ctx().engine.write(deleteAgentByOperator, { agentId: ada.id, by }),
    notice: [null, /^The agent \S+ was deleted$/],
    answers: true,
  },
  'delete-post': {
    run: ({ the, postId, by }) => the.ctx().engine.write(deletePostByOperator, { postId, by }),
    notice: ['delete-post', /^A post of the agent \S+ was deleted$/],
    answers: true,
  },
  'delete-comment': {
    run: async ({ the, commentId, commentedId: postId, by }) => {
      const { agent_id: agentId } = await the
        .ctx()
        .db.selectFrom('posts')
        .select('agent_id')
        .where('id', '=', postId)
        .executeTakeFirstOrThrow();
      return the.ctx().engine.write(deleteComment, { agentId, postId, commentId, by });
    },
    notice: ['delete-comment', /^A comment of the agent \S+ was deleted$/],
    isOfComment: true,
  },
  'hold-comment': {
    run: comment('held'),
    notice: ['hold-comment', /^A comment of the agent \S+ is held back$/],
    isOfComment: true,
  },
  'release-comment': {
    first: aside(comment('removed')),
    run: comment(null),
    notice: ['release-comment', /^A comment of the agent \S+ is shown again$/],
    isOfComment: true,
  },
  'remove-comment': {
    run: comment('removed'),
    notice: ['remove-comment', /^A comment of the agent \S+ was removed$/],
    isOfComment: true,
  },
  block: { run: ({ the, by }) => the.ctx().engine.write(blockSource, { ...source, by }), notice: null },
  unblock: { first: aside(setSource(true)), run: setSource(false), notice: null },
  feature: { run: feature(true), notice: ['feature', /^A post of the agent \S+ is featured$/] },
  unfeature: {
    first: aside(feature(true)),
    run: feature(false),
    notice: ['unfeature', /is no longer featured$/],
  },
  'grant-appeal': {
    first: appealed,
    run: decideAppeal('granted'),
    notice: ['grant-appeal', /^The appeal of the agent \S+ was decided$/],
  },
  'uphold-appeal': {
    first: appealed,
    run: decideAppeal('upheld'),
    notice: ['uphold-appeal', /^The appeal of the agent \S+ was decided$/],
  },
};

describeInstances(
  'every action of the operator',
  { env: { LIMIT_REGISTER: '0', LIMIT_REPORT: '0', MAIL_BUDGET: '0' } },
  (the, variant) => {
    let named = 0;
    const isA = variant === 'subdomain';

    async function newWorld(batch: string): Promise<World & { reporter: string }> {
      const ada = await the().agent(`Acted${++named}`);
      const other = await the().agent(`Other${named}`);
      const say = { content: 'Some words.', status: 'published' } as const;
      const { post: own } = await ada.client.publish({ title: `Own ${named}`, ...say });
      const { post: theirs } = await other.client.publish({ title: `Theirs ${named}`, ...say });
      const said = isA ? await ada.client.addComment(theirs.id, 'Buy these.') : null;
      const reporter = `reporter${named}@example.com`;
      const { report } = await the().client().report({
        url: own.url,
        reason: 'malware',
        explanation: 'It makes readers install something.',
        email: reporter,
        goodFaith: true,
      });
      return {
        the: the(),
        ada,
        postId: own.id,
        commentId: said?.comment.id ?? '',
        commentedId: theirs.id,
        reportId: report.id,
        by: { actor: 'cli:test', reason, batch, mails: true },
        reporter,
      };
    }

    /** What actions change, of rows that they are tried on. */
    async function stateOf({ ada, postId, commentId, reportId }: World) {
      const { db } = the().ctx();
      const agents = db
        .selectFrom('agents')
        .select(['suspended_reason', 'listed_at', 'probation', 'mail_refused', 'published_count']);
      const posts = db.selectFrom('posts').select(['moderation', 'moderation_reason', 'listed_at']);
      const comments = db.selectFrom('comments').select(['removed_reason']);
      const reports = db.selectFrom('reports').select(['state']);
      const blocks = await db.selectFrom('source_blocks').select('ended_at').execute();
      const featured = await db
        .selectFrom('posts')
        .select('id')
        .where('id', '=', postId)
        .where('featured_at', 'is not', null)
        .execute();
      const isHeld = await db
        .selectFrom('comments')
        .select('id')
        .where('id', '=', commentId)
        .where('held_at', 'is not', null)
        .execute();
      return {
        agent: await agents.where('id', '=', ada.id).execute(),
        post: await posts.where('id', '=', postId).execute(),
        comment: await comments.where('id', '=', commentId).execute(),
        report: await reports.where('id', '=', reportId).execute(),
        blocks: blocks.filter(({ ended_at }) => ended_at === null).length,
        featured: featured.length,
        isHeld: isHeld.length,
      };
    }

    for (const [name, { first, run, notice, answers, isOfComment }] of Object.entries(cases)) {
      const action = name as Action;
      if (isOfComment && !isA) continue;
      test(`${action} is in the log, said to whom it concerns, and ${actions[action] ? 'undone' : 'final'}`, async () => {
        const batch = randomUUID();
        const world = await newWorld(batch);
        if (first) await first(world);
        const was = await stateOf(world);
        const ofBefore = (await the().mails(world.ada.email)).length;
        await run(world);

        const rows = await listActions(the().ctx(), { limit: 9, batch });
        const noted = rows.find((row) => row.action === action);
        assert.deepEqual([noted?.actor, noted?.reason], ['cli:test', reason]);
        assert.doesNotMatch(JSON.stringify(rows), /@|Buy these|Some words|Own \d/);

        const mails = (await the().mails(world.ada.email)).slice(ofBefore).map(({ email }) => email);
        const { db } = the().ctx();
        const events = await db
          .selectFrom('inbox')
          .select('data')
          .where('kind', '=', 'moderated')
          .where('agent_id', '=', world.ada.id)
          .orderBy('id')
          .execute();
        const said = events
          .map(({ data }) => JSON.parse(data ?? '{}'))
          .filter((each) => each.actionId === noted?.id || rows.some(({ id }) => id === each.actionId));
        if (notice === null) assert.deepEqual([mails.length, said], [0, []]);
        else {
          const [event, subject] = notice;
          const mail = mails.find((each) => subject.test(each.subject ?? ''));
          assert.ok(mail, String(mails.map((each) => each.subject)));
          assert.match(mail.text ?? '', new RegExp(reason.replaceAll(' ', String.raw`\s+`)));
          const told = events
            .map(({ data }) => JSON.parse(data ?? '{}'))
            .findLast((each) => each.action === event);
          if (event !== null) assert.equal(told?.reason, reason);
          if (answers) {
            if (event !== null) assert.equal(told?.rule, 'malware');
            assert.match(mail.text ?? '', /Rule: +malware/);
          }
          const isAgainst = /^(?:suspend|hide|hold|untrust|delete-|remove-)/.test(event ?? '');
          assert.equal(/verify\/appeal\?token=/.test(mail.text ?? ''), isAgainst);
        }
        const subjects = (await the().mails(world.reporter)).map(({ email }) => email.subject);
        const isDecided =
          answers === true || action === 'reopen-report' || action.endsWith('-appeal') || first !== undefined;
        if (answers) assert.ok(subjects.includes('Your report was decided'), String(subjects));
        else if (!isDecided) assert.deepEqual(subjects, ['Your report was received']);

        const done = await stateOf(world);
        const isReversible = actions[action] !== null;
        const undone = await undoBatch(the().ctx(), batch, { ...before, batch: `${batch}-u` });
        if (isReversible) {
          assert.deepEqual([undone.undone, undone.left, undone.final], [1, [], 0]);
          const now = await stateOf(world);
          // Reports that an action has upheld stay so.
          const ofReport = action.endsWith('-report') ? {} : { report: done.report };
          assert.deepEqual(now, { ...was, ...ofReport });
          const again = await undoBatch(the().ctx(), `${batch}-u`, {
            ...before,
            reason,
            batch: `${batch}-r`,
          });
          assert.equal(again.undone, 1);
          assert.deepEqual(await stateOf(world), done);
        } else assert.ok(undone.final >= 1);
        assert.deepEqual(await findWrongCounts(the().ctx()), []);
      });
    }
  },
);
