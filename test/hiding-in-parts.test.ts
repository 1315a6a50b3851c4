import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { finishListing } from '../src/services/agents/hiding.ts';
import { deleteAgent, eraseDue, undoDeletion } from '../src/services/agents/self-deletion.ts';
import { deleteAgentByOperator, restoreAgent, suspendAgent } from '../src/services/community/moderation.ts';
import { settleCommunity } from '../src/services/community/settle.ts';
import { findWrongCounts } from '../src/services/upkeep/doctor.ts';
import { describeInstances, type TestAgent } from './support/instance.ts';
import { open } from './support/pages.ts';

const unlimited = { LIMIT_API: '0', LIMIT_ANONYMOUS: '0', LIMIT_PUBLISH: '0' };
const allOfThem = 330;
const goOn = async () => true;

describeInstances('an agent with more posts than one write changes', { env: unlimited }, (the) => {
  let named = 0;

  async function prolific(): Promise<TestAgent> {
    const agent = await the().agent(`Prolific${++named}`);
    const numbers = Array.from({ length: allOfThem }, (_, n) => n);
    await Promise.all(
      numbers.map((n) =>
        agent.client.publish({ title: `Post ${n}`, content: `no ${n}`, tags: ['many'], status: 'published' }),
      ),
    );
    await agent.client.publish({ title: 'Draft', content: 'x', status: 'draft' });
    return agent;
  }

  const rows = async (statement: string) => (await sql.raw(statement).execute(the().ctx().db)).rows.length;
  const listed = ({ id }: TestAgent) =>
    rows(`select id from posts where agent_id = '${id}' and listed_at is not null`);
  const tagged = ({ id }: TestAgent) => rows(`select post_id from post_tags where agent_id = '${id}'`);
  const kept = ({ id }: TestAgent) => rows(`select id from posts where agent_id = '${id}'`);
  const countsAreRight = async () => assert.deepEqual(await findWrongCounts(the().ctx()), []);

  /** What is left after a write, which must be a part of all posts and not all of them. */
  function assertPart(left: number): void {
    assert.ok(left > 0 && left < allOfThem, `${left}`);
  }

  test('leaves the public in parts, whose counts are right, and comes back in parts', async () => {
    const agent = await prolific();
    const { engine } = the().ctx();
    const before = await agent.client.me();
    await engine.write(deleteAgent, { agentId: agent.id, confirm: undefined });
    assertPart(await listed(agent));
    assert.equal(await tagged(agent), await listed(agent));
    assert.equal((await open(the(), agent.blogUrl)).status, 410);
    await countsAreRight();
    await finishListing(the().ctx(), agent.id);
    assert.deepEqual([await listed(agent), await tagged(agent)], [0, 0]);
    await countsAreRight();

    await engine.write(undoDeletion, { agentId: agent.id });
    assertPart(await listed(agent));
    await countsAreRight();
    assert.deepEqual(await agent.client.me(), before);
    // A change of one that is not back yet brings it back, and is counted once.
    const ofAgent = the().ctx().db.selectFrom('posts').select('id').where('agent_id', '=', agent.id);
    const oldest = await ofAgent
      .where('status', '=', 'published')
      .where('listed_at', 'is', null)
      .executeTakeFirst();
    await agent.client.updatePost(oldest?.id ?? '', { title: 'Changed meanwhile' });
    await countsAreRight();
    await finishListing(the().ctx(), agent.id);
    assert.deepEqual([await listed(agent), await tagged(agent)], [allOfThem, allOfThem]);
    await countsAreRight();
  });

  test('is as the last call says, where another one came in between', async () => {
    const agent = await prolific();
    const { engine } = the().ctx();
    const suspend = () => engine.write(suspendAgent, { agentId: agent.id, reason: 'a test' });
    await suspend();
    await engine.write(restoreAgent, { agentId: agent.id });
    await finishListing(the().ctx(), agent.id);
    assert.equal(await listed(agent), allOfThem);
    await countsAreRight();
    await suspend();
    await finishListing(the().ctx(), agent.id);
    await engine.write(restoreAgent, { agentId: agent.id });
    await suspend();
    // The process that did it has ended: housekeeping does the rest.
    await settleCommunity(the().ctx(), goOn);
    assert.deepEqual([await listed(agent), await tagged(agent)], [0, 0]);
    await countsAreRight();
  });

  test('is back, or erased, when the call is answered', async () => {
    const agent = await prolific();
    await agent.client.deleteMe();
    assert.equal(await listed(agent), 0);
    await agent.client.restoreMe();
    assert.equal(await listed(agent), allOfThem);
    await agent.client.deleteMe({ confirm: agent.slug });
    assert.equal(await kept(agent), 0);
    assert.equal(await rows(`select id from agents where id = '${agent.id}'`), 0);
    await countsAreRight();
  });

  test('is erased in parts, which nothing undoes, and goes on after a crash', async () => {
    const agent = await prolific();
    const { engine } = the().ctx();
    await engine.write(deleteAgent, { agentId: agent.id, confirm: agent.slug });
    assertPart(await listed(agent));
    await assert.rejects(agent.client.me(), { code: 'unauthorized' });
    await assert.rejects(engine.write(undoDeletion, { agentId: agent.id }), { code: 'unauthorized' });
    for (const tried of [
      engine.write(suspendAgent, { agentId: agent.id, reason: 'a test' }),
      engine.write(restoreAgent, { agentId: agent.id }),
      engine.write(deleteAgentByOperator, { agentId: agent.id }),
    ])
      await assert.rejects(tried, { code: 'not_found' });
    await countsAreRight();
    let writes = 0;
    await eraseDue(the().ctx(), async () => ++writes < 2);
    assert.equal(await listed(agent), 0);
    assertPart(await kept(agent));
    await countsAreRight();
    await eraseDue(the().ctx(), goOn);
    assert.equal(await kept(agent), 0);
    assert.equal(await rows(`select id from agents where id = '${agent.id}'`), 0);
    assert.equal((await open(the(), agent.blogUrl)).status, 410);
    await countsAreRight();
  });
});
