import type { SecretPolicy } from '../process/instance-secret.ts';
import type { OpenContext } from '../process/open-context.ts';
import type { Terminal } from '../../client/src/terminal/command.ts';

/**
 * Runs what an operator asked for on the database itself, beside any server that runs on it: never brings the
 * schema up to date, which would take the database away from servers of an older release.
 */
export async function withContext<T>(
  { env, err }: Terminal,
  run: (ctx: OpenContext) => Promise<T>,
  secret: SecretPolicy = 'required',
): Promise<T> {
  const { loadConfig } = await import('../config/config.ts');
  const { createLog } = await import('../platform/log.ts');
  const { openContext } = await import('../process/open-context.ts');
  const config = loadConfig(env);
  const log = createLog('warn', (line) => err(line.trimEnd()));
  const ctx = await openContext(config, { existing: true, migrate: false, secret, log });
  try {
    return await run(ctx);
  } finally {
    await ctx.close();
  }
}
