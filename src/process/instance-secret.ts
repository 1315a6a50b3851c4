import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Engine } from '../db/database.ts';
import { openSqlite } from '../db/sqlite/sqlite.ts';
import { diskFault } from '../platform/disk.ts';
import { syncPath, writePrivateFile } from '../platform/private-file.ts';
import { StartError, errorCode, errorMessage } from '../rules/failure.ts';
import { keyFromSecret } from '../rules/secrets.ts';
import { hasHadSecret, recordSecret, secretState } from '../services/upkeep/facts.ts';

/**
 * What to do about a secret that is missing, or differs from the one that the database was served with: `required`
 * refuses it, `examined` goes on and reports the fault, `adopted` creates a missing one and records it as the database's.
 */
export type SecretPolicy = 'required' | 'examined' | 'adopted';

/** A key for sealing, and what is wrong with it, or null. */
export type FoundSecret = { readonly secretKey: Buffer; readonly secretFault: StartError | null };

type SearchOptions = { readonly existing: boolean; readonly secret: SecretPolicy };

/**
 * The secret of an embedded database: from the settings, or from `dataDir`/secret, which is created for a database
 * that never had one. Throws StartError as the policy says.
 */
export async function findSecret(
  config: Config,
  databaseFile: string,
  options: SearchOptions,
): Promise<FoundSecret> {
  try {
    const secret = config.secret ?? (await ownSecret(secretFile(config), databaseFile, options));
    return { secretKey: keyFromSecret(secret), secretFault: null };
  } catch (error) {
    if (options.secret !== 'examined' || !(error instanceof StartError)) throw error;
    // Any key will do: an examination seals nothing, and this opens nothing.
    return { secretKey: randomBytes(32), secretFault: error };
  }
}

/**
 * Compares the secret with the one that an open database was served with, and records it where none is recorded.
 * Returns what is wrong with it, or null. Throws that as StartError under the policy `required`.
 */
export async function checkSecret(
  engine: Engine,
  found: FoundSecret,
  config: Config,
  { secret, mayRecord }: { readonly secret: SecretPolicy; readonly mayRecord: boolean },
): Promise<StartError | null> {
  let fault = found.secretFault;
  if (fault === null) {
    const replace = secret === 'adopted';
    // A standby will do for reading only, and there may be no primary.
    const db = config.readOnly ? engine.publicReads : engine.reads;
    const state = replace ? 'unrecorded' : await secretState({ db, secretKey: found.secretKey });
    // Of several processes that start with different secrets, the first decides.
    const mustRecord = state === 'unrecorded' && (mayRecord || replace);
    const isOther = mustRecord ? !(await engine.write(recordSecret, { replace })) : state === 'other';
    const place = config.secret === null ? `The secret in ${secretFile(config)}` : 'SECRET';
    if (isOther)
      fault = new StartError(
        `${place} is not the one that this database was served with: put that one ${lastResort}`,
        adopting,
      );
  }
  if (fault !== null && secret === 'required') throw fault;
  return fault;
}

const adopting = { mend: 'masthead adopt-secret' };
const lastResort =
  "back from your backup, since waiting mail opens with it alone; if it is lost for good, run 'masthead adopt-secret'.";

function secretFile({ dataDir }: Config): string {
  return join(dataDir, 'secret');
}

async function ownSecret(file: string, databaseFile: string, options: SearchOptions): Promise<string> {
  try {
    const present = readSecret(file);
    if (present !== null) return present;
    const mayMake = options.secret === 'adopted' || (!options.existing && !(await hasHadOne(databaseFile)));
    // Another process may have made it, and recorded it, since the first look.
    const secret = readSecret(file) ?? (mayMake ? await makeSecret(file) : null);
    if (secret !== null) return secret;
  } catch (error) {
    if (error instanceof StartError) throw error;
    const reason = `The secret ${file} cannot be read or made (${errorMessage(error)})`;
    const disk = diskFault(dirname(file));
    if (disk !== null)
      throw new StartError(`${reason}, since its disk is ${disk.is}: ${disk.todo}.`, { mend: disk.mend });
    const mend =
      errorCode(error) === 'EISDIR'
        ? anew(file)
        : `chown --reference='${dirname(file)}' '${file}'; chmod 600 '${file}'`;
    throw new StartError(`${reason}: check its owner, or set SECRET.`, { mend });
  }
  throw new StartError(
    `There is no secret at ${file}, and SECRET is not set: put it ${lastResort}`,
    adopting,
  );
}

/** Makes another secret where what stands in its place is none. */
function anew(file: string): string {
  return `mv '${file}' '${file}.none'; masthead adopt-secret`;
}

async function hasHadOne(databaseFile: string): Promise<boolean> {
  const { raw, db } = openSqlite(databaseFile, { readOnly: true });
  return hasHadSecret(db).finally(() => raw.close());
}

/** Of several processes that make one at the same time, all use the same. */
async function makeSecret(file: string): Promise<string> {
  const secret = randomBytes(32).toString('hex');
  await writePrivateFile(file, `${secret}\n`, { replace: false }).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
    // The process that made it may not have synced the folder yet.
    return syncPath(dirname(file));
  });
  return readSecret(file) ?? makeSecret(file);
}

function readSecret(file: string): string | null {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    if (secret.length >= 32) return secret;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
  throw new StartError(
    `The secret in ${file} is shorter than 32 characters: restore it from a backup; if it is lost for good, remove the file and run 'masthead adopt-secret'.`,
    { mend: anew(file) },
  );
}
