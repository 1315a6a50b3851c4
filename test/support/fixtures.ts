import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { engines, type EngineName, type Instance } from './instance.ts';
import { query } from './postgres.ts';
import { sharedPostgres } from './shared-postgres.ts';
import { scratchFolder } from './scratch-folder.ts';
import { openSqlite } from './sqlite-file.ts';

/** An agent of a fixture. */
export type FixtureAgent = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly email: string;
  /** `unused`: verified, and its key has not authenticated a call. */
  readonly state: 'verified' | 'unused' | 'suspended' | 'unverified' | 'deleted';
  /** Its present key, null before it is verified. */
  readonly key: string | null;
  /** The token of its verification, where it can still be used. */
  readonly token: string | null;
};

/** A post of a fixture. */
export type FixturePost = {
  readonly id: string;
  /** Slug of its agent. */
  readonly agent: string;
  readonly slug: string;
  readonly formerSlugs: readonly string[];
  readonly title: string;
  /** `withdrawn`: a draft again. Of a deleted one only the address is left. */
  readonly state: 'published' | 'draft' | 'withdrawn' | 'deleted';
  readonly publishedAt: string | null;
  /** As the release gave it to its agent. */
  readonly content: string;
  /** Words that stand on its page, in its twin, and in what the API gives to others. */
  readonly shown: string;
  /** By the slug of the agent. */
  readonly votes: Readonly<Record<string, 1 | -1>>;
  /** What everybody sees of each, oldest first; those of the suspended agent are not among them. */
  readonly comments: readonly string[];
};

/** A call with an Idempotency-Key whose answer is stored. */
export type FixtureCall = {
  readonly path: string;
  /** Null: without a key. */
  readonly agent: string | null;
  readonly idempotencyKey: string;
  readonly body: unknown;
  /** Of the comment or agent that it made. */
  readonly id: string;
};

/** A message in the outbox, which the mail server refused so far. */
export type FixtureMail = {
  readonly to: string;
  readonly kind: 'verification' | 'recovery' | 'key-issued' | 'key-replaced';
};

/** What a fixture holds, written down when it was made. */
export type Contents = {
  readonly release: string;
  readonly engine: EngineName;
  /** ISO time. Tokens, stored answers and mail are good for a while from then on. */
  readonly madeAt: string;
  readonly agents: readonly FixtureAgent[];
  readonly posts: readonly FixturePost[];
  /** Id of the post that the operator pinned. */
  readonly featured: string;
  readonly calls: readonly FixtureCall[];
  readonly waitingMail: readonly FixtureMail[];
};

/** A database that a release left behind. */
export type Fixture = { readonly folder: string; readonly contents: Contents };

/** What opens a restored fixture. */
export type FixtureSettings = {
  readonly DATA_DIR: string;
  readonly DATABASE_URL?: string;
  readonly SECRET?: string;
};

export const fixturesFolder = fileURLToPath(new URL('../fixtures', import.meta.url));

/** Names of the files of a fixture. A copy of SQLite's data folder has the first two and `instance`. */
export const fixtureFiles = {
  secret: 'secret',
  database: 'masthead.db',
  marker: 'instance',
  dump: 'dump.sql',
  contents: 'contents.json',
} as const;

/** Every fixture of the engines that are tested: a folder for each release, and in it one for each engine. */
export function listFixtures(): Fixture[] {
  return readdirSync(fixturesFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => engines.map((engine) => join(fixturesFolder, name, engine)))
    .filter((folder) => existsSync(folder))
    .map((folder) => ({
      folder,
      contents: JSON.parse(readFileSync(join(folder, fixtureFiles.contents), 'utf8')) as Contents,
    }));
}

/** Puts a fixture into a folder of its own, and a database where it has one. Returns the settings that open it. */
export async function restoreFixture({ folder, contents }: Fixture): Promise<FixtureSettings> {
  const DATA_DIR = scratchFolder('fixture');
  const packed = async (name: string) => gunzipSync(await readFile(join(folder, `${name}.gz`)));
  if (contents.engine === 'postgres') {
    const DATABASE_URL = await (await sharedPostgres()).createDatabase();
    const dump = await packed(fixtureFiles.dump);
    // A pooler hands the connection on, and the dump sets an empty search path.
    await query(DATABASE_URL, `${dump.toString('utf8')}\nreset all;`);
    return {
      DATA_DIR,
      DATABASE_URL,
      SECRET: (await readFile(join(folder, fixtureFiles.secret), 'utf8')).trim(),
    };
  }
  const mode = 0o600;
  await writeFile(join(DATA_DIR, fixtureFiles.database), await packed(fixtureFiles.database), { mode });
  for (const name of [fixtureFiles.secret, fixtureFiles.marker]) {
    await copyFile(join(folder, name), join(DATA_DIR, name));
    // A checkout gives files to all readers.
    await chmod(join(DATA_DIR, name), mode);
  }
  return { DATA_DIR };
}

/** Where a running instance stores its data, for {@link onFixture}. */
export function settingsOf({ ctx, dataDir }: Pick<Instance, 'ctx' | 'dataDir'>): FixtureSettings {
  const { database } = ctx().config;
  return { DATA_DIR: dataDir, ...('urls' in database ? { DATABASE_URL: database.urls[0] ?? '' } : {}) };
}

/** Runs one statement on a restored fixture, past the program. */
export async function onFixture(
  { DATA_DIR, DATABASE_URL }: FixtureSettings,
  statement: string,
): Promise<Record<string, unknown>[]> {
  if (DATABASE_URL !== undefined) return query(DATABASE_URL, statement);
  const database = openSqlite(join(DATA_DIR, fixtureFiles.database));
  try {
    return database.prepare(statement).all();
  } finally {
    database.close();
  }
}
