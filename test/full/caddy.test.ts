import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { examineWayIn } from '../../src/cli/doctor/way-in.ts';
import { probes } from '../../src/cli/doctor/probes.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createLog } from '../../src/platform/log.ts';
import { openContext } from '../../src/process/open-context.ts';
import { caddyVersion, startCaddy } from '../support/caddy.ts';
import { masthead } from '../support/command-line.ts';
import { request } from '../support/http.ts';
import { makeLargePng } from '../support/made-pictures.ts';
import { variantNames } from '../support/instance.ts';
import { freePort, spawnServer } from '../support/processes.ts';
import { scratchFolder } from '../support/scratch-folder.ts';

const missing = caddyVersion() === null ? 'Caddy is not installed: apt-get install caddy' : false;
if (missing) console.error(`SKIPPED: ${missing}`);

describe('behind Caddy as it is shipped, over TLS', { skip: missing }, () => {
  for (const variant of variantNames) {
    test(`${variant}: from nothing to the first post, and doctor finds the way in`, async (t) => {
      const folder = scratchFolder('caddy');
      const domain = 'masthead.test';
      const [port, own, internal] = [await freePort(), await freePort(), await freePort()];
      const base = `https://${domain}:${port}`;
      const env = {
        DATA_DIR: join(folder, 'data'),
        PORT: String(own),
        BASE_URL: base,
        VARIANT: variant,
        TRUST_PROXY: 'loopback',
        INTERNAL_PORT: String(internal),
      };
      const server = await spawnServer({ env });
      t.after(() => server.kill('SIGKILL'));
      mkdirSync(join(folder, 'caddy-home'));
      const caddy = await startCaddy({
        folder: join(folder, 'caddy-home'),
        domain,
        upstreamPort: own,
        internal,
        port,
      });
      t.after(() => caddy.stop());

      const json = { 'content-type': 'application/json' };
      const registered = await caddy.ask(`${base}/api/register`, {
        method: 'POST',
        headers: json,
        body: JSON.stringify({
          email: 'ada@example.com',
          name: 'Ada',
          slug: variant === 'path' ? undefined : 'ada',
        }),
      });
      assert.equal(registered.status, 200, registered.text);
      const token = await masthead(['mail', '--last', '--token', '--to', 'ada@example.com'], env);
      const { apiKey, blogUrl } = JSON.parse(
        (await caddy.ask(`${base}/api/verify?token=${token.stdout}`)).text,
      );
      // No certificate for a host that is no blog with a post: neither a stranger's, nor one that is empty.
      const blogs = [`https://strange.${domain}:${port}/`, `https://other.test:${port}/`];
      for (const url of blogs) await assert.rejects(caddy.ask(url), /SSL|TLS|alert|ECONNRESET/i, url);
      const published = await caddy.ask(`${base}/api/publish`, {
        method: 'POST',
        headers: { ...json, authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ title: 'Over TLS', content: 'The first.', status: 'published' }),
      });
      assert.equal(published.status, 201, published.text);
      const upload = (bytes: number) =>
        caddy.ask(`${base}/api/media`, {
          method: 'POST',
          headers: { 'content-type': 'image/png', authorization: `Bearer ${apiKey}` },
          body: makeLargePng(bytes),
        });
      const stored = await upload(10 * 1024 ** 2 - 20_000);
      assert.equal(stored.status, 201, stored.text);
      const refused = await upload(13 * 1024 ** 2);
      assert.deepEqual([refused.status, JSON.parse(refused.text).code], [413, 'too_large']);
      const page = await caddy.ask(`${blogUrl}/over-tls`);
      assert.match(page.text, /The first\./);
      for (const [path, status] of [
        ['/', 301],
        ['/api/posts', 403],
      ] as const) {
        const answer = await request(`http://127.0.0.1:${caddy.httpPort}`, {
          path,
          host: `${domain}:${caddy.httpPort}`,
        });
        assert.equal(answer.status, status);
      }

      const config = loadConfig(env);
      const ctx = await openContext(config, { existing: true, log: createLog('silent') });
      const findings = await examineWayIn(
        config,
        { ...probes, ask: (url, headers) => withHeaders(caddy, url, headers) },
        ctx.secretKey,
      );
      await ctx.close();
      assert.deepEqual(
        findings.map(({ what, state }) => [what, state]),
        [
          ['way in', 'ok'],
          ['proxy', 'ok'],
        ],
        JSON.stringify(findings),
      );
    });
  }
});

async function withHeaders(
  caddy: Awaited<ReturnType<typeof startCaddy>>,
  url: string,
  headers: Readonly<Record<string, string>>,
) {
  const { status, text, headers: received } = await caddy.ask(url, { headers });
  return { status, body: text, headers: received };
}
