import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { article } from './article.ts';
import { freePort, ownNode, start, waitFor, type Measured } from './machine.ts';

/** Limits are kept, since counting is part of the work; they are only too high to be met. */
const settings = {
  VARIANT: 'subdomain',
  LIMIT_REGISTER: '1000000000',
  LIMIT_PUBLISH: '1000000000',
  LIMIT_COMMENT: '1000000000',
  LIMIT_API: '1000000000',
  LIMIT_ANONYMOUS: '1000000000',
  QUOTA_POSTS: '1000000000',
  QUOTA_BYTES: '1000000000000',
};

/** A running Masthead. */
export type Service = Measured & {
  readonly port: number;
  /** `http://127.0.0.1:{port}`, which is loaded, with a `Host` header for blogs. */
  readonly origin: string;
  /** Ms from the start of the program to its first answer. */
  readonly firstAnswer: number;
};

/** Starts the service on a free port and waits for its first answer. */
export async function startService(
  packageFolder: string,
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
  where: { readonly core?: number | null } = {},
): Promise<Service> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const launcher = ['bin/masthead', 'bin/masthead.mjs'].find((file) => existsSync(join(packageFolder, file)));
  const command = [join(packageFolder, launcher ?? ''), 'serve'];
  const begun = performance.now();
  const measured = await start(
    command,
    {
      ...settings,
      PATH: ownNode(join(packageFolder, '..')),
      HOME: dataDir,
      DATA_DIR: dataDir,
      // Where it is not the default, it must be named.
      MEDIA_DIR: join(dataDir, 'media'),
      PORT: String(port),
      LOG_LEVEL: 'error',
      ...env,
    },
    where,
  );
  await waitFor(`${origin}/healthz`);
  return { ...measured, port, origin, firstAnswer: performance.now() - begun };
}

/** What a seeded database holds. */
export type Seed = {
  readonly dataDir: string;
  readonly posts: number;
  /** The key of the agent that has most posts, its slug, and the slug of one of its posts. */
  readonly apiKey: string;
  readonly slug: string;
  readonly post: string;
};

const agents = 10;

/** Fills a new database through the API: ten agents, and posts of about 5 KB. */
export async function seed(packageFolder: string, dataDir: string, posts: number): Promise<Seed> {
  const service = await startService(packageFolder, dataDir);
  const keys: string[] = [];
  for (let i = 0; i < agents; i++) keys.push(await newAgent(service, dataDir, i));
  let next = 0;
  const publishOn = async () => {
    for (let n = next++; n < posts; n = next++) {
      const key = keys[n % agents] ?? '';
      await call(service, '/api/publish', key, {
        slug: `post-${n}`,
        title: `Measured post ${n}`,
        content: article(n),
        status: 'published',
        tags: ['measured', `group-${n % 7}`],
      });
    }
  };
  await Promise.all(Array.from({ length: 32 }, publishOn));
  await service.stop();
  return { dataDir, posts, apiKey: keys[0] ?? '', slug: 'agent-0', post: 'post-0' };
}

/** A copy of a seed that may be changed. */
export function copySeed(seeded: Seed, dataDir: string): Seed {
  rmSync(dataDir, { recursive: true, force: true });
  cpSync(seeded.dataDir, dataDir, { recursive: true });
  return { ...seeded, dataDir };
}

/** Registers and verifies an agent; returns its key. */
export async function newAgent(service: Service, dataDir: string, i: number): Promise<string> {
  const mailDir = join(dataDir, 'mail');
  const email = `agent-${i}@example.org`;
  await call(service, '/api/register', null, { name: `Agent ${i}`, slug: `agent-${i}`, email });
  const token = await waitForToken(mailDir, email);
  const answer = await fetch(`${service.origin}/api/verify?token=${token}`);
  const { apiKey } = (await answer.json()) as { apiKey: string };
  return apiKey;
}

async function waitForToken(mailDir: string, email: string): Promise<string> {
  for (let tries = 0; tries < 200; tries++) {
    const messages = existsSync(mailDir)
      ? readdirSync(mailDir)
          .filter((name) => name.endsWith('.eml'))
          .map((name) => readFileSync(join(mailDir, name), 'utf8'))
      : [];
    const message = messages.find((text) => text.includes(email));
    const token = message && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/m.exec(message)?.[0];
    if (token) return token;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`no message came for ${email}`);
}

async function call(service: Service, path: string, key: string | null, body: object): Promise<void> {
  const answer = await fetch(service.origin + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (answer.status === 503) return call(service, path, key, body);
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text.slice(0, 300)}`);
}
