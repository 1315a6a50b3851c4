import { misspeltSettings, type Config } from '../../config/config.ts';
import { settings } from '../../config/settings.ts';
import { startupNotes } from '../../config/startup.ts';
import { existsSync } from 'node:fs';
import { AppError } from '../../errors.ts';
import type { OpenContext } from '../../process/open-context.ts';
import { StartError, errorCode, errorMessage } from '../../rules/failure.ts';
import type { Finding } from '../../services/upkeep/doctor.ts';
import {
  examineBackup,
  examineDisk,
  examineFile,
  examineFolder,
  examinePermissions,
  examinePort,
  examineTime,
} from './machine.ts';
import { examineDkim, examineDmarc, examineHosts, examineLogin, examineSpf, isLocal } from './names.ts';
import type { Probes } from './probes.ts';
import { askServers, examineServersFound } from './servers.ts';
import { examineCertificate } from './certificate.ts';
import { examineWayIn } from './way-in.ts';

/** How long a question to others may take, ms; the database is read as long as that takes. */
const patience = 20_000;

export type Subject = {
  readonly config: Config;
  /** The settings, where they are not those of the process. */
  readonly env: Readonly<Record<string, string | undefined>> | undefined;
  readonly probes: Probes;
  /** Opens the database, with whatever secret is there, for one examination. */
  readonly withDatabase: <T>(run: (ctx: OpenContext) => Promise<T>) => Promise<T>;
  /** Ask nobody: neither DNS, nor the mail server, nor the service's own address. */
  readonly offline: boolean;
};

type Found = Finding | readonly Finding[] | void;

/** Examines everything, one after the other; whatever fails becomes a finding of its own. */
export async function examineAll(subject: Subject): Promise<readonly Finding[]> {
  const { config, env, probes, withDatabase, offline } = subject;
  const { dataDir, database } = config;
  const file = 'file' in database ? database.file : null;
  const findings: Finding[] = [...examineSettings(config, env)];
  const add = async (found: Promise<readonly Finding[]>) => void findings.push(...(await found));

  const unreadable = await attempt('files', () => examineFolder(dataDir));
  if (unreadable.length > 0) findings.push(...unreadable);
  else {
    await add(ifThere(dataDir, 'permissions', () => examinePermissions(config, file)));
    await add(ifThere(dataDir, 'disk', () => examineDisk(dataDir, file)));
    if (file !== null) await add(ifThere(dataDir, 'file', () => examineFile(dataDir, file)));
  }
  // What is wrong with the file is why it cannot be opened.
  const cause = findings.find(({ what, state }) => /^files?$/.test(what) && state === 'wrong');
  let secretKey: Buffer | null = null;
  let slug: string | null = null;
  await add(
    attempt(
      'database',
      () =>
        withDatabase(async (ctx) => {
          secretKey = ctx.secretFault === null ? ctx.secretKey : null;
          const { anyBlog } = await import('../../services/upkeep/contents.ts');
          slug = await anyBlog(ctx).catch(() => null);
          return examineDatabase(ctx, probes.now());
        }),
      cause?.mend,
    ),
  );
  if ('urls' in database)
    await add(ask('backup', async () => examineServersFound(await askServers(database), probes.now())));
  await add(ask('time server', () => examineTime(probes)));
  const key: Buffer | null = secretKey;
  if (key === null)
    findings.push(impossible('port', 'the database and its secret are needed to know this service'));
  else await add(attempt('port', () => examinePort(config, probes, key)));
  if (offline) return [...findings, impossible('outside', 'nobody is asked with --offline')];
  if (config.mail.smtpUrl !== null) await add(ask('smtp', () => examineLogin(config, probes)));
  if (isLocal(config)) return findings;
  await add(ask('dns', () => examineHosts(config, probes)));
  if (config.site.baseUrl.startsWith('https:'))
    await add(ask('certificate', () => examineCertificate(config, probes, slug)));
  if (key === null) findings.push(impossible('way in', 'the database and its secret are needed for it'));
  else await add(ask('way in', () => examineWayIn(config, probes, key)));
  if (config.mail.smtpUrl !== null) {
    await add(ask('spf', () => examineSpf(config, probes)));
    await add(ask('dkim', () => examineDkim(config, probes)));
    await add(ask('dmarc', () => examineDmarc(config, probes)));
  }
  return findings;
}

function examineSettings(config: Config, env: Subject['env']): Finding[] {
  const what = 'settings';
  const notes = startupNotes(config).map((detail): Finding => {
    const name = /^[A-Z][A-Z_]+/.exec(detail)?.[0] as keyof typeof settings | undefined;
    const mend = config.readOnly && name === 'READ_ONLY' ? 'READ_ONLY=off' : name && settings[name]?.example;
    return { what, state: 'look', detail, mend: mend ?? 'masthead config' };
  });
  const misspelt = misspeltSettings(env).map((detail): Finding => {
    const [given = '', meant = ''] = detail.match(/\w*[A-Z_]\w*(?= is not|\?$)/g) ?? [];
    return {
      what: 'setting',
      state: 'look',
      detail,
      mend: `sed -i 's/^${given}=/${meant}=/' /etc/masthead.env`,
    };
  });
  return [...misspelt, ...notes];
}

async function examineDatabase(ctx: OpenContext, now: number): Promise<readonly Finding[]> {
  const { examine } = await import('../../services/upkeep/doctor.ts');
  const { readBackupCheck, readLastBackup } = await import('../../services/upkeep/facts.ts');
  const { secretFault, engine, db, config } = ctx;
  return [
    { what: 'database', state: 'ok', detail: engine.description },
    secretFault === null
      ? { what: 'secret', state: 'ok', detail: 'no other is recorded for this database' }
      : {
          what: 'secret',
          state: 'wrong',
          detail: secretFault.message,
          mend: String(secretFault.facts['mend']),
        },
    ...('file' in config.database
      ? await attempt('backup', async () =>
          examineBackup(await readLastBackup(db), await readBackupCheck(db), now),
        )
      : []),
    ...(await attempt('database', () => examine(ctx))),
  ];
}

async function ifThere(dataDir: string, what: string, check: () => Promise<Found> | Found) {
  return existsSync(dataDir) ? attempt(what, check) : [];
}

/** What a check finds. That it cannot be made is a finding too. */
async function attempt(
  what: string,
  check: () => Promise<Found> | Found,
  mend = mends[what] ?? 'masthead config',
): Promise<readonly Finding[]> {
  try {
    return [(await check()) ?? []].flat();
  } catch (error) {
    const reason = errorMessage(error);
    const said = error instanceof StartError ? error.facts['mend'] : null;
    if (error instanceof StartError || error instanceof AppError)
      return [{ what, state: 'wrong', detail: reason, mend: typeof said === 'string' ? said : mend }];
    const isRefused = errorCode(error) === 'EACCES';
    const advice = isRefused ? ': run this as the user of the service, or give that user the folder' : '';
    const detail = `cannot be examined: ${reason}${advice}`;
    const place = error instanceof Error && 'path' in error ? String(error.path) : null;
    const look = place === null || isRefused ? 'runuser -u masthead -- masthead doctor' : `stat '${place}'`;
    return [{ what, state: 'wrong', detail, mend: look }];
  }
}

/** What asking somebody finds. That nobody answers in time is no fault of what was asked about. */
async function ask(what: string, check: () => Promise<Found>): Promise<readonly Finding[]> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${patience / 1_000} s`)), patience);
  try {
    return [(await Promise.race([check(), late.promise])) ?? []].flat();
  } catch (error) {
    return [impossible(what, `cannot be checked from here: ${errorMessage(error)}`)];
  } finally {
    clearTimeout(timer);
  }
}

function impossible(what: string, detail: string): Finding {
  return { what, state: 'unknown', detail };
}

/** By what could not be examined for a foreseen reason, which says itself what to do. */
const mends: Readonly<Record<string, string>> = {
  database: 'masthead migrate --existing',
  port: 'HOST=127.0.0.1',
};
