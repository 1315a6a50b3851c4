import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError, errorMessage } from '../../../src/rules/failure.ts';
import { settingValue } from '../../../src/rules/text.ts';
import { isMissing, writePrivateFile } from './private-file.ts';

/** Services by the name that the user of this machine gave them, and which is used where none is named. */
export type Profiles = {
  readonly current: string;
  readonly services: Readonly<Record<string, string>>;
};

/** The profile of those who have only one. */
export const defaultProfile = 'default';

const fileName = 'profiles.json';

/** What is remembered. Throws StartError where the file cannot be read. */
export async function readProfiles(configDir: string): Promise<Profiles> {
  const path = join(configDir, fileName);
  try {
    const stored: Partial<Profiles> = JSON.parse(await readFile(path, 'utf8'));
    const services = Object.entries(stored.services ?? {}).filter(
      ([name, url]) => isProfileName(name) && URL.canParse(url),
    );
    return { current: stored.current ?? defaultProfile, services: Object.fromEntries(services) };
  } catch (error) {
    if (isMissing(error)) return { current: defaultProfile, services: {} };
    throw new StartError(`${path} cannot be read: ${errorMessage(error)}. Mend it, or delete it.`);
  }
}

/** Remembers them for later commands. */
export async function storeProfiles(configDir: string, profiles: Profiles): Promise<void> {
  await writePrivateFile(configDir, fileName, JSON.stringify(profiles, null, 2));
}

/** The profile of this name, which the command may make. Throws StartError. */
export function checkedProfile(
  name: string,
  { services }: Profiles,
  isNew: boolean,
  program: string,
): string {
  if (!isProfileName(name))
    throw new StartError(
      `A profile has a name of 1 to 40 of a-z, 0-9, '-' and '_', not ${settingValue(name)}.`,
    );
  if (isNew || name === defaultProfile || Object.hasOwn(services, name)) return name;
  const known = Object.keys(services).join(', ') || 'there is none yet';
  throw new StartError(
    `There is no profile '${name}' (${known}). '${program} register' and '${program} login' make one: --profile ${name} --url <address>`,
    { code: 'no_profile' },
  );
}

function isProfileName(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,39}$/.test(name);
}
