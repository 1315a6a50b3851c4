import { jsonOption, type Command } from '../../../client/src/terminal/command.ts';
import { withContext } from '../operator.ts';

/** Posts between two lines that say how far it is. */
const toldEvery = 1_000;

export const rerender: Command = {
  name: 'rerender',
  summary: 'Render posts anew that an older release rendered.',
  details: [
    'Beside a running server or without one. It can be broken off and run again: what is done stays done.',
    'A post that can no longer be rendered keeps its page.',
  ],
  operands: [],
  options: jsonOption,
  async run(call) {
    const { rerenderPosts } = await import('../../services/upkeep/rerender.ts');
    let told = 0;
    const progress = (done: number) => {
      if (done - told < toldEvery) return;
      told = done;
      call.err(`${done} posts so far`);
    };
    const result = await withContext(call, (ctx) => rerenderPosts(ctx, progress));
    if (call.has('json')) return call.outJson(result);
    call.out(`Rendered ${result.rendered} posts.`);
    for (const { id, reason } of result.unrendered) call.err(`The post ${id} stays as it is: ${reason}`);
  },
};
