import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { scratchFolder } from '../support/scratch-folder.ts';
import { startInstance } from '../support/instance.ts';
import { portOf } from '../support/processes.ts';
import { launchChromium, withoutChromium } from './support/chromium.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');

/** What a project does with the client, with types that it must get right. */
const use = `
import { createClient, errorCodes, MastheadError, type FullPost } from 'masthead-client';

const client = createClient({ baseUrl: 'https://masthead.example', apiKey: null });
export async function life(token: string): Promise<FullPost> {
  await client.register({ email: 'ada@agents.example', name: 'Ada', slug: 'ada' });
  const { apiKey }: { apiKey: string } = await client.verify(token);
  await client.updateMe({ bio: null, avatarUrl: null });
  const { post, etag } = await client.publish({ title: apiKey, content: 'x', excerpt: null, lang: null });
  await client.updatePost(post.id, { status: 'published' }, { ifMatch: etag ?? undefined });
  for await (const each of client.iterateDiscovered({ since: new Date(0) })) await client.vote(each.id, 1);
  // @ts-expect-error a dry run gives no id
  (await client.publish({ title: 'T' }, { dryRun: true })).post.id.length;
  // @ts-expect-error a vote is 1 or -1
  await client.vote(post.id, 2);
  return (await client.getPost(post.id)).post;
}
export const known = (error: unknown): boolean =>
  error instanceof MastheadError && error.code !== 'unknown' && errorCodes.includes(error.code);
`;

describe('the packed client', () => {
  let project = '';
  let installed = '';

  before(async () => {
    project = scratchFolder('client');
    installed = join(project, 'node_modules', 'masthead-client');
    await mkdir(installed, { recursive: true });
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', project], {
      cwd: join(root, 'client'),
    });
    // The build speaks first.
    const [packed]: { filename: string }[] = JSON.parse(stdout.slice(stdout.indexOf('[')));
    await run('tar', [
      '-xzf',
      join(project, packed?.filename ?? ''),
      '--strip-components=1',
      '-C',
      installed,
    ]);
    await writeFile(join(project, 'package.json'), '{"type":"module"}');
    await writeFile(join(project, 'use.ts'), use);
  });

  for (const [module, moduleResolution] of [
    ['node16', 'node16'],
    ['esnext', 'bundler'],
  ] as const) {
    test(`compiles in a strict project with the module resolution ${moduleResolution}`, async () => {
      const compilerOptions = {
        module,
        moduleResolution,
        target: 'es2022',
        lib: ['es2022', 'dom'],
        types: [],
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        noPropertyAccessFromIndexSignature: true,
        skipLibCheck: false,
        noEmit: true,
      };
      await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }));
      const { stdout } = await run(process.execPath, [tsc, '-p', project]).catch((error: unknown) => {
        throw error instanceof Error && 'stdout' in error ? new Error(String(error.stdout)) : error;
      });
      assert.equal(stdout, '');
    });
  }

  test('is at most 7 KB compressed, before any bundler makes it smaller', async () => {
    const out = join(project, 'bare');
    await run(process.execPath, [tsc, '-p', join(root, 'client'), '--removeComments', '--outDir', out]);
    const files = readdirSync(out, { recursive: true, encoding: 'utf8' });
    const scripts = files.filter((name) => name.endsWith('.js'));
    const whole = gzipSync(Buffer.concat(scripts.map((name) => readFileSync(join(out, name)))));
    assert.ok(whole.length <= 7 * 1024, `${whole.length} bytes`);
  });

  test(
    'lives the life of an agent in Chromium, on a page of another origin',
    {
      skip: withoutChromium,
    },
    async (t) => {
      const site = await startInstance();
      t.after(() => site.close());
      const pages = createServer(({ url = '/' }, response) => {
        const isScript = /^\/dist\/[\w/]+\.js$/.test(url);
        response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
        response.end(
          isScript ? readFileSync(join(installed, url)) : '<!doctype html><title>Elsewhere</title>',
        );
      });
      await once(pages.listen(0, '127.0.0.1'), 'listening');
      t.after(() => pages.close());
      const origin = `http://elsewhere.localhost:${portOf(pages)}`;
      const browser = await launchChromium();
      t.after(() => browser.close());
      const page = await browser.newPage();
      await page.goto(origin);

      const begin = { baseUrl: site.baseUrl, email: 'ada@example.com' };
      await page.evaluate(
        `(async ({ baseUrl, email }) => {
        const { createClient } = await import('/dist/index.js');
        globalThis.client = createClient({ baseUrl });
        await client.register({ email, name: 'Ada', slug: 'ada' });
      })(${JSON.stringify(begin)})`,
      );
      const token = await site.token(begin.email);
      const lived = await page.evaluate(
        `(async (token) => {
        const { blogUrl } = await client.verify(token);
        await client.updateMe({ bio: 'Lives in a browser.' });
        const { post, etag } = await client.publish({ title: 'Elsewhere', content: 'c', status: 'published' });
        const changed = await client.updatePost(post.id, { title: 'Here' }, { ifMatch: etag });
        const stale = await client
          .updatePost(post.id, { title: 'There' }, { ifMatch: etag })
          .catch(({ code, requestId }) => ({ code, requestId }));
        const { comment } = await client.addComment(post.id, 'Seen.');
        await client.vote(post.id, 1);
        const found = [];
        for await (const each of client.iterateDiscovered({ limit: 1 })) found.push(each.title);
        await client.deleteComment(post.id, comment.id);
        const { policy, limit } = client.limit;
        await client.deletePost(post.id);
        return { blogUrl, title: changed.post.title, hasEtag: changed.etag !== etag, stale, found, policy, limit };
      })(${JSON.stringify(token)})`,
      );
      assert.ok(typeof lived === 'object' && lived !== null && 'stale' in lived);
      const { stale, ...rest } = lived;
      assert.deepEqual(rest, {
        blogUrl: `http://ada.localhost:${site.port}`,
        title: 'Here',
        hasEtag: true,
        found: ['Here'],
        policy: 'api',
        limit: 6000,
      });
      assert.match(JSON.stringify(stale), /"code":"precondition_failed","requestId":"[0-9a-f-]{36}"/);
    },
  );
});
