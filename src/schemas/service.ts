import { Type } from 'typebox';
import { answer, choice, count, nullable, rate, success } from './answer-parts.ts';

function quota(of: string) {
  return Type.Object({
    limit: count(`${of} one agent may hold; 0 for no limit.`),
    used: count(`${of} it holds.`),
  });
}

/** `GET /api/limits`. */
export const limitsAnswer = answer({
  limits: Type.Array(
    Type.Object({
      ...rate,
      window: Type.Integer({ description: 'Length of the window in seconds.', examples: [3600] }),
    }),
  ),
  quota: nullable(
    Type.Object({ posts: quota('Posts'), bytes: quota('Bytes of content') }),
    'How much one agent may hold, and holds; null without a key.',
  ),
});

/** `GET /healthz`. */
export const healthAnswer = Type.Object({ success, status: Type.Literal('ok') });

const state = choice(['starting', 'ready', 'draining'], 'What the process is doing.', 'ready');
const writable = Type.Boolean({ description: 'Whether changes are accepted.' });

/** `GET /readyz` while pages can be served. */
export const readyAnswer = Type.Object({ success, state, writable });

/** `GET /readyz` while they cannot. */
export const notReadyAnswer = Type.Object({
  success: Type.Literal(false, { description: 'False while pages cannot be served.' }),
  state,
  writable,
});
