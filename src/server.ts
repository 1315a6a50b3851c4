import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { StartError } from './rules/failure.ts';
import type { Health } from './app.ts';
import type { Config } from './config/config.ts';
import { createDrain, type Linger } from './process/drain.ts';
import { createInside } from './process/inside.ts';
import { listenPrivately } from './process/private-listener.ts';
import { isLoopback } from './rules/hosts.ts';
import { createLog, type Log } from './platform/log.ts';
import { watchEventLoop } from './platform/measured.ts';
import { createMailer } from './mail/configured.ts';
import { openContext } from './process/open-context.ts';
import { listenError, listenOnPassed, settlePort } from './process/port.ts';
import { createRateLimiter } from './services/limits/rate-limiter.ts';
import { preparePictures } from './services/media/uploads.ts';
import { startHousekeeping } from './workers/housekeeping.ts';
import { startOutboxWorker } from './workers/outbox-worker.ts';

/**
 * How long to serve after the readiness probe fails, so that a proxy notices; then open connections for as long again. A
 * proxy that goes by the probe has to find before that the other process, restarted just now, is back.
 */
const linger = {
  none: { ms: 0, always: false },
  direct: { ms: 200, always: false },
  proxied: { ms: 1_000, always: true },
};
const othersAreSeenWithin = 500;
/**
 * Connections that wait to be taken; Linux takes its own bound (`net.core.somaxconn`, 4,096) where that is less. One
 * beyond it is dropped and tried again a second later, so Node's 511 let a burst of one client hold up all others.
 */
const backlog = 4096;

export type ServerOptions = {
  /** Refuse to create a database; false by default. */
  readonly existing?: boolean;
  /** Descriptor of a socket to listen on instead of HOST and PORT. */
  readonly socket?: number | null;
  /** Whether to listen at INTERNAL_PORT; true by default. */
  readonly listensPrivately?: boolean;
  /** Whether a stop goes on serving for a while, for proxies and clients that still send; true by default. */
  readonly lingers?: boolean;
  readonly log?: Log;
  /** The clock, epoch ms; the system's by default. */
  readonly now?: () => number;
};

export type RunningServer = Awaited<ReturnType<typeof startServer>>;

/** Starts the service: database, workers, then the port. Throws StartError with one line if it cannot work. */
export async function startServer(givenConfig: Config, options: ServerOptions = {}) {
  const {
    existing = false,
    socket = null,
    listensPrivately = true,
    lingers = true,
    log = createLog(givenConfig.logLevel),
    now = Date.now,
  } = options;
  if (givenConfig.media.dir === '')
    throw new StartError(
      'MEDIA_DIR is required with PostgreSQL: pictures are files, which all servers of the service must share. Name a folder, e.g. MEDIA_DIR=/var/lib/masthead/media.',
    );
  const config = await settlePort(givenConfig);
  const opened = new AsyncDisposableStack();
  let state: ReturnType<Health['state']> = 'starting';
  let isWritable = () => true;

  async function start() {
    const mailer = createMailer(config);
    const [ctx, { createApp }] = await Promise.all([
      openContext(config, { existing, log, now }),
      // The database's thread is starting by then: the slowest module to load is loaded meanwhile.
      nextTurn().then(() => import('./app.ts')),
    ]);
    opened.defer(() => ctx.close());
    const { migrated: steps } = ctx;
    if (steps.length > 0) log.info({ steps }, 'the database schema was brought up to date');
    await preparePictures(ctx);
    const inside = createInside(ctx, { isReady: () => state === 'ready', isWritable: () => isWritable() });
    if (config.internal !== null) opened.defer(watchEventLoop());
    if (config.internal !== null && listensPrivately)
      opened.use(await listenPrivately(config.internal, inside));
    const housekeeping = await startHousekeeping(ctx);
    opened.defer(() => housekeeping.close());
    isWritable = () => housekeeping.writable();
    const limiter = createRateLimiter(ctx, () => Math.max(config.workers, housekeeping.processes()));
    opened.defer(() => limiter.close());
    const app = await createApp(ctx, {
      limiter,
      health: { state: () => state, writable: isWritable },
    });
    const drain = createDrain(app.server, log);
    const outbox = startOutboxWorker(ctx, mailer, { folderOnly: leavesSmtpMail(config, existing) });
    opened.defer(async () => {
      await Promise.all([
        state === 'starting'
          ? app.close()
          : drain(lingers ? lingerOf(config) : linger.none, () => app.close()),
        outbox.close().then(() => mailer.close()),
      ]);
    });
    if (socket === null)
      await app.listen({ port: config.port, host: config.host, backlog }).catch((error: unknown) => {
        throw listenError(error, config);
      });
    else await listenOnPassed(app, socket, { port: config.port, log });
    return { ctx, inside };
  }

  const { ctx, inside } = await start().catch(async (error: unknown) => {
    await opened.disposeAsync().catch(() => undefined);
    throw error;
  });
  state = 'ready';

  let closed: Promise<void> | null = null;
  return {
    port: config.port,
    /** With the port in every address, also where PORT was 0. */
    config,
    ctx,
    /** Answers the calls of the private listener. */
    inside,
    /** Stops taking requests, answers those under way, and closes everything. Can be called again. */
    close(): Promise<void> {
      closed ??= stop();
      return closed;
    },
  };

  async function stop(): Promise<void> {
    if (lingers && lingerOf(config).always) await delay(othersAreSeenWithin);
    state = 'draining';
    await opened.disposeAsync();
  }
}

function lingerOf({ trustProxy }: Config): Linger {
  return trustProxy.length > 0 ? linger.proxied : linger.direct;
}

/** Without SMTP_URL, mail for a server becomes files on one's own machine only: elsewhere the setting was forgotten. */
function leavesSmtpMail({ mail, site }: Config, existing: boolean): boolean {
  const { protocol, hostname } = new URL(site.baseUrl);
  const isForOthers = existing || protocol === 'https:' || !isLoopback(hostname);
  return mail.smtpUrl === null && isForOthers;
}
