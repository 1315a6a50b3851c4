import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from './http.ts';
import { serverEnvironment, spawnGuard } from './processes.ts';

/** A service whose listening socket is another process's, as systemd's is. */
export type SocketService = {
  readonly baseUrl: string;
  /** Starts the service; resolves when its own process is there, not when it serves. */
  start(): void;
  /** SIGTERM; resolves with its exit code when it has ended. */
  stop(): Promise<number>;
  /** Resolves when the service answers. */
  ready(): Promise<void>;
  output(): string;
  close(): Promise<void>;
};

const program = fileURLToPath(new URL('../../bin/masthead.mjs', import.meta.url));

/** Holds the socket, as its descriptor 3, and starts and stops the service on it, one line of its input each. */
const holder = `while read -r order; do
  case $order in
    start) sh -c 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"' sh "$@" & service=$! ;;
    stop) kill -s TERM "$service"; wait "$service"; echo "ended with $?" ;;
  esac
done
kill -s KILL "$service" 2>/dev/null`;

/** Makes the socket at a port. The service is not started yet. */
export async function holdSocket(
  port: number,
  env: Readonly<Record<string, string>>,
): Promise<SocketService> {
  const listening = createServer();
  await once(listening.listen(port, '127.0.0.1'), 'listening');
  const descriptor: unknown = Reflect.get(Object(Reflect.get(listening, '_handle')), 'fd');
  const child: ChildProcess = spawn('/bin/sh', ['-c', holder, 'holder', process.execPath, program, 'serve'], {
    env: serverEnvironment(port, env),
    stdio: ['pipe', 'pipe', 'pipe', Number(descriptor)],
    detached: true,
  });
  await once(child, 'spawn');
  // From now on the socket is the holder's alone.
  listening.close();
  const guard = spawnGuard('kill -s KILL -- "$1"', [String(-(child.pid ?? 0))]);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const baseUrl = `http://127.0.0.1:${port}`;
  let stops = 0;
  return {
    baseUrl,
    start: () => void child.stdin?.write('start\n'),
    async stop() {
      stops += 1;
      child.stdin?.write('stop\n');
      for (;;) {
        const codes = [...output.matchAll(/^ended with (\d+)$/gm)];
        if (codes.length >= stops) return Number(codes.at(-1)?.[1]);
        await delay(20);
      }
    },
    async ready() {
      // Whoever connects before it serves waits in the socket, for ever if it has ended.
      const ask = () =>
        request(baseUrl, { path: '/readyz', timeout: 120_000 }).catch((error: Error) => {
          throw new Error(`${error.message}; the output of the service:\n${output}`);
        });
      while ((await ask()).status !== 200) await delay(20);
    },
    output: () => output,
    async close() {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
      await once(child, 'exit').catch(() => undefined);
      guard.kill('SIGKILL');
    },
  };
}
