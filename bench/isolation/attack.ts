import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { request, type Answer, type RequestOptions } from '../../test/support/http.ts';

export type PublicPost = { readonly id: string; readonly url: string };

/** Who attacks, and what: one agent with its key, at one address. */
export type Attacker = {
  readonly port: number;
  readonly key: string;
  /** As a proxy would say. */
  readonly address: string;
  /** Tells the rounds apart, so that no two send the same. */
  readonly round: number;
  /** Published posts of others. */
  readonly posts: readonly PublicPost[];
  /** When it has to stop. */
  readonly end: AbortSignal;
};

/** What came back: how often each status, and how often nothing did. */
export type Outcome = Map<string, number>;

type Call = RequestOptions & { readonly keyed?: boolean; readonly json?: object };

/**
 * Calls until the end, so many at a time, over kept connections, and at most as many as the limits of an hour allow.
 * `next` is given the number of the call.
 */
export async function flood(
  attacker: Attacker,
  { at, most = 6_000, pause = 0 }: { at: number; most?: number; pause?: number },
  next: (n: number) => Call,
): Promise<Outcome> {
  const outcome: Outcome = new Map();
  const agent = new Agent({ keepAlive: true, maxSockets: at });
  attacker.end.addEventListener('abort', () => agent.destroy());
  let made = 0;
  async function loop(): Promise<void> {
    for (let n = made++; n < most && !attacker.end.aborted; n = made++) {
      const status = await send(attacker, next(n), agent).then(
        (answer) => String(answer.status),
        (error: NodeJS.ErrnoException) => error.code ?? 'no answer',
      );
      if (!attacker.end.aborted) outcome.set(status, (outcome.get(status) ?? 0) + 1);
      // A refusal must not turn into a loop of its own.
      if (pause > 0 || status === '429')
        await new Promise((resolve) => setTimeout(resolve, Math.max(pause, 20)));
    }
  }
  await Promise.all(Array.from({ length: at }, loop));
  return outcome;
}

/** Makes a call as the attacker. */
export async function send(
  attacker: Attacker,
  { json, keyed = true, ...call }: Call,
  agent?: Agent,
): Promise<Answer> {
  return request(`http://127.0.0.1:${attacker.port}`, {
    ...(agent === undefined ? {} : { agent }),
    timeout: 60_000,
    method: json === undefined && call.body === undefined ? 'GET' : 'POST',
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    ...call,
    host: call.host ?? `localhost:${attacker.port}`,
    headers: {
      'x-forwarded-for': attacker.address,
      ...(keyed ? { authorization: `Bearer ${attacker.key}` } : {}),
      'content-type': 'application/json',
      ...call.headers,
    },
  });
}

/** The head of a request as it goes over the wire, with the attacker's key. */
export function head({ port, key, address }: Attacker, line: string, ...lines: readonly string[]): string {
  const standing = [`Host: localhost:${port}`, `Authorization: Bearer ${key}`, `X-Forwarded-For: ${address}`];
  return [`${line} HTTP/1.1`, ...standing, ...lines, '', ''].join('\r\n');
}

/** Opens connections, sends bytes over each, and holds them until the end; how many the server closed before. */
export async function hold(
  { port, end }: Attacker,
  count: number,
  bytes: string,
  { reading }: { readonly reading: boolean },
): Promise<Outcome> {
  const outcome: Outcome = new Map();
  const sockets = new Set<Socket>();
  for (let n = 0; n < count; n++) {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    sockets.add(socket);
    if (reading) socket.resume();
    else socket.pause();
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  }
  await ended(end);
  outcome.set('held to the end', sockets.size);
  outcome.set('closed by the server', count - sockets.size);
  for (const socket of sockets) socket.destroy();
  return outcome;
}

/** Resolves when the signal says so. */
export function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve());
  });
}
