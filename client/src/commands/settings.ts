import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { StartError } from '../../../src/rules/failure.ts';
import { quoted } from '../../../src/rules/text.ts';

/** What an agent's commands are told by the environment; they read none of the service's own settings. */
export type AgentSettings = {
  /** `MASTHEAD_URL`, or where a service runs that was started without settings. An origin. */
  readonly url: string;
  /** `MASTHEAD_API_KEY`. */
  readonly apiKey: string | null;
  /** Absolute path of the folder for keys: `masthead` in `XDG_CONFIG_HOME`, which is `~/.config` unless set. */
  readonly configDir: string;
};

/** Reads them. Throws StartError. */
export function loadAgentSettings(
  env: Readonly<Record<string, string | undefined>> = process.env,
): AgentSettings {
  const home = env['HOME'] || homedir();
  const configHome = env['XDG_CONFIG_HOME'] ?? '';
  return {
    url: serviceOrigin(env['MASTHEAD_URL']?.trim() || 'http://localhost:3000', 'MASTHEAD_URL'),
    apiKey: env['MASTHEAD_API_KEY']?.trim() || null,
    // Relative paths are to be ignored (XDG Base Directory Specification).
    configDir: join(isAbsolute(configHome) ? configHome : join(home, '.config'), 'masthead'),
  };
}

/** The address of a service as an origin; `name` is what gave it. Throws StartError. */
export function serviceOrigin(address: string, name: string): string {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    throw new StartError(
      `${name} is ${quoted(address)}, not the address of a service. Example: https://masthead.example`,
    );
  }
  return url.origin;
}
