import { compare } from './compare.ts';
import { micros, perSecond, type Finding, type Section } from './report.ts';
import { workers } from './rows.ts';
import { within, type World } from './world.ts';

/** What a request may cost with two workers, against one. */
const most = 1.1;

/** Two workers and one, each on all cores, beside the load: what it costs that they share their work. */
export async function measureWorkers(world: World): Promise<Section> {
  const stage = workers(2);
  const one = await workers(1).open(within(world, 'one'));
  const two = await stage.open(within(world, 'two'));
  try {
    const findings: Finding[] = [];
    for (const { what, shots } of stage.rows) {
      const {
        ours,
        theirs,
        cpuRatio: ratio,
      } = await compare(
        { server: two.server, shots: await shots(two) },
        { server: one.server, shots: await shots(one) },
        { ...world.plan, ...stage },
      );
      findings.push({
        what,
        ours: `${micros(ours.cpu)}, ${perSecond(ours.perSecond)}`,
        rival: `one worker: ${micros(theirs.cpu)}, ${perSecond(theirs.perSecond)}`,
        ratio,
        target: `≤ ${most}`,
        met: ratio <= most,
      });
    }
    return { title: `${stage.title}, processor time a request`, findings };
  } finally {
    await Promise.all([one.stop(), two.stop()]);
  }
}
