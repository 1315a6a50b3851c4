import type { Worker } from 'node:cluster';
import type { PrivateAnswer, PrivateCall } from './private-listener.ts';

/** Milliseconds that a worker may take to answer: it may be busy, or stuck. */
const patience = 5_000;

/** To a worker: a call of the private listener, by number; and from it, what came of it. */
type Question = { readonly question: number; readonly call: PrivateCall };
type Answered = { readonly answered: number; readonly answer: PrivateAnswer };

/** Lets a worker of this process answer a call; null where it does not. */
export type Ask = (call: PrivateCall) => Promise<PrivateAnswer | null>;

/** Returns what asks this worker. */
export function createAsk(worker: Worker): Ask {
  const waiting = new Map<number, (answer: PrivateAnswer | null) => void>();
  let last = 0;
  worker.on('message', (message: unknown) => {
    if (isAnswered(message)) waiting.get(message.answered)?.(message.answer);
  });
  worker.once('exit', () => {
    for (const end of waiting.values()) end(null);
  });
  return async (call) => {
    if (!worker.isConnected()) return null;
    const question: Question = { question: ++last, call };
    const { promise, resolve } = Promise.withResolvers<PrivateAnswer | null>();
    waiting.set(question.question, resolve);
    const limit = setTimeout(resolve, patience, null);
    worker.send(question, (error) => {
      if (error !== null) resolve(null);
    });
    return promise.finally(() => {
      clearTimeout(limit);
      waiting.delete(question.question);
    });
  };
}

/** In a worker: answers the questions of its supervisor. */
export function answerQuestions(worker: Worker, answer: (call: PrivateCall) => Promise<PrivateAnswer>): void {
  worker.on('message', (message: unknown) => {
    if (isQuestion(message)) void reply(message);
  });

  async function reply({ question, call }: Question): Promise<void> {
    const answered: Answered = { answered: question, answer: await answer(call) };
    if (worker.isConnected()) worker.send(answered);
  }
}

function isQuestion(message: unknown): message is Question {
  return typeof message === 'object' && message !== null && 'question' in message;
}

function isAnswered(message: unknown): message is Answered {
  return typeof message === 'object' && message !== null && 'answered' in message;
}
