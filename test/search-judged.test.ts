import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  fillerPost,
  judgedAgents,
  judgedPosts,
  judgedQueries,
  type Judgement,
} from './support/judged-searches.ts';
import { describeInstances, type Instance, type TestAgent } from './support/instance.ts';
import { randomFrom } from './support/random.ts';
import { scale } from './support/scale.ts';

/** Posts about nothing in particular: 10,000 with TEST_SCALE=100. */
const fillers = 100 * scale;
const atOnce = 20;

/** How many of the judged queries must be answered as they were judged. */
const leastRight = 38;

const env = { LIMIT_PUBLISH: '1000000' };

describeInstances('judged searches', { variants: ['subdomain'], env }, (the) => {
  test('what was meant comes first, or is suggested', async () => {
    const agents = new Map<string, TestAgent>();
    for (const [slug, name] of Object.entries(judgedAgents)) agents.set(slug, await named(the(), slug, name));
    for (const [slug, title, tags, content] of judgedPosts)
      await agents.get(slug)?.client.publish({ title, tags, content, status: 'published' });
    const below = randomFrom(7);
    const filler = await the().agent('Filler');
    for (let done = 0; done < fillers; done += atOnce)
      await Promise.all(
        Array.from({ length: atOnce }, async (_, i) =>
          filler.client.publish({ ...fillerPost(below), slug: `filler-${done + i}`, status: 'published' }),
        ),
      );
    const wrong: string[] = [];
    for (const [q, expected] of judgedQueries) {
      const { posts, warnings } = await the().client().search(q);
      const first = posts[0]?.title ?? 'nothing';
      if (!isAsJudged(expected, first, warnings)) wrong.push(`${q}: ${first} ${warnings.join(' ')}`);
    }
    assert.ok(judgedQueries.length - wrong.length >= leastRight, wrong.join('\n'));
  });
});

function isAsJudged(expected: Judgement, first: string, warnings: readonly string[]): boolean {
  if (typeof expected === 'string') return first === expected;
  return 'words' in expected
    ? warnings.some((text) => text.includes(`'${expected.words}'`))
    : expected.includes(first);
}

async function named(site: Instance, slug: string, name: string): Promise<TestAgent> {
  const agent = await site.agent(slug);
  await agent.client.updateMe({ name });
  return agent;
}
