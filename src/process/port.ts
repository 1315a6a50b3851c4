import { once } from 'node:events';
import { connect, createServer, Socket, type Server } from 'node:net';
import { withPort, type Config, type ListenAddress } from '../config/config.ts';
import type { Log } from '../platform/log.ts';
import { StartError, errorCode, errorMessage } from '../rules/failure.ts';

/** Chooses a free port for PORT=0 before anything that builds addresses is started. Throws StartError. */
export async function settlePort(config: Config): Promise<Config> {
  if (config.port !== 0) return withPort(config, config.port);
  const probe = createServer();
  try {
    await once(probe.listen(0, config.host), 'listening');
    const address = probe.address();
    return withPort(config, typeof address === 'object' && address !== null ? address.port : 0);
  } catch (error) {
    throw listenError(error, config);
  } finally {
    probe.close();
  }
}

/**
 * Whether anybody listens at HOST and PORT. Throws StartError where HOST is no address of this machine. PORT itself is not
 * listened on, since the service may be about to.
 */
export async function isPortTaken(config: Config): Promise<boolean> {
  const probe = createServer();
  try {
    await once(probe.listen(0, config.host), 'listening');
  } catch (error) {
    throw listenError(error, config);
  } finally {
    probe.close();
  }
  const socket = connect(config.port, reachedAt(config.host));
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** An address at which a server is reached from its own machine, by the one that it listens on. */
export function reachedAt(host: string): string {
  return { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host;
}

/**
 * Listens on a socket that was made by others, and that they keep: what connects while nobody listens waits in it. Throws
 * StartError where the descriptor is none.
 */
export async function listenOnPassed(
  app: { readonly server: Server; ready(): PromiseLike<unknown> },
  descriptor: number,
  { port, log }: { readonly port: number; readonly log: Log },
): Promise<void> {
  await app.ready();
  try {
    // By its handle, so that workers take connections themselves: none is lost in the queue of a supervisor that stops.
    await once(
      app.server.listen(new Socket({ fd: descriptor, readable: false, writable: false })),
      'listening',
    );
  } catch (error) {
    throw new StartError(
      `The socket that was passed cannot be listened on (${errorMessage(error)}): masthead.socket is to have ListenStream, and Accept=no.`,
    );
  }
  const address = app.server.address();
  if (typeof address === 'string')
    throw new StartError('The socket that was passed is no TCP port: set ListenStream to one.');
  if (address !== null && address.port !== port)
    log.warn(
      { port: address.port },
      `masthead.socket listens at another port than PORT: set PORT=${address.port}`,
    );
}

/** Why a server cannot listen, as a StartError where that was foreseen. */
export function listenError(
  error: unknown,
  { host, port }: ListenAddress,
  names: { readonly host: string; readonly port: string } = { host: 'HOST', port: 'PORT' },
): unknown {
  switch (errorCode(error)) {
    case 'EADDRINUSE':
      return new StartError(
        `Port ${port} is already in use: set ${names.port}, or stop the program that holds it.`,
      );
    case 'EACCES':
      return new StartError(
        `Port ${port} may not be used by this user: set ${names.port} to 1024 or more, and put a proxy in front.`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new StartError(
        `${names.host} ${host} is not an address of this machine: set it to one that is, e.g. 127.0.0.1 or 0.0.0.0.`,
      );
    case undefined:
    default:
      return error;
  }
}
