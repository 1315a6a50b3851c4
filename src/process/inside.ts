import type { Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { databaseFailures, readMetrics } from '../platform/measured.ts';
import { gaugeOf, metricsText, type Family } from '../platform/metrics.ts';
import { programVersion } from '../platform/version.ts';
import { allowsCertificate } from '../services/agents/certificates.ts';
import { readStoredMetrics } from '../services/upkeep/stored-metrics.ts';
import type { PrivateAnswer, PrivateCall } from './private-listener.ts';

/** Where a worker answers its metrics as JSON to its supervisor; no client can ask for a path without a slash. */
export const snapshotPath = 'snapshot';

/** The state of the process. */
export type State = { readonly isReady: () => boolean; readonly isWritable: () => boolean };

/** Returns what answers the calls of the private listener, for this process. */
export function createInside(ctx: Context, state: State): (call: PrivateCall) => Promise<PrivateAnswer> {
  async function find({ path, query }: PrivateCall): Promise<PrivateAnswer> {
    switch (path) {
      case '/healthz':
        return said(200, 'ok');
      case '/readyz':
        await ctx.engine.probe();
        return state.isReady() ? said(200, 'ready') : said(503, 'not ready');
      case '/metrics':
        return { status: 200, text: metricsText(await readAll(ctx, state)) };
      case snapshotPath:
        return { status: 200, text: JSON.stringify(await readAll(ctx, state)) };
      case '/-/tls-check':
        return checkDomain(ctx, new URLSearchParams(query).getAll('domain'));
      default:
        return said(404, 'There are /metrics, /healthz, /readyz and /-/tls-check?domain=.');
    }
  }

  return async (call) => {
    try {
      return await find(call);
    } catch (error) {
      if (error instanceof AppError) return said(error.status, error.message);
      ctx.log.error({ err: error, path: call.path }, 'a call of the private listener failed');
      return said(500, 'This failed for a reason that was not foreseen: the log says more.');
    }
  };
}

/** The metrics of this process, and of what is stored. */
async function readAll(ctx: Context, { isWritable }: State): Promise<Family[]> {
  const { config, engine } = ctx;
  const stored = await readStoredMetrics(ctx);
  if (stored === null) databaseFailures.read.value++;
  const facts = `{version="${programVersion()}",variant="${config.variant.name}"}`;
  const isReadOnly = engine.readOnly() !== null || !isWritable();
  return [
    {
      name: 'masthead_info',
      help: 'The running release.',
      type: 'gauge',
      merge: 'max',
      values: { [facts]: 1 },
    },
    gaugeOf('masthead_read_only', '1 while changes are refused or cannot be stored.', Number(isReadOnly)),
    ...(stored ?? []),
    ...readMetrics(),
  ];
}

async function checkDomain(ctx: Context, domains: readonly string[]): Promise<PrivateAnswer> {
  const [domain, ...others] = domains;
  if (domain === undefined || others.length > 0)
    return said(400, 'Name one host: /-/tls-check?domain=ada.masthead.example');
  if (await allowsCertificate(ctx, domain)) return said(200, 'ours');
  return said(
    404,
    'No certificate for it: it is a host neither of the service nor of a blog with a public post, or too many were new within an hour.',
  );
}

function said(status: number, line: string): PrivateAnswer {
  return { status, text: `${line}\n` };
}
