import assert from 'node:assert/strict';
import { masthead } from './command-line.ts';
import type { Instance } from './instance.ts';

/** Runs an admin command beside a running service. */
export async function admin(
  instance: Instance,
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
) {
  return operate(instance, env, 'admin', ...args);
}

/** Runs a command of the operator beside a running service; `env` comes before the settings of that. */
export async function operate(
  { ctx, dataDir, baseUrl, variant }: Instance,
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
) {
  const { database } = ctx().config;
  const stored =
    database.engine === 'sqlite' ? {} : { DATABASE_URL: database.urls[0] ?? '', SECRET: 's'.repeat(32) };
  const settings = { ...env, DATA_DIR: dataDir, BASE_URL: baseUrl, VARIANT: variant, ...stored };
  return masthead(args, { ...settings, SMTP_URL: ctx().config.mail.smtpUrl ?? '' });
}

/** What a command of the operator that succeeds answers with --json. */
export async function adminFacts(...of: Parameters<typeof admin>) {
  const { code, stdout, stderr } = await admin(...of, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout).data;
}
