import { randomUUID } from 'node:crypto';
import type { Context } from '../context.ts';
import { StartError } from '../errors.ts';
import { farewell, heartbeat, sweep } from '../services/maintenance.ts';
import { repeat } from './repeat.ts';

/** Milliseconds between heartbeats, and while they fail. */
const beatEvery = 5_000;
const retryEvery = 1_000;
/** Milliseconds until the first sweep, at most, and between two, on average. */
const firstSweepWithin = 60_000;
const sweepEvery = 600_000;

export type Housekeeping = {
  /** Processes that serve this database, this one included. */
  processes(): number;
  /** Whether the last heartbeat could be written. */
  writable(): boolean;
  /** Stops, and tells the other processes so. */
  close(): Promise<void>;
};

/**
 * Shows the other processes that this one runs, which also probes whether the database can be written, and
 * drops what is out of date. Throws StartError when the first heartbeat fails, unless writes are refused anyway.
 */
export async function startHousekeeping(ctx: Context): Promise<Housekeeping> {
  const self = { id: randomUUID() };
  let processes = 1;
  let fault = await beat();
  if (fault !== null && ctx.engine.readOnly() === null) {
    throw new StartError(`The database cannot be written: ${fault} Mend that, or start with READ_ONLY=on.`);
  }

  const beats = repeat(beatDelay(), async () => {
    const before = fault;
    fault = await beat();
    if (fault !== null && before === null) {
      ctx.log.warn({ reason: fault }, 'the database cannot be written: changes are refused until it can');
    }
    if (fault === null && before !== null) ctx.log.info({}, 'the database can be written again');
    return beatDelay();
  });

  const sweeps = repeat(Math.random() * firstSweepWithin, async () => {
    await dropWhatIsOld(ctx);
    // Spread, so that processes that started together do not sweep together.
    return sweepEvery * (0.75 + Math.random() / 2);
  });

  /** The reason why it failed, or null. */
  async function beat(): Promise<string | null> {
    try {
      processes = await ctx.engine.write(heartbeat, self);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  function beatDelay(): number {
    return fault === null ? beatEvery : retryEvery;
  }

  return {
    processes: () => processes,
    writable: () => fault === null,
    async close() {
      await Promise.all([beats.stop(), sweeps.stop()]);
      // A process that could not say farewell is forgotten after 15 s without a heartbeat.
      await ctx.engine.write(farewell, self).catch(() => undefined);
    },
  };
}

async function dropWhatIsOld(ctx: Context): Promise<void> {
  try {
    const { mailGivenUp } = await ctx.engine.write(sweep, null);
    if (mailGivenUp > 0) {
      ctx.log.error({ messages: mailGivenUp }, 'mail was given up: it could not be delivered within 7 days');
    }
  } catch (error) {
    ctx.log.debug({ err: error }, 'nothing was swept; the next sweep takes it along');
  }
}
