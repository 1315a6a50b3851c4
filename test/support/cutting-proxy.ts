import { once } from 'node:events';
import { type Socket, connect, createServer } from 'node:net';
import { portOf } from './processes.ts';
import { mulberry32 } from './random.ts';

/** How a {@link CuttingProxy} behaves. */
export type CuttingOptions = {
  /** Port of 127.0.0.1 that it forwards to. */
  readonly target: number;
  /** Share of answers to cut: 0 none, 1 all. */
  readonly share: number;
  /** The same seed cuts the same answers, counted in the order in which they arrive. */
  readonly seed: number;
};

/** A TCP proxy on 127.0.0.1 that loses answers, never requests. */
export type CuttingProxy = {
  readonly port: number;
  /** `http://127.0.0.1:{port}`. */
  readonly baseUrl: string;
  /** Answers that were passed on, and those that were cut, so far. */
  readonly counts: Readonly<{ passed: number; cut: number }>;
  /** Ends every connection. */
  close(): Promise<void>;
};

/**
 * Starts a proxy that passes every request on and then breaks the connection at a share of the answers:
 * before the first byte, or after some of them, so that no cut answer is whole. An answer is what
 * the server sends after the client has sent something: requests must not be pipelined.
 */
export async function startCuttingProxy({ target, share, seed }: CuttingOptions): Promise<CuttingProxy> {
  const random = mulberry32(seed);
  const counts = { passed: 0, cut: 0 };
  const open = new Set<Socket>();

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    let awaitingAnswer = false;
    client.on('data', (chunk) => {
      awaitingAnswer = true;
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      if (awaitingAnswer) {
        awaitingAnswer = false;
        // Two draws an answer, cut or not: so a larger share cuts what a smaller one cuts, and more.
        const [fate, place] = [random(), random()];
        if (fate < share) {
          counts.cut++;
          cutAnswer(client, chunk.subarray(0, Math.floor(Math.max(0, 2 * place - 1) * chunk.length)));
          upstream.destroy();
          return;
        }
        counts.passed++;
      }
      client.write(chunk);
    });
    closeTogether(client, upstream);
    closeTogether(upstream, client);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
    }
  });

  await once(server.listen(0, '127.0.0.1'), 'listening');
  const port = portOf(server);
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}`,
    counts,
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Half of the cuts come before the first byte, as a reset; the others after a part, as an early end. */
function cutAnswer(client: Socket, part: Uint8Array): void {
  if (part.length === 0) {
    client.resetAndDestroy();
  } else {
    client.write(part);
    client.destroySoon();
  }
}

/** When one side is gone, what it has sent is still delivered, and then the other side goes too. */
function closeTogether(one: Socket, other: Socket): void {
  one.on('error', () => {});
  one.on('close', () => other.destroySoon());
}
