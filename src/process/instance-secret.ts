import { randomBytes, randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Engine } from '../db/database.ts';
import { openSqlite } from '../db/sqlite/sqlite.ts';
import { StartError, errorCode, errorMessage } from '../rules/failure.ts';
import { keyFromSecret } from '../rules/secrets.ts';
import { hasHadSecret, recordSecret, secretState } from '../services/upkeep/secret-check.ts';

/**
 * What to do about a secret that is missing, or not the one that the database was served with: `required` refuses it,
 * `examined` goes on and tells the fault, `adopted` makes one where it is missing, and records it as the database's.
 */
export type SecretPolicy = 'required' | 'examined' | 'adopted';

/** A key for sealing, and what is wrong with it; null: nothing so far. */
export type FoundSecret = { readonly secretKey: Buffer; readonly secretFault: string | null };

type SearchOptions = { readonly existing: boolean; readonly secret: SecretPolicy };

/**
 * The secret of an embedded database that is ready to be opened: the one of the settings, or the one in
 * `dataDir`/secret, which is made for a database that never had one. Throws StartError as the policy says.
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
    // It opens nothing, and who examines seals nothing.
    return { secretKey: randomBytes(32), secretFault: error.message };
  }
}

/**
 * Compares the secret with what an open database knows of its own, and records it in one that knows nothing yet.
 * Returns what is wrong with it, or null.
 */
export async function checkSecret(
  engine: Engine,
  secretKey: Buffer,
  config: Config,
  { secret, mayRecord }: { readonly secret: SecretPolicy; readonly mayRecord: boolean },
): Promise<string | null> {
  const replace = secret === 'adopted';
  // To read only, a standby will do, and there may be no primary.
  const db = config.readOnly ? engine.publicReads : engine.reads;
  const state = replace ? 'unrecorded' : await secretState({ db, secretKey });
  // Of several processes that start with different secrets, the first decides.
  const isOther =
    state === 'unrecorded' && (mayRecord || replace)
      ? !(await engine.write(recordSecret, { replace }))
      : state === 'other';
  if (!isOther) return null;
  const place = config.secret === null ? `The secret in ${secretFile(config)}` : 'SECRET';
  return `${place} is not the one that this database was served with: put that one ${mend}`;
}

const mend =
  "back from your backup, since waiting mail opens with it alone; if it is lost for good, run 'masthead adopt-secret'.";

function secretFile({ dataDir }: Config): string {
  return join(dataDir, 'secret');
}

async function ownSecret(file: string, databaseFile: string, options: SearchOptions): Promise<string> {
  try {
    const present = readSecret(file);
    if (present !== null) return present;
    const mayMake = options.secret === 'adopted' || (!options.existing && !(await hasHadOne(databaseFile)));
    // Another process may have made it, and recorded it, since it was looked for.
    const secret = readSecret(file) ?? (mayMake ? makeSecret(file) : null);
    if (secret !== null) return secret;
  } catch (error) {
    if (error instanceof StartError) throw error;
    const reason = errorMessage(error);
    throw new StartError(
      `The secret ${file} cannot be read or made (${reason}): check its owner, or set SECRET.`,
    );
  }
  throw new StartError(`There is no secret at ${file}, and SECRET is not set: put it ${mend}`);
}

async function hasHadOne(databaseFile: string): Promise<boolean> {
  const { raw, db } = openSqlite(databaseFile, { readOnly: true });
  try {
    return await hasHadSecret(db);
  } finally {
    raw.close();
  }
}

/** It appears under its name whole and on disk, and of several processes that make one at once all take the same. */
function makeSecret(file: string): string {
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(draft);
  }
  const directory = openSync(dirname(file), 'r');
  fsyncSync(directory);
  closeSync(directory);
  return readSecret(file) ?? makeSecret(file);
}

function readSecret(file: string): string | null {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    if (secret.length >= 32) return secret;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
  throw new StartError(
    `The secret in ${file} is shorter than 32 characters: restore it from a backup; if it is lost for good, remove the file and run 'masthead adopt-secret'.`,
  );
}

function hasCode(error: unknown, code: string): boolean {
  return errorCode(error) === code;
}
