import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { request, type Answer, type RequestOptions } from './http.ts';

/** Requests that were under way at once, until stopped. */
export type Load = {
  /** Requests answered as they should be, so far. */
  done(): number;
  /** Resolves when so many more are done; rejects with the first failure. */
  more(count: number): Promise<void>;
  /** Ends it. What failed: one line for each request that was not answered, or not as it should be. */
  stop(): Promise<readonly string[]>;
};

export type LoadOptions = {
  readonly clients: number;
  readonly next: () => RequestOptions;
  /** The status of a request that is done; 200 unless told. */
  readonly accepts?: number;
  /** Keep connections, as most clients do; else each request has its own. */
  readonly keepAlive: boolean;
  /** The authority to trust, where the address is one of https. */
  readonly ca?: Buffer | undefined;
};

/** Starts clients that each send a request when the last one was answered. */
export function startLoad(baseUrl: string, options: LoadOptions): Load {
  const { clients, next, accepts = 200, keepAlive, ca } = options;
  const kind = { keepAlive, maxSockets: 1 };
  const agents = Array.from({ length: clients }, () =>
    ca ? new TlsAgent({ ...kind, ca }) : new Agent(kind),
  );
  const failures: string[] = [];
  const state = { done: 0, stopped: false };

  async function run(agent: Agent): Promise<void> {
    while (!state.stopped) {
      const asked = next();
      const outcome = await (keepAlive ? sendAgain : request)(baseUrl, { ...asked, agent }).then(
        ({ status, text }) => (status === accepts ? null : `${status} ${text}`),
        (error: unknown) => String(error),
      );
      if (outcome === null) state.done += 1;
      else failures.push(`${asked.method ?? 'GET'} ${asked.path ?? '/'}: ${outcome}`);
    }
    agent.destroy();
  }
  const running = agents.map(run);

  return {
    done: () => state.done,
    async more(count) {
      const wanted = state.done + count;
      while (state.done < wanted) {
        if (failures.length > 0) throw new Error(failures[0]);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async stop() {
      state.stopped = true;
      await Promise.all(running);
      return failures;
    },
  };
}

/**
 * A kept connection may be closed at the very moment at which it is used again: a client repeats the request
 * then, once (RFC 9110, section 9.3.1: what failed on a connection that had been kept was not answered).
 */
async function sendAgain(baseUrl: string, options: RequestOptions): Promise<Answer> {
  try {
    return await request(baseUrl, options);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ECONNRESET')) throw error;
    return request(baseUrl, options);
  }
}
