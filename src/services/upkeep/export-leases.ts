import type { Context } from '../../context.ts';
import { defineWrite } from '../../db/write.ts';
import { AppError } from '../../errors.ts';
import { uuidv7 } from '../../rules/secrets.ts';
import { rateHeaders } from '../limits/rate-headers.ts';
import { clocksMayDiffer } from '../limits/rate-window.ts';
import { day } from '../../platform/durations.ts';

/** Exports of one agent within a {@link day}. */
const mostExports = 10;
/** How long an export counts as running without a word from its process, ms. */
const leaseFor = 60_000;
/** Seconds after which a caller may ask again while another export runs. */
const retryWhileRunning = 10;

/** Exports that a process sends at once, and those of one client address: each holds some of its agent's texts. */
const mostHere = { ofAddress: 8, ofAll: 16 };

/** Ends an export. `counts`: whether any of it was sent. */
type EndExport = (counts: boolean) => Promise<void>;

/**
 * The function that lets an export of an agent begin: one at a time and 10 in 24 hours, in all processes. Where nothing
 * can be written they are not counted, and one at a time holds for this process. Throws rate_limited, unavailable.
 */
export function createExports(ctx: Context): (agentId: string, address: string) => Promise<EndExport> {
  /** The address of each agent's. */
  const here = new Map<string, string>();

  async function begin(id: string, agentId: string): Promise<boolean> {
    try {
      await ctx.engine.write(beginExport, { id, agentId });
      return true;
    } catch (error) {
      const isReadable = error instanceof AppError && /^(?:read_only|storage_full)$/.test(error.code);
      if (!isReadable) throw error;
      return false;
    }
  }

  return async (agentId, address) => {
    if (here.has(agentId)) throw exportRunning();
    const ofAddress = [...here.values()].filter((other) => other === address).length;
    if (here.size >= mostHere.ofAll) throw tooMany('');
    if (ofAddress >= mostHere.ofAddress) throw tooMany(' to this address');
    here.set(agentId, address);
    const id = uuidv7(ctx.now());
    const isCounted = await begin(id, agentId).catch((error: unknown) => {
      here.delete(agentId);
      throw error;
    });
    // A lease that is not renewed or given back, since nothing can be written any more, ends by itself.
    const write = (run: () => Promise<void>) => (isCounted ? run().catch(() => undefined) : undefined);
    const renewal = setInterval(
      () => void write(() => ctx.engine.write(renewExport, { id })),
      leaseFor / 4,
    ).unref();
    return async (counts) => {
      clearInterval(renewal);
      here.delete(agentId);
      await write(() => ctx.engine.write(endExport, { id, counts }));
    };
  };
}

function tooMany(where: string): AppError {
  const detail = `Too many exports are being sent${where}. Repeat the call in a moment.`;
  return new AppError('unavailable', detail, { retryAfter: 5, uncounted: true });
}

/** An export of an agent, by an id of its own. */
type Export = { readonly id: string; readonly agentId: string };

/** Lets an agent's export begin and counts it. Throws rate_limited where one is running, or too many have begun. */
export const beginExport = defineWrite('exports.begin', async (tx, { id, agentId }: Export) => {
  await tx.lock(`export:${agentId}`);
  const now = tx.now();
  await tx.db
    .deleteFrom('exports')
    .where('agent_id', '=', agentId)
    .where((row) => row.or([row('began_at', '<=', now - day), row('began_at', '>', now + clocksMayDiffer)]))
    .execute();
  const counted = await tx.db
    .selectFrom('exports')
    .select(['began_at', 'lease_until'])
    .where('agent_id', '=', agentId)
    .orderBy('began_at')
    .execute();
  if (counted.some(({ lease_until: until }) => until > now)) throw exportRunning();
  const [oldest] = counted;
  if (oldest && counted.length >= mostExports) {
    const retryAfter = Math.max(1, Math.ceil((Math.min(oldest.began_at, now) + day - now) / 1000));
    throw new AppError(
      'rate_limited',
      `An agent can export ${mostExports} times in 24 hours. The next export is possible in ${retryAfter} seconds.`,
      {
        retryAfter,
        budget: 'exports',
        headers: rateHeaders(
          { name: 'export', quota: mostExports, window: day / 1000 },
          { remaining: 0, reset: retryAfter },
        ),
        hint: 'Send If-None-Match with the ETag of the last export: what has not changed is not counted.',
      },
    );
  }
  const lease = { began_at: now, lease_until: now + leaseFor };
  await tx.db
    .insertInto('exports')
    .values({ id, agent_id: agentId, ...lease })
    .execute();
});

/** The refusal of a second export at a time. */
function exportRunning(): AppError {
  return new AppError('rate_limited', 'An export of this agent is running, and there is one at a time.', {
    retryAfter: retryWhileRunning,
    budget: 'exports',
    headers: rateHeaders(
      { name: 'concurrent-exports', quota: 1, window: null },
      { remaining: 0, reset: retryWhileRunning },
    ),
    hint: `Wait until it has ended, or ${retryWhileRunning} seconds, then repeat the call.`,
  });
}

/** The export is still running, if its end was not stored before this. */
export const renewExport = defineWrite('exports.renew', async (tx, { id }: Pick<Export, 'id'>) => {
  await tx.db
    .updateTable('exports')
    .set({ lease_until: tx.now() + leaseFor })
    .where('id', '=', id)
    .where('lease_until', '>', 0)
    .execute();
});

/** The export has ended; it is not counted where nothing was sent. */
export const endExport = defineWrite(
  'exports.end',
  async (tx, { id, counts }: Pick<Export, 'id'> & { readonly counts: boolean }) => {
    if (counts) await tx.db.updateTable('exports').set({ lease_until: 0 }).where('id', '=', id).execute();
    else await tx.db.deleteFrom('exports').where('id', '=', id).execute();
  },
);
