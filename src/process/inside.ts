import type { Context } from '../context.ts';
import { AppError } from '../errors.ts';
import { allowsCertificate } from '../services/agents/certificates.ts';
import type { PrivateAnswer, PrivateCall } from './private-listener.ts';

/** Returns what answers the calls of the private listener, for this process. */
export function createInside(
  ctx: Context,
  isReady: () => boolean,
): (call: PrivateCall) => Promise<PrivateAnswer> {
  async function find({ path, query }: PrivateCall): Promise<PrivateAnswer> {
    switch (path) {
      case '/healthz':
        return said(200, 'ok');
      case '/readyz':
        await ctx.engine.probe();
        return isReady() ? said(200, 'ready') : said(503, 'not ready');
      case '/-/tls-check':
        return checkDomain(ctx, new URLSearchParams(query).getAll('domain'));
      default:
        return said(404, 'There are /healthz, /readyz and /-/tls-check?domain=.');
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
